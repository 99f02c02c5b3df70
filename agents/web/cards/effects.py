"""The effect of a card's call, from its sealed preview: its targets and what they have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agents.web.cards.differences import Change

FIRST_TARGETS = 5
MOST_TARGETS = 250


@dataclass(frozen=True)
class AffectedTarget:
    """One affected item with its changes."""

    id: str
    label: str
    changes: list[Change]


@dataclass(frozen=True)
class Effect:
    """A preview as `tools.contract.Preview.as_json` stores it, prepared for a card.

    Attributes:
        nouns: the word for one target and for several.
        shows_all: show all targets, not only the first 250.
        lists_requests: the targets are the requests that the call sends.
    """

    preview: dict[str, Any]
    nouns: tuple[str, str]
    shows_all: bool = False
    lists_requests: bool = False

    @property
    def has_no_preview(self) -> bool:
        """Check if the tool could not compute what the call would change."""
        return bool(self.preview.get("problem")) or "targets" not in self.preview

    @property
    def verb(self) -> str:
        return str(self.preview.get("effect", "change"))

    @property
    def total(self) -> int:
        return int(self.preview.get("total", 0))

    @property
    def count_label(self) -> str:
        """The number of targets: `1 record`, `212 records`, `3 items`."""
        one, many = self.nouns
        return f"{self.total} {one if self.total == 1 else many}"

    @property
    def target(self) -> str:
        """The name of the only target, else the number of targets; empty if that is unknown."""
        if len(self._targets) == 1:
            return str(self._targets[0]["label"])
        return self.count_label if self._targets else ""

    @cached_property
    def first_targets(self) -> list[AffectedTarget]:
        return [self._view(target) for target in self._targets[:FIRST_TARGETS]]

    @cached_property
    def more_targets(self) -> list[AffectedTarget]:
        last = None if self.shows_all else MOST_TARGETS
        return [self._view(target) for target in self._targets[FIRST_TARGETS:last]]

    @property
    def left_out(self) -> int:
        """The number of targets that only the card's own page shows."""
        return max(0, self.total - FIRST_TARGETS - len(self.more_targets))

    @cached_property
    def side(self) -> str:
        """`gone` if every target is deleted, `made` if every one is created: each is then one row. Else empty."""
        if all(target.get("before") and not target.get("after") for target in self._targets):
            return "gone"
        return "made" if all(target.get("after") and not target.get("before") for target in self._targets) else ""

    @cached_property
    def shared(self) -> list[Change]:
        """The changes that all of several targets share: they are shown once, above the targets."""
        if len(self._targets) < 2:
            return []
        first, *others = self._targets
        return [one for one in _changes(first) if all(_has(target, one) for target in others)]

    @cached_property
    def columns(self) -> list[str]:
        """The fields of all targets: the columns of the table."""
        targets = self.first_targets + self.more_targets
        return list(dict.fromkeys(change.name for target in targets for change in target.changes))

    @property
    def is_table(self) -> bool:
        """Check if the targets make a table: several that are only deleted or only created, and differ."""
        return bool(self.side and self.columns) and len(self._targets) > 1

    @property
    def _targets(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.preview.get("targets", [])
        return found

    @cached_property
    def _said_above(self) -> frozenset[str]:
        """The fields that no target repeats: the shared ones, and in a list the field that is the label."""
        said = {change.name for change in self.shared}
        if self.side and len(self._targets) > 1:
            side = "after" if self.side == "made" else "before"
            first = self._targets[0]
            labels = [name for name, value in first[side].items() if value == first.get("label")]
            said |= {name for name in labels if all(one[side].get(name) == one.get("label") for one in self._targets)}
        return frozenset(said)

    def _view(self, stored: dict[str, Any]) -> AffectedTarget:
        changes = [change for change in _changes(stored) if change.name not in self._said_above]
        return AffectedTarget(str(stored.get("id", "")), str(stored.get("label", "")), changes)


def _changes(stored: dict[str, Any]) -> list[Change]:
    before, after = stored.get("before") or {}, stored.get("after") or {}
    return [Change(name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after])]


def _has(stored: dict[str, Any], change: Change) -> bool:
    before, after = stored.get("before") or {}, stored.get("after") or {}
    name = change.name
    is_there = name in before or name in after
    return is_there and before.get(name) == change.before and after.get(name) == change.after
