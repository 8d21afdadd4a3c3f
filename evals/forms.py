"""Forms of our own pages."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.text import slugify

from factsheets.models import Sheet


class QuestionsForm(forms.Form):
    """A file of questions, and what the set is called."""

    file = forms.FileField(
        label="File",
        help_text="questions.yaml; a CSV file with the columns question, scope, sections, expected, "
        "facts, part; or the JSON of SQuAD, whose answers are looked for in the sections.",
    )
    slug = forms.SlugField(
        label="Name",
        max_length=80,
        required=False,
        help_text="Of a new set, or of one to be made equal to the file. A YAML file has its own.",
    )
    title = forms.CharField(label="Title", max_length=200, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        for field in self.fields.values():
            field.widget.attrs["class"] = "m-input"


class NewSheetForm(forms.ModelForm):  # type: ignore[type-arg]
    """What a new sheet is called, and what it starts from."""

    start = forms.ModelChoiceField(
        label="Start from",
        queryset=Sheet.objects.none(),
        required=False,
        empty_label="Blank, with starter rules and probes",
        help_text="Starter rules and probes are in English and there to be edited. A copy takes the "
        "text, sources, rules, probes, bot and gate policy of a sheet, and none of its checks.",
    )
    why = forms.CharField(
        label="Why",
        max_length=500,
        required=False,
        help_text="A few words for the history: what this sheet is for.",
    )

    field_order = ["start", "title", "slug", "language", "description", "why"]

    class Meta:
        model = Sheet
        fields = ["title", "slug", "language", "description"]
        labels = {"slug": "Address name"}
        help_texts = {
            "title": "The assistant reads it above the text.",
            "slug": "The name in addresses: letters, digits and hyphens. Left empty, it is made from "
            "the title. It may be changed later; the old one stays reserved.",
            "language": "A tag such as en-GB, de or cy. Left empty, it is that of the original, or "
            "en-GB.",
            "description": "For people; it never reaches the model. Left empty, it is that of the "
            "original.",
        }
        error_messages = {"title": {"required": "Write what the sheet is about."}}

    def __init__(self, *args: Any, originals: QuerySet[Sheet], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["start"].queryset = originals.order_by("title", "id")  # type: ignore[attr-defined]
        self.label_suffix = ""
        for name in ("slug", "language"):
            self.fields[name].required = False
        self.initial["language"] = ""
        for field in self.fields.values():
            field.widget.attrs["class"] = "m-input"
        self.fields["description"].widget.attrs["rows"] = 3

    def clean_slug(self) -> str:
        title: str = self.cleaned_data.get("title", "")
        slug: str = self.cleaned_data["slug"] or slugify(title)[:80].strip("-")
        if title and not slug:
            raise forms.ValidationError(
                "No name can be made from the title; write one of letters from a to z, digits and "
                "hyphens."
            )
        if Sheet.objects.filter(slug=slug).exists():
            raise forms.ValidationError(f"“{slug}” is the name of another sheet; choose another.")
        return slug
