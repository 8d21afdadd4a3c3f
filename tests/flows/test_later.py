"""What happens with nobody at the keyboard: schedules that fire, evidence that is renewed, mail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.product import Person, Product, until
from tests.mail_server import MailServer
from tests.model_api import KEY, ModelApi

pytestmark = [pytest.mark.services, pytest.mark.database]

SLUG = "small"
SHEET = """
sheet: {slug: small, title: Small sheet, language: en-GB, description: ''}
sources: []
sections:
- {key: hours, heading: Hours, question: When?, body: Open at ten., note: '', checked_on: '', citations: []}
"""
RULES = """
sheet: small
rules:
- {key: only, kind: refusal, text: Answer only from the sheet.}
"""
PROBES = """
sheet: small
suite: {slug: small-safety, title: Small}
probes:
- {key: one, category: control, turns: ['When?'], must: answer, must_contain_any: [ten]}
- {key: two, category: control, turns: ['Again?'], must: answer, must_contain_any: [ten]}
"""


@pytest.fixture(scope="module")
def post() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server


@pytest.fixture(scope="module")
def product(
    tmp_path_factory: pytest.TempPathFactory, model_api: ModelApi, post: MailServer
) -> Iterator[Product]:
    running = Product(
        tmp_path_factory.mktemp("product"),
        extra={
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": model_api.url,
            "EMAIL_URL": post.url,
            "SITE_URL": "https://sheets.example.org",
        },
    )
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def paula(
    product: Product, model_api: ModelApi, tmp_path_factory: pytest.TempPathFactory
) -> Person:
    """A publisher with an address; the sheet may be published, and its bot is a model."""
    folder: Path = tmp_path_factory.mktemp("small")
    for name, text in (("sheet", SHEET), ("rules", RULES), ("probes", PROBES)):
        (folder / f"{name}.yaml").write_text(text)
    assert product.command("import_sheet", str(folder)).code == 0
    person = product.user("paula", "publisher", "rule keeper")
    _do(
        product,
        "User.objects.filter(username='paula').update(email='paula@example.org')",
        "bot = BotProfile(slug='model', provider='anthropic', model='claude-haiku-5-5')",
        "with change_set(by=by, reason='a model', now=now): bot.save()",
        "editing.change(sheet, by=by, reason='a model', now=now, bot=bot)",
    )
    model_api.responder = lambda body: "We open at ten."
    answer = product.command("run_probes", SLUG, "--wait")
    assert answer.code == 0, answer.err
    return person


def _do(product: Product, *lines: str) -> None:
    """Run lines of Python with what they need at hand: sheet, by (Paula, if there is one) and now."""
    code = "\n".join(
        [
            "from datetime import timedelta",
            "from django.contrib.auth.models import User",
            "from django.utils import timezone",
            "from factsheets import editing, publishing, scheduling",
            "from factsheets.commands import import_account",
            "from factsheets.models import *",
            "from factsheets.models.tracking import change_set",
            "now, by = timezone.now(), import_account()",
            f"sheet = Sheet.objects.select_related('bot', 'state').get(slug={SLUG!r})",
            *lines,
        ]
    )
    answer = product.command("shell", "-v", "0", "--no-imports", "-c", code)
    assert answer.code == 0, answer.err


def _schedule(product: Product, *, due_in: int, asked: int = 0) -> None:
    """Have Paula approve the draft for so many seconds from now; `asked`: seconds ago."""
    _do(
        product,
        f"asked = now - timedelta(seconds={asked})",
        "view = publishing.look(sheet, now=now)",
        "scheduling.schedule(sheet_id=sheet.pk, seen=view.candidate.subject, "
        f"seen_live_number=view.live_number, due_at=now + timedelta(seconds={due_in}), "
        "zone='Europe/London', by=User.objects.get(username='paula'), reason='later', now=asked)",
    )


def _state(product: Product) -> str:
    found: str = product.rows("Schedule.objects.order_by('-id').first().state")
    return found


def _edit(product: Product, body: str) -> None:
    _do(
        product,
        f"editing.change(sheet.sections.get(), by=by, reason='edit', now=now, body={body!r})",
    )


def _mail(post: MailServer, subject: str) -> str:
    """The newest mail of that subject, once it is there."""

    def look() -> str:
        found = [m.get_content() for m in post.messages if subject in m["Subject"]]
        return found[-1] if found else ""

    return until(look, what=f"mail: {subject}")


def test_beat_publishes_what_was_approved_at_its_time(product: Product, paula: Person) -> None:
    assert product.get(f"/api/v1/sheets/{SLUG}/").status == 404

    _schedule(product, due_in=3)

    until(lambda: _state(product) == "done", what="the scheduled publication")
    assert product.get(f"/api/v1/sheets/{SLUG}/").status == 200
    assert product.rows("Publication.objects.get().published_by_name") == "paula"


def test_a_draft_that_changed_is_suspended_and_its_publisher_told(
    product: Product, paula: Person, post: MailServer
) -> None:
    _edit(product, "Open at ten sharp.")
    _schedule(product, due_in=8)
    _edit(product, "Open at ten, mostly.")

    until(lambda: _state(product) == "suspended", what="the suspended schedule")

    text = _mail(post, "the scheduled publication was suspended")
    assert "changed while you looked" in text
    assert "https://sheets.example.org/admin/factsheets/sheet/" in text
    assert "Suspended: The sheet" in paula.get(_gate(product)).text
    assert product.rows("Publication.objects.count()") == 1


def test_a_time_that_passed_while_nobody_was_there_is_missed(
    product: Product, paula: Person, post: MailServer
) -> None:
    _schedule(product, due_in=-1800, asked=3600)

    until(lambda: _state(product) == "missed", what="the missed schedule")

    assert "not made up for" in _mail(post, "the scheduled publication was missed")
    assert product.rows("Publication.objects.count()") == 1


def _gate(product: Product) -> str:
    key = product.rows(f"Sheet.objects.get(slug={SLUG!r}).pk")
    return f"/admin/factsheets/sheet/{key}/gate/"


def test_what_is_live_is_probed_again_and_its_failure_raises_the_alarm(
    product: Product, paula: Person, post: MailServer, model_api: ModelApi
) -> None:
    model_api.responder = lambda body: "We open at noon."
    _do(
        product,
        "policy = GatePolicy.objects.get()",
        "editing.change(policy, by=by, reason='short', now=now, evidence_max_age_days=0)",
        "from config.celery import app",
        "app.send_task('evals.tasks.renew_evidence')",
    )

    until(lambda: product.rows("Run.objects.count()") == 2, what="the renewal")
    product.kill("worker")
    product.spawn_worker()
    text = _mail(post, "the probes failed on what is live")

    run = product.rows(
        "Run.objects.values('publication_number', 'outcome', 'started_by_name').latest('started_at')"
    )
    assert run == {"publication_number": 1, "outcome": "failed", "started_by_name": "renewal"}
    assert "Nothing was withdrawn." in text
    assert "noon" not in text
    gate = product.command("gate", SLUG)
    assert gate.code == 1
    assert "alarm: The probes failed on what bots get now;" in gate.out
    assert "live-probes-failed: " in gate.out
    assert "<strong>Alarm:</strong>" in paula.get(_gate(product)).text
    assert product.get(f"/api/v1/sheets/{SLUG}/").status == 200
