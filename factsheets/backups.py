"""The whole database into one file and back, on SQLite and PostgreSQL.

A backup is one moment, taken while everything goes on. A restore is all or
nothing, and only into a database that has no tables yet.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.migrations.loader import MigrationLoader

from factsheets.errors import Refused

_SQLITE = b"SQLite format 3\x00"
_POSTGRES = b"PGDMP"


class BackupRefused(Refused):
    """A backup that cannot be written, or a file that cannot be restored; nothing was changed."""

    code = "backup-refused"


def write(path: Path) -> None:
    """Write the database to a new file that its owner alone may read."""
    if path.exists():
        raise BackupRefused(f"{path} is there already; give another name, for none is overwritten.")
    if connection.vendor == "postgresql":
        _is_as_new_as_the_server("pg_dump")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        # Made first, so that no moment passes in which others could read it.
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        if connection.vendor == "postgresql":
            _run(
                "pg_dump",
                "--format=custom",
                "--no-owner",
                "--no-privileges",
                f"--file={unfinished}",
            )
        else:
            _copy_sqlite_to(unfinished)
        _on_the_disk(unfinished)
        os.link(unfinished, path)
    except FileExistsError as error:
        raise BackupRefused(
            f"{path} was made by somebody else meanwhile; give another name."
        ) from error
    except OSError as error:
        raise BackupRefused(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        unfinished.unlink(missing_ok=True)


def read(path: Path) -> None:
    """Read a backup into the database, which must not have any table yet."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_SQLITE))
    except OSError as error:
        raise BackupRefused(f"{path} cannot be read: {error.strerror}.") from error
    if connection.introspection.table_names():
        raise BackupRefused(
            "The database has tables already; make an empty one and name it in DATABASE_URL."
        )
    if connection.vendor == "postgresql":
        _is(head.startswith(_POSTGRES), path, "PostgreSQL")
        _is_as_new_as_the_server("pg_restore")
        _is_ours(_migrations_in_dump(path), path)
        _run(
            "pg_restore",
            "--no-owner",
            "--no-privileges",
            "--exit-on-error",
            "--single-transaction",
            f"--dbname={connection.settings_dict['NAME']}",
            str(path),
        )
    else:
        _is(head == _SQLITE, path, "SQLite")
        _copy_sqlite_from(path)


def _is(fits: bool, path: Path, database: str) -> None:
    if not fits:
        raise BackupRefused(
            f"{path} is no backup of a {database} database; choose another file or database."
        )


def _is_ours(migrations: set[tuple[str, str]], path: Path) -> None:
    """Every migration in it is known here: it is a Muniment's, and none later than this one."""
    known = set(MigrationLoader(None).disk_migrations)
    apps = {app for app, _ in known}
    _is({"factsheets", "evals"} <= {app for app, _ in migrations}, path, "Muniment")
    for app, name in sorted(migrations):
        if app in apps and (app, name) not in known:
            raise BackupRefused(
                f"{path} was made by a later version, which has the migration {app}.{name}; "
                "restore it with that version."
            )


def _migrations_in_copy(copy: sqlite3.Connection) -> set[tuple[str, str]]:
    try:
        return set(copy.execute("SELECT app, name FROM django_migrations"))
    except sqlite3.OperationalError:
        return set()


def _migrations_in_dump(path: Path) -> set[tuple[str, str]]:
    """Rows of the migrations' table, as pg_restore writes them: id, app, name, time."""
    said = _run("pg_restore", "--data-only", "--table=django_migrations", "--file=-", str(path))
    rows = (line.split("\t") for line in said.splitlines())
    return {(row[1], row[2]) for row in rows if len(row) == 4}


def _on_the_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _copy_sqlite_to(path: Path) -> None:
    connection.ensure_connection()
    with closing(sqlite3.connect(path)) as copy:
        connection.connection.backup(copy)
        # One file, that needs no other beside it.
        copy.execute("PRAGMA journal_mode=DELETE")
        _whole(copy, path)


def _copy_sqlite_from(path: Path) -> None:
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as copy:
        _whole(copy, path)
        _is_ours(_migrations_in_copy(copy), path)
        connection.ensure_connection()
        copy.backup(connection.connection)


def _whole(copy: sqlite3.Connection, path: Path) -> None:
    try:
        found = copy.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.DatabaseError as error:
        raise BackupRefused(f"{path} is damaged; choose another backup.") from error
    if found != ("ok",):
        raise BackupRefused(f"{path} is damaged; choose another backup.")


def _is_as_new_as_the_server(program: str) -> None:
    version = re.search(r"\d+", _run(program, "--version"))
    connection.ensure_connection()
    server = connection.pg_version // 10_000  # type: ignore[attr-defined]
    if version and int(version[0]) < server:
        raise BackupRefused(
            f"{program} is of PostgreSQL {version[0]} and the server of {server}; "
            f"install the client tools of PostgreSQL {server}."
        )


def _run(program: str, *arguments: str) -> str:
    """What a tool of PostgreSQL's says. What it needs to log in stands in its environment alone."""
    if shutil.which(program) is None:
        raise BackupRefused(
            f"{program} is not installed here; install the client tools of your PostgreSQL."
        )
    ended = subprocess.run(  # noqa: S603
        [program, *arguments],
        env={**os.environ, **_login(connection.settings_dict)},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if ended.returncode:
        said = (ended.stderr.strip().splitlines() or ["no reason given"])[0]
        raise BackupRefused(f"{program} did not end well and nothing was changed ({said}).")
    return ended.stdout


def _login(database: Mapping[str, Any]) -> dict[str, str]:
    """How Django logs in, as the tools want it: parts of the address, and what stood behind `?`."""
    said = {
        **{name: database.get(key) for name, key in _PARTS.items()},
        **{name: database.get("OPTIONS", {}).get(key) for name, key in _OPTIONS.items()},
    }
    return {name: str(value) for name, value in said.items() if value}


_PARTS = {
    "PGDATABASE": "NAME",
    "PGUSER": "USER",
    "PGPASSWORD": "PASSWORD",
    "PGHOST": "HOST",
    "PGPORT": "PORT",
}
_OPTIONS = {
    f"PG{key.upper()}": key
    for key in ("sslmode", "sslrootcert", "sslcert", "sslkey", "service", "passfile")
}
