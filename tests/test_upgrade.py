"""Data of an earlier version goes on: the first landing's, as its own programs wrote it."""

from __future__ import annotations

import gzip
import secrets
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.processes import SERVER, Command, command, scratch_database

DATA = Path(__file__).resolve().parent / "data"

#: Rows of each kind in the first landing's demo, counted there.
ROWS = {"Sheet": 2, "Section": 27, "Source": 55, "Rule": 31, "Check": 25, "Publication": 1}


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[Command]:
    """`manage.py` on the first landing's data, migrated by today's code."""
    if SERVER:
        name = f"muniment_upgrade_{secrets.token_hex(4)}"
        with scratch_database(name):
            address = urlunsplit(urlsplit(SERVER)._replace(path=f"/{name}"))
            dump = gzip.decompress((DATA / "first-landing.postgres.sql.gz").read_bytes())
            subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", address], input=dump, check=True)
            yield migrated(command(tmp_path, DATABASE_URL=address))
    else:
        with sqlite3.connect(tmp_path / "muniment.sqlite3") as database:
            dump = gzip.decompress((DATA / "first-landing.sqlite.sql.gz").read_bytes())
            database.executescript(dump.decode())
        yield migrated(command(tmp_path))


def migrated(run: Command) -> Command:
    answer = run("migrate", "-v", "0")
    assert answer.code == 0, answer.err
    return run


@pytest.mark.database
def test_the_first_landings_data_is_whole_after_todays_migrations(upgraded: Command) -> None:
    checked = upgraded("check", "--database", "default", "--fail-level", "WARNING")
    publications = upgraded("verify_publications")
    history = upgraded("verify_history")

    assert (checked.code, checked.err) == (0, "")
    assert publications.out.strip() == "1 publications verified, 0 faults."
    assert history.code == 0
    assert history.out.strip().endswith(" 0 faults.")


@pytest.mark.database
def test_no_row_is_lost_and_the_served_bytes_are_the_same(upgraded: Command) -> None:
    counted = upgraded(
        "shell",
        "-v",
        "0",
        "--no-imports",
        "-c",
        "import hashlib; from factsheets import models; from factsheets.models import Publication;"
        f"print({{name: getattr(models, name).objects.count() for name in {list(ROWS)!r}}});"
        "p = Publication.objects.get(); print(hashlib.sha256(p.body).hexdigest() == p.body_hash)",
    )

    assert counted.out.splitlines() == [str(ROWS), "True"]


@pytest.mark.database
def test_checks_of_the_first_landing_still_count(upgraded: Command) -> None:
    report = upgraded("stale_report", "--on", "2026-11-30")

    assert report.out.splitlines()[-1] == "2026-11-30: 3 of 27 sections."
