"""The files of `deploy/` start what `Procfile` starts, and hold what they promise."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


def procfile() -> dict[str, str]:
    lines = (ROOT / "Procfile").read_text().splitlines()
    return dict(re.split(r":\s+", line, maxsplit=1) for line in lines)


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    return found


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_starts_the_command_of_the_procfile(unit: Path) -> None:
    wanted = procfile()[unit.stem.removeprefix("muniment-")].replace("${WEB_PORT:-8000}", "8000")

    assert f"ExecStart=/opt/muniment/.venv/bin/{wanted}\n" in unit.read_text()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_may_do_no_more_than_it_needs(unit: Path) -> None:
    text = unit.read_text()

    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "User=muniment", "UMask=0077"):
        assert f"{line}\n" in text


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not here")
def test_systemd_understands_every_unit(tmp_path: Path) -> None:
    for unit in (ROOT / "deploy" / "systemd").iterdir():
        # Only the programs are not at their place on this machine.
        text = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", unit.read_text())
        (tmp_path / unit.name).write_text(text)

    ended = subprocess.run(
        ["systemd-analyze", "verify", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "muniment" not in ended.stderr
    assert ended.returncode == 0


@pytest.mark.parametrize("name", ["worker", "beat"])
def test_compose_starts_the_command_of_the_procfile(name: str) -> None:
    assert " ".join(compose()["services"][name]["command"]) == procfile()[name]


def test_the_image_starts_the_web_process_of_the_procfile() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    (command,) = re.findall(r"^CMD (\[.*\])$", dockerfile, re.MULTILINE)
    wanted = procfile()["web"].replace("127.0.0.1:${WEB_PORT:-8000}", "0.0.0.0:8000")

    assert " ".join(yaml.safe_load(command)) == wanted


def test_the_image_runs_as_nobody_special_and_installs_what_is_locked() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()

    assert "\nUSER muniment\n" in dockerfile
    assert "--require-hashes -r /tmp/prod.txt" in dockerfile


def test_only_the_machine_itself_reaches_what_compose_publishes() -> None:
    published = [
        port for service in compose()["services"].values() for port in service.get("ports", [])
    ]

    assert published == ["127.0.0.1:8000:8000"]


def test_everything_waits_for_the_migration() -> None:
    services = compose()["services"]

    for name in ("web", "worker", "beat"):
        assert services[name]["depends_on"]["migrate"] == {
            "condition": "service_completed_successfully"
        }
