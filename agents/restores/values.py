"""Read, write, describe and compare the values of limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Field, Model

from agents.accounts.models import Role
from tools.contract import Level
from tools.toolbox.conditions import Condition

Stricter = Callable[[Any, Any], Any]
"""A function that returns the stricter of a restored and a newer value."""


@dataclass(frozen=True)
class LimitField:
    """A value of a row that limits something.

    Attributes:
        stricter: returns the stricter value; for incomparable values, the newer one.
        read, write: read and write the value if it is not a plain column.
        is_secret: True if the page shows only whether the value has changed.
        words: describes the value for people; `describe_value` by default.
    """

    name: str
    label: str
    stricter: Stricter
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any, Any], None] | None = None
    is_secret: bool = False
    words: Callable[[Any], str] = field(default_factory=lambda: describe_value)

    def read_value(self, row: Model) -> Any:
        """Return the row's value as JSON."""
        value = self.read(row) if self.read else getattr(row, self.name)
        if isinstance(value, Decimal):
            return str(value)
        return value.isoformat() if isinstance(value, datetime) else value

    def write_value(self, row: Model, value: Any) -> None:
        """Set the value in the row, which the caller saves."""
        if self.write:
            self.write(row, value)
        else:
            column = row._meta.get_field(self.name)
            assert isinstance(column, Field), "a limit is a column of its row"
            setattr(row, self.name, column.to_python(value))

    def describe(self, value: Any) -> str:
        """Return the value in words; a secret value is not shown."""
        return "not shown" if self.is_secret else self.words(value)


def describe_value(value: Any) -> str:
    """Return a JSON value in words."""
    if value is None or value in ("", [], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(describe_value, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {describe_value(one)}" for key, one in value.items())
    return str(value)


def describe_limits(stored: Any) -> str:
    """Return the stored conditions of a grant in words."""
    return _describe_conditions(stored, Condition.describe, " ")


def describe_rule_conditions(stored: Any) -> str:
    """Return the stored conditions of an approval rule in words."""
    return _describe_conditions(stored, Condition.describe_match, " and ")


def _describe_conditions(stored: Any, describe: Callable[[Condition], str], joint: str) -> str:
    """Return the conditions in words, or as stored if they were damaged in the database."""
    try:
        return joint.join(describe(Condition.from_json(each)) for each in stored or ()) or "none"
    except (TypeError, ValueError):
        return describe_value(stored)


def describe_tools(tools: Any) -> str:
    """Return a line for each tool, with the settings of its grant or source."""
    if not isinstance(tools, Mapping) or not all(
        isinstance(values, Mapping) for values in tools.values()
    ):
        return describe_value(tools)  # it was damaged in the database
    return (
        "\n".join(_describe_tool(name, values) for name, values in sorted(tools.items())) or "none"
    )


def _describe_tool(name: str, values: Mapping[str, Any]) -> str:
    told = []
    if level := values.get("level"):
        told.append(f"level {level}")
    if version := values.get("version"):
        told.append(f"version {version}")
    if conditions := values.get("conditions"):
        told.append(describe_limits(conditions))
    if delegates := values.get("delegates"):
        told.append(f"delegates to {describe_value(delegates)}")
    if accepted := values.get("accepted"):
        told.append(f"definition {accepted[:12]}")
    return f"{name}: {'; '.join(told)}" if told else name


def take_newer(_: Any, newer: Any) -> Any:
    """Return the newer value, because neither value is stricter."""
    return newer


def take_lower(restored: Any, newer: Any) -> Any:
    """Return the lower number; None means no limit."""
    numbers = [value for value in (restored, newer) if value is not None]
    return min(numbers, key=Decimal, default=None)


def take_higher(restored: Any, newer: Any) -> Any:
    """Return the higher number."""
    return max(restored, newer)


def take_on(restored: Any, newer: Any) -> Any:
    """Return the newer value if it is set, else the restored one: the limit applies if either is
    set."""
    return newer or restored


def take_off(restored: Any, newer: Any) -> Any:
    """Return False unless both are True."""
    return bool(restored and newer)


def take_common(restored: Sequence[Any], newer: Sequence[Any]) -> list[Any]:
    """Return the items that are in both lists."""
    return [value for value in newer if value in restored]


def take_lower_role(restored: str, newer: str) -> str:
    """Return the role that includes fewer permissions."""
    return min(restored, newer, key=[role.value for role in Role].index)


def take_higher_level(restored: str, newer: str) -> str:
    """Return the higher level; an empty one means the tool's own level."""
    return max(restored, newer, key=["", *(level.value for level in Level)].index)
