"""Sheets and what belongs to one alone: its state, gate policy, sections and old names."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, RegexValidator
from django.db import models
from django.db.models.functions import Length

from factsheets import canonical
from factsheets.models.rules import BotProfile
from factsheets.models.tracking import TAKEN, SheetPath, TrackedModel

models.TextField.register_lookup(Length)

#: Characters. A section of this size is no longer one; a sheet far over it does not fit a prompt.
SECTION_LIMIT = 20_000
SHEET_LIMIT = 200_000

language_tag = RegexValidator(
    r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$", "Give a language tag such as en-GB, de or cy."
)


class Sheet(TrackedModel):
    """The document on one subject."""

    KIND = "sheet"
    SHEETS = (SheetPath(""),)

    class ProbeScope(models.TextChoices):
        RULES = "rules", "the rules"
        RULES_AND_CONTENT = "rules+content", "the rules and the content"

    class Visibility(models.TextChoices):
        PUBLIC = "public", "public"
        KEY = "key", "with a key only"

    class Delivery(models.TextChoices):
        INLINE = "inline", "whole sheet in the prompt"
        SPLIT = "split", "rules and titles; sections as a question asks for them"

    slug = models.SlugField(
        max_length=80,
        unique=True,
        help_text="The name in addresses. It may be changed; the old one stays reserved.",
    )
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True, help_text="For people; it never reaches the model.")
    language = models.CharField(max_length=35, default="en-GB", validators=[language_tag])
    bot = models.ForeignKey(BotProfile, on_delete=models.PROTECT, related_name="sheets")
    probe_scope = models.CharField(
        max_length=20,
        choices=ProbeScope,
        default=ProbeScope.RULES,
        help_text="What the probes must have run on before publishing.",
    )
    visibility = models.CharField(max_length=10, choices=Visibility, default=Visibility.PUBLIC)
    delivery = models.CharField(max_length=10, choices=Delivery, default=Delivery.INLINE)
    archived_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["title", "id"]
        permissions = [
            ("describe_sheet", "Can change a sheet's title, description and language"),
            ("rename_sheet", "Can rename a sheet"),
            ("archive_sheet", "Can archive a sheet"),
            ("assign_bot", "Can choose a sheet's bot, its probe scope and its delivery"),
            ("change_visibility", "Can change who may pull a sheet"),
            ("publish_sheet", "Can publish a sheet"),
            ("withdraw_sheet", "Can withdraw a sheet"),
            ("rollback_sheet", "Can roll a sheet back"),
        ]

    def __str__(self) -> str:
        return self.title

    def label(self) -> str:
        return self.slug

    def clean(self) -> None:
        if SlugAlias.objects.filter(slug=self.slug).exclude(sheet_id=self.pk or 0).exists():
            raise ValidationError(
                {
                    "slug": f"{self.slug!r} was once the name of another sheet and stays reserved; "
                    "choose another."
                }
            )

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Also keeps the name that a rename gives up, and makes the state of a new sheet."""
        is_new = self._state.adding
        before = (
            None
            if is_new
            else Sheet.objects.filter(pk=self.pk).values_list("slug", flat=True).get()
        )
        super().save(*args, **kwargs)
        if is_new:
            SheetState.objects.create(sheet=self)
        if before is not None and before != self.slug:
            SlugAlias.objects.get_or_create(slug=before, sheet=self)


class SlugAlias(models.Model):
    """A name that a sheet once had. Reserved for ever, so that old addresses lead on."""

    slug = models.SlugField(max_length=80, unique=True)
    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="aliases")

    class Meta:
        verbose_name_plural = "slug aliases"

    def __str__(self) -> str:
        return self.slug


class SheetState(models.Model):
    """What is live now: a cache of the newest event, kept true by a trigger."""

    sheet = models.OneToOneField(Sheet, on_delete=models.PROTECT, related_name="state")
    live_publication = models.ForeignKey(
        "factsheets.Publication", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    def __str__(self) -> str:
        return f"{self.sheet}: {self.live_publication or 'nothing'} live"


class GatePolicy(TrackedModel):
    """How strict a sheet's gate is. Without a row the defaults hold."""

    KIND = "gate policy"
    SHEETS = (SheetPath("sheet"),)

    sheet = models.OneToOneField(Sheet, on_delete=models.PROTECT, related_name="gate_policy")
    evidence_max_age_days = models.PositiveIntegerField(
        default=90, help_text="Days after which a passing run no longer opens the gate."
    )
    renew_days_before = models.PositiveSmallIntegerField(
        "renewed days before",
        default=7,
        help_text="So many days before the evidence of what is live expires, its probes run again "
        "by themselves, never sooner than at half its age. 0: never.",
    )
    blocking_warnings = models.JSONField(
        default=list, blank=True, help_text="Codes of warnings that block here."
    )
    four_eyes = models.BooleanField(
        default=False,
        help_text="Whoever changed what is to be published, or what its gate asks, may not "
        "publish it.",
    )
    inline_below_percent = models.PositiveSmallIntegerField(
        "inline below (%)",
        default=10,
        help_text="A sheet that takes less of the usable window stays inline if it is used widely.",
    )
    split_from_percent = models.PositiveSmallIntegerField(
        "split from (%)",
        default=15,
        help_text="A sheet that takes more of the usable window is better split.",
    )
    least_used_percent = models.PositiveSmallIntegerField(
        "least used (%)",
        default=33,
        help_text="A sheet of which questions touch a smaller share of sections is better split.",
    )
    readers_differ = models.BooleanField(
        "readers see different facts",
        null=True,
        blank=True,
        help_text="Whether some readers may not be told all of it. An inline sheet shows "
        "everything to everybody.",
    )

    class Meta:
        verbose_name_plural = "gate policies"

    def __str__(self) -> str:
        return f"gate policy of {self.sheet}"

    def clean(self) -> None:
        from factsheets import gate

        if not 0 < self.inline_below_percent <= self.split_from_percent <= 100:
            raise ValidationError(
                {"split_from_percent": "Give two shares of 100, the first not above this one."}
            )
        if not isinstance(self.blocking_warnings, list) or not all(
            isinstance(code, str) for code in self.blocking_warnings
        ):
            raise ValidationError({"blocking_warnings": "Give a list of codes, such as []."})
        unknown = [code for code in self.blocking_warnings if code not in gate.WARNINGS]
        if unknown:
            raise ValidationError(
                {
                    "blocking_warnings": f"No such warning: {', '.join(map(str, unknown))}. "
                    f"Choose from {', '.join(sorted(gate.WARNINGS))}."
                }
            )


class Section(TrackedModel):
    """The smallest ordered, citable part of a sheet."""

    KIND = "section"
    SHEETS = (SheetPath("sheet"),)

    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="sections")
    key = models.SlugField(
        max_length=80, help_text="The stable name in labels, citations and logs. Never re-used."
    )
    position = models.PositiveIntegerField(default=0)
    heading = models.CharField(max_length=200)
    question = models.CharField(
        max_length=300, blank=True, help_text="The one question this section answers."
    )
    body = models.TextField(
        blank=True,
        validators=[MaxLengthValidator(SECTION_LIMIT)],
        help_text="All that the assistant may say of it. A blank line between paragraphs.",
    )
    included = models.BooleanField(
        default=True, help_text="Without the tick the section is kept but not published."
    )
    note = models.TextField(blank=True, help_text="For editors; it never reaches the model.")

    class Meta:
        ordering = ["sheet", "position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["sheet", "key"],
                name="section_key_once_a_sheet",
                violation_error_message=TAKEN,
            ),
            models.CheckConstraint(
                condition=models.Q(body__length__lte=SECTION_LIMIT), name="section_body_limit"
            ),
        ]

    def __str__(self) -> str:
        return self.heading

    @property
    def text_hash(self) -> str:
        """What a check of the section's present text confirms."""
        return canonical.text_hash(self.heading, self.body)

    def label(self) -> str:
        return self.key

    def section_key(self) -> str:
        return self.key
