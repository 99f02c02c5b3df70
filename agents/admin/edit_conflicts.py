"""Forms that never overwrite a concurrent edit without a warning."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django import forms
from django.http import QueryDict

from agents.admin.audit_subjects import describe_last_editor
from tools.contract import fingerprint

LONGEST_SHOWN = 80
"""The maximum length, in characters, of a current value that a message about a conflict quotes."""


class FingerprintsField(forms.Field):
    """A hidden field with a fingerprint of each value that the form has shown, as `field=digest`
    pairs."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=forms.HiddenInput)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False


class ConflictCheckForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form that refuses to overwrite a value that was changed after the form was shown. Saving
    the form again confirms the change.

    A value that is the same as the row's current value is accepted, and so is a form without
    fingerprints.
    """

    shown_fingerprints = FingerprintsField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            now = {
                name: _fingerprint(self[name].initial)
                for name in self.fields
                if name in self.initial
            }
            self.initial["shown_fingerprints"] = " ".join(
                f"{name}={digest}" for name, digest in now.items()
            )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        before = _parse_fingerprints(cleaned.pop("shown_fingerprints", None))
        now = _parse_fingerprints(self.initial.get("shown_fingerprints"))
        stale = [
            name for name in self.changed_data if name in before and before[name] != now.get(name)
        ]
        if stale:
            by = describe_last_editor(self.instance)
            for name in stale:
                current = self._describe_current_value(name)
                self.add_error(
                    name,
                    f"Changed{by} since you opened this form.{current} Save again to overwrite it.",
                )
            self.data = data = cast("QueryDict", self.data).copy()
            data[self.add_prefix("shown_fingerprints")] = self.initial["shown_fingerprints"]
        return cleaned

    def _describe_current_value(self, name: str) -> str:
        """Return a sentence with the row's current value; empty if the value is long or a
        reference."""
        value = self[name].initial
        is_plain = isinstance(value, str | int) and not isinstance(
            self.fields[name], forms.ModelChoiceField
        )
        if isinstance(value, bool):
            return f" It is now {'ticked' if value else 'not ticked'}."
        return (
            f" It is now {value or 'empty'}."
            if is_plain and len(str(value)) <= LONGEST_SHOWN
            else ""
        )


def add_conflict_check(
    form: type[forms.ModelForm[Any]], readonly: Iterable[str]
) -> type[forms.ModelForm[Any]]:
    """Return a subclass of the form that refuses conflicting edits and leaves out the read-only
    fields."""
    left_out = dict.fromkeys(name for name in readonly if name in form.declared_fields)
    metaclass: Any = type(form)
    checked_form: type[forms.ModelForm[Any]] = metaclass(
        form.__name__, (ConflictCheckForm, form), left_out
    )
    return checked_form


def _fingerprint(value: Any) -> str:
    return fingerprint(str(value))[:16]


def _parse_fingerprints(text: str | None) -> dict[str, str]:
    pairs = (each.partition("=") for each in str(text or "").split())
    return {name: digest for name, _, digest in pairs}
