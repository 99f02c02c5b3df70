"""Search for names on a card that readers could mistake for another record's name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db.models import Min

from agents.approvals.marks import get_preview
from agents.approvals.models import Approval
from tools.records.models import Record, compute_look

MAX_NAME_LENGTH = 200
MIN_LOOK_LENGTH = 3
MAX_VALUES = 250
"""The most values compared for one card; the labels of its targets come first."""
MAX_SIMILAR = 5
MAX_NAMES = 1_000


@dataclass(frozen=True)
class SimilarName:
    """A value on a card, and the name of a record that looks the same but is spelled differently."""

    value: str
    name: str


def find_similar_names(cards: Collection[Approval]) -> dict[int, list[SimilarName]]:
    """Find similar names by card id, at most 5 for each card, with one query for all cards of an organization."""
    looks = {
        card.pk: {value: compute_look(value) for value in islice(_list_values(card), MAX_VALUES)} for card in cards
    }
    wanted = {look for card_looks in looks.values() for look in card_looks.values() if len(look) >= MIN_LOOK_LENGTH}
    if not wanted:
        return {}
    organization_id = next(iter(cards)).organization_id
    alike = Record.objects.filter(organization_id=organization_id, look__in=wanted).values_list("name", "look")
    rows = alike.annotate(first=Min("pk")).order_by("first")  # grouped, because thousands of records can share a name
    named: dict[str, list[tuple[int, str]]] = {}
    for name, look, pk in rows[:MAX_NAMES]:
        named.setdefault(look, []).append((pk, name))
    return {card.pk: list(islice(_compare_names(card, looks[card.pk], named), MAX_SIMILAR)) for card in cards}


def _compare_names(
    card: Approval, looks: dict[str, str], named: dict[str, list[tuple[int, str]]]
) -> Iterator[SimilarName]:
    targets = _get_targets(card)
    own_id = str(targets[0].get("id")) if len(targets) == 1 else ""
    for value, look in looks.items():
        for pk, name in named.get(look, ()):
            # A card that renames its only target must not warn of that target's current name.
            if name.casefold() != value.casefold() and str(pk) != own_id:
                yield SimilarName(value, name)
                break


def _list_values(card: Approval) -> Iterator[str]:
    targets = _get_targets(card)
    yield from (str(target.get("label", "")) for target in targets)
    yield from _list_texts(card.params)
    for target in targets:
        yield from _list_texts(target.get("after"))


def _get_targets(card: Approval) -> list[dict[str, Any]]:
    return [target for target in get_preview(card).get("targets") or [] if isinstance(target, dict)]


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value and len(value) <= MAX_NAME_LENGTH:
            yield value
    elif isinstance(value, (dict, list)):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(child)
