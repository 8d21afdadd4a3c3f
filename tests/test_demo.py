"""What `make demo` says when it cannot start. That it starts is for CI to see, from a clone."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _demo(var: Path, port: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scripts.demo", "--once"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "MUNIMENT_VAR": str(var), "PORT": port},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_taken_port_is_explained(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        ended = _demo(tmp_path, str(port))

    assert ended.returncode == 1
    assert ended.stderr.startswith(f"error: Port {port} is taken")
    assert f"make demo PORT={port + 1}" in ended.stderr


def test_a_demo_that_runs_on_the_same_data_is_explained(tmp_path: Path) -> None:
    with (tmp_path / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        ended = _demo(tmp_path, "8999")

    assert ended.returncode == 1
    assert "A demo runs already on the data in" in ended.stderr


@pytest.mark.parametrize("port", ["abc", "0", "70000"])
def test_a_port_that_is_none_is_explained(tmp_path: Path, port: str) -> None:
    ended = _demo(tmp_path, port)

    assert ended.returncode == 1
    assert ended.stderr == f"error: PORT must be a number from 1 to 65535, not {port!r}.\n"


@pytest.fixture
def shims(tmp_path: Path) -> Path:
    """A folder of commands that only say that they were not found, and a copy of the script."""
    folder = tmp_path / "shims"
    folder.mkdir()
    for name in ("python3.13", "python3.14", "python3.12", "python3"):
        shim = folder / name
        shim.write_text(f"#!/bin/sh\necho '{name}: command not found' >&2\nexit 127\n")
        shim.chmod(0o755)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup.sh", tmp_path / "scripts")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "base.txt").write_text("")
    return folder


def _setup(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "scripts/setup.sh", "base"],
        cwd=folder.parent,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_machine_without_a_python_that_runs_is_told_what_is_missing(shims: Path) -> None:
    ended = _setup(shims)

    assert ended.returncode == 1
    assert ended.stderr == (
        "error: Python 3.12 or newer is needed and none was found; "
        "install python3.13 and try again.\n"
    )


def test_a_shim_is_passed_over_for_a_python_that_runs(shims: Path) -> None:
    real = shims / "python3.12"
    real.unlink()
    real.symlink_to(Path(sys.base_prefix) / "bin" / "python3")

    ended = _setup(shims)

    assert ended.returncode == 0, ended.stderr
    assert (shims.parent / ".venv" / "bin" / "python").exists()
