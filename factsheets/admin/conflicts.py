"""Two people on one form: what each of them changed, and nothing lost of either.

A form carries the version of what it was made from. If somebody else saved
meanwhile, nothing is written: the form comes back with both texts beside the
one that both began with. Fields that only the other touched already hold the
other's words, so that saving again keeps one's own and takes nothing back.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms

from factsheets import comparing
from factsheets.comparing import Words

#: Fields that are about the save and not about the row.
_OF_THE_SAVE = {"why", "version"}


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """One field that either changed: the words of each against what both began with."""

    label: str
    theirs: Words
    mine: Words

    @property
    def is_clash(self) -> bool:
        """Both changed it."""
        return self.theirs.changed and self.mine.changed


@dataclass(frozen=True, slots=True)
class Conflict:
    """Who saved meanwhile, and what came of it field by field. `of_rows`: rows below were saved."""

    by: str
    at: datetime
    reason: str
    fields: tuple[FieldConflict, ...]
    of_rows: bool


def settle(form: Any, base: Any, newest: Any, *, of_rows: bool) -> Conflict:
    """Compare what was posted with what stands there now, and give the form the other's words
    where only the other changed something.

    `base`: an unbound form on the row as it was when the form was opened;
    `newest`: the newest history entry of the row.
    """
    now = type(form)(instance=form.instance)
    found = []
    form.data = form.data.copy()
    for name, field in form.fields.items():
        if name in _OF_THE_SAVE:
            continue
        began = base.get_initial_for_field(base.fields[name], name)
        stands = now.get_initial_for_field(now.fields[name], name)
        posted = field.widget.value_from_datadict(form.data, form.files, form.add_prefix(name))
        theirs, mine = stands != began, field.has_changed(began, posted)
        if theirs and not mine:
            _put(form, name, field, stands)
        if theirs or mine:
            one, other = _words(field, began), _words(field, stands)
            own = _words(field, posted if mine else stands)
            found.append(
                FieldConflict(
                    str(form[name].label),
                    comparing.words(one, other),
                    comparing.words(one, own) if mine else Words(()),
                )
            )
    if not of_rows:
        # Else the next save too is refused: rows below are shown as they were sent, and those of
        # the other would be taken back.
        form.data[form.add_prefix("version")] = form.present_version
    return Conflict(
        newest.change_set.by_name,
        newest.history_date,
        newest.change_set.reason,
        tuple(found),
        of_rows,
    )


def _words(field: forms.Field, value: Any) -> str:
    """A value as the form shows it, for people."""
    if isinstance(field, forms.BooleanField):
        return "yes" if field.to_python(value) else "no"
    if isinstance(field, forms.ModelChoiceField):
        chosen = [row for row in field.queryset or () if str(row.pk) == str(value)]
        return str(chosen[0]) if chosen else ""
    prepared = field.prepare_value(value)
    if isinstance(prepared, list | tuple):
        return ", ".join(map(str, prepared))
    return "" if prepared is None else str(prepared).replace("\r\n", "\n")


def _put(form: Any, name: str, field: forms.Field, value: Any) -> None:
    """Have a bound form hold a value as if it had been typed."""
    key = form.add_prefix(name)
    prepared = field.prepare_value(value)
    if isinstance(field, forms.BooleanField):
        form.data.pop(key, None)
        if prepared:
            form.data[key] = "on"
    elif isinstance(prepared, list | tuple):
        form.data.setlist(key, [str(item) for item in prepared])
    else:
        form.data[key] = "" if prepared is None else str(prepared)
