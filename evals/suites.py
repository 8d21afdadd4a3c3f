"""Read suites as they stand, freeze them into a plan, and hash what was frozen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from evals import graders
from evals.models import Probe, Suite, SuiteRequirement
from factsheets import canonical

#: No grader asks a model yet; the keys stand so that adding one changes every hash.
_JUDGE: Mapping[str, str] = {"prompt": "", "model": ""}


@dataclass(frozen=True, slots=True)
class FrozenSuite:
    """A suite at one moment. `probes` are the active ones in order, in their stored form;
    `probe_hashes` are of all that the suite's hash covers, by key."""

    slug: str
    title: str
    hash: str
    repeats: int
    pass_bar: int
    probes: tuple[Mapping[str, object], ...]
    probe_hashes: Mapping[str, str]

    @property
    def is_empty(self) -> bool:
        return not self.probes


def required(sheet_id: int) -> tuple[FrozenSuite, ...]:
    """The suites that a sheet requires, frozen, in two queries."""
    suites = Suite.objects.present().filter(
        id__in=SuiteRequirement.objects.present().filter(sheet_id=sheet_id).values("suite_id")
    )
    return frozen(suites.order_by("slug"))


def frozen(suites: Iterable[Suite]) -> tuple[FrozenSuite, ...]:
    """Freeze suites with their present probes."""
    chosen = list(suites)
    probes: dict[int, list[Probe]] = {suite.pk: [] for suite in chosen}
    for probe in Probe.objects.present().filter(suite__in=chosen).order_by("position", "id"):
        probes[probe.suite_id].append(probe)
    return tuple(_freeze(suite, probes[suite.pk]) for suite in chosen)


def _freeze(suite: Suite, probes: Sequence[Probe]) -> FrozenSuite:
    all_probes = [_probe(probe) for probe in probes]
    hashed = {
        "probes": all_probes,
        "repeats": suite.repeats,
        "pass_bar": suite.pass_bar,
        "judge": _JUDGE,
        "graders": sorted(
            {(check.name, check.version) for p in probes for check in graders.parse(p.checks)}
        ),
    }
    return FrozenSuite(
        slug=suite.slug,
        title=suite.title,
        hash=canonical.sha256(canonical.canonical_json(hashed)),
        repeats=suite.repeats,
        pass_bar=suite.pass_bar,
        probes=tuple(probe for probe in all_probes if probe["active"] and probe["checks"]),
        probe_hashes={
            probe.key: canonical.sha256(canonical.canonical_json(frozen))
            for probe, frozen in zip(probes, all_probes, strict=True)
        },
    )


def differences(ran: Mapping[str, Any], suite: FrozenSuite) -> list[str]:
    """How a suite differs from what a run was planned with, in words; none where it does not."""
    if ran["hash"] == suite.hash:
        return []
    found = []
    if ran["repeats"] != suite.repeats:
        found.append(f"asks each probe {_times(suite.repeats)} and not {_times(ran['repeats'])}")
    if ran["pass_bar"] != suite.pass_bar:
        found.append(f"has its bar at {suite.pass_bar} % and not at {ran['pass_bar']} %")
    before = ran.get("probe_hashes")
    if before is not None:
        now = suite.probe_hashes
        found += _probes("has new probes", now.keys() - before.keys())
        found += _probes("lacks probes", before.keys() - now.keys())
        both = now.keys() & before.keys()
        found += _probes("has edited probes", {key for key in both if now[key] != before[key]})
    return found or ["is not as it was"]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _probes(what: str, keys: Set[str]) -> list[str]:
    return [f"{what} ({', '.join(sorted(keys))})"] if keys else []


def _probe(probe: Probe) -> dict[str, object]:
    return {
        "key": probe.key,
        "category": probe.category,
        "turns": probe.turns,
        "must": probe.must,
        "checks": [check.spec() for check in graders.parse(probe.checks)],
        "severity": probe.severity,
        "needs": probe.needs,
        "active": probe.active,
    }
