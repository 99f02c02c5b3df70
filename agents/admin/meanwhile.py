"""Forms that overwrite nothing which somebody else has changed since they were shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django import forms
from django.http import QueryDict

from tools.contract import fingerprint

from .acts import last_changed_by

LONGEST_TOLD = 80
"""Characters of a value that is told in the place where it was changed."""


class Stamp(forms.Field):
    """What the form has shown: {field: digest of its value}, as text; nothing to see, and no change of the row."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=forms.HiddenInput)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False


class StampedForm(forms.ModelForm):  # type: ignore[type-arg]
    """Refuses each value that would overwrite one which was not shown; saved once more, it is meant.

    What is sent as it stands in the row by now overwrites nothing, and neither does a form that was never shown.
    """

    shown_as = Stamp()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            now = {name: _digest(self[name].initial) for name in self.fields if name in self.initial}
            self.initial["shown_as"] = " ".join(f"{name}={digest}" for name, digest in now.items())

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        before, now = _read(cleaned.pop("shown_as", None)), _read(self.initial.get("shown_as"))
        stale = [name for name in self.changed_data if name in before and before[name] != now.get(name)]
        if stale:
            by = last_changed_by(self.instance)
            for name in stale:
                self.add_error(name, f"Changed meanwhile{by}{self._told(name)}. Save again to write what stands here.")
            self.data = data = cast("QueryDict", self.data).copy()
            data[self.add_prefix("shown_as")] = self.initial["shown_as"]
        return cleaned

    def _told(self, name: str) -> str:
        """The value that it has now, if that is a short one."""
        value = self[name].initial
        is_plain = isinstance(value, str | int) and not isinstance(self.fields[name], forms.ModelChoiceField)
        if isinstance(value, bool):
            return f": it is {'ticked' if value else 'not ticked'} now"
        return f": it is {value or 'empty'} now" if is_plain and len(str(value)) <= LONGEST_TOLD else ""


def stamped(form: type[forms.ModelForm[Any]], readonly: Iterable[str]) -> type[forms.ModelForm[Any]]:
    """The same form without these fields, which looks whether the row is still as it was shown."""
    left_out = dict.fromkeys(name for name in readonly if name in form.declared_fields)
    metaclass: Any = type(form)
    made: type[forms.ModelForm[Any]] = metaclass(form.__name__, (StampedForm, form), left_out)
    return made


def _digest(value: Any) -> str:
    return fingerprint(str(value))[:16]


def _read(stamp: str | None) -> dict[str, str]:
    pairs = (each.partition("=") for each in str(stamp or "").split())
    return {name: digest for name, _, digest in pairs}
