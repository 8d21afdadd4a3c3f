"""Settings come from the environment; nonsense fails at start with the variable's name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _check(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "check", *options],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "READ_DOT_ENV": "no",
            "SECRET_KEY": "k" * 50,
            "PYTHONWARNINGS": "ignore",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_key_is_all_that_has_to_be_set() -> None:
    assert _check().returncode == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SECRET_KEY", ""),
        ("SECRET_KEY", "short"),
        ("DEBUG", "perhaps"),
        ("HTTPS_ONLY", "2"),
        ("READ_DOT_ENV", "maybe"),
        ("DATABASE_URL", "mysql://root@localhost/x"),
        ("DATABASE_URL", "nonsense"),
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_URL", "postgres://localhost:5432"),
        ("DATABASE_URL", "postgres://u:pa/s3cret@host/db"),
        ("REDIS_URL", "amqp://localhost"),
        ("ORG_TIME_ZONE", "Europe/Londn"),
        ("ANTHROPIC_BASE_URL", "api.anthropic.com"),
        ("ANTHROPIC_BASE_URL", "http://["),
        ("ANTHROPIC_BASE_URL", "ftp://u:s3cret@host"),
        ("MODEL_CALL_SECONDS", "soon"),
        ("MODEL_CALL_SECONDS", "0"),
        ("TICK_SECONDS", "-1"),
        ("LOG_LEVEL", "LOUD"),
        ("LOG_FORMAT", "xml"),
        ("EMAIL_URL", "carrier-pigeon://u:s3cret@host"),
        ("METRICS_TOKEN", "s3cret"),
    ],
)
def test_nonsense_is_one_sentence_with_the_variables_name(name: str, value: str) -> None:
    ended = _check(**{name: value})

    assert ended.returncode != 0
    assert ended.stderr.startswith(f"error: {name} must ")
    assert "Traceback" not in ended.stderr
    assert "s3cret" not in ended.stderr


@pytest.mark.parametrize(
    "name",
    [
        "DATABASE_URL",
        "REDIS_URL",
        "MODEL_CALL_SECONDS",
        "LOG_LEVEL",
        "LOG_FORMAT",
        "EMAIL_URL",
        "MAIL_FROM",
        "METRICS_TOKEN",
    ],
)
def test_an_empty_value_is_the_default(name: str) -> None:
    assert _check(**{name: ""}).returncode == 0


PRODUCTION = {
    "ALLOWED_HOSTS": "sheets.example.org,localhost",
    "HTTPS_ONLY": "yes",
    "BEHIND_PROXY": "yes",
    "SECRET_KEY": "Vq2-x7Lw9sTz4Kd8Rb1Nf6Hy3Jm5Gc0PaXuEoWiQtZvB7-and-more-of-it",
    "EMAIL_URL": "smtp+tls://user:password@mail.example.org:587",
    "METRICS_TOKEN": "a-token-of-forty-random-characters-or-so",
    "LOG_FORMAT": "json",
}


def test_the_environment_of_a_server_passes_djangos_check_for_deployment() -> None:
    ended = _check("--deploy", "--fail-level", "WARNING", **PRODUCTION)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "no issues" in ended.stdout


def test_djangos_check_for_deployment_finds_what_is_left_open() -> None:
    ended = _check("--deploy", "--fail-level", "WARNING", **{**PRODUCTION, "HTTPS_ONLY": "no"})

    assert ended.returncode == 1
    assert "security.W008" in ended.stderr
