"""Rules, the sets they stand in, and the bots that must obey them."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.db import models

from factsheets.models.tracking import TAKEN, SheetPath, TrackedModel

RULE_LIMIT = 5_000


class BotProfile(TrackedModel):
    """What answers from a sheet, and how much room it has. All sizes are in tokens."""

    KIND = "bot"
    COMMON = True
    SHEETS = (SheetPath("sheets", ("sheets",)),)

    class Provider(models.TextChoices):
        OFFLINE = "offline", "offline (quotes the sheet, no model)"
        ANTHROPIC = "anthropic", "Anthropic"

    class Effort(models.TextChoices):
        LOW = "low"
        MEDIUM = "medium"
        HIGH = "high"
        XHIGH = "xhigh"
        MAX = "max"

    class Thinking(models.TextChoices):
        ADAPTIVE = "adaptive"
        BETWEEN_TOOLS = "between_tools"
        DISABLED = "disabled"

    slug = models.SlugField(max_length=80, unique=True)
    provider = models.CharField(max_length=20, choices=Provider, default=Provider.OFFLINE)
    model = models.CharField(
        max_length=100, blank=True, help_text="A dated model name: models drift under one name."
    )
    effort = models.CharField(max_length=10, choices=Effort, blank=True)
    thinking = models.CharField(max_length=20, choices=Thinking, blank=True)
    max_tokens = models.PositiveIntegerField(default=1024)
    context_window = models.PositiveIntegerField(default=200_000)
    reserve_history = models.PositiveIntegerField(default=8_000)
    reserve_question = models.PositiveIntegerField(default=1_000)
    reserve_retrieval = models.PositiveIntegerField(default=0)
    reserve_output = models.PositiveIntegerField(default=1_024)
    input_price = models.DecimalField(
        "price of input",
        max_digits=9,
        decimal_places=4,
        null=True,
        blank=True,
        help_text="Of a million input tokens, in the currency of your bill. For the sizing page.",
    )
    passes = models.PositiveSmallIntegerField(
        "passes for an answer",
        default=1,
        help_text="How often your bot calls the model for one answer; an agent does so several "
        "times.",
    )

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        if self.provider != self.Provider.OFFLINE and not self.model:
            raise ValidationError({"model": "Name the model that this provider should run."})
        if self.max_tokens < 1:
            raise ValidationError({"max_tokens": "Allow at least one token for a reply."})
        if self.passes < 1:
            raise ValidationError({"passes": "One answer takes at least one call."})
        if self.input_price is not None and self.input_price < 0:
            raise ValidationError({"input_price": "Give a price of nothing or more."})


class RuleSet(TrackedModel):
    """The ordered rules of one sheet, or a set that several sheets share."""

    KIND = "rule set"
    SHEETS = (SheetPath("sheet_links__sheet", ("sheet_links",)),)

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200)
    shared = models.BooleanField(default=False, help_text="Several sheets may use a shared set.")

    class Meta:
        ordering = ["title", "id"]

    def __str__(self) -> str:
        return self.title

    def label(self) -> str:
        return self.slug

    def clean(self) -> None:
        """Several sheets may go on using a set only while it is shared."""
        if self.shared or self.pk is None:
            return
        links = SheetRuleSet.objects.present().filter(ruleset=self)
        own_elsewhere = SheetRuleSet.objects.present().filter(
            sheet__in=links.values("sheet"), ruleset__shared=False
        )
        if links.count() > 1 or own_elsewhere.exclude(ruleset=self).exists():
            raise ValidationError(
                {
                    "shared": "Sheets share this set; take it out of those that have rules of their own."
                }
            )


class Rule(TrackedModel):
    """One instruction on what may be said."""

    KIND = "rule"
    SHEETS = (SheetPath("ruleset__sheet_links__sheet", ("ruleset__sheet_links",)),)

    class Kind(models.TextChoices):
        PERSONA = "persona"
        FORMAT = "format"
        THRESHOLD = "threshold"
        DEFINITION = "definition"
        REFUSAL = "refusal"
        SIGNPOST = "signpost"
        DISCLOSURE = "disclosure"

    ruleset = models.ForeignKey(RuleSet, on_delete=models.PROTECT, related_name="rules")
    key = models.SlugField(max_length=80)
    kind = models.CharField(max_length=20, choices=Kind)
    text = models.TextField(validators=[MaxLengthValidator(RULE_LIMIT)])
    position = models.PositiveIntegerField(default=0)
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ["ruleset", "position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["ruleset", "key"], name="rule_key_once_a_set", violation_error_message=TAKEN
            )
        ]

    def __str__(self) -> str:
        return self.key


class SheetRuleSet(TrackedModel):
    """A sheet's use of a rule set. Shared sets come first, then the sheet's own."""

    KIND = "rule set of a sheet"
    SHEETS = (SheetPath("sheet"),)

    sheet = models.ForeignKey(
        "factsheets.Sheet", on_delete=models.PROTECT, related_name="ruleset_links"
    )
    ruleset = models.ForeignKey(RuleSet, on_delete=models.PROTECT, related_name="sheet_links")
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["sheet", "position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["sheet", "ruleset"],
                name="ruleset_once_a_sheet",
                violation_error_message=TAKEN,
            )
        ]

    def __str__(self) -> str:
        return f"{self.ruleset} in {self.sheet}"

    def clean(self) -> None:
        """A set that is not shared belongs to one sheet, and a sheet has one such set."""
        if not (self.ruleset_id and self.sheet_id) or self.removed_at or self.ruleset.shared:
            return
        others = SheetRuleSet.objects.present().exclude(pk=self.pk)
        if others.filter(ruleset=self.ruleset).exists():
            raise ValidationError(
                f"The rule set “{self.ruleset}” belongs to another sheet; tick “shared” on it first."
            )
        if others.filter(sheet_id=self.sheet_id, ruleset__shared=False).exists():
            raise ValidationError(
                "The sheet has rules of its own already; tick “shared” on this set to add it."
            )
