"""The small forms of the workbench: one section, one citation, one rule at a time."""

from __future__ import annotations

from typing import Any

from django import forms

from factsheets import access, editing
from factsheets.admin.base import TrackedForm
from factsheets.models import Citation, Rule, Section, Source


class Card(TrackedForm):
    """A form for one row on a page with many: it knows its version, and its fields their row."""

    #: Letters before the row's key, so that every field of a page has a name of its own.
    letter = "c"

    def __init__(self, *args: Any, instance: Any, **kwargs: Any) -> None:
        # Set on the object, for the class serves every request.
        self.present_version = str(editing.version(instance)) if instance.pk else ""
        kwargs["prefix"] = f"{self.letter}{instance.pk or 'new'}"
        super().__init__(*args, instance=instance, **kwargs)
        for field in self.fields.values():
            if not isinstance(field.widget, forms.HiddenInput | forms.CheckboxInput):
                field.widget.attrs["class"] = "m-input"
        self.fields["why"].widget = forms.TextInput(
            attrs={"class": "m-input", "maxlength": 500, "placeholder": "Kept in the history"}
        )


class SectionCard(Card):
    letter = "s"

    class Meta:
        model = Section
        fields = ["heading", "question", "body", "note", "included"]
        widgets = {
            "body": forms.Textarea(attrs={"rows": 12}),
            "note": forms.Textarea(attrs={"rows": 2}),
        }


class NewSectionCard(forms.ModelForm):  # type: ignore[type-arg]
    """A section to come: its heading is enough."""

    class Meta:
        model = Section
        fields = ["heading", "body"]
        widgets = {
            "heading": forms.TextInput(attrs={"class": "m-input"}),
            "body": forms.Textarea(attrs={"class": "m-input", "rows": 6}),
        }


class NewRuleCard(forms.ModelForm):  # type: ignore[type-arg]
    """A rule to come, at the end of the sheet's own set."""

    class Meta:
        model = Rule
        fields = ["key", "kind", "text"]
        widgets = {
            "key": forms.TextInput(attrs={"class": "m-input"}),
            "kind": forms.Select(attrs={"class": "m-input"}),
            "text": forms.Textarea(attrs={"class": "m-input", "rows": 4}),
        }
        help_texts = {"key": "A short name, such as no-prices; the model does not see it."}


class RuleCard(Card):
    letter = "r"

    class Meta:
        model = Rule
        fields = ["text", "kind", "enabled"]
        widgets = {"text": forms.Textarea(attrs={"rows": 5})}


class CitationCard(Card):
    """A citation; of a new one the source is chosen or described here."""

    letter = "q"

    new_title = forms.CharField(
        label="… or a new source: its title", max_length=500, required=False
    )
    new_kind = forms.ChoiceField(
        label="Its kind", choices=Source.Kind, required=False, initial=Source.Kind.OTHER
    )
    new_url = forms.URLField(
        label="Its address", max_length=1000, required=False, assume_scheme="https"
    )

    class Meta:
        model = Citation
        fields = ["source", "locator", "claims", "quote", "role", "required"]
        widgets = {
            "claims": forms.Textarea(attrs={"rows": 2}),
            "quote": forms.Textarea(attrs={"rows": 2}),
        }

    field_order = ["source", "new_title", "new_kind", "new_url"]

    def __init__(self, *args: Any, user: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            for name in ("source", "new_title", "new_kind", "new_url"):
                del self.fields[name]
            return
        source = self.fields["source"]
        source.required = False
        source.queryset = access.visible(user, Source.objects.present()).order_by(  # type: ignore[attr-defined]
            "title", "id"
        )
        source.label = "An existing source"
        if not access.somewhere(user, "factsheets.add_source"):
            for name in ("new_title", "new_kind", "new_url"):
                del self.fields[name]

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        if not self.instance.pk and bool(data.get("source")) == bool(data.get("new_title")):
            raise forms.ValidationError("Choose a source, or give the title of a new one.")
        return data

    def _get_validation_exclusions(self) -> set[str]:
        # A source that is described here is made after this.
        return {*super()._get_validation_exclusions(), "source"}  # type: ignore[misc]
