"""The fields of a card's edit form, built from the params; a nested object becomes a group of
fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PREFIX = "param."
"""The prefix of the inputs' names, so that no param has the name of another input."""


@dataclass(frozen=True)
class FormField:
    """One input, or a group of them.

    Attributes:
        path: the param's name, after the names of the objects that contain it: ("changes",
            "phone").
        kind: text, lines (long text), whole, number, flag, choice, list (one value per line), pairs
            (one `name: value` per line), json, or group (of `fields`).
        value: the input's text; `yes` or `no` for a flag.
        current: the param's current value.
        is_optional: True if the input may be empty; the param is then null if the schema allows
            that, otherwise omitted.
        item_kind: the kind of each value in a list or in pairs; json accepts any value.
        is_first: True if editing begins in this field.
    """

    path: tuple[str, ...]
    kind: str
    current: Any
    value: str
    description: str = ""
    is_optional: bool = False
    is_nullable: bool = False
    choices: tuple[str, ...] = ()
    item_kind: str = "text"
    limits: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    fields: tuple[FormField, ...] = ()
    is_first: bool = False

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def key(self) -> str:
        """The key in `FormInput`, such as `changes.phone`."""
        return ".".join(self.path)

    @property
    def input_name(self) -> str:
        return PREFIX + self.key

    @property
    def options(self) -> list[str]:
        """The choices, with an empty choice if the input may be empty, and with a current value
        that the schema does not list."""
        unknown = [self.value] if self.value and self.value not in self.choices else []
        return [*([""] if self.is_optional or not self.value else []), *unknown, *self.choices]

    @property
    def is_used(self) -> bool:
        """True if the field has a value, or a person tried to enter one."""
        own = self.current is not None or bool(self.value or self.problem)
        return (
            own
            if self.kind != "group"
            else self.current is not None or any(each.is_used for each in self.fields)
        )

    @property
    def used_fields(self) -> list[FormField]:
        return [each for each in self.fields if each.is_used]

    @property
    def unused_fields(self) -> list[FormField]:
        return [each for each in self.fields if not each.is_used]


@dataclass(frozen=True)
class FormInput:
    """The texts that a person typed, and the problems with them, by field key."""

    values: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


def read_typed_texts(form: Mapping[str, str]) -> dict[str, str]:
    """Return the typed texts of a submitted form, by field key."""
    return {
        name.removeprefix(PREFIX): str(text)
        for name, text in form.items()
        if name.startswith(PREFIX)
    }
