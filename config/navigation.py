"""The admin's side bar: what people come for stands first, and each sees what they may see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.urls import reverse, reverse_lazy


def _may(permission: str) -> Callable[[HttpRequest], bool]:
    def may(request: HttpRequest) -> bool:
        # Here, for the settings name this module before any model is there.
        from factsheets import access

        return access.somewhere(request.user, permission)

    return may


def _item(title: str, icon: str, app: str, model: str) -> dict[str, Any]:
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{model}_changelist"),
        "permission": _may(f"{app}.view_{model}"),
    }


def _on_sheets(request: HttpRequest) -> bool:
    """Below the sheets' address stand report and search too, which have items of their own."""
    address = reverse("admin:factsheets_sheet_changelist")
    others = {reverse("admin:stale_report"), reverse("admin:find")}
    return request.path.startswith(address) and request.path not in others


def groups() -> list[dict[str, Any]]:
    """Groups of links to lists, in the order of the work."""
    return [
        {
            "title": "Sheets",
            "items": [
                {**_item("Sheets", "history_edu", "factsheets", "sheet"), "active": _on_sheets},
                {
                    "title": "Gates",
                    "icon": "door_front",
                    "link": reverse_lazy("runs:gates"),
                    "permission": _may("factsheets.view_sheet"),
                },
                {
                    "title": "Search",
                    "icon": "search",
                    "link": reverse_lazy("admin:find"),
                    "permission": _may("factsheets.view_sheet"),
                },
                _item("Sections", "article", "factsheets", "section"),
                _item("Sources", "menu_book", "factsheets", "source"),
                _item("Citations", "format_quote", "factsheets", "citation"),
            ],
        },
        {
            "title": "Checks",
            "items": [
                {
                    "title": "What wants checking",
                    "icon": "pending_actions",
                    "link": reverse_lazy("admin:stale_report"),
                    "permission": _may("factsheets.view_sheet"),
                },
                _item("Checks", "fact_check", "factsheets", "check"),
                _item("Review plans", "assignment_ind", "factsheets", "reviewplan"),
                _item("Review intervals", "event_repeat", "factsheets", "reviewinterval"),
            ],
        },
        {
            "title": "Rules and bots",
            "items": [
                _item("Rules", "gavel", "factsheets", "rule"),
                _item("Rule sets", "library_books", "factsheets", "ruleset"),
                _item("Sets in use", "link", "factsheets", "sheetruleset"),
                _item("Bots", "smart_toy", "factsheets", "botprofile"),
                _item("Gate policies", "policy", "factsheets", "gatepolicy"),
            ],
        },
        {
            "title": "Probes",
            "items": [
                _item("Runs", "play_circle", "evals", "run"),
                _item("Suites", "checklist", "evals", "suite"),
                _item("Probes", "science", "evals", "probe"),
                _item("Required suites", "rule", "evals", "suiterequirement"),
                _item("Question sets", "quiz", "evals", "questionset"),
                _item("Questions", "help", "evals", "question"),
                _item("Attempts", "forum", "evals", "attempt"),
            ],
        },
        {
            "title": "What was served",
            "items": [
                _item("Publications", "publish", "factsheets", "publication"),
                _item("Events", "event_note", "factsheets", "publicationevent"),
                _item("Scheduled", "schedule", "factsheets", "schedule"),
                _item("Change sets", "history", "factsheets", "changeset"),
                _item("Outbox", "outbox", "factsheets", "outbox"),
            ],
        },
        {
            "title": "People",
            "items": [
                _item("Users", "person", "auth", "user"),
                _item("Roles", "groups", "auth", "group"),
                _item("Members of sheets", "badge", "factsheets", "member"),
            ],
        },
    ]
