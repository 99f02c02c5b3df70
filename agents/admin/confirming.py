"""Forms that save a dangerous change only after the person has ticked what it means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from tools.contract import fingerprint

ASKED = "This change has consequences. Read each one and tick it, then save again."
GIVE_AGAIN = "It is not kept while you are asked: give it again."


class Consequences(forms.MultipleChoiceField):
    """What the person has ticked; nothing to see until there is something to confirm."""

    def __init__(self) -> None:
        super().__init__(required=False, label="", widget=forms.MultipleHiddenInput)

    def validate(self, value: Any) -> None:
        """What may be ticked is known once the rest of the form is."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        """A tick is no change of the row."""
        return False

    def ask(self, consequences: dict[str, str]) -> None:
        """Show a box for each of these sentences, by key."""
        self.label = "Please confirm"
        self.widget = UnfoldAdminCheckboxSelectMultipleWidget()
        self.choices = list(consequences.items())


class ConfirmingForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form that names what its changes would entail, and wants each ticked before it is valid.

    A tick is bound to its sentence: if the values change, so that another sentence holds, that one is asked too.
    """

    confirmed = Consequences()
    never_shown: tuple[str, ...] = ()
    """Fields whose values do not come back with the question."""

    def consequences(self, cleaned: dict[str, Any]) -> Iterable[str]:
        """A sentence for each dangerous change among valid values."""
        raise NotImplementedError

    def full_clean(self) -> None:
        super().full_clean()
        if not self.is_bound or "confirmed" not in self.fields:
            return
        ticked = self.cleaned_data.pop("confirmed", []) if hasattr(self, "cleaned_data") else []
        if self.errors:
            return
        asked = {fingerprint(sentence)[:16]: sentence for sentence in self.consequences(self.cleaned_data)}
        if asked.keys() - set(ticked):
            field = self.fields["confirmed"]
            assert isinstance(field, Consequences)
            field.ask(asked)
            self.add_error("confirmed", ASKED)
            for name in self.never_shown:
                if self.data.get(self.add_prefix(name)) or self.files.get(self.add_prefix(name)):
                    self.add_error(name, GIVE_AGAIN)


def only_asks(form: forms.BaseForm) -> bool:
    """Whether nothing is wrong with it but that it waits for ticks."""
    return form.is_bound and list(form.errors) == ["confirmed"]
