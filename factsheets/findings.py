"""What there is to say of each code of finding: what brings it up, and what opens the gate again.

One page of `docs/findings/` stands behind every code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Kinds of rows (`KIND` of their models), by what a change of them reaches.
RULES = frozenset({"rule", "rule set", "rule set of a sheet"})
TEXT = frozenset({"sheet", "section"})
SERVED = RULES | TEXT | {"bot"}
BESIDE = frozenset({"source", "citation"})
ASKED = frozenset({"gate policy", "suite", "probe", "required suite"})


@dataclass(frozen=True, slots=True)
class Explanation:
    """What opens the gate (or clears the warning), and whose changes can have closed it.

    `changed`: kinds of rows. `since_passed`: it counts from the last passing
    run; else the newest change of those rows is what brought it up.
    """

    opens: str
    changed: frozenset[str] = frozenset()
    since_passed: bool = False


_RUN = "Run the probes; the gate opens when they pass."

CODES: Mapping[str, Explanation] = {
    "rules-not-probed": Explanation(_RUN, RULES, since_passed=True),
    "requirements-changed": Explanation(_RUN, frozenset({"required suite"}), since_passed=True),
    "suite-changed": Explanation(_RUN, frozenset({"suite", "probe"}), since_passed=True),
    "bot-changed": Explanation(
        "Run the probes with the present bot, or choose the former bot again.",
        frozenset({"sheet", "bot"}),
        since_passed=True,
    ),
    "content-not-probed": Explanation(
        "Run the probes; they then have passed on this text too.", TEXT, since_passed=True
    ),
    "evidence-expired": Explanation(_RUN),
    "newer-run-failed": Explanation(
        "Read what failed, mend the rules or the text, and run the probes until a whole run passes."
    ),
    "live-probes-failed": Explanation(
        "Read what failed, mend the rules or the text, and run the probes; or withdraw what is live."
    ),
    "passed-after-failures": Explanation(
        "Read the runs that failed; ask each probe more often if the bot answers by chance."
    ),
    "retrieval-regressed": Explanation(
        "Mend heading, question or text of the sections that lost questions, and run the question "
        "set again.",
        TEXT,
    ),
    "no-suite": Explanation(
        "Require a suite of probes and run it.", frozenset({"required suite", "suite"})
    ),
    "empty-suite": Explanation(
        "Add an active probe with a check to the suite, or drop the requirement.",
        frozenset({"suite", "probe"}),
    ),
    "no-control": Explanation(
        "Fill in a question that must be answered, with the words of a right answer.",
        frozenset({"probe", "required suite"}),
    ),
    "no-rules": Explanation("Write a rule or enable one, and run the probes.", RULES),
    "no-sections": Explanation("Write a section or include one.", TEXT),
    "empty-section": Explanation("Write the section, or do not include it.", TEXT),
    "too-large": Explanation(
        "Shorten rules or text, or choose a bot with a larger window.", SERVED
    ),
    "sizing-advises-split": Explanation(
        "Look at the split and choose it, or count again once the sheet or its use has changed."
    ),
    "rules-too-long": Explanation(
        "Shorten the rules; move what they know about the subject to sections.", RULES
    ),
    "disputed": Explanation("Correct the text and check it again."),
    "unsourced": Explanation(
        "Cite a source that supports the section.", frozenset({"citation", "section"})
    ),
    "never-checked": Explanation("Record a check of the section."),
    "edited-since-check": Explanation(
        "Record a check of the section as it is now.", frozenset({"section", "citation"})
    ),
    "overdue": Explanation("Record a check of the section."),
    "archived": Explanation("Take the sheet out of the archive.", frozenset({"sheet"})),
    "nothing-changed": Explanation("Change the text, the rules or the bot; or leave it as it is."),
    "same-person": Explanation("Ask somebody to publish who wrote none of the changes."),
}


def page(code: str) -> str:
    """Where the finding is described, from the project's folder."""
    return f"docs/findings/{code}.md"
