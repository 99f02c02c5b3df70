"""Field values: ids, numbers and years that are the whole value of a field in results of one
source, and so come from the source itself, not from a text that somebody wrote."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from tools.contract.param_words import NamedThing
from tools.contract.value_shapes import TIME, read_shape
from tools.toolbox.param_values import is_number
from tools.toolbox.provenance.folding import split_words
from tools.toolbox.provenance.matching import SeenText
from tools.toolbox.provenance.parts import (
    Needle,
    Part,
    build_code_needle,
    build_number_needles,
)
from tools.toolbox.provenance.sightings import Provenance, SeenIn
from tools.toolbox.value_readings import read_numbers

_SHAPES = frozenset({NamedThing.UNKNOWN, NamedThing.AMOUNT, NamedThing.NOTHING})
"""The things that such values may name; an address, an account or a command may be a trap in any
field."""
_YEAR_DIGITS = 4
_Key = bytes | Decimal


class FieldValues:
    """The whole values of fields in the results of some calls.

    A result is ignored for a value that is in the params of its own call or of an earlier one,
    because an employee could store what a mail says, and read it back.

    Args:
        sources: what the run has seen, oldest first.
        read: returns the data of a result that is used, and None for all others.
    """

    def __init__(self, sources: Iterable[SeenText], read: Callable[[SeenText], Any]) -> None:
        self._sources, self._read = list(sources), read

    def has(self, word: str) -> bool:
        """Return True if a result of the source has the word as the whole value of a field, or as
        the year of a date."""
        return self._stands_in(word, self._outside) and _may_name(word)

    def has_number(self, word: str) -> bool:
        """Return True if a result of the source, or a result on own data, has these digits as the
        whole value of a field."""
        return any(self._stands_in(word, places) for places in (self._own, self._outside))

    def _stands_in(self, word: str, known: Mapping[_Key, tuple[int, str]]) -> bool:
        hits = [known[key] for key in _make_keys(word) if key in known]
        if not hits or not all(_may_name(field) for _, field in hits):
            return False
        numbers = build_number_needles(sorted(read_numbers(word)))
        part = Part(word, (Needle(tuple(split_words(word))), *numbers, *build_code_needle(word)))
        earlier = self._sources[: min(hits)[0] + 1]
        return not any(each.request and each.requested.find(part) for each in earlier)

    @cached_property
    def _outside(self) -> dict[_Key, tuple[int, str]]:
        return self._find_places(SeenIn.OUTSIDE)

    @cached_property
    def _own(self) -> dict[_Key, tuple[int, str]]:
        return self._find_places(SeenIn.OWN)

    def _find_places(self, origin: SeenIn) -> dict[_Key, tuple[int, str]]:
        """Find, for each key of a value, the first result of this origin that has the key, and the
        field's value."""
        found: dict[_Key, tuple[int, str]] = {}
        for place, source in enumerate(self._sources):
            if source.origin is origin:
                for key, field in _list_keys(self._read(source)):
                    found.setdefault(key, (place, field))
        return found


def mark_fields(found: Provenance, fields: FieldValues) -> Provenance:
    """Return a copy that records, for each value from outside, if it is the whole value of a
    field."""
    checked = (
        replace(each, is_field=True)
        if each.origin is SeenIn.OUTSIDE and fields.has(each.value)
        else each
        for each in found.sightings
    )
    return replace(found, sightings=tuple(checked))


def _may_name(text: str) -> bool:
    """Return True for an id, a number or a word; a plus makes a number a phone number."""
    return read_shape(text) in _SHAPES and not text.lstrip().startswith("+")


def _list_keys(data: Any) -> Iterator[tuple[_Key, str]]:
    """Yield each key of a value in the data, with the value."""
    waiting = [data]
    while waiting:  # no recursion, because results may be nested deeply
        node = waiting.pop()
        if isinstance(node, Mapping):
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
        elif is_number(node):
            yield Decimal(repr(node)), str(node)
        elif isinstance(node, str):
            yield b" ".join(split_words(node)), node
            if TIME.fullmatch(node) and node[:_YEAR_DIGITS].isdecimal():
                yield node[:_YEAR_DIGITS].encode(), node


def _make_keys(word: str) -> Iterator[_Key]:
    """Yield the keys of fields with this value: its folded form and, for numbers, the number."""
    if words := split_words(word):
        yield b" ".join(words)
    yield from read_numbers(word)
