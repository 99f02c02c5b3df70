"""Written texts: what a call wrote, read so loosely that every spelling of a value is found.

A value that an employee may have written itself is not treated as looked up. So names of params are
searched like values, and numbers like texts; a value may be a part of a longer one, or be split.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from tools.contract.look_alikes import fold_characters
from tools.toolbox.value_readings import decode_completely, read_numbers

_SHORTEST_PART = 4
"""The minimum number of letters and digits in a value that is found even inside a longer word."""
_LARGEST_GROWTH = 4
"""A text that becomes more than this many times longer when it is normalized cannot be read."""
_CHARACTERS_OF_A_STEP = 100
_FIGURE_WORD = re.compile(r"[^\s:;=&/()\[\]{}<>|\"]*\d[^\s:;=&/()\[\]{}<>|\"]*")
_FIGURES = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class WrittenTexts:
    """The names and values of a call's params as texts, in the order of the params."""

    texts: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of steps that reading these texts takes."""
        return len(self.texts) + sum(map(len, self.texts)) // _CHARACTERS_OF_A_STEP

    def may_have(self, value: Any) -> bool:
        """Return True if the texts contain the value in any usual spelling, or cannot be read."""
        text = _write(value)
        wanted = _read(text)
        if self._readings is None or wanted is None:
            return True
        joined = _join(wanted[-1])
        numbers = read_numbers(text.strip())
        if numbers:
            joined = joined.lstrip("0") or joined
        if len(joined) >= _SHORTEST_PART:
            found = joined in self._joined
        elif joined:
            pattern = r"[\W_]*".join(map(re.escape, joined))
            word = re.compile(rf"(?<![^\W_]){pattern}(?![^\W_])")
            found = any(word.search(each) for each in self._readings)
        else:
            found = any(text.strip() in each for each in self.texts)
        return found or any(number in self._numbers for number in numbers)

    @cached_property
    def _readings(self) -> tuple[str, ...] | None:
        """The texts in all their readings; None if one cannot be read."""
        found = [_read(text) for text in self.texts]
        return None if None in found else tuple(each for one in found if one for each in one)

    @cached_property
    def _joined(self) -> str:
        """The letters and digits of all texts, decoded, one after another."""
        return "".join(map(_join, (self._readings or ())[1::2]))

    @cached_property
    def _numbers(self) -> frozenset[Decimal]:
        words = {word for each in self._readings or () for word in _FIGURE_WORD.findall(each)}
        figures = {each for word in words for each in _FIGURES.findall(word)}
        return frozenset(number for each in words | figures for number in read_numbers(each))


def read_written(params: Mapping[str, Any]) -> WrittenTexts:
    """Read the params of a call that may have changed something."""
    return WrittenTexts(tuple(_list_texts(params)))


def _list_texts(params: Mapping[str, Any]) -> Iterator[str]:
    waiting: list[Any] = [params]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Mapping):
            for name, value in reversed([*here.items()]):
                waiting += [value, str(name)]
        elif isinstance(here, list):
            waiting += reversed(here)
        elif here is not None and not isinstance(here, bool):
            yield _write(here)


def _write(value: Any) -> str:
    """Write a value as text; a whole number has no decimal point."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)


def _read(text: str) -> tuple[str, str] | None:
    """Return the text folded, and folded after its escapes are decoded; None if unreadable."""
    if not text.isascii():
        normal = unicodedata.normalize("NFKC", text)
        if len(normal) > _LARGEST_GROWTH * len(text) + _CHARACTERS_OF_A_STEP:
            return None
    decoded = decode_completely(text)
    if decoded is None:
        return None
    return fold_characters(text).casefold(), fold_characters(decoded).casefold()


def _join(text: str) -> str:
    return "".join(filter(str.isalnum, text))
