"""A backup restores a copy that is whole, guarded like the original, and says when it is not."""

from __future__ import annotations

import gzip
import secrets
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.processes import SERVER, Command, command, scratch_database

DATA = Path(__file__).resolve().parent / "data"

pytestmark = pytest.mark.database


@pytest.fixture
def places(tmp_path: Path) -> Iterator[list[Command]]:
    """`manage.py` on three databases that have nothing in them yet."""
    with ExitStack() as stack:
        found = []
        for place in ("first", "second", "third"):
            folder = tmp_path / place
            folder.mkdir()
            extra = {}
            if SERVER:
                name = f"muniment_backup_{secrets.token_hex(4)}"
                extra["DATABASE_URL"] = stack.enter_context(scratch_database(name))
            found.append(command(folder, **extra))
        yield found


@pytest.fixture
def published(places: list[Command]) -> Command:
    """The castle, probed and published."""
    run = places[0]
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
    published: Command, places: list[Command], tmp_path: Path
) -> None:
    file = tmp_path / "muniment.backup"

    written = published("backup", "--out", str(file))
    restored = places[1]("restore", str(file))

    assert (written.code, restored.code) == (0, 0), written.err + restored.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "Restored: 1 publications and" in restored.out
    assert restored.out.strip().endswith(" 0 faults.")
    assert places[1]("check", "--database", "default", "--fail-level", "WARNING").code == 0
    assert "never changed" in sql(places[1], "UPDATE factsheets_publication SET reason = 'x'")
    assert "never changed" in sql(places[1], "DELETE FROM factsheets_check")
    assert "never changed" in sql(places[1], "UPDATE evals_run SET outcome = 'failed'")
    assert places[1]("gate", "colchester-castle").out == published("gate", "colchester-castle").out


def test_an_altered_byte_in_a_copy_is_found(
    published: Command, places: list[Command], tmp_path: Path
) -> None:
    file, again = tmp_path / "muniment.backup", tmp_path / "altered.backup"
    published("backup", "--out", str(file))
    places[1]("restore", str(file))
    lift = (
        "from django.db import connection as c; from factsheets import triggers as t; "
        "t.drop(c, t.FACTSHEETS); c.cursor().execute("
        "\"UPDATE factsheets_publication SET reason = 'another', slug = 'another'\")"
    )
    assert places[1]("shell", "-v", "0", "--no-imports", "-c", lift).code == 0
    places[1]("backup", "--out", str(again))

    restored = places[2]("restore", str(again))

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


def test_a_database_with_tables_is_not_restored_into(published: Command, tmp_path: Path) -> None:
    file = tmp_path / "muniment.backup"
    published("backup", "--out", str(file))

    answer = published("restore", str(file))

    assert answer.code == 2
    assert "has tables already" in answer.err


@pytest.mark.parametrize("damage", ["cut", "foreign", "missing"])
def test_a_damaged_or_foreign_file_is_refused_and_nothing_is_half_written(
    published: Command, places: list[Command], tmp_path: Path, damage: str
) -> None:
    file = tmp_path / "muniment.backup"
    published("backup", "--out", str(file))
    whole = file.read_bytes()
    broken = tmp_path / "broken"
    contents = {"cut": whole[: len(whole) // 2], "foreign": b"PK\x03\x04 something else"}
    [broken.write_bytes(contents[damage])] if damage in contents else []

    refused = places[1]("restore", str(broken))
    afterwards = places[1]("restore", str(file))

    assert refused.code == 2
    assert len(refused.err.splitlines()) == 1
    assert afterwards.code == 0, afterwards.err


@pytest.mark.skipif(bool(SERVER), reason="SQLite alone has a file of its own")
def test_a_database_of_another_program_is_refused(places: list[Command], tmp_path: Path) -> None:
    file = tmp_path / "other.sqlite3"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE songs (name TEXT)")

    answer = places[0]("restore", str(file))

    assert answer.code == 2
    assert "is no backup of a Muniment database" in answer.err


@pytest.mark.skipif(not SERVER, reason="PostgreSQL alone needs programs of its own")
def test_without_the_servers_tools_a_backup_says_what_to_install(
    published: Command, tmp_path: Path
) -> None:
    answer = published("backup", "--out", str(tmp_path / "file"), PATH="/nowhere")

    assert answer.code == 2
    assert answer.err.startswith("error: pg_dump is not installed here")


def test_a_backup_of_the_first_landing_is_brought_up_to_date(
    places: list[Command], tmp_path: Path
) -> None:
    file = first_landing(tmp_path)

    restored = places[0]("restore", str(file))

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
