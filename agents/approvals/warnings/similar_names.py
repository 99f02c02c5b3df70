"""Find names on a card that readers could mistake for another record's name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import Min

from agents.approvals.warnings.name_words import NameWords, load_name_words
from agents.platform.queries.one_of_texts import IsOneOfTexts
from tools.contract.contacts import walk_texts
from tools.contract.look_alikes import compute_look, is_one_apart
from tools.contract.name_likeness import (
    MOST_ENDINGS,
    SHORTEST_STEM,
    NameKeys,
    can_be_near,
    compare_words,
    compute_keys,
    compute_stem,
    cut_article,
    is_abbreviation,
    is_article,
    is_one_letter_apart,
    is_series,
    is_turned,
    list_keys,
    list_keys_after_articles,
    list_turned,
)
from tools.contract.param_words import PERSON_WORDS, split_name
from tools.registries.records import RECORD_STORE

MAX_NAME_LENGTH = 200
MIN_LOOK_LENGTH = 3
MAX_VALUES = 250
"""The maximum number of values that are compared for one card, beginning with the labels of its
targets."""
MAX_SIMILAR = 5
MAX_LOOKS, MAX_NAMES = 10_000, 20_000
"""The maximum number of looks in one query, because databases limit a query's size, and the maximum
number of names in the query's result."""
LARGEST_SERIES = 2
"""The maximum number of names with one stem, including the card's, that are considered similar; if
there are more, none of them is."""
_PART_OF_ADDRESS = re.compile(r"\w[.@/]\w")
LOOK, STEM = "look", "stem"
Keys = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class SimilarName:
    """A value on a card, and the name of a record that looks the same or almost the same but is
    spelled differently."""

    value: str
    name: str


class NameOnCard(NamedTuple):
    """A value on a card that could be taken for a name.

    Attributes:
        look: the text that all lookalike spellings share.
        keys: the keys of records with similar names, by the name of the column or expression.
        is_label: True for the label of a target, which is certainly a name.
        is_person: True for a value of a param for people, such as `assignee`.
    """

    value: str
    look: str
    keys: Keys
    is_label: bool
    is_person: bool


@dataclass(frozen=True)
class CardNames:
    """The values on a card that could be taken for a name.

    Attributes:
        names: the values, without repeats.
        own_id: the id of the card's only target, because a card that renames a record must not warn
            about the record's current name.
    """

    names: tuple[NameOnCard, ...] = ()
    own_id: str = ""


class RecordName(NamedTuple):
    """The name of a record, its stored looks, and the id of the first record with this name."""

    name: str
    look: str
    stem: str
    pk: int


@dataclass
class _KnownNames:
    """The names of records that may be similar to those on cards, by the keys that were searched
    for."""

    organization_id: int
    by_key: dict[tuple[str, str], list[RecordName]]

    @cached_property
    def words(self) -> NameWords:
        """The words of the organization's names, which are loaded only if names are similar."""
        return load_name_words(self.organization_id)

    def add(self, row: RecordName) -> None:
        parts = zip(NameKeys._fields, compute_keys(row.look), strict=True)
        for key in ((LOOK, row.look), (STEM, row.stem), *parts):
            if (rows := self.by_key.get(key)) is not None:
                rows.append(row)

    def find(self, keys: Keys, own_id: str) -> list[RecordName]:
        """Find the records with one of the keys, sorted by id, without the card's own target."""
        found = {row for key in keys for row in self.by_key[key] if str(row.pk) != own_id}
        return sorted(found, key=lambda row: row.pk)


def read_names(targets: Sequence[Mapping[str, Any]], params: Mapping[str, Any]) -> CardNames:
    """From a card's targets and params, read at most 250 values that could be taken for a name."""
    labels = {str(target.get("label", "")) for target in targets}
    values = dict.fromkeys(islice(_list_values(targets, params), MAX_VALUES))
    people = {text for field, text in walk_texts(params) if split_name(field) & PERSON_WORDS}
    names = tuple(
        _read_name(value, look, is_label=value in labels, is_person=value in people)
        for value in values
        if len(look := compute_look(value)) >= MIN_LOOK_LENGTH
    )
    return CardNames(names, str(targets[0].get("id")) if len(targets) == 1 else "")


def find_similar_names(
    organization_id: int, names: Mapping[int, CardNames]
) -> dict[int, list[SimilarName]]:
    """Find at most 5 similar names for each card, by card id, with one query per 10,000 different
    keys, and one more if names differ in a letter or in their last words."""
    keys = {key for card in names.values() for one in card.names for key in one.keys}
    known = _KnownNames(organization_id, {key: [] for key in keys})
    texts: dict[str, list[str]] = {}
    for kind, text in sorted(keys):
        texts.setdefault(kind, []).append(text)
    for row in _load_names(organization_id, texts):
        known.add(row)
    found = {
        pk: list(islice(_compare_names(card, known), MAX_SIMILAR)) for pk, card in names.items()
    }
    return {pk: similar for pk, similar in found.items() if similar}


def _load_names(organization_id: int, keys: Mapping[str, list[str]]) -> Iterator[RecordName]:
    """Load the names of records that have these keys. Each name comes with the id of only one
    record, because thousands of records can share a name."""
    store = RECORD_STORE.get()
    longest = max(map(len, keys.values()), default=0)
    own = store.get_records(organization_id).order_by().values_list("name", LOOK, STEM)
    for start in range(0, longest, MAX_LOOKS):
        parts = [
            own.filter(IsOneOfTexts(store.name_keys.get(kind, kind), part)).annotate(
                first=Min("pk")
            )
            for kind, texts in keys.items()
            if (part := texts[start : start + MAX_LOOKS])
        ]
        rows = parts[0].union(*parts[1:]).order_by("first")
        yield from (RecordName(*row) for row in rows[:MAX_NAMES])


def _read_name(value: str, look: str, *, is_label: bool, is_person: bool) -> NameOnCard:
    """Compute the keys of the records and members whose names a value may resemble."""
    keys = {(LOOK, look)}
    if is_label or is_person or not (value.islower() and value.isascii() and " " not in value):
        stem = compute_stem(value)  # a single lower-case word is usually an option, not a name
        keys |= {(LOOK, stem), (STEM, stem), (STEM, look)}
        keys |= {(LOOK, compute_look(turned)) for turned in list_turned(value)}
        if can_be_near(look):
            keys.update(part for each in list_keys(look) for part in each._asdict().items())
    if is_label and can_be_near(look):
        keys |= {(LOOK, compute_look(rest)) for rest in cut_article(value)}
        keys |= {("end", each.end) for each in list_keys_after_articles(look)}
    return NameOnCard(value, look, frozenset(keys), is_label, is_person)


def _compare_names(card: CardNames, known: _KnownNames) -> Iterator[SimilarName]:
    for one in card.names:
        rows = [
            row
            for row in known.find(one.keys, card.own_id)
            if row.name.casefold() != one.value.casefold()
        ]
        same = next((row.name for row in rows if row.look == one.look), None)
        name = same or _find_near(one, rows, known)
        if name:
            yield SimilarName(one.value, name)


def _find_near(one: NameOnCard, rows: Sequence[RecordName], known: _KnownNames) -> str:
    """Find the first name that differs from a value only in one letter, in the order of the words,
    in the last words or in an article."""
    others, stem = [], compute_stem(one.value)
    for row in rows:
        if _is_near(one, row, known) or is_turned(one.value, row.name):
            return row.name
        is_longer = one.is_label and (row.look.endswith(one.look) or one.look.endswith(row.look))
        if is_longer or row.stem in (one.look, stem) or row.look == stem:
            others.append(row.name)
    alike = (name for name in others if _differs_at_an_end(one, name, known))
    first = list(islice(alike, LARGEST_SERIES))
    return first[0] if len(first) == 1 else ""


def _is_near(one: NameOnCard, row: RecordName, known: _KnownNames) -> bool:
    """Return True if a value and a name differ in one letter, unless this letter distinguishes two
    words that are both common in the organization's names."""
    if not is_one_apart(one.look, row.look) or not is_one_letter_apart(one.value, row.name):
        return False
    difference = compare_words(one.value, row.name)
    words = (*difference.one, *difference.other)
    return not (difference.is_one_word and all(map(known.words.is_common, words)))


def _differs_at_an_end(one: NameOnCard, name: str, known: _KnownNames) -> bool:
    """Return True if a value and a name differ only in an article, or in last words that do not
    distinguish names.

    If only one of them has additional words, these words must not distinguish names either; if the
    value is a label, a single additional word is enough.
    """
    difference = compare_words(one.value, name)
    if one.is_label and is_article(difference):
        return True
    longest = max(difference.one, difference.other, key=len)
    stem = compute_look(" ".join(difference.stem))
    if (
        not difference.is_at_end
        or len(stem) < SHORTEST_STEM
        or len(difference.one) + len(difference.other) > MOST_ENDINGS
        or is_series(difference)
    ):
        return False
    words = (*difference.one, *difference.other)
    if difference.one and difference.other:
        return all(map(known.words.is_ending, words)) or is_abbreviation(difference)
    if one.is_label and len(longest) == 1:
        return True
    return not _PART_OF_ADDRESS.search(one.value) and all(
        word.isalpha() and known.words.is_ending(word) for word in words
    )


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
