"""The fields of a card's edit form: one for each param, in a nested object one for each of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PREFIX = "param."


@dataclass(frozen=True)
class Field:
    """One input, or a group of them.

    Attributes:
        path: the names that lead to it: ("changes", "phone").
        kind: text, lines (long text), whole, number, flag, choice, list (one value per line), pairs (one `name: value`
            per line), json, or group (of `fields`).
        value: what stands in the input, as text; `yes` and `no` for a flag.
        present: the value as it is now.
        optional: the input may be left empty: null where the schema allows it, else left out.
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
        """`changes.phone`, the name by which typed values and problems are told."""
        return ".".join(self.path)

    @property
    def input_name(self) -> str:
        return PREFIX + self.key

    @property
    def options(self) -> list[str]:
        """What can be chosen; a value that the schema does not know stays what it is until somebody chooses."""
        unknown = [self.value] if self.value and self.value not in self.choices else []
        return [*([""] if self.optional or not self.value else []), *unknown, *self.choices]

    @property
    def is_used(self) -> bool:
        """It has a value, or somebody tried to give it one."""
        own = self.present is not None or bool(self.value or self.problem)
        return own if self.kind != "group" else self.present is not None or any(one.is_used for one in self.fields)

    @property
    def used(self) -> list[Field]:
        return [one for one in self.fields if one.is_used]

    @property
    def unused(self) -> list[Field]:
        return [one for one in self.fields if not one.is_used]


@dataclass(frozen=True)
class Typed:
    """What a person has typed so far and what is wrong with it, by the keys of the fields."""

    values: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
