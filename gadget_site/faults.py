"""Errors for wrong settings, and a collector that reports all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec

from django.core.exceptions import ImproperlyConfigured

P = ParamSpec("P")


class WrongValueError(ValueError):
    """A text that is not a valid value of its setting.

    Attributes:
        example: a valid value, if the setting's own example does not fit the fault.
    """

    def __init__(self, fault: str, example: str = "") -> None:
        super().__init__(fault)
        self.example = example


class SettingError(ImproperlyConfigured):
    """A setting is invalid; the text gives its name, the fault of its value, and a valid example.

    Args:
        example_name: the setting in the example, if it is a different one.
    """

    def __init__(self, name: str, fault: str, example: str, example_name: str = "") -> None:
        super().__init__(f"{name}: {fault}. Example: {example_name or name}={example}")


class NearMissError(SettingError):
    """A variable's name looks like a misspelled setting, which therefore stays unset."""

    def __init__(self, name: str, setting: str) -> None:
        ImproperlyConfigured.__init__(self, f"{name} is not a setting. Did you mean {setting}?")


class SettingErrors(SettingError):
    """Several settings are wrong; the text has one line for each."""

    def __init__(self, errors: Sequence[SettingError]) -> None:
        ImproperlyConfigured.__init__(self, "\n".join(map(str, errors)))


class Faults:
    """Collects all wrong settings, so that one start reports all of them."""

    def __init__(self) -> None:
        self._errors: list[SettingError] = []

    def check(self, reader: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call the reader, and keep its SettingError for `raise_all`."""
        try:
            reader(*args, **kwargs)
        except SettingError as error:
            self._errors.append(error)

    def raise_all(self) -> None:
        """Raise the collected errors, if any, without duplicates."""
        errors = list({str(error): error for error in self._errors}.values())
        if len(errors) > 1:
            raise SettingErrors(errors)
        if errors:
            raise errors[0]
