"""The errors that wrong settings raise, and a collection that tells all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar, cast

from django.core.exceptions import ImproperlyConfigured

P = ParamSpec("P")
T = TypeVar("T")


class SettingError(ImproperlyConfigured):
    """A setting is wrong: its name, what is wrong with its value, and an example that would be right.

    Args:
        example_name: the setting in the example, if it is a different one.
    """

    def __init__(self, name: str, fault: str, example: str, example_name: str = "") -> None:
        super().__init__(f"{name}: {fault}. Example: {example_name or name}={example}")


class NearMissError(SettingError):
    """A variable that is nearly named like a setting, which is therefore not set."""

    def __init__(self, name: str, setting: str) -> None:
        ImproperlyConfigured.__init__(self, f"{name} is not a setting. Did you mean {setting}?")


class SettingErrors(SettingError):
    """Several settings are wrong: one line for each."""

    def __init__(self, errors: Sequence[SettingError]) -> None:
        ImproperlyConfigured.__init__(self, "\n".join(map(str, errors)))


class Faults:
    """Collects what is wrong with the settings, so that nobody has to mend them one start at a time."""

    def __init__(self) -> None:
        self._errors: list[SettingError] = []

    def read(self, reader: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the reader reads. A wrong setting is kept, and its value must not be used: `raise_all` first."""
        try:
            return reader(*args, **kwargs)
        except SettingError as error:
            self._errors.append(error)
            return cast("T", None)

    def raise_all(self) -> None:
        """Raise what was collected, if anything, each sentence once."""
        errors = list({str(error): error for error in self._errors}.values())
        if len(errors) > 1:
            raise SettingErrors(errors)
        if errors:
            raise errors[0]
