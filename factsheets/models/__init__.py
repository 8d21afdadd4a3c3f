"""The editorial record (tracked), what was served (append-only), what use it was, and nothing of the probes."""

from factsheets.models.checking import Check, CheckItem
from factsheets.models.keys import ApiKey
from factsheets.models.members import Member
from factsheets.models.operations import Heartbeat
from factsheets.models.publications import Outbox, Publication, PublicationEvent
from factsheets.models.reviewing import ReviewInterval, ReviewPlan
from factsheets.models.rules import BotProfile, Rule, RuleSet, SheetRuleSet
from factsheets.models.scheduling import Schedule
from factsheets.models.sheets import GatePolicy, Section, Sheet, SheetState, SlugAlias
from factsheets.models.sizing import SizeReport, TokenCount
from factsheets.models.sources import Citation, Source
from factsheets.models.tracking import ChangeSet, TrackedModel
from factsheets.models.use import UseLog, UseRecord

__all__ = [
    "ApiKey",
    "BotProfile",
    "ChangeSet",
    "Check",
    "CheckItem",
    "Citation",
    "GatePolicy",
    "Heartbeat",
    "Member",
    "Outbox",
    "Publication",
    "PublicationEvent",
    "ReviewInterval",
    "ReviewPlan",
    "Rule",
    "RuleSet",
    "Schedule",
    "Section",
    "Sheet",
    "SheetRuleSet",
    "SheetState",
    "SizeReport",
    "SlugAlias",
    "Source",
    "TokenCount",
    "TrackedModel",
    "UseLog",
    "UseRecord",
]
