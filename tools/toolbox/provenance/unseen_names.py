"""Unseen names: ids and addresses in a call's params that were not typed by a person and are not in
the organization's own data or in a field of a result."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from tools.contract.value_shapes import TIME, fold_figures, is_name
from tools.toolbox.provenance.field_values import FieldValues
from tools.toolbox.provenance.folding import split_words
from tools.toolbox.provenance.matching import SourceIndex
from tools.toolbox.provenance.parts import (
    MAX_LEAVES,
    MAX_PARTS,
    Needle,
    Part,
    build_code_needle,
    walk_values,
)
from tools.toolbox.value_readings import read_plainly

_JOINED = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
"""Words joined by hyphens: a name if they are the whole value, an ordinary word in a sentence."""
_ORDINARY = re.compile(
    r"\d{1,3}[^\W\d_]{1,3}|[^\w\s]?\d{1,3}(?:[.,]\d\d?)?|\d\d?[./-]\d\d?(?:[./-](?:\d\d|\d{4}))?|"
    r"[^\W\d_]+/[^\W\d_]+|(?:[^\W\d_]\.)+[^\W\d_]"
)
"""Parts of sentences other than words: 2nd, €20, 24/12/2026, and/or, e.g."""
_DIGITS = re.compile(r"\d{1,3}")
"""A text of only a few digits is an id, because quantities come as numbers. It was seen only if a
person typed it as a word, or if it is the whole value of a field."""
_SPAN = re.compile(r"(\d{1,2}:\d\d|\d{1,4})[-\u2013](\d{1,2}:\d\d|\d{1,4})")
_BETWEEN_WORDS = re.compile(r"[\s,;|<>()\[\]{}\"\u2018-\u201f'`]+")
_AROUND_WORDS = ".:!?*"


def find_unseen_names(
    index: SourceIndex, params: Mapping[str, Any], offered: frozenset[Any], fields: FieldValues
) -> tuple[str, ...]:
    """List the params whose values contain a name that was not seen at all, or was seen only in
    texts from outside.

    Args:
        offered: values that the tool's own definition offers.
        fields: the fields of results of the tool's source.
    """
    found: set[str] = set()
    for _, names, value in islice(walk_values(params), MAX_LEAVES):
        param = ".".join(names)
        if param in found or value in offered:
            continue
        text = read_plainly(str(value), fold_figures).strip()
        words = _split_words(text)
        if isinstance(value, str) and all(map(_DIGITS.fullmatch, words)):
            unseen = (not _is_number_seen(index, fields, word) for word in set(words))
        else:
            unseen = (
                number >= MAX_PARTS or not (_is_seen(index, word) or fields.has(word))
                for number, word in enumerate(_list_names(text, words))
            )
        if any(unseen):
            found.add(param)
    return tuple(sorted(found))


def _split_words(text: str) -> list[str]:
    return [word for each in _BETWEEN_WORDS.split(text) if (word := each.strip(_AROUND_WORDS))]


def _list_names(text: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a text that have the shape of a name."""
    if TIME.fullmatch(text):
        return
    is_alone = len(words) == 1
    for word in dict.fromkeys(words if is_alone else _split_spans(words)):
        is_joined = is_alone and _JOINED.fullmatch(word) is not None
        is_found = is_joined or (is_name(word) and (is_alone or not _ORDINARY.fullmatch(word)))
        if is_found:
            yield word


def _split_spans(words: Iterable[str]) -> Iterator[str]:
    """Yield the words, and the ends of a span such as 9-12, 10:00-11:30 or 2021-2025."""
    for word in words:
        span = _SPAN.fullmatch(word)
        yield from span.groups() if span else [word]


def _build_part(word: str) -> Part:
    words = tuple(split_words(word))
    return Part(word, (*([Needle(words)] if words else ()), *build_code_needle(word)))


def _is_number_seen(index: SourceIndex, fields: FieldValues, digits: str) -> bool:
    return index.typed.find(_build_part(digits)) is not None or fields.has_number(digits)


def _is_seen(index: SourceIndex, word: str) -> bool:
    part = _build_part(word)
    return any(corpus.find(part) is not None for corpus in (index.typed, index.own))
