"""Data of an earlier version goes on: the first landing's, as its own programs wrote it."""

from __future__ import annotations

import gzip
import json
import secrets
import sqlite3
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.processes import SERVER, Command, command, scratch_database

DATA = Path(__file__).resolve().parent / "data"

pytestmark = pytest.mark.database

#: What there is, asked of the database past all models: they may know columns that it has not.
LOOK = """
import json; from django.db import connection
with connection.cursor() as cursor:
    rows = {}
    for table in connection.introspection.table_names(cursor):
        if table.startswith(("factsheets_", "evals_", "auth_user")):
            cursor.execute(f'SELECT count(*) FROM "{table}"')
            rows[table] = cursor.fetchone()[0]
    cursor.execute("SELECT body_hash FROM factsheets_publication")
    print(json.dumps({"rows": rows, "body_hash": cursor.fetchone()[0]}))
"""

#: As a bot pulls.
PULL = """
import hashlib, json; from django.test import Client
place = "/api/v1/sheets/colchester-castle/"
first = Client().get(place)
again = Client().get(place, headers={"if-none-match": first["ETag"]})
numbered = Client().get(place + "publications/1/")
print(json.dumps({
    "status": first.status_code, "sha256": hashlib.sha256(first.content).hexdigest(),
    "again": again.status_code, "numbered": hashlib.sha256(numbered.content).hexdigest(),
}))
"""


@dataclass
class Upgraded:
    """The first landing's data after today's migrations, and what there was before them."""

    run: Command
    before: dict[str, Any]

    def asked(self, code: str) -> dict[str, Any]:
        return asked(self.run, code)


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    folder = tmp_path_factory.mktemp("upgrade")
    if SERVER:
        with scratch_database(f"muniment_upgrade_{secrets.token_hex(4)}") as address:
            dump = gzip.decompress((DATA / "first-landing.postgres.sql.gz").read_bytes())
            subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", address], input=dump, check=True)
            yield migrated(command(folder, DATABASE_URL=address))
    else:
        with sqlite3.connect(folder / "muniment.sqlite3") as database:
            dump = gzip.decompress((DATA / "first-landing.sqlite.sql.gz").read_bytes())
            database.executescript(dump.decode())
        yield migrated(command(folder))


def migrated(run: Command) -> Upgraded:
    before = asked(run, LOOK)
    answer = run("migrate", "-v", "0")
    assert answer.code == 0, answer.err
    return Upgraded(run, before)


def asked(run: Command, code: str) -> dict[str, Any]:
    answer = run("shell", "-v", "0", "--no-imports", "-c", code, ALLOWED_HOSTS="testserver")
    assert answer.code == 0, answer.err
    found: dict[str, Any] = json.loads(answer.out)
    return found


def test_the_first_landings_data_is_whole_after_todays_migrations(upgraded: Upgraded) -> None:
    checked = upgraded.run("check", "--database", "default", "--fail-level", "WARNING")
    publications = upgraded.run("verify_publications")
    history = upgraded.run("verify_history")

    assert (checked.code, checked.err) == (0, "")
    assert publications.out.strip() == "1 publications verified, 0 faults."
    assert history.code == 0
    assert history.out.strip().endswith(" 0 faults.")


def test_the_number_of_rows_of_every_kind_is_unchanged(upgraded: Upgraded) -> None:
    after = upgraded.asked(LOOK)["rows"]

    assert upgraded.before["rows"]["factsheets_section"] == 27
    assert {t: after[t] for t in upgraded.before["rows"]} == upgraded.before["rows"]


def test_bots_get_the_same_bytes(upgraded: Upgraded) -> None:
    stored = upgraded.before["body_hash"]

    assert upgraded.asked(PULL) == {
        "status": 200,
        "sha256": stored,
        "again": 304,
        "numbered": stored,
    }


def test_checks_of_the_first_landing_still_count(upgraded: Upgraded) -> None:
    report = upgraded.run("stale_report", "--on", "2026-11-30")

    assert report.out.splitlines()[-1] == "2026-11-30: 3 of 27 sections."


def test_the_first_seal_covers_what_was_published_before_there_were_seals(
    upgraded: Upgraded,
) -> None:
    gate = upgraded.run("gate", "colchester-castle", "--json")
    withdrawn = upgraded.run(
        "withdraw_sheet", "colchester-castle", "--by", "publisher", "--reason", "for a test"
    )

    assert json.loads(gate.out)["changed_since_publication"] == {"publication": 1, "changes": []}
    assert withdrawn.code == 0, withdrawn.err
    assert upgraded.asked(SEALS) == {"seals": ["", "sealed"]}
    assert upgraded.run("verify_publications").out.endswith(" 0 faults.\n")


SEALS = """
import json; from factsheets.models import PublicationEvent
seals = PublicationEvent.objects.order_by("id").values_list("seal", flat=True)
print(json.dumps({"seals": ["sealed" if seal else "" for seal in seals]}))
"""
