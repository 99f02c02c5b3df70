"""The effect of a card's call, read from its sealed preview: the targets and their changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agents.approvals.warnings.folding import FIRST_TARGETS
from agents.approvals.warnings.outliers import (
    FieldSummary,
    order_outliers_first,
    summarize_outliers,
)
from agents.web.cards.differences import Change
from tools.contract import REFUSED

MAX_TARGETS = 250
NOUNS = {"data": ("record", "records"), "files": ("file", "files")}
REQUESTS = ("request", "requests")


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
        nouns: the words for one target and for several.
        shows_all: True to show all targets, not only the first 250.
        lists_requests: True if the targets are the requests that the call sends.
    """

    preview: dict[str, Any]
    nouns: tuple[str, str]
    shows_all: bool = False
    lists_requests: bool = False

    @property
    def has_no_preview(self) -> bool:
        """True if the tool could not compute the effect."""
        return bool(self.preview.get("problem")) or "targets" not in self.preview

    @property
    def is_refused(self) -> bool:
        """True if the tool would refuse the call now, although it accepted the call when the model
        requested it."""
        return self.preview.get("effect") == REFUSED

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
        return f"{self.total:,} {one if self.total == 1 else many}"

    @property
    def target(self) -> str:
        """The label of the only target, or the number of several targets; empty if there are
        none."""
        if len(self._targets) == 1:
            return str(self._targets[0]["label"])
        return self.count_label if self._targets else ""

    @property
    def target_label(self) -> str:
        """The label of a single target; empty for none and for several."""
        return (
            str(self._targets[0].get("label", ""))
            if len(self._targets) == 1 and not self.has_no_preview
            else ""
        )

    @cached_property
    def first_targets(self) -> list[AffectedTarget]:
        return [self._build_target(target) for target in self._targets[:FIRST_TARGETS]]

    @cached_property
    def more_targets(self) -> list[AffectedTarget]:
        """The targets after the first five, which the card folds; at most 250 in all, unless
        `shows_all` is set."""
        last = None if self.shows_all else MAX_TARGETS
        return [self._build_target(target) for target in self._targets[FIRST_TARGETS:last]]

    @property
    def hidden_count(self) -> int:
        """The number of targets that this card does not show."""
        return max(0, self.total - FIRST_TARGETS - len(self.more_targets))

    @cached_property
    def row_state(self) -> str:
        """`deleted` or `created` if every target is deleted or created, which a table can show;
        otherwise empty."""
        if all(target.get("before") and not target.get("after") for target in self._targets):
            return "deleted"
        return (
            "created"
            if all(target.get("after") and not target.get("before") for target in self._targets)
            else ""
        )

    @cached_property
    def shared_changes(self) -> list[Change]:
        """The changes that all targets share, shown once above them; empty for a single target."""
        if len(self._targets) < 2:
            return []
        first, *others = self._targets
        return [
            change
            for change in _list_changes(first)
            if all(_has_change(target, change) for target in others)
        ]

    @cached_property
    def columns(self) -> list[str]:
        """The table's columns: every field that changes in a target."""
        targets = self.first_targets + self.more_targets
        return list(dict.fromkeys(change.name for target in targets for change in target.changes))

    @property
    def is_table(self) -> bool:
        """True if there are several targets that are all deleted or all created, and that differ in
        at least one field."""
        return bool(self.row_state and self.columns) and len(self._targets) > 1

    @property
    def target_id(self) -> str:
        """The id of a single target; empty for several targets, or if the target has no id yet."""
        return str(self._targets[0].get("id") or "") if len(self._targets) == 1 else ""

    @cached_property
    def outliers(self) -> list[FieldSummary]:
        """The fields in which a few targets differ from the many others."""
        return summarize_outliers(self._targets)

    @cached_property
    def _targets(self) -> list[dict[str, Any]]:
        """All targets, the outliers first."""
        return order_outliers_first(self.preview.get("targets", []))

    @cached_property
    def _fields_shown_once(self) -> frozenset[str]:
        """The fields that targets do not repeat: the fields that change in all targets alike, and
        the field whose value is the label."""
        names = {change.name for change in self.shared_changes}
        if self.row_state and len(self._targets) > 1:
            side = "after" if self.row_state == "created" else "before"
            first = self._targets[0]
            labels = [name for name, value in first[side].items() if value == first.get("label")]
            names |= {
                name
                for name in labels
                if all(each[side].get(name) == each.get("label") for each in self._targets)
            }
        return frozenset(names)

    def _build_target(self, stored: dict[str, Any]) -> AffectedTarget:
        changes = [
            change for change in _list_changes(stored) if change.name not in self._fields_shown_once
        ]
        return AffectedTarget(str(stored.get("id", "")), str(stored.get("label", "")), changes)


def _list_changes(stored: dict[str, Any]) -> list[Change]:
    before, after = stored.get("before") or {}, stored.get("after") or {}
    return [
        Change(name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after])
    ]


def _has_change(stored: dict[str, Any], change: Change) -> bool:
    before, after = stored.get("before") or {}, stored.get("after") or {}
    name = change.name
    is_included = name in before or name in after
    return is_included and before.get(name) == change.before and after.get(name) == change.after


def find_nouns(tool: str, *, is_sent: bool) -> tuple[str, str]:
    """Return the words for one target and for several targets: for the tool's targets, or for the
    requests that a call sends."""
    return REQUESTS if is_sent else NOUNS.get(tool.partition(".")[0], ("item", "items"))
