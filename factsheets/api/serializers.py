"""The shapes of answers, for the API description. The bytes themselves are made elsewhere."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class SheetInIndex(serializers.Serializer[dict[str, Any]]):
    """One live public sheet."""

    slug = serializers.SlugField()
    title = serializers.CharField()
    publication = serializers.IntegerField(min_value=1)
    published_at = serializers.DateTimeField()
    content_hash = serializers.CharField(min_length=64, max_length=64)
    rules_hash = serializers.CharField(min_length=64, max_length=64)


class Index(serializers.Serializer[dict[str, Any]]):
    """All live public sheets."""

    sheets = SheetInIndex(many=True)


class PublicationInList(serializers.Serializer[dict[str, Any]]):
    """One publication of a sheet."""

    publication = serializers.IntegerField(min_value=1)
    published_at = serializers.DateTimeField()
    content_hash = serializers.CharField(min_length=64, max_length=64)
    rules_hash = serializers.CharField(min_length=64, max_length=64)
    live = serializers.BooleanField()


class Publications(serializers.Serializer[dict[str, Any]]):
    """A sheet's publications, newest first."""

    slug = serializers.SlugField()
    publications = PublicationInList(many=True)


class BodySection(serializers.Serializer[dict[str, Any]]):
    """One section, as the bot may see it."""

    key = serializers.SlugField()
    heading = serializers.CharField()
    question = serializers.CharField(allow_blank=True)
    text = serializers.CharField()


class BodyContent(serializers.Serializer[dict[str, Any]]):
    """The content whose canonical JSON has `content_hash` as its SHA-256."""

    language = serializers.CharField()
    title = serializers.CharField()
    sections = BodySection(many=True)


class Body(serializers.Serializer[dict[str, Any]]):
    """A publication as it is served."""

    format = serializers.CharField()
    slug = serializers.SlugField()
    publication = serializers.IntegerField(min_value=1)
    published_at = serializers.DateTimeField()
    content_hash = serializers.CharField(min_length=64, max_length=64)
    rules_hash = serializers.CharField(min_length=64, max_length=64)
    rules = serializers.CharField()
    content = BodyContent()


class PromptBlock(serializers.Serializer[dict[str, Any]]):
    """One system block of the model API."""

    type = serializers.CharField()
    text = serializers.CharField()
    cache_control = serializers.DictField(required=False)


class Prompt(serializers.Serializer[dict[str, Any]]):
    """The prompt in use: send `system` to the model as it is."""

    format = serializers.CharField()
    system = PromptBlock(many=True)


class Evidence(serializers.Serializer[dict[str, Any]]):
    """The run that opened the gate. No person, prompt or reply stands in it."""

    run = serializers.UUIDField()
    content_hash = serializers.CharField()
    rules_hash = serializers.CharField()
    bot_hash = serializers.CharField()
    provider = serializers.CharField()
    model = serializers.CharField(allow_blank=True)
    finished_at = serializers.DateTimeField()
    counts = serializers.DictField()
    suites = serializers.ListField(child=serializers.DictField())


class Problem(serializers.Serializer[dict[str, Any]]):
    """An error (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField()
    detail = serializers.CharField()
    withdrawn_at = serializers.DateTimeField(required=False)


class EntryProblem(Problem):
    """An error of a batch: `item` (from 0) and `field` where one answer is at fault."""

    item = serializers.IntegerField(required=False)
    field = serializers.CharField(required=False)


class UsedAnswer(serializers.Serializer[dict[str, Any]]):
    """One answer, and the sections that it needed."""

    reference = serializers.CharField(max_length=100)
    answered_at = serializers.DateTimeField()
    sections = serializers.ListField(child=serializers.SlugField())
    publication = serializers.IntegerField(min_value=1, required=False, allow_null=True)


class Usage(serializers.Serializer[dict[str, Any]]):
    """A batch of up to 500 answers."""

    answers = UsedAnswer(many=True)


class Recorded(serializers.Serializer[dict[str, Any]]):
    """How many were counted now, and how many had been before."""

    recorded = serializers.IntegerField(min_value=0)
    repeated = serializers.IntegerField(min_value=0)


class Question(serializers.Serializer[dict[str, Any]]):
    """A question to look up. `before`: what the visitor asked just before it."""

    question = serializers.CharField(max_length=1_000)
    before = serializers.CharField(max_length=1_000, required=False)
    publication = serializers.IntegerField(min_value=1, required=False)


class FoundSource(serializers.Serializer[dict[str, Any]]):
    """One chunk, with what each term adds to its score."""

    number = serializers.IntegerField(min_value=1)
    section = serializers.SlugField()
    part = serializers.IntegerField(min_value=1)
    heading = serializers.CharField()
    text = serializers.CharField()
    score = serializers.FloatField()
    terms = serializers.DictField(child=serializers.FloatField())


class QuestionWord(serializers.Serializer[dict[str, Any]]):
    """A content word of the question as a stem, and whether the best chunk has it."""

    stem = serializers.CharField()
    rarity = serializers.FloatField()
    found = serializers.BooleanField()


class Retrieved(serializers.Serializer[dict[str, Any]]):
    """What a split sheet sends for a question. Send `turn` to the model as the visitor's turn."""

    slug = serializers.SlugField()
    publication = serializers.IntegerField(min_value=1)
    content_hash = serializers.CharField(min_length=64, max_length=64)
    rules_hash = serializers.CharField(min_length=64, max_length=64)
    grounded = serializers.BooleanField()
    coverage = serializers.FloatField()
    sources = FoundSource(many=True)
    words = QuestionWord(many=True)
    turn = serializers.CharField()


class QuestionToSeveral(serializers.Serializer[dict[str, Any]]):
    """A question to several public sheets. `without`: whole sheets, or sections as slug/key."""

    question = serializers.CharField(max_length=1_000)
    before = serializers.CharField(max_length=1_000, required=False)
    sheets = serializers.ListField(child=serializers.SlugField(), max_length=10)
    without = serializers.ListField(child=serializers.CharField(), max_length=100, required=False)


class LookedIn(serializers.Serializer[dict[str, Any]]):
    """A publication that was looked in."""

    slug = serializers.SlugField()
    publication = serializers.IntegerField(min_value=1)
    content_hash = serializers.CharField(min_length=64, max_length=64)
    rules_hash = serializers.CharField(min_length=64, max_length=64)


class FoundInSheet(FoundSource):
    """One chunk, and whose it is. The summary of a sheet has no section."""

    sheet = serializers.SlugField()
    section = serializers.SlugField(allow_blank=True)


class RetrievedFromSeveral(serializers.Serializer[dict[str, Any]]):
    """What several sheets have for a question."""

    publications = LookedIn(many=True)
    grounded = serializers.BooleanField()
    coverage = serializers.FloatField()
    sources = FoundInSheet(many=True)
    words = QuestionWord(many=True)
    turn = serializers.CharField()
