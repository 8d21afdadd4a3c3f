"""The product's own processes, started for a test and used through their public doors.

By default SQLite and the embedded broker; with DATABASE_URL and REDIS_URL in
the environment a database of its own on that server, and that Redis database,
which is emptied first.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from tests.processes import ROOT, SERVER, Answer, Command, scratch_database

CASTLE = "factsheets/data/demo/castle"

#: Seconds for anything that should come to pass.
PATIENCE = 60.0


def until[T](look: Callable[[], T], *, what: str, patience: float = PATIENCE) -> T:
    """The first true answer of a look that is repeated."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError(f"Waited {patience:.0f} seconds in vain for: {what}.")


@dataclass
class Product:
    """Web, worker, beat and broker on data of their own."""

    var: Path
    extra: Mapping[str, str] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _databases: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.var.mkdir(parents=True, exist_ok=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "READ_DOT_ENV": "no",
            "SECRET_KEY": secrets.token_hex(32),
            "MUNIMENT_VAR": str(self.var),
            "LOG_LEVEL": "WARNING",
            "TICK_SECONDS": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONWARNINGS": "ignore",
            **self._services(),
            **self.extra,
        }

    def _services(self) -> dict[str, str]:
        """Where the test run was given servers: a new database, and an emptied Redis database."""
        found: dict[str, str] = {}
        if SERVER:
            name = f"muniment_flow_{secrets.token_hex(4)}"
            found["DATABASE_URL"] = self._databases.enter_context(scratch_database(name))
        if os.environ.get("REDIS_URL"):
            import redis

            # Tests may run on two processes, and each needs a queue of its own.
            parts = urlsplit(os.environ["REDIS_URL"])
            place = int(parts.path.strip("/") or 0) + int(
                os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
            )
            found["REDIS_URL"] = urlunsplit(parts._replace(path=f"/{place}"))
            redis.Redis.from_url(found["REDIS_URL"]).flushdb()
        return found

    # ---- processes ----

    def start(self) -> None:
        """Migrate, then start everything and wait until /healthz is content."""
        self.command("migrate", "-v", "0")
        self.spawn("broker", "-m", "config.broker")
        until(self._broker_answers, what="the broker")
        self.spawn(
            "web",
            "-m",
            "gunicorn",
            "config.wsgi",
            "--bind",
            f"127.0.0.1:{self.port}",
            "--worker-class",
            "gthread",
            "--workers",
            "2",
            "--threads",
            "4",
            "--no-control-socket",
        )
        self.spawn_worker()
        self.spawn("beat", "-m", "celery", "-A", "config", "beat", "--loglevel", "WARNING")
        until(self._is_healthy, what="/healthz")

    def spawn(self, name: str, *arguments: str) -> None:
        with (self.var / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *arguments], cwd=ROOT, env=self.environment, stdout=log, stderr=log
            )

    def spawn_worker(self) -> None:
        self.spawn(
            "worker",
            "-m",
            "celery",
            "-A",
            "config",
            "worker",
            "--pool",
            "threads",
            "--concurrency",
            "8",
            "--loglevel",
            "WARNING",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        )

    def kill(self, name: str) -> None:
        """As the kernel would: no farewell."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for name in reversed(list(self.processes)):
            process = self.processes[name]
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._databases.close()

    def _broker_answers(self) -> bool:
        import redis

        url = self.environment.get("REDIS_URL")
        client = (
            redis.Redis.from_url(url) if url else redis.Redis(unix_socket_path=str(self._socket()))
        )
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False

    def _socket(self) -> Path:
        out = self.command(
            "shell",
            "-v",
            "0",
            "-c",
            "from django.conf import settings; print(settings.BROKER_SOCKET)",
        ).out
        return Path(out.strip())

    def _is_healthy(self) -> bool:
        try:
            return self.get("/healthz").status == 200
        except OSError:
            return False

    # ---- doors ----

    def command(self, *arguments: str) -> Answer:
        """`manage.py` with these arguments."""
        return Command(self.environment)(*arguments)

    def rows(self, expression: str) -> Any:
        """The value of a Python expression over the product's models, as JSON carries it."""
        code = f"import json; from evals.models import *; from factsheets.models import *; print(json.dumps({expression}, default=str))"
        answer = self.command("shell", "-v", "0", "--no-imports", "-c", code)
        assert answer.code == 0, answer.err
        return json.loads(answer.out)

    def user(self, name: str, *roles: str) -> Person:
        """An account in these roles, logged in."""
        password = secrets.token_urlsafe(12)
        code = (
            "from django.contrib.auth.models import User, Group; "
            f"u = User.objects.create_user({name!r}, password={password!r}, is_staff=True); "
            f"u.groups.set(Group.objects.filter(name__in={roles!r}))"
        )
        answer = self.command("shell", "-v", "0", "--no-imports", "-c", code)
        assert answer.code == 0, answer.err
        person = Person(self, password=password, name=name)
        person.log_in()
        return person

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Page:
        return _ask(self.port, "GET", path, None, dict(headers or {}))


@dataclass
class Page:
    """An answer of the web."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Person:
    """Somebody with a session, who fills in forms as a browser would."""

    product: Product
    name: str
    password: str
    cookies: SimpleCookie = field(default_factory=SimpleCookie)

    def log_in(self) -> None:
        page = self.submit(
            "/admin/login/", "login-form", username=self.name, password=self.password
        )
        assert page.status == 302, page.text[:500]

    def get(self, path: str) -> Page:
        return self._ask("GET", path)

    def submit(self, path: str, form: str, /, **changed: str) -> Page:
        """Open a page, fill in one of its forms (by id or action), and send it."""
        page = self.get(path)
        assert page.status == 200, f"{path}: {page.status}"
        action, fields = _form(page.text, form)
        return self._ask("POST", action or path, {**fields, **changed})

    def _ask(self, method: str, path: str, data: Mapping[str, str] | None = None) -> Page:
        cookies = "; ".join(f"{c.key}={c.value}" for c in self.cookies.values())
        headers = {"Cookie": cookies} if cookies else {}
        body = None
        if data is not None:
            body = urlencode(data).encode()
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        page = _ask(self.product.port, method, path, body, headers)
        for cookie in page.headers.get("set-cookie", "").split("\n"):
            self.cookies.load(cookie)
        return page


def _ask(port: int, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Page:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        found: dict[str, str] = {}
        for name, value in response.getheaders():
            key = name.lower()
            found[key] = f"{found[key]}\n{value}" if key in found else value
        return Page(response.status, found, response.read())
    finally:
        connection.close()


class _Forms(HTMLParser):
    """Forms of a page with the values that a browser would send."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[dict[str, str], dict[str, str]]] = []
        self._area = ""
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append((values, {}))
        if not self.forms:
            return
        fields = self.forms[-1][1]
        name = values.get("name", "")
        kind = values.get("type", "text")
        if tag == "input" and name and kind not in {"submit", "button", "checkbox", "radio"}:
            fields[name] = values.get("value", "")
        elif tag == "input" and name and kind in {"checkbox", "radio"} and "checked" in values:
            fields[name] = values.get("value", "on")
        elif tag == "textarea":
            self._area = name
            fields[name] = ""
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and "selected" in values:
            fields[self._select] = values.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = ""
        elif tag == "select":
            self._select = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.forms[-1][1][self._area] += data


def _form(html: str, wanted: str) -> tuple[str, dict[str, str]]:
    parser = _Forms()
    parser.feed(html)
    for attributes, fields in parser.forms:
        if wanted in (attributes.get("id", ""), attributes.get("action", "")):
            fields = {
                name: value.removeprefix("\r\n").removeprefix("\n")
                for name, value in fields.items()
            }
            return attributes.get("action", ""), fields
    raise AssertionError(f"The page has no form {wanted!r}; it has {[a for a, _ in parser.forms]}.")
