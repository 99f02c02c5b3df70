"""The effect of a card's call, read from its sealed preview: the targets and their changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agents.approvals.warnings.card_values import (
    find_names_shown_once,
    find_row_state,
    find_shared_values,
    list_request_values,
    list_target_values,
)
from agents.approvals.warnings.folding import Folding, Split
from agents.approvals.warnings.odd_targets import MAX_FIELDS, FieldSummary, summarize_outliers
from agents.web.cards.differences import Change
from agents.web.cards.value_blocks import ValueBlock, build_block
from tools.contract import REFUSED

MAX_TARGETS = 250
NOUNS = {"data": ("record", "records"), "files": ("file", "files")}
REQUESTS = ("request", "requests")


@dataclass(frozen=True)
class AffectedTarget:
    """One affected item with its values."""

    id: str
    label: str
    values: ValueBlock

    @property
    def changes(self) -> list[Change]:
        """The changes of all values, including folded ones."""
        return self.values.changes


@dataclass(frozen=True)
class Effect:
    """A preview as `tools.contract.Preview.as_json` stores it, prepared for a card.

    Attributes:
        nouns: the words for one target and for several.
        shows_all: True to show all targets, not only the first 250.
        lists_requests: True if the targets are the requests that the call sends.
        folding: the values that the card shows unfolded.
        params: the values of the request, which are shown if there is no preview.
    """

    preview: dict[str, Any]
    nouns: tuple[str, str]
    shows_all: bool = False
    lists_requests: bool = False
    folding: Folding = field(default_factory=Folding)
    params: Mapping[str, Any] = field(default_factory=dict)

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
        """The label of the target if there is exactly one; otherwise empty."""
        return (
            str(self._targets[0].get("label", ""))
            if len(self._targets) == 1 and not self.has_no_preview
            else ""
        )

    @cached_property
    def requested(self) -> ValueBlock:
        """The values of the request."""
        return build_block(list_request_values(self.params), self.folding.request)

    @cached_property
    def first_targets(self) -> list[AffectedTarget]:
        """The targets that the card shows unfolded."""
        own = self.folding.own
        return [
            self._build_target(target, split)
            for target, split in zip(self._targets, own, strict=False)
        ]

    @cached_property
    def more_targets(self) -> list[AffectedTarget]:
        """The other targets, which the card folds; at most 250 in all, unless `shows_all` is
        set."""
        last = None if self.shows_all else MAX_TARGETS
        return [
            self._build_target(target) for target in self._targets[len(self.folding.own) : last]
        ]

    @property
    def hidden_count(self) -> int:
        """The number of targets that this card does not show."""
        return max(0, self.total - len(self.first_targets) - len(self.more_targets))

    @cached_property
    def row_state(self) -> str:
        """`deleted` or `created` if every target is deleted or created; otherwise empty."""
        return find_row_state(self._targets)

    @cached_property
    def shared_values(self) -> ValueBlock:
        """The values that all targets share, shown once above them; empty for a single target."""
        return build_block(find_shared_values(self._targets), self.folding.shared)

    @cached_property
    def columns(self) -> list[str]:
        """The table's columns: every field that changes in a target."""
        targets = self.first_targets + self.more_targets
        return list(dict.fromkeys(change.name for target in targets for change in target.changes))

    @property
    def is_table(self) -> bool:
        """True if the targets are shown as a table: there are several, all deleted or all created,
        and they differ in a few fields."""
        return self.folding.is_table and bool(self.columns)

    @property
    def target_id(self) -> str:
        """The id of a single target; empty for several targets, or if the target has no id yet."""
        return str(self._targets[0].get("id") or "") if len(self._targets) == 1 else ""

    @property
    def outliers(self) -> list[FieldSummary]:
        """The first fields in which a few targets differ from the many others."""
        return self._odd_fields[:MAX_FIELDS]

    @property
    def more_outliers(self) -> int:
        """The number of further fields in which a few targets differ."""
        return max(0, len(self._odd_fields) - MAX_FIELDS)

    @cached_property
    def _odd_fields(self) -> list[FieldSummary]:
        return summarize_outliers(self._targets)

    @cached_property
    def _targets(self) -> list[dict[str, Any]]:
        """All targets, in the order of the plan."""
        targets = [each for each in self.preview.get("targets", []) if isinstance(each, dict)]
        return [targets[index] for index in self.folding.order]

    @cached_property
    def _names_shown_once(self) -> frozenset[str]:
        return find_names_shown_once(self._targets)

    def _build_target(self, stored: dict[str, Any], split: Split | None = None) -> AffectedTarget:
        values = [
            value
            for value in list_target_values(stored)
            if value.name not in self._names_shown_once
        ]
        return AffectedTarget(
            str(stored.get("id", "")), str(stored.get("label", "")), build_block(values, split)
        )


def find_nouns(tool: str, *, is_sent: bool) -> tuple[str, str]:
    """Return the words for one target and for several targets: for the tool's targets, or for the
    requests that a call sends."""
    return REQUESTS if is_sent else NOUNS.get(tool.partition(".")[0], ("item", "items"))
