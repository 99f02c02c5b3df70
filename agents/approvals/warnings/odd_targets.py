"""Find the targets of a card that differ from most others, so that nobody overlooks them in a long
list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MIN_TARGETS = 4
"""The minimum number of targets for which there is a summary."""
SHORT = 6
"""In a list with fewer targets than this, a single target is odd if all others agree."""
MAX_VALUES = 8
MAX_SHARE = 0.2
MAX_NAMED = 5
MAX_FIELDS = 3
"""The maximum number of fields that the card summarizes; it counts the others, and the odd targets
come first."""
MAX_TEXT = 60
SIDES = ("before", "after")


@dataclass(frozen=True)
class ValueCount:
    """The number of targets with one value in a field, and the names of these targets if there are
    only a few."""

    value: Any
    count: int
    names: tuple[str, ...] = ()

    @property
    def is_rare(self) -> bool:
        return bool(self.names)

    @property
    def unnamed(self) -> int:
        """The number of targets with this rare value that are not named."""
        return self.count - len(self.names) if self.names else 0


@dataclass(frozen=True)
class FieldSummary:
    """The values of a field that is the same for most targets: `60 inactive, 1 active: Harbor
    Cloud`."""

    name: str
    values: list[ValueCount]


def summarize_outliers(targets: Sequence[dict[str, Any]]) -> list[FieldSummary]:
    """Summarize each field in which a few targets differ from all other targets."""
    if len(targets) < MIN_TARGETS:
        return []
    found = []
    for side in SIDES:
        names = dict.fromkeys(name for target in targets for name in target.get(side) or {})
        for name in names:
            summary = _summarize_field(targets, side, name)
            if summary is not None:
                found.append(summary)
    return found


def order_outliers_first(targets: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the targets that differ from most others first; apart from this, keep the order."""
    if len(targets) < MIN_TARGETS:
        return list(targets)
    rare = {key for side in SIDES for key in _find_rare_keys(targets, side)}
    return sorted(targets, key=lambda target: not any(key in rare for key in _list_keys(target)))


def _summarize_field(
    targets: Sequence[dict[str, Any]], side: str, name: str
) -> FieldSummary | None:
    counts = _count_values(targets, side, name)
    rare = _find_rare_values(counts, len(targets))
    if not rare:
        return None
    values = []
    for text, count in counts.most_common():
        having = [target for target in targets if _read(target, side, name) == text]
        names = (
            tuple(str(target.get("label", "")) for target in having[:MAX_NAMED])
            if text in rare
            else ()
        )
        values.append(ValueCount((having[0].get(side) or {}).get(name), count, names))
    return FieldSummary(name if side == "before" else f"{name} (new)", values)


def _count_values(targets: Sequence[dict[str, Any]], side: str, name: str) -> Counter[str]:
    return Counter(_read(target, side, name) for target in targets)


def _find_rare_values(counts: Counter[str], total: int) -> set[str]:
    """Find the values that few targets have, if the field has only a few different values."""
    if not 1 < len(counts) <= MAX_VALUES or any(len(text) > MAX_TEXT for text in counts):
        return set()
    most = 1 if total < SHORT else total * MAX_SHARE
    rare = {text for text, count in counts.items() if count <= most}
    others = sum(count for text, count in counts.items() if text not in rare)
    return rare if total - others <= most else set()


def _find_rare_keys(targets: Sequence[dict[str, Any]], side: str) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys(name for target in targets for name in target.get(side) or {}):
        for text in _find_rare_values(_count_values(targets, side, name), len(targets)):
            yield side, name, text


def _list_keys(target: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for side in SIDES:
        for name in target.get(side) or {}:
            yield side, name, _read(target, side, name)


def _read(target: dict[str, Any], side: str, name: str) -> str:
    value = (target.get(side) or {}).get(name)
    return "" if value is None else str(value)
