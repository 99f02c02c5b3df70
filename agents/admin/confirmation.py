"""Forms that save a dangerous change only after the person has confirmed its consequences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from tools.contract import fingerprint

CONFIRM_FIRST = "Tick each consequence, then save again."
ENTER_AGAIN = "This value was not saved. Enter it again."


class ConsequencesField(forms.MultipleChoiceField):
    """The consequences that the person has ticked; hidden until there is something to confirm."""

    def __init__(self) -> None:
        super().__init__(required=False, label="", widget=forms.MultipleHiddenInput)

    def validate(self, value: Any) -> None:
        """Accept any value: the choices are known only after the other fields are cleaned."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return False: a tick does not change the row."""
        return False

    def show_sentences(self, sentences: dict[str, str]) -> None:
        """Show a checkbox for each of these sentences, which are given by key."""
        self.label = "Confirm before saving"
        self.widget = UnfoldAdminCheckboxSelectMultipleWidget()
        self.choices = list(sentences.items())


class ConfirmationForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form that lists the consequences of its changes, and is valid only once the person has
    ticked each of them.

    A tick confirms exactly the sentence that was shown: if changed values lead to a different
    sentence, that sentence must be ticked too.
    """

    confirmed = ConsequencesField()
    write_only_fields: tuple[str, ...] = ()
    """Fields whose values are not sent back to the browser when the form shows its consequences."""

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterable[str]:
        """Return a sentence for each dangerous change among the cleaned values."""
        raise NotImplementedError

    def full_clean(self) -> None:
        super().full_clean()
        if not self.is_bound or "confirmed" not in self.fields:
            return
        ticked = self.cleaned_data.pop("confirmed", []) if hasattr(self, "cleaned_data") else []
        if self.errors:
            return
        sentences = {
            fingerprint(sentence)[:16]: sentence
            for sentence in self.list_consequences(self.cleaned_data)
        }
        if sentences.keys() - set(ticked):
            field = self.fields["confirmed"]
            assert isinstance(field, ConsequencesField)
            field.show_sentences(sentences)
            self.add_error("confirmed", CONFIRM_FIRST)
            for name in self.write_only_fields:
                if self.data.get(self.add_prefix(name)) or self.files.get(self.add_prefix(name)):
                    self.add_error(name, ENTER_AGAIN)


def needs_confirmation(form: forms.BaseForm) -> bool:
    """Return True if the form's only errors are missing ticks."""
    return form.is_bound and list(form.errors) == ["confirmed"]
