"""The fields of a card's edit form: one for each param, and one for each param of a nested object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PREFIX = "param."


@dataclass(frozen=True)
class Field:
    """One input, or a group of them.

    Attributes:
        path: the names that lead to the param: ("changes", "phone").
        kind: text, lines (long text), whole, number, flag, choice, list (one value per line), pairs (one `name: value`
            per line), json, or group (of `fields`).
        value: the input's text; `yes` or `no` for a flag.
        present: the current value.
        optional: the input may be empty: the param is then null where the schema allows it, else left out.
        item: the kind of a list's values, or of the values of pairs: text, or json for any.
    """

    path: tuple[str, ...]
    kind: str
    present: Any
    value: str
    description: str = ""
    optional: bool = False
    nullable: bool = False
    choices: tuple[str, ...] = ()
    item: str = "text"
    limits: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    fields: tuple[Field, ...] = ()

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def key(self) -> str:
        """The key of typed values and problems: `changes.phone`."""
        return ".".join(self.path)

    @property
    def input_name(self) -> str:
        return PREFIX + self.key

    @property
    def options(self) -> list[str]:
        """The choices; a value that the schema does not have stays one of them until another is chosen."""
        unknown = [self.value] if self.value and self.value not in self.choices else []
        return [*([""] if self.optional or not self.value else []), *unknown, *self.choices]

    @property
    def is_used(self) -> bool:
        """Check if the field has a value, or a person tried to enter one."""
        own = self.present is not None or bool(self.value or self.problem)
        return own if self.kind != "group" else self.present is not None or any(one.is_used for one in self.fields)

    @property
    def used(self) -> list[Field]:
        return [one for one in self.fields if one.is_used]

    @property
    def unused(self) -> list[Field]:
        return [one for one in self.fields if not one.is_used]


@dataclass(frozen=True)
class TypedValues:
    """The values that a person typed and what is wrong with them, by the keys of the fields."""

    values: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
