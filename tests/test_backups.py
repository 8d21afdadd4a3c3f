"""A backup restores a copy that is whole, guarded like the original, and says when it is not."""

from __future__ import annotations

import gzip
import os
import secrets
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.processes import ROOT, SERVER, Command, command, scratch_database

DATA = Path(__file__).resolve().parent / "data"

pytestmark = pytest.mark.database


Empty = Callable[[], Command]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Empty]:
    """`manage.py` on one more database that has nothing in it yet."""
    with ExitStack() as stack:

        def make() -> Command:
            extra = {}
            if SERVER:
                name = f"muniment_backup_{secrets.token_hex(4)}"
                extra["DATABASE_URL"] = stack.enter_context(scratch_database(name))
            return command(tmp_path_factory.mktemp("place"), **extra)

        yield make


@pytest.fixture(scope="module")
def published(empty: Empty) -> Command:
    """The castle, probed and published."""
    run = empty()
    maker = (
        "from django.contrib.auth.models import User; "
        "User.objects.create(username='anna', is_staff=True, is_superuser=True)"
    )
    for arguments in (
        ("migrate", "-v", "0"),
        ("import_sheet", "factsheets/data/demo/castle"),
        ("run_probes", "colchester-castle", "--local"),
        ("shell", "-v", "0", "--no-imports", "-c", maker),
        ("publish_sheet", "colchester-castle", "--by", "anna", "--reason", "First."),
    ):
        answer = run(*arguments)
        assert answer.code == 0, (arguments, answer.err)
    return run


@pytest.fixture(scope="module")
def backup(published: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `backup` writes of it."""
    file = tmp_path_factory.mktemp("backup") / "muniment.backup"
    answer = published("backup", "--out", str(file))
    assert answer.code == 0, answer.err
    return file


def sql(run: Command, statement: str) -> str:
    """What the database says to a statement."""
    answer = run(
        "shell",
        "-v",
        "0",
        "--no-imports",
        "-c",
        f"from django.db import connection as c; c.cursor().execute({statement!r}); print('done')",
    )
    return answer.out + answer.err


def test_a_copy_is_whole_and_guarded_like_the_original(
    published: Command, backup: Path, empty: Empty
) -> None:
    copy = empty()

    restored = copy("restore", str(backup))

    assert restored.code == 0, restored.err
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert "Restored: 1 publications and" in restored.out
    assert restored.out.strip().endswith(" 0 faults.")
    assert copy("check", "--database", "default", "--fail-level", "WARNING").code == 0
    assert "never changed" in sql(copy, "UPDATE factsheets_publication SET reason = 'x'")
    assert "never changed" in sql(copy, "DELETE FROM factsheets_check")
    assert "never changed" in sql(copy, "UPDATE evals_run SET outcome = 'failed'")
    assert copy("gate", "colchester-castle").out == published("gate", "colchester-castle").out


def test_an_altered_byte_in_a_copy_is_found(backup: Path, empty: Empty, tmp_path: Path) -> None:
    again = tmp_path / "altered.backup"
    altered = empty()
    altered("restore", str(backup))
    lift = (
        "from django.db import connection as c; from factsheets import triggers as t; "
        "t.drop(c, t.FACTSHEETS); c.cursor().execute("
        "\"UPDATE factsheets_publication SET reason = 'another', slug = 'another'\")"
    )
    assert altered("shell", "-v", "0", "--no-imports", "-c", lift).code == 0
    altered("backup", "--out", str(again))

    restored = empty()("restore", str(again))

    assert restored.code == 1
    assert "body-disagrees: Publication 1 of colchester-castle" in restored.out


def test_a_backup_is_never_written_over_another_file(published: Command, tmp_path: Path) -> None:
    file = tmp_path / "kept"
    file.write_text("something of value")

    answer = published("backup", "--out", str(file))

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert "is there already" in answer.err
    assert file.read_text() == "something of value"


def test_a_backup_into_a_folder_that_is_not_there_is_one_sentence(
    published: Command, tmp_path: Path
) -> None:
    answer = published("backup", "--out", str(tmp_path / "nowhere" / "file"))

    assert answer.code == 2
    assert len(answer.err.splitlines()) == 1


def test_a_database_with_tables_is_not_restored_into(published: Command, backup: Path) -> None:
    answer = published("restore", str(backup))

    assert answer.code == 2
    assert "has tables already" in answer.err


@pytest.mark.parametrize("damage", ["cut", "foreign", "missing"])
def test_a_damaged_or_foreign_file_is_refused_and_nothing_is_half_written(
    backup: Path, empty: Empty, tmp_path: Path, damage: str
) -> None:
    place = empty()
    whole = backup.read_bytes()
    broken = tmp_path / "broken"
    contents = {"cut": whole[: len(whole) // 2], "foreign": b"PK\x03\x04 something else"}
    [broken.write_bytes(contents[damage])] if damage in contents else []

    refused = place("restore", str(broken))

    assert refused.code == 2
    assert refused.err.startswith("error: ")
    assert len(refused.err.splitlines()) == 1
    assert tables(place) == "[]"


def test_a_database_of_another_program_is_refused_and_nothing_of_it_read(
    empty: Empty, tmp_path: Path
) -> None:
    place = empty()
    file = written_by_hand(tmp_path, "CREATE TABLE songs (name TEXT);")

    answer = place("restore", str(file))

    assert answer.code == 2
    assert "is no backup of a Muniment database" in answer.err
    assert tables(place) == "[]"


def test_a_backup_of_a_later_version_is_refused_and_nothing_of_it_read(
    empty: Empty, tmp_path: Path
) -> None:
    place = empty()
    file = written_by_hand(
        tmp_path,
        "CREATE TABLE django_migrations (id integer, app text, name text, applied text);"
        "INSERT INTO django_migrations VALUES (1, 'factsheets', '0001_initial', ''),"
        "(2, 'evals', '0001_initial', ''), (3, 'factsheets', '0999_of_the_future', '');",
    )

    answer = place("restore", str(file))

    assert answer.code == 2
    assert "made by a later version, which has the migration factsheets.0999_of" in answer.err
    assert tables(place) == "[]"


def test_a_copy_taken_while_others_write_is_one_moment(
    published: Command, empty: Empty, tmp_path: Path
) -> None:
    copy, file = empty(), tmp_path / "torn.backup"
    # Pairs of rows, each written at once: a copy that has one without the other is torn.
    writer = subprocess.Popen(
        [sys.executable, "-c", PAIRS],
        cwd=ROOT,
        env={**os.environ, **published.environment, "DJANGO_SETTINGS_MODULE": "config.settings"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "writing\n"

    written = published("backup", "--out", str(file))
    writer.terminate()
    writer.wait()
    restored = copy("restore", str(file))

    assert (written.code, restored.code) == (0, 0), written.err + restored.err
    counted = "from factsheets.models import Heartbeat as H; print(H.objects.filter(name__startswith='left').count() - H.objects.filter(name__startswith='right').count(), H.objects.count() > 0)"
    assert copy("shell", "-v", "0", "--no-imports", "-c", counted).out == "0 True\n"


@pytest.mark.skipif(not SERVER, reason="PostgreSQL alone needs programs of its own")
def test_tools_older_than_the_server_are_named_with_what_to_install(
    published: Command, tmp_path: Path
) -> None:
    old = tmp_path / "pg_dump"
    old.write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 9.6.24'\n")
    old.chmod(0o755)

    path = f"{tmp_path}:{os.environ['PATH']}"
    answer = published("backup", "--out", str(tmp_path / "file"), PATH=path)

    assert answer.code == 2
    assert answer.err.startswith("error: pg_dump is of PostgreSQL 9 and the server of ")
    assert "install the client tools of PostgreSQL" in answer.err


@pytest.mark.skipif(not SERVER, reason="PostgreSQL alone needs programs of its own")
def test_without_the_servers_tools_a_backup_says_what_to_install(
    published: Command, tmp_path: Path
) -> None:
    answer = published("backup", "--out", str(tmp_path / "file"), PATH="/nowhere")

    assert answer.code == 2
    assert answer.err.startswith("error: pg_dump is not installed here")


def test_a_backup_of_the_first_landing_is_brought_up_to_date(empty: Empty, tmp_path: Path) -> None:
    file = first_landing(tmp_path)

    restored = empty()("restore", str(file))

    assert restored.code == 0, restored.err
    assert restored.out.strip().endswith(" 0 faults.")


def first_landing(folder: Path) -> Path:
    """The first landing's data as a backup of today would hold it."""
    file = folder / "first-landing.backup"
    if SERVER:
        dump = gzip.decompress((DATA / "first-landing.postgres.sql.gz").read_bytes())
        with scratch_database(f"muniment_first_{secrets.token_hex(4)}") as address:
            subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", address], input=dump, check=True)
            subprocess.run(["pg_dump", "-Fc", "-f", str(file), address], check=True)
    else:
        dump = gzip.decompress((DATA / "first-landing.sqlite.sql.gz").read_bytes())
        with sqlite3.connect(file) as database:
            database.executescript(dump.decode())
    return file


def written_by_hand(folder: Path, statements: str) -> Path:
    """A whole file of the right kind, with these tables alone."""
    file = folder / "by-hand"
    if SERVER:
        with scratch_database(f"muniment_hand_{secrets.token_hex(4)}") as address:
            subprocess.run(["psql", "-q", "-c", statements, address], check=True)
            subprocess.run(["pg_dump", "-Fc", "-f", str(file), address], check=True)
    else:
        with sqlite3.connect(file) as database:
            database.executescript(statements)
    return file


def tables(run: Command) -> str:
    look = "from django.db import connection as c; print(c.introspection.table_names())"
    return run("shell", "-v", "0", "--no-imports", "-c", look).out.strip()


PAIRS = """
import django; django.setup()
from django.db import transaction
from django.utils import timezone
from factsheets.models import Heartbeat
for n in range(1_000_000):
    with transaction.atomic():
        for side in ("left", "right"):
            Heartbeat.objects.create(name=f"{side} {n}", at=timezone.now())
    if n == 20:
        print("writing", flush=True)
"""
