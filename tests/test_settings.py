"""Settings come from the environment; nonsense fails at start with the variable's name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from django.test import override_settings

from tests.processes import Command, command

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
    "program",
    [
        ["gunicorn", "config.wsgi", "--bind", "127.0.0.1:0"],
        ["celery", "-A", "config", "worker"],
        ["celery", "-A", "config", "beat"],
    ],
    ids=" ".join,
)
def test_every_process_says_nonsense_in_one_sentence_and_does_not_start(
    program: list[str],
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", *program],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "READ_DOT_ENV": "no", "SECRET_KEY": "short"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert ended.returncode == 1
    assert ended.stderr.startswith("error: SECRET_KEY must be set to ")
    assert len(ended.stderr.splitlines()) == 1


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


def _guide() -> dict[str, str]:
    """The environment that the operators' guide shows."""
    guide = (ROOT / "docs" / "guides" / "operators.md").read_text()
    block = re.search(r"```env\n(.*?)```", guide, re.DOTALL)
    assert block
    return dict(line.split("=", 1) for line in block[1].splitlines())


#: As the guide has it, but on data of the test's own.
PRODUCTION = {
    name: value for name, value in _guide().items() if name not in {"DATABASE_URL", "REDIS_URL"}
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """`manage.py` of a migrated installation with the guide's environment."""
    run = command(tmp_path_factory.mktemp("server"), **PRODUCTION)
    assert run("migrate", "-v", "0").code == 0
    return run


def test_the_environment_of_the_guide_passes_djangos_check_for_deployment(server: Command) -> None:
    checked = server("check", "--deploy", "--database", "default", "--fail-level", "WARNING")

    assert (checked.code, checked.err) == (0, "")
    assert checked.out == "System check identified no issues (0 silenced).\n"


def test_djangos_check_for_deployment_finds_what_is_left_open() -> None:
    ended = _check("--deploy", "--fail-level", "WARNING", **{**PRODUCTION, "HTTPS_ONLY": "no"})

    assert ended.returncode == 1
    assert "security.W008" in ended.stderr


def test_the_first_administrator_is_made_from_the_environment_alone(server: Command) -> None:
    made = server(
        "createsuperuser",
        "--noinput",
        DJANGO_SUPERUSER_USERNAME="root",
        DJANGO_SUPERUSER_EMAIL="root@example.org",
        DJANGO_SUPERUSER_PASSWORD="correct-horse-battery-staple",
    )

    look = (
        "from django.contrib.auth.models import User; u = User.objects.get(); "
        "print(u.username, u.is_superuser, u.check_password('correct-horse-battery-staple'))"
    )
    assert (made.code, made.out) == (0, "Superuser created successfully.\n")
    assert server("shell", "-v", "0", "--no-imports", "-c", look).out == "root True True\n"


def test_collected_static_files_have_names_that_change_with_their_content(tmp_path: Path) -> None:
    storages = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }
    with override_settings(STATIC_ROOT=tmp_path, STORAGES=storages):
        call_command("collectstatic", "--noinput", "-v", "0")

        address = staticfiles_storage.url("muniment/pages.css")

    name = address.removeprefix("/static/")
    assert re.fullmatch(r"muniment/pages\.[0-9a-f]{12}\.css", name)
    assert (tmp_path / f"{name}.gz").stat().st_size < (tmp_path / name).stat().st_size
