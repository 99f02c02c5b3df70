"""Find names on a card that readers could mistake for another record's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db.models import Min

from agents.platform.queries.one_of_texts import IsOneOfTexts
from tools.contract.look_alikes import compute_look
from tools.registries.records import RECORD_STORE

MAX_NAME_LENGTH = 200
MIN_LOOK_LENGTH = 3
MAX_VALUES = 250
"""The most values that are compared for one card, beginning with the labels of its targets."""
MAX_SIMILAR = 5
MAX_LOOKS, MAX_NAMES = 10_000, 20_000
"""The most looks in one query, because databases limit a query's size, and the most names in the
query's result."""


@dataclass(frozen=True)
class SimilarName:
    """A value on a card, and the name of a record that looks the same but is spelled
    differently."""

    value: str
    name: str


@dataclass(frozen=True)
class CardNames:
    """The values on a card that could be taken for a name.

    Attributes:
        looks: each value with its look, which is the text that all lookalike spellings share.
        own_id: the id of the card's only target, because a card that renames a record must not warn
            of the record's current name.
    """

    looks: tuple[tuple[str, str], ...] = ()
    own_id: str = ""


def read_names(targets: Sequence[Mapping[str, Any]], params: Mapping[str, Any]) -> CardNames:
    """From a card's targets and params, read at most 250 values that could be taken for a name."""
    values = dict.fromkeys(islice(_list_values(targets, params), MAX_VALUES))
    looks = tuple(
        (value, look) for value in values if len(look := compute_look(value)) >= MIN_LOOK_LENGTH
    )
    return CardNames(looks, str(targets[0].get("id")) if len(targets) == 1 else "")


def find_similar_names(
    organization_id: int, names: Mapping[int, CardNames]
) -> dict[int, list[SimilarName]]:
    """Find at most 5 similar names for each card, by card id, with one query per 10,000 different
    looks."""
    looks = list(dict.fromkeys(look for card in names.values() for _, look in card.looks))
    named: dict[str, list[tuple[int, str]]] = {}
    for start in range(0, len(looks), MAX_LOOKS):
        for name, look, pk in _load_names(organization_id, looks[start : start + MAX_LOOKS]):
            named.setdefault(look, []).append((pk, name))
    found = {
        pk: list(islice(_compare_names(card, named), MAX_SIMILAR)) for pk, card in names.items()
    }
    return {pk: similar for pk, similar in found.items() if similar}


def _load_names(organization_id: int, looks: list[str]) -> Iterator[tuple[str, str, int]]:
    """Load the names of records that have these looks. Each name comes with the id of only one
    record, because thousands of records can share a name."""
    alike = RECORD_STORE.get().get_records(organization_id).filter(IsOneOfTexts("look", looks))
    rows = alike.values_list("name", "look").annotate(first=Min("pk")).order_by("first")
    return iter(rows[:MAX_NAMES])


def _compare_names(
    card: CardNames, named: Mapping[str, list[tuple[int, str]]]
) -> Iterator[SimilarName]:
    for value, look in card.looks:
        for pk, name in named.get(look, ()):
            if name.casefold() != value.casefold() and str(pk) != card.own_id:
                yield SimilarName(value, name)
                break


def _list_values(targets: Sequence[Mapping[str, Any]], params: Mapping[str, Any]) -> Iterator[str]:
    yield from (str(target.get("label", "")) for target in targets)
    yield from _list_texts(params)
    for target in targets:
        yield from _list_texts(target.get("after"))


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value and len(value) <= MAX_NAME_LENGTH:
            yield value
    elif isinstance(value, (dict, list)):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(child)
