"""Works relied on, and each section's use of them."""

from __future__ import annotations

from django.core.validators import URLValidator
from django.db import models

from factsheets import staleness
from factsheets.models.sheets import Section
from factsheets.models.tracking import SheetPath, TrackedModel

http_address = URLValidator(
    schemes=["http", "https"], message="Give an address that begins with http:// or https://."
)


class Source(TrackedModel):
    """One work, shared by sections and sheets."""

    KIND = "source"
    COMMON = True
    SHEETS = (
        SheetPath(
            "citations__section__sheet",
            ("citations", "citations__section"),
        ),
    )

    class Kind(models.TextChoices):
        OFFICIAL_LIST_ENTRY = "official-list-entry", "official list entry"
        LAW_OR_REGULATION = "law-or-regulation", "law or regulation"
        REFERENCE_HISTORY = "reference-history", "reference history"
        PRIMARY_NARRATIVE = "primary-narrative", "primary narrative"
        SCHOLARLY = "scholarly-book-or-article", "scholarly book or article"
        MUSEUM_OR_SITE_PAGE = "museum-or-site-page", "museum or site page"
        GOVERNMENT_PAGE = "government-page", "government page"
        NEWS = "news", "news"
        INTERVIEW = "interview", "interview"
        OWN_POLICY = "own-policy", "own policy"
        OTHER = "other", "other"

    key = models.SlugField(max_length=80, unique=True)
    kind = models.CharField(max_length=30, choices=Kind)
    title = models.CharField(max_length=500)
    author = models.CharField(max_length=300, blank=True)
    publisher = models.CharField(max_length=300, blank=True)
    issued = models.CharField(
        max_length=100, blank=True, help_text="In words: a year, a range, or “undated”."
    )
    url = models.CharField(
        "address",
        max_length=1000,
        blank=True,
        validators=[http_address],
        help_text="http or https.",
    )
    identifier = models.CharField(max_length=200, blank=True)
    licence = models.CharField(max_length=300, blank=True)
    access = models.CharField(
        max_length=300, blank=True, help_text="How to get at it, where that is not plain."
    )
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["title", "id"]

    def __str__(self) -> str:
        return self.title

    def label(self) -> str:
        return self.key


class Citation(TrackedModel):
    """One section's use of a source. The same source may be cited more than once."""

    KIND = "citation"
    SHEETS = (SheetPath("section__sheet"),)

    class Role(models.TextChoices):
        SUPPORTS = "supports"
        QUALIFIES = "qualifies"
        CONTRADICTS = "contradicts"
        BACKGROUND = "background"

    section = models.ForeignKey(Section, on_delete=models.PROTECT, related_name="citations")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="citations")
    locator = models.CharField(
        max_length=300, blank=True, help_text="Where in the source: page, clause, anchor."
    )
    claims = models.TextField(blank=True, help_text="Which claims of the section it carries.")
    quote = models.TextField(blank=True, help_text="The words relied on, if short.")
    role = models.CharField(max_length=20, choices=Role, default=Role.SUPPORTS)
    required = models.BooleanField(
        default=True, help_text="The section cannot stand without this source."
    )
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["section", "position", "id"]

    def __str__(self) -> str:
        return f"{self.source_id}: {self.locator or self.claims or 'whole work'}"

    @property
    def must_bear_out(self) -> bool:
        """Whether the section cannot stand if this source is against it."""
        return staleness.must_bear_out(self.role, required=self.required)

    @property
    def use_hash(self) -> str:
        """Which source is used, and where in it: what a check of this citation looks at."""
        return staleness.use_hash(self.source.key, self.locator)

    def label(self) -> str:
        return f"{self.source.key}: {self.locator or self.claims or 'whole work'}"

    def section_key(self) -> str:
        return self.section.key
