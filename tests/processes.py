"""Commands of the product on data of their own, and scratch databases on the server in use."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

ROOT = Path(__file__).resolve().parent.parent

#: The PostgreSQL server that the tests were given, or nothing.
SERVER = (
    os.environ.get("DATABASE_URL", "")
    if os.environ.get("DATABASE_URL", "").startswith("postgres")
    else ""
)


@dataclass
class Answer:
    """What came back from a command."""

    code: int
    out: str
    err: str


@dataclass
class Command:
    """`manage.py` on data of its own."""

    environment: dict[str, str]

    def __call__(self, *arguments: str, **more: str) -> Answer:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        return Answer(done.returncode, done.stdout, done.stderr)


def command(var: Path, **environment: str) -> Command:
    """`manage.py` on the data in a folder, or in the database that the environment names."""
    return Command(
        {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "READ_DOT_ENV": "no",
            "SECRET_KEY": "k" * 50,
            "MUNIMENT_VAR": str(var),
            "PYTHONWARNINGS": "ignore",
            **environment,
        }
    )


@contextmanager
def scratch_database(name: str) -> Iterator[str]:
    """A new database on the server, with its address; dropped in the end."""
    import psycopg

    maintenance = urlunsplit(urlsplit(SERVER)._replace(path="/postgres"))
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    try:
        yield urlunsplit(urlsplit(SERVER)._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(maintenance, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
