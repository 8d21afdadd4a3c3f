"""The whole database into one file and back, on SQLite and PostgreSQL.

A backup is one moment, taken while everything goes on. A restore is all or
nothing, and only into a database that has no tables yet.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from django.db import connection

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
        tables = {
            row[0] for row in copy.execute("SELECT name FROM sqlite_master WHERE type='table'")
        }
        _is({"django_migrations", "factsheets_sheet"} <= tables, path, "Muniment")
        connection.ensure_connection()
        copy.backup(connection.connection)


def _whole(copy: sqlite3.Connection, path: Path) -> None:
    try:
        found = copy.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.DatabaseError as error:
        raise BackupRefused(f"{path} is damaged; choose another backup.") from error
    if found != ("ok",):
        raise BackupRefused(f"{path} is damaged; choose another backup.")


def _run(program: str, *arguments: str) -> None:
    """A tool of PostgreSQL's. What it needs to log in stands in its environment alone."""
    if shutil.which(program) is None:
        raise BackupRefused(
            f"{program} is not installed here; install the client tools of your PostgreSQL."
        )
    ended = subprocess.run(  # noqa: S603
        [program, *arguments],
        env={**os.environ, **_login(connection.settings_dict)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        said = (ended.stderr.strip().splitlines() or ["no reason given"])[0]
        raise BackupRefused(f"{program} did not end well and nothing was changed ({said}).")


def _login(database: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: str(database[key])
        for name, key in (
            ("PGDATABASE", "NAME"),
            ("PGUSER", "USER"),
            ("PGPASSWORD", "PASSWORD"),
            ("PGHOST", "HOST"),
            ("PGPORT", "PORT"),
        )
        if database.get(key)
    }
