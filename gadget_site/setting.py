"""The class of a setting, which is one environment variable, and the reader of all settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, cast, overload

from gadget_site.faults import SettingError, WrongValueError
from gadget_site.parsers import clean

T = TypeVar("T")


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One setting, read from an environment variable. As an attribute of a `SettingsReader`, it
    returns its value.

    Attributes:
        parse: turns its text into the value, or raises WrongValueError.
        default: the text to parse if the variable is unset or empty, or a function of the settings
            that returns the value.
        example: a valid value, for error messages and docs/settings.md.
        help: Markdown for docs/settings.md, which leaves out settings without help.
        shown_default: describes a default that is a function.
        is_distinctive: True if a near miss of the name can only be a misspelling. Other programs
            use names that are close to some settings, such as `HOSTS`; our prefix makes every name
            distinctive.
    """

    name: str
    parse: Callable[[str], T]
    default: str | Callable[[Any], T] = ""
    example: str = ""
    help: str = ""
    shown_default: str = ""
    is_distinctive: bool = False

    @overload
    def __get__(self, settings: None, owner: type) -> Self: ...
    @overload
    def __get__(self, settings: SettingsReader, owner: type) -> T: ...
    def __get__(self, settings: SettingsReader | None, owner: type) -> Self | T:
        return self if settings is None else settings.read(self)


class SettingsReader:
    """Reads settings from the environment, each at its first use; a variable with an empty value is
    treated as unset."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self._values: dict[str, Any] = {}

    def read(self, setting: Setting[T]) -> T:
        """Return the value of the setting.

        Raises:
            SettingError: this setting, or one that its default depends on, is wrong.
        """
        if setting.name not in self._values:
            self._values[setting.name] = self._parse(setting)
        return cast("T", self._values[setting.name])

    def is_given(self, setting: Setting[Any]) -> bool:
        """Return True if the variable is set.

        Raises:
            SettingError: its text has hidden characters or an unexpanded variable.
        """
        return bool(self._read_text(setting))

    def _parse(self, setting: Setting[T]) -> T:
        text, default = self._read_text(setting), setting.default
        try:
            if text or isinstance(default, str):
                return setting.parse(text or str(default))
            return default(self)
        except WrongValueError as error:
            raise SettingError(
                setting.name, str(error), error.example or setting.example
            ) from error

    def _read_text(self, setting: Setting[Any]) -> str:
        try:
            return clean(self.environ.get(setting.name, ""))
        except WrongValueError as error:
            raise SettingError(setting.name, str(error), error.example) from error
