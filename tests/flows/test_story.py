"""The main job through public doors: import, edit, probe, publish, pull, withdraw."""

from __future__ import annotations

import hashlib
import json
import threading

import pytest

from tests.flows.product import CASTLE, Page, Person, Product, until

pytestmark = [pytest.mark.services, pytest.mark.database]

SLUG = "colchester-castle"
CURRENT = f"/api/v1/sheets/{SLUG}/"


@pytest.fixture(scope="module")
def sheet_id(product: Product) -> int:
    answer = product.command("import_sheet", CASTLE)
    assert answer.code == 0, answer.err
    return int(product.rows(f"Sheet.objects.get(slug='{SLUG}').pk"))


@pytest.fixture(scope="module")
def keeper(product: Product) -> Person:
    return product.user("keeper", "rule keeper")


@pytest.fixture(scope="module")
def publisher(product: Product) -> Person:
    return product.user("publisher", "publisher")


def _run_probes(person: Person, sheet_id: int) -> None:
    started = person.submit(
        f"/admin/factsheets/sheet/{sheet_id}/gate/", f"/admin/runs/start/{sheet_id}/"
    )
    assert started.status == 302
    until(
        lambda: "every 1s" not in person.get(f"/admin/runs/of/{sheet_id}/").text,
        what="the end of the run",
    )


def _publish(person: Person, sheet_id: int) -> Page:
    return person.submit(
        f"/admin/factsheets/sheet/{sheet_id}/gate/",
        f"/admin/factsheets/sheet/{sheet_id}/publish/",
        reason="A story.",
    )


def test_the_main_job_end_to_end(
    product: Product, sheet_id: int, keeper: Person, publisher: Person
) -> None:
    gate = f"/admin/factsheets/sheet/{sheet_id}/gate/"

    # Imported, never probed: closed, nothing served.
    assert "The probes have not run on these rules" in publisher.get(gate).text
    assert product.get(CURRENT).status == 404

    # Probed by the worker, published, pulled.
    _run_probes(publisher, sheet_id)
    assert "Nothing stands in the way" in publisher.get(gate).text
    assert _publish(publisher, sheet_id).status == 302
    served = until(lambda: _served(product), what="the live sheet")
    body = json.loads(served.body)
    content = json.dumps(body["content"], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert body["publication"] == 1
    assert hashlib.sha256(content.encode()).hexdigest() == body["content_hash"]
    assert served.headers["etag"] == f'"sha256-{hashlib.sha256(served.body).hexdigest()}"'
    again = product.get(CURRENT, {"If-None-Match": served.headers["etag"]})
    assert (again.status, again.body) == (304, b"")

    # A rule changes: the gate closes and says why, bots keep what they have.
    rule = product.rows("Rule.objects.get(key='short-prose').pk")
    changed = keeper.submit(
        f"/admin/factsheets/rule/{rule}/change/",
        "rule_form",
        text="Answer in no more than 100 words of plain prose.",
        why="Shorter answers.",
    )
    assert changed.status == 302
    closed = publisher.get(gate).text
    assert "rules-not-probed" in closed
    assert "disabled" in closed
    assert product.command("publish_sheet", SLUG, "--by", "publisher", "--reason", "x").code == 1
    assert product.get(CURRENT).body == served.body

    # Probed again, published again.
    _run_probes(publisher, sheet_id)
    assert _publish(publisher, sheet_id).status == 302
    second = until(lambda: _served(product, number=2), what="publication 2")
    assert "no more than 100 words" in json.loads(second.body)["rules"]

    # Withdrawn: gone everywhere; then published again as a new number.
    withdrawn = publisher.submit(
        f"/admin/factsheets/sheet/{sheet_id}/withdraw/", "", reason="Wrong opening time."
    )
    assert withdrawn.status == 302
    until(lambda: product.get(CURRENT).status == 410, what="410")
    assert product.get(f"{CURRENT}publications/2/").status == 410
    assert product.get(f"{CURRENT}publications/1/").status == 410
    assert _publish(publisher, sheet_id).status == 302
    until(lambda: _served(product, number=3), what="publication 3")
    assert product.get(f"{CURRENT}publications/1/").status == 200
    assert product.get(f"{CURRENT}publications/2/").status == 410

    # Everything that was written still verifies.
    assert product.command("verify_history").code == 0
    assert product.command("verify_publications").code == 0


def test_two_publishers_at_once_make_one_publication(
    product: Product, sheet_id: int, keeper: Person, publisher: Person
) -> None:
    other = product.user("other", "publisher")
    section = product.rows(
        "Section.objects.filter(key='well').values_list('pk', flat=True).first() or Section.objects.order_by('position').first().pk"
    )
    editor = product.user("editor", "editor")
    edited = editor.submit(
        f"/admin/factsheets/section/{section}/change/",
        "section_form",
        heading="A new heading",
        why="For two publishers.",
    )
    assert edited.status == 302
    before = product.rows("Publication.objects.count()")
    pages: dict[str, Page] = {}
    barrier = threading.Barrier(2)

    def press(person: Person) -> None:
        address = f"/admin/factsheets/sheet/{sheet_id}/gate/"
        from tests.flows.product import _form

        _, fields = _form(person.get(address).text, f"/admin/factsheets/sheet/{sheet_id}/publish/")
        barrier.wait()
        person._ask(
            "POST", f"/admin/factsheets/sheet/{sheet_id}/publish/", {**fields, "reason": "Race."}
        )
        pages[person.name] = person.get(address)

    threads = [threading.Thread(target=press, args=[p]) for p in (publisher, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    told = [page for page in pages.values() if "look again" in page.text]
    assert product.rows("Publication.objects.count()") == before + 1
    assert len(told) == 1


def test_what_the_database_refuses_it_refuses_in_the_running_product(
    product: Product, sheet_id: int
) -> None:
    code = (
        "from django.db import connection; c = connection.cursor(); "
        "c.execute(\"UPDATE factsheets_publication SET reason = 'forged'\")"
    )

    answer = product.command("shell", "-v", "0", "--no-imports", "-c", code)

    assert answer.code != 0
    assert "Publications are never changed" in answer.err


def _served(product: Product, number: int | None = None) -> Page | None:
    page = product.get(CURRENT)
    wanted = number is None or page.headers.get("x-publication") == str(number)
    return page if page.status == 200 and wanted else None
