"""`make demo`: both demo sheets, one walked to its publication, then served.

Starts web, worker, beat and the embedded broker under one supervisor, and says
each step in a plain sentence. A second start says what stands already.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NoReturn


def _port(text: str) -> int:
    """8000, or the port asked for."""
    if text and not (text.isdecimal() and 0 < int(text) < 65536):
        sys.exit(f"error: PORT must be a number from 1 to 65535, not {text!r}.")
    return int(text or 8000)


ROOT = Path(__file__).resolve().parent.parent
VAR = Path(os.environ.get("MUNIMENT_VAR", ROOT / "var")).resolve()
PORT = _port(os.environ.get("PORT", ""))
ADDRESS = f"http://127.0.0.1:{PORT}"
LOG = VAR / "demo.log"
LOGINS = VAR / "logins.json"

CASTLE = "colchester-castle"
CAFE = "example-castle-cafe"

#: Seconds until web, broker, worker and beat must have answered.
START_WITHIN = 90


def main() -> int:
    """Parse the call and do what it asks; the exit code of the whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="walk once and end")
    parser.add_argument("--serve", action="store_true", help="start and serve, without the walk")
    options = parser.parse_args()
    began = time.monotonic()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Each step when it is done, in a file too.
        sys.stdout.reconfigure(line_buffering=True)
    VAR.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = _lock_folder()
    _check_port()
    os.environ |= _environment()
    clock = Steps(began)
    _prepare()
    clock.step("migrated, log-ins made")
    supervisor = _start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        _wait_until_healthy(supervisor)
        clock.step("web, worker, beat and broker started")
        if not options.serve:
            _walk(clock)
        clock.write(VAR / "demo-steps.json")
        if options.once:
            return 0
        _say_where()
        supervisor.wait()
        _fail("The supervisor ended by itself", LOG)
    except KeyboardInterrupt:
        print("\nStopping ...")
        return 0
    finally:
        _stop(supervisor)
        lock.close()


class Steps:
    """How long each step took, for the benchmarks' table."""

    def __init__(self, began: float) -> None:
        self._last = began
        self._seconds: dict[str, float] = {}

    def step(self, name: str) -> None:
        now = time.monotonic()
        self._seconds[name] = round(now - self._last, 2)
        self._last = now

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self._seconds, indent=2))


def _fail(sentence: str, log: Path | None = None) -> NoReturn:
    where = f"; see {_short(log)}" if log else ""
    sys.exit(f"error: {sentence}{where}.")


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def _lock_folder() -> IO[str]:
    """One demo a folder: a second would share, and in the end stop, the first one's broker."""
    lock = (VAR / "demo.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        _fail(f"A demo runs already on the data in {_short(VAR)}; stop it first")
    return lock


def _check_port() -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            _fail(
                f"Port {PORT} is taken, perhaps by a demo that runs already at {ADDRESS}/; "
                f"stop it, or choose another port: make demo PORT={PORT + 1}"
            )


def _environment() -> Mapping[str, str]:
    """What every process gets. The key is made once and readable by the owner alone."""
    key = VAR / "secret_key"
    if not key.exists():
        _write_private(key, secrets.token_hex(32))
    return {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "SECRET_KEY": os.environ.get("SECRET_KEY") or key.read_text(),
        "MUNIMENT_VAR": str(VAR),
        "WEB_PORT": str(PORT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "LOG_LEVEL": os.environ.get("LOG_LEVEL", "WARNING"),
        "PYTHONUNBUFFERED": "1",
    }


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def _prepare() -> None:
    import django
    from django.core.exceptions import ImproperlyConfigured

    try:
        django.setup()
    except ImproperlyConfigured as error:
        sys.exit(f"error: {error}")
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    _make_logins()


def _make_logins() -> None:
    """One account a role, and an administrator, with random passwords."""
    from django.contrib.auth.models import Group, User

    from factsheets import roles

    kept: dict[str, str] = json.loads(LOGINS.read_text()) if LOGINS.exists() else {}
    for role in (*roles.ROLES, "admin"):
        name = role.replace(" ", "-")
        user, is_new = User.objects.get_or_create(
            username=name, defaults={"is_staff": True, "is_superuser": role == "admin"}
        )
        if is_new or name not in kept:
            kept[name] = secrets.token_urlsafe(12)
            user.set_password(kept[name])
            user.save()
        if role != "admin":
            user.groups.add(Group.objects.get(name=role))
    _write_private(LOGINS, json.dumps(kept, indent=2) + "\n")


def _start() -> subprocess.Popen[bytes]:
    with LOG.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "honcho", "-e", os.devnull, "start", "--no-prefix"],
            cwd=ROOT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _stop(supervisor: subprocess.Popen[bytes]) -> None:
    if supervisor.poll() is None:
        supervisor.send_signal(signal.SIGTERM)
    try:
        supervisor.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(supervisor.pid, signal.SIGKILL)
        supervisor.wait()


def _wait_until_healthy(supervisor: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_WITHIN
    answer = "no answer yet"
    while time.monotonic() < deadline:
        if supervisor.poll() is not None:
            _fail("A process ended while starting", LOG)
        try:
            status, body, _ = _get("/healthz")
        except OSError:
            status = 0
        else:
            answer = body.decode()
        if status == 200:
            return
        time.sleep(0.2)
    _fail(f"Not everything came up within {START_WITHIN} seconds ({answer})", LOG)


def _walk(clock: Steps) -> None:
    """The castle's way to its publication, and the café as a draft."""
    from django.db.models import Q
    from django.utils import timezone

    from evals import exchange
    from factsheets import commands, publishing
    from factsheets.models import Sheet

    for slug, folder in ((CASTLE, "castle"), (CAFE, "cafe")):
        if Sheet.objects.filter(Q(slug=slug) | Q(aliases__slug=slug)).exists():
            print(f"{slug}: imported already; left as it is.")
            continue
        files = exchange.read_folder(ROOT / "factsheets" / "data" / "demo" / folder)
        changes = exchange.import_folder(
            files, by=commands.import_account(), reason="Demo data.", now=timezone.now()
        )
        counted = ", ".join(
            f"{sum(c.kind == kind for c in changes)} {kind}s"
            for kind in ("section", "source", "rule", "probe", "question")
        )
        print(f"{slug}: imported {counted}.")
    clock.step("both sheets imported")
    castle = Sheet.objects.select_related("bot", "state__live_publication").get(
        Q(slug=CASTLE) | Q(aliases__slug=CASTLE)
    )
    live = castle.state.live_publication
    if live is not None:
        print(f"{castle.slug}: publication {live.number} is live already.")
    else:
        view = publishing.look(castle, now=timezone.now())
        if not view.report.is_open:
            print(f"{castle.slug}: the gate is closed. {view.report.blocks[0].sentence}")
            _run_probes(castle.slug)
            clock.step("probes run by the worker")
        _publish(castle.slug)
        clock.step("published")
    _pull(castle.slug)
    clock.step("pulled: 200, then 304")
    cafe = Sheet.objects.get(Q(slug=CAFE) | Q(aliases__slug=CAFE))
    if cafe.state.live_publication_id is None:
        print(f"{CAFE}: left as a draft, for you to try.")


def _run_probes(slug: str) -> None:
    from django.core.management import call_command

    print(f"{slug}: running the probes ...")
    try:
        call_command("run_probes", slug, "--wait", "--by", "publisher")
    except SystemExit as ended:
        if ended.code:
            _fail(f"The probes did not pass (exit {ended.code})", LOG)


def _publish(slug: str) -> None:
    from django.core.management import call_command

    try:
        call_command("publish_sheet", slug, "--by", "publisher", "--reason", "First publication.")
    except SystemExit as ended:
        if ended.code:
            _fail("The castle could not be published")


def _pull(slug: str) -> None:
    """As a bot would: once whole, then again with what it has."""
    path = f"/api/v1/sheets/{slug}/"
    status, body, headers = _get(path)
    print(f"GET {path}: {status}, {len(body):,} bytes, publication {headers.get('X-Publication')}.")
    again, _, _ = _get(path, {"If-None-Match": headers.get("ETag", "")})
    print(f"GET {path} with its ETag: {again}, nothing sent.")
    if (status, again) != (200, 304):
        _fail("The sheet is not served as it should be", LOG)


def _get(path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes, Any]:
    request = urllib.request.Request(ADDRESS + path, headers=dict(headers or {}))
    # No proxy may stand between this machine and itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as response:
            return response.status, response.read(), response.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def _say_where() -> None:
    print(f"\nOpen {ADDRESS}/admin/ in a browser. Log-ins, one a role: {_short(LOGINS)}")
    print(f"Logs: {_short(LOG)}. Stop with Ctrl-C.")


if __name__ == "__main__":
    sys.exit(main())
