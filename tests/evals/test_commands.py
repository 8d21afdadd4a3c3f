"""Commands: an exit code that scripts can rely on, one sentence when it is a no, never a traceback."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from pathlib import Path
from uuid import UUID
from xml.etree import ElementTree

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.core.management import call_command, get_commands, load_command_class
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from config.celery import app as celery_app
from evals.management.commands import run_probes
from evals.models import Probe, Run, Suite, SuiteRequirement
from evals.triggers import EVALS
from factsheets import editing, triggers
from factsheets.commands import SheetCommand
from factsheets.models import BotProfile, GatePolicy, Publication, Rule, Sheet
from tests import factories
from tests.factories import NOON
from tests.model_api import ModelApi, Step

pytestmark = pytest.mark.django_db

COMMANDS = (
    *("export_sheet", "gate", "import_sheet", "publish_sheet", "rollback_sheet"),
    *("run_probes", "verify_history", "verify_publications", "withdraw_sheet"),
)


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def _call(*args: object) -> Ended:
    out, err = StringIO(), StringIO()
    code = 0
    try:
        call_command(*map(str, args), stdout=out, stderr=err)
    except SystemExit as left:
        code = int(str(left.code))
    return Ended(code, out.getvalue(), err.getvalue())


def _sentence(ended: Ended) -> str:
    """The one line on stderr, without its mark."""
    (line,) = ended.err.splitlines()
    assert line.startswith("error: ")
    assert "Traceback" not in line
    return line.removeprefix("error: ")


@pytest.fixture(scope="module")
def server() -> Iterator[ModelApi]:
    with ModelApi() as server:
        yield server


@pytest.fixture
def api(server: ModelApi, settings: Settings) -> Iterator[ModelApi]:
    """The stand-in, answering every question at ten."""
    settings.ANTHROPIC_API_KEY = server.key
    settings.ANTHROPIC_BASE_URL = server.url
    server.responder = lambda body: "It opens at ten."
    yield server
    server.finish()


@pytest.fixture(autouse=True)
def _broker_out_of_reach(tmp_path: Path) -> Iterator[None]:
    """No test may talk to the broker of an instance that happens to run here."""
    before = celery_app.conf.broker_url
    celery_app.conf.broker_url = f"redis+socket://{tmp_path}/none.sock"
    yield
    celery_app.conf.broker_url = before


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_probes, "LOOK_EVERY", 0.01)


@pytest.fixture
def workers() -> Iterator[None]:
    """Tasks are carried out where they are sent."""
    before = celery_app.conf.task_always_eager
    celery_app.conf.task_always_eager = True
    yield
    celery_app.conf.task_always_eager = before


@pytest.fixture
def sheet() -> Sheet:
    """A sheet that a publisher may publish now."""
    of = factories.ready_sheet()
    factories.person("paula", "publisher")
    factories.passing_run(of, now=timezone.now())
    return of


@pytest.fixture
def live(sheet: Sheet) -> Sheet:
    """The same with publication 1 live."""
    factories.publish(sheet, now=timezone.now())
    return sheet


def _change(row: object, **values: object) -> None:
    editing.change(row, by=factories.person(), reason="edit", now=NOON, **values)  # type: ignore[arg-type]


def _with_model(sheet: Sheet) -> None:
    bot = BotProfile(slug="guide", provider="anthropic", model="claude-haiku-5-5")
    factories.save(bot)
    _change(sheet, bot=bot)


def _close_gate(sheet: Sheet) -> None:
    _change(Rule.objects.get(ruleset__sheet_links__sheet=sheet), text="Another rule.")


def _switch_off(username: str) -> None:
    User.objects.filter(username=username).update(is_active=False)


# ---- what all commands share ----


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example_that_can_be_copied_and_that_works(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = load_command_class(get_commands()[name], name)
    assert isinstance(command, SheetCommand)
    parser = command.create_parser("manage.py", name)
    words = shlex.split(command.example)

    shown = parser.format_help()

    assert words[:3] == ["python", "manage.py", name]
    parser.parse_args(words[3:])
    assert command.example in shown


@pytest.mark.parametrize(
    "args",
    [
        ["gate", "nowhere"],
        ["run_probes", "nowhere", "--local"],
        ["publish_sheet", "nowhere", "--by", "paula", "--reason", "x"],
        ["withdraw_sheet", "nowhere", "--by", "paula", "--reason", "x"],
        ["rollback_sheet", "nowhere", "--to", "1", "--by", "paula", "--reason", "x"],
        ["export_sheet", "nowhere", "--out", "out"],
    ],
    ids=lambda args: args[0],
)
def test_an_unknown_sheet_is_an_error_that_names_those_there_are(
    live: Sheet, args: list[str]
) -> None:
    ended = _call(*args)

    assert ended.code == 2
    assert _sentence(ended) == "There is no sheet 'nowhere'; there are: castle."
    assert ended.out == ""


ACTS = [
    ["publish_sheet", "castle", "--reason", "x"],
    ["withdraw_sheet", "castle", "--reason", "x"],
    ["rollback_sheet", "castle", "--to", "1", "--reason", "x"],
    ["run_probes", "castle", "--local"],
]


@pytest.mark.parametrize("args", ACTS, ids=lambda args: args[0])
@pytest.mark.parametrize("name", ["nobody", "paula", ""])
def test_somebody_unknown_or_switched_off_is_an_error(
    live: Sheet, args: list[str], name: str
) -> None:
    _switch_off("paula")

    ended = _call(*args, f"--by={name}")

    assert ended.code == 2
    assert _sentence(ended) == f"There is no active user {name!r}; name one with --by."
    assert Publication.objects.count() == 1
    assert Run.objects.count() == 1


@pytest.mark.parametrize("args", ACTS, ids=lambda args: args[0])
def test_somebody_without_the_permission_is_an_error_that_names_it(
    live: Sheet, args: list[str]
) -> None:
    factories.person("vera", "viewer")

    ended = _call(*args, "--by", "vera")

    assert ended.code == 2
    assert "vera may not do this: the permission " in _sentence(ended)
    assert Publication.objects.count() == 1
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["gate", "castle"], "The database cannot be used"),
        (["publish_sheet", "castle"], "--by"),
        (["import_sheet", "no-such-folder"], "no-such-folder is not a folder"),
    ],
    ids=lambda value: value[0],
)
def test_a_process_of_its_own_says_what_is_wrong_and_shows_no_traceback(
    args: list[str], said: str, tmp_path: Path
) -> None:
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "SECRET_KEY": "x" * 40,
        "READ_DOT_ENV": "no",
        "MUNIMENT_VAR": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path}/empty.sqlite3",
    }

    ended = subprocess.run(
        [sys.executable, "manage.py", *args],
        cwd=django_settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].count("error: ") == 1


# ---- gate ----


def test_an_open_gate_is_0_and_a_closed_one_1(sheet: Sheet) -> None:
    open_gate = _call("gate", "castle")
    _close_gate(sheet)
    closed = _call("gate", "castle")

    assert (open_gate.code, open_gate.out) == (0, "open\n")
    assert (closed.code, closed.err) == (1, "")
    assert closed.out.startswith(
        "closed\nrules-not-probed: The probes have not run on these rules; run them.\n"
    )


def test_the_gate_prints_blocks_before_warnings(sheet: Sheet) -> None:
    factories.section(sheet, "extra", heading="Extra")
    _change(Suite.objects.get(), repeats=2)

    ended = _call("gate", "castle")

    said = [line for line in ended.out.splitlines()[1:] if not line.startswith("  ")]
    codes = [line.split(": ")[0] for line in said]
    assert codes[0] == "suite-changed"
    assert set(codes[1:]) == {"content-not-probed", "unsourced", "never-checked"}


def test_warnings_alone_leave_the_gate_open(sheet: Sheet) -> None:
    factories.section(sheet, "extra", heading="Extra")

    ended = _call("gate", "castle")

    assert ended.code == 0
    assert "never-checked: " in ended.out


def test_the_gate_as_json_says_the_same(sheet: Sheet) -> None:
    open_gate = _call("gate", "castle", "--json")
    _close_gate(sheet)
    closed = _call("gate", "castle", "--json")

    said = json.loads(closed.out)
    assert (open_gate.code, json.loads(open_gate.out)["open"]) == (0, True)
    assert (closed.code, said["open"], said["sheet"], said["live"]) == (1, False, "castle", None)
    assert [(f["code"], f["level"], f["place"]) for f in said["findings"]] == [
        ("rules-not-probed", "block", "probes")
    ]
    assert set(said["subject"]) == {"content_hash", "rules_hash", "bot_hash"}


# ---- run_probes ----


def test_a_run_that_passes_is_0_and_needs_no_broker() -> None:
    factories.ready_sheet()

    ended = _call("run_probes", "castle", "--local")

    assert (ended.code, ended.err) == (0, "")
    assert "passed: 1 planned, 1 pass." in ended.out
    assert Run.objects.get().outcome == "passed"


def test_a_run_of_the_offline_bot_says_that_it_does_not_test_the_rules() -> None:
    sheet = factories.ready_sheet()
    factories.probe(sheet.suites.get(), "asks-who", needs="model")

    ended = _call("run_probes", "castle", "--local")

    assert "The offline bot does not read the rules; this run does not test them." in ended.out
    assert "1 left out, for they need a model: asks-who." in ended.out


def test_a_run_that_fails_is_1_and_says_which_probe_and_why() -> None:
    factories.ready_sheet()
    _change(Probe.objects.get(), checks=[{"type": "contains-any", "values": ["noon"]}])

    ended = _call("run_probes", "castle", "--local")

    assert ended.code == 1
    assert "failed: 1 planned, 1 fail." in ended.out
    assert "fail asks-hours: The reply says none of “noon”." in ended.out


def test_a_run_that_is_incomplete_is_2(api: ModelApi) -> None:
    _with_model(factories.ready_sheet())
    api.script(Step(text="At", stop_reason="max_tokens"))

    ended = _call("run_probes", "castle", "--local")

    assert ended.code == 2
    assert "incomplete: 1 planned, 1 truncated." in ended.out
    assert "truncated asks-hours: The reply was cut off" in ended.out


def test_a_run_that_is_stopped_is_4_and_says_why(api: ModelApi) -> None:
    sheet = factories.ready_sheet()
    factories.probe(sheet.suites.get(), "asks-more")
    _with_model(sheet)
    api.script(Step(status=401, type="authentication_error"))

    ended = _call("run_probes", "castle", "--local")

    assert ended.code == 4
    assert "Stopped: " in ended.out
    assert "cancelled asks-more: not asked" in ended.out


@pytest.mark.parametrize("how", ["--local", "--wait"])
def test_nothing_to_run_is_3(how: str) -> None:
    factories.suite(factories.sheet())

    ended = _call("run_probes", "castle", how)

    assert ended.code == 3
    assert "no active probe with a check" in _sentence(ended)


def test_a_sheet_without_a_suite_runs_nothing() -> None:
    factories.sheet()

    ended = _call("run_probes", "castle", "--local")

    assert (ended.code, _sentence(ended)) == (
        3,
        "castle requires no suite of probes; require one first.",
    )


def test_an_unknown_suite_is_an_error_that_names_the_required_ones() -> None:
    factories.ready_sheet()

    ended = _call("run_probes", "castle", "--local", "--suite", "tone")

    assert ended.code == 2
    assert _sentence(ended) == "castle does not require a suite 'tone'; it requires castle-safety."


def test_one_suite_alone_is_run() -> None:
    sheet = factories.ready_sheet()
    factories.probe(factories.suite(sheet, "tone"), "asks-tone")

    ended = _call("run_probes", "castle", "--local", "--suite", "tone")

    assert (ended.code, Run.objects.get().attempts.get().probe) == (0, "asks-tone")


def test_a_publication_is_run_instead_of_the_draft(live: Sheet) -> None:
    _close_gate(live)

    ended = _call("run_probes", "castle", "--local", "--publication", "1")

    run = Run.objects.order_by("-started_at")[0]
    assert ended.code == 0
    assert (run.publication_number, run.rules_hash) == (1, Publication.objects.get().rules_hash)


def test_a_publication_that_is_not_there_is_an_error(sheet: Sheet) -> None:
    ended = _call("run_probes", "castle", "--local", "--publication", "9")

    assert ended.code == 2
    assert "castle has no publication 9" in _sentence(ended)


def test_the_run_bears_the_name_of_who_started_it_or_of_the_import_account() -> None:
    factories.ready_sheet()
    factories.person("ed", "editor")

    named = _call("run_probes", "castle", "--local", "--by", "ed")
    unnamed = _call("run_probes", "castle", "--local")

    names = Run.objects.order_by("started_at").values_list("started_by_name", flat=True)
    assert (named.code, unnamed.code) == (0, 0)
    assert list(names) == ["ed", "import"]
    assert not User.objects.get(username="import").is_active


def test_without_waiting_0_says_that_the_run_is_queued(workers: None) -> None:
    factories.ready_sheet()

    ended = _call("run_probes", "castle")

    run = Run.objects.get()
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"Run {run.id} is queued: 1 attempts.\n"


def test_with_the_broker_out_of_reach_the_run_is_still_queued() -> None:
    factories.ready_sheet()

    ended = _call("run_probes", "castle")

    run = Run.objects.get()
    assert ended.code == 0
    assert f"Run {run.id} is queued" in ended.out
    assert "The broker is out of reach" in ended.err
    assert (run.state, run.attempts.get().state) == ("running", "queued")


def test_waiting_ends_with_the_runs_outcome(workers: None) -> None:
    sheet = factories.ready_sheet()

    passed = _call("run_probes", "castle", "--wait")
    _change(Probe.objects.get(suite__sheet=sheet), checks=[{"type": "refuses"}])
    failed = _call("run_probes", "castle", "--wait")

    assert (passed.code, failed.code) == (0, 1)
    assert "1 of 1" in passed.out
    assert "passed: 1 planned, 1 pass." in passed.out
    assert "failed: 1 planned, 1 fail." in failed.out


# ---- the JUnit report ----


def _suites(path: Path) -> dict[str, ElementTree.Element]:
    return {suite.attrib["name"]: suite for suite in ElementTree.parse(path).getroot()}  # noqa: S314


def test_the_junit_report_keeps_errors_apart_from_failures_and_counts_what_was_planned(
    api: ModelApi, tmp_path: Path
) -> None:
    sheet = factories.ready_sheet()
    suite = sheet.suites.get()
    for key in ("fails", "is-cut", "breaks"):
        factories.probe(suite, key)
    factories.probe(factories.suite(sheet, "tone"), "asks-tone")
    _with_model(sheet)
    api.script(
        Step(text="At ten."),
        Step(text="At noon."),
        Step(text="At", stop_reason="max_tokens"),
        Step(status=400, type="invalid_request_error"),
    )
    report = tmp_path / "report.xml"

    ended = _call("run_probes", "castle", "--local", "--junit", report)

    suites = _suites(report)
    counts = {
        name: (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"])
        for name, suite in suites.items()
    }
    cases = {case.attrib["name"]: [part.tag for part in case] for case in suites["castle-safety"]}
    assert ended.code == 2
    assert counts == {"castle-safety": ("4", "1", "2"), "tone": ("1", "0", "0")}
    assert cases == {
        "asks-hours #1": [],
        "fails #1": ["failure"],
        "is-cut #1": ["error"],
        "breaks #1": ["error"],
    }


def test_an_attempt_that_was_not_asked_is_an_error_in_the_junit_report(
    api: ModelApi, tmp_path: Path
) -> None:
    sheet = factories.ready_sheet()
    _change(sheet.suites.get(), repeats=3)
    _with_model(sheet)
    api.script(Step(status=401, type="authentication_error"))
    report = tmp_path / "report.xml"

    ended = _call("run_probes", "castle", "--local", "--junit", report)

    suite = _suites(report)["castle-safety"]
    assert ended.code == 4
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == (
        "3",
        "0",
        "3",
    )


@pytest.mark.parametrize("sign", ["\x00", "\x0b", "\x1b", "\ufffe", "\uffff"])
def test_the_junit_report_can_be_read_whatever_the_service_said(
    api: ModelApi, tmp_path: Path, sign: str
) -> None:
    _with_model(factories.ready_sheet())
    api.script(Step(status=400, type="invalid_request_error", message=f"No{sign} <way> & so."))
    report = tmp_path / "report.xml"

    _call("run_probes", "castle", "--local", "--junit", report)

    (case,) = _suites(report)["castle-safety"]
    assert "<way> & so." in case[0].attrib["message"]


def test_a_report_without_an_outcome_to_report_is_an_error_and_starts_no_run(
    tmp_path: Path,
) -> None:
    factories.ready_sheet()

    ended = _call("run_probes", "castle", "--junit", tmp_path / "report.xml")

    assert ended.code == 2
    assert _sentence(ended) == "--junit needs the outcome; add --wait or --local."
    assert not Run.objects.exists()


def test_a_report_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    factories.ready_sheet()

    ended = _call("run_probes", "castle", "--local", "--junit", tmp_path / "none" / "r.xml")

    assert ended.code == 2
    assert "r.xml cannot be written: its folder is not there." in _sentence(ended)


# ---- publish, withdraw, rollback ----


def test_publishing_through_an_open_gate_is_0(sheet: Sheet) -> None:
    ended = _call("publish_sheet", "castle", "--by", "paula", "--reason", "New hours")

    publication = Publication.objects.get()
    assert (ended.code, ended.out) == (0, "Publication 1 of castle is live.\n")
    assert (publication.published_by_name, publication.reason) == ("paula", "New hours")


def test_publishing_through_a_closed_gate_is_1_and_says_why(sheet: Sheet) -> None:
    _close_gate(sheet)

    ended = _call("publish_sheet", "castle", "--by", "paula", "--reason", "x")

    assert ended.code == 1
    assert "run" in _sentence(ended)
    assert not Publication.objects.exists()


@pytest.mark.parametrize(
    "args",
    [
        ["publish_sheet", "castle"],
        ["withdraw_sheet", "castle"],
        ["rollback_sheet", "castle", "--to", "1"],
    ],
    ids=lambda args: args[0],
)
def test_an_act_without_a_reason_is_refused_with_1(live: Sheet, args: list[str]) -> None:
    _change(live.sections.get(), body="It opens at ten.")

    ended = _call(*args, "--by", "paula", "--reason", " ")

    assert ended.code == 1
    assert _sentence(ended)
    assert Publication.objects.count() == 1


def test_publishing_what_is_live_already_is_refused_with_1(live: Sheet) -> None:
    ended = _call("publish_sheet", "castle", "--by", "paula", "--reason", "x")

    assert ended.code == 1
    assert "already serves" in _sentence(ended)


def test_withdrawing_is_0_and_withdrawing_nothing_1(live: Sheet) -> None:
    first = _call("withdraw_sheet", "castle", "--by", "paula", "--reason", "Wrong")
    second = _call("withdraw_sheet", "castle", "--by", "paula", "--reason", "Wrong")

    assert (first.code, first.out) == (0, "castle is withdrawn; bots get 410 (gone).\n")
    assert second.code == 1
    assert "Nothing of castle is live" in _sentence(second)


def test_a_closed_gate_does_not_keep_anyone_from_withdrawing(live: Sheet) -> None:
    _close_gate(live)

    ended = _call("withdraw_sheet", "castle", "--by", "paula", "--reason", "Wrong")

    assert ended.code == 0


def test_a_rollback_is_0_and_makes_a_new_number(live: Sheet) -> None:
    _change(live.sections.get(), body="It opens at ten.")
    factories.publish(live, now=timezone.now())

    ended = _call("rollback_sheet", "castle", "--to", 1, "--by", "paula", "--reason", "Typo")

    assert (ended.code, ended.out) == (0, "Publication 3 of castle is live, with the text of 1.\n")
    assert Publication.objects.get(number=3).restores == 1


def test_a_rollback_to_a_number_never_published_is_refused_with_1(live: Sheet) -> None:
    ended = _call("rollback_sheet", "castle", "--to", 9, "--by", "paula", "--reason", "Typo")

    assert ended.code == 1
    assert "castle has no publication 9" in _sentence(ended)


def test_a_rollback_on_evidence_that_is_too_old_is_refused_with_1(live: Sheet) -> None:
    _change(live.sections.get(), body="It opens at ten.")
    factories.publish(live, now=timezone.now())
    _change(GatePolicy.objects.get(), evidence_max_age_days=0)
    with triggers.lifted(connection, EVALS):
        Run.objects.update(finished_at=timezone.now() - timedelta(days=2))

    ended = _call("rollback_sheet", "castle", "--to", 1, "--by", "paula", "--reason", "Typo")

    assert ended.code == 1
    assert "The probes passed 2 days ago" in _sentence(ended)


# ---- import, export ----


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of a sheet that stands as they say."""
    factories.ready_sheet()
    _call("export_sheet", "castle", "--out", tmp_path / "castle")
    return tmp_path / "castle"


def test_exporting_is_0_and_names_the_files_written(tmp_path: Path) -> None:
    factories.ready_sheet()

    ended = _call("export_sheet", "castle", "--out", tmp_path / "new" / "castle")

    names = [Path(line).name for line in ended.out.splitlines()]
    assert ended.code == 0
    assert names == ["sheet.yaml", "rules.yaml", "probes.yaml"]
    assert all(Path(line).is_file() for line in ended.out.splitlines())


def test_exporting_to_where_nothing_can_be_written_is_an_error(tmp_path: Path) -> None:
    factories.ready_sheet()
    (tmp_path / "file").write_text("in the way")

    ended = _call("export_sheet", "castle", "--out", tmp_path / "file")

    assert ended.code == 2
    assert "cannot be written" in _sentence(ended)


def test_importing_what_stands_already_is_0_and_changes_nothing(folder: Path) -> None:
    ended = _call("import_sheet", folder)

    assert (ended.code, ended.out) == (0, "castle: nothing changes.\n")


def test_importing_says_what_it_changed(folder: Path) -> None:
    text = (folder / "rules.yaml").read_text()
    (folder / "rules.yaml").write_text(text.replace("only from the sheet", "from the sheet"))

    ended = _call("import_sheet", folder, "--reason", "Less strict")

    rule = Rule.objects.get()
    assert ended.code == 0
    assert "rule sheet-only: changed (text)" in ended.out
    assert "castle: 1 changes written." in ended.out
    assert rule.text == "Answer from the sheet."
    assert rule.history.latest().history_user.username == "import"


def test_a_dry_run_says_the_same_and_changes_nothing(folder: Path) -> None:
    text = (folder / "rules.yaml").read_text()
    (folder / "rules.yaml").write_text(text.replace("only from the sheet", "from the sheet"))

    ended = _call("import_sheet", folder, "--dry-run")

    assert ended.code == 0
    assert "rule sheet-only: changed (text)" in ended.out
    assert "nothing was written" in ended.out
    assert Rule.objects.get().text == "Answer only from the sheet."


@pytest.mark.parametrize("name", ["none", "empty", "file"])
def test_a_folder_that_holds_no_sheet_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("sheet: castle")

    ended = _call("import_sheet", tmp_path / name)

    assert ended.code == 2
    assert "folder" in _sentence(ended)


@pytest.mark.parametrize(
    "text",
    [
        "sheet: [",
        "sheet: castle\nrules: 3\n",
        "sheet: castle\nmore: 1\nrules: []\n",
        "\x00",
        "&a *a",
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(folder: Path, text: str) -> None:
    (folder / "rules.yaml").write_text(text)

    ended = _call("import_sheet", folder)

    assert ended.code == 2
    assert "rules.yaml" in _sentence(ended)
    assert Rule.objects.get().text == "Answer only from the sheet."


def test_a_file_that_is_no_text_is_an_error_that_names_it(folder: Path) -> None:
    (folder / "rules.yaml").write_bytes(b"\xff\xfe\x00")

    ended = _call("import_sheet", folder)

    assert ended.code == 2
    assert "rules.yaml" in _sentence(ended)


@pytest.mark.parametrize("pattern", ["re:(", "re:x*", "re:"])
def test_a_probe_whose_check_could_not_judge_is_an_error(folder: Path, pattern: str) -> None:
    text = (folder / "probes.yaml").read_text()
    (folder / "probes.yaml").write_text(text.replace("- ten", f"- '{pattern}'"))

    ended = _call("import_sheet", folder)

    assert ended.code == 2
    assert "asks-hours" in _sentence(ended)


@pytest.mark.parametrize("name", ["nobody", ""])
def test_an_import_by_somebody_unknown_is_an_error(folder: Path, name: str) -> None:
    ended = _call("import_sheet", folder, f"--by={name}")

    assert ended.code == 2
    assert _sentence(ended) == f"There is no active user {name!r}; name one with --by."


@pytest.mark.parametrize("role", ["viewer", "editor", "publisher"])
def test_an_import_by_somebody_without_the_permissions_is_an_error(folder: Path, role: str) -> None:
    factories.person("vera", role)

    ended = _call("import_sheet", folder, "--by", "vera")

    assert ended.code == 2
    assert "the permission " in _sentence(ended)


def test_an_import_by_somebody_with_every_role_it_needs_is_0(folder: Path) -> None:
    factories.person("kim", "editor", "rule keeper")

    ended = _call("import_sheet", folder, "--by", "kim")

    assert ended.code == 0


# ---- verify ----


def test_verifying_publications_is_0_when_all_is_well_and_1_with_a_fault(live: Sheet) -> None:
    well = _call("verify_publications")
    with triggers.lifted(connection, triggers.FACTSHEETS):
        Publication.objects.update(record=b"{}")
    altered = _call("verify_publications")

    assert (well.code, well.out) == (0, "1 publications verified, 0 faults.\n")
    assert altered.code == 1
    assert "record-altered: Publication 1 of castle: " in altered.out


def test_verifying_an_empty_database_is_0() -> None:
    assert _call("verify_publications").code == 0
    assert _call("verify_history").code == 0


def test_verifying_the_history_is_0_when_it_is_whole_and_1_when_it_is_not(sheet: Sheet) -> None:
    whole = _call("verify_history")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE factsheets_section SET body = 'Closed.'")
    broken = _call("verify_history")

    assert whole.code == 0
    assert whole.out.endswith(" rows verified, 0 faults.\n")
    assert broken.code == 1
    assert "differs from its newest history entry in body" in broken.out


# ---- what a script relies on ----


def test_a_script_can_run_the_probes_and_publish_only_if_they_passed() -> None:
    factories.ready_sheet()
    factories.person("paula", "publisher")
    publish = ("publish_sheet", "castle", "--by", "paula", "--reason", "x")

    codes = [
        _call("gate", "castle").code,
        _call(*publish).code,
        _call("run_probes", "castle", "--local").code,
        _call("gate", "castle").code,
        _call(*publish).code,
        _call("verify_publications").code,
    ]

    assert codes == [1, 1, 0, 0, 0, 0]
    assert UUID(json.loads(bytes(Publication.objects.get().evidence))["run"])
    assert SuiteRequirement.objects.count() == 1


def test_an_export_without_a_section_that_a_question_names_can_be_imported(tmp_path: Path) -> None:
    cafe = factories.demo("cafe")
    section = cafe.sections.get(key="opening-hours")
    editing.remove(section, by=factories.person(), reason="closed", now=NOON)
    _call("export_sheet", cafe.slug, "--out", tmp_path)

    ended = _call("import_sheet", tmp_path)

    assert ended.code == 0, ended.err
    assert "question " not in ended.out


def test_two_files_of_one_slug_are_refused_with_both_named(tmp_path: Path) -> None:
    cafe = factories.demo("cafe")
    _call("export_sheet", cafe.slug, "--out", tmp_path)
    (tmp_path / "probes-extra.yaml").write_bytes((tmp_path / "probes.yaml").read_bytes())

    ended = _call("import_sheet", tmp_path)

    assert ended.code == 2
    assert "probes-extra.yaml" in _sentence(ended)
    assert "stands in probes.yaml already" in _sentence(ended)


def test_an_export_beside_files_from_elsewhere_is_refused(tmp_path: Path) -> None:
    cafe = factories.demo("cafe")
    (tmp_path / "probes-old.yaml").write_text("left over")

    ended = _call("export_sheet", cafe.slug, "--out", tmp_path)

    assert ended.code == 2
    assert "probes-old.yaml" in _sentence(ended)
    assert not (tmp_path / "sheet.yaml").exists()


def test_a_report_that_could_not_be_written_is_refused_before_the_run(
    sheet: Sheet, tmp_path: Path
) -> None:
    before = Run.objects.count()

    ended = _call("run_probes", "castle", "--local", "--junit", tmp_path / "no" / "report.xml")

    assert ended.code == 2
    assert Run.objects.count() == before
