"""Removal of content that a response contains twice, as text and as structured content of any
shape."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

LONG_TEXT = 200
"""The minimum length of a text in the data that is left out if the response's text contains it."""
_FEW_WORDS = 8
_WORD = re.compile(r"\w+")
MAX_FENCED = 5
"""The maximum number of a text's code blocks that are compared with the data; each comparison walks
through the data."""
MAX_SEARCHED = 100_000_000
"""The maximum number of characters to search in total, because the whole response text is searched
for each text in the data."""
_FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)
_DECODER = json.JSONDecoder()
SEEN = "[as in the text above]"


def drop_repeated(text: str, data: Any) -> str:
    """Return the text without the parts that the data repeats; empty if nothing is left.

    The data repeats a text if one of its values equals the text, as text or as JSON, or if the text
    has at least eight words and the data contains all of them.
    """
    rest = _cut_json(text, data)
    if not rest.strip() or _is_value(rest, data):
        return ""
    words = Counter(_WORD.findall(rest.lower()))
    if words.total() >= _FEW_WORDS and not words - Counter(_list_words(data)):
        return ""
    return rest


def shorten_repeated(data: Any, text: str) -> Any:
    """Replace long texts in the data if the text contains them, too; once MAX_SEARCHED is reached,
    keep the remaining texts."""
    return _shorten(data, text, iter(range(MAX_SEARCHED // (len(text) + 1))))


def _shorten(data: Any, text: str, searches: Iterator[int]) -> Any:
    if isinstance(data, str):
        is_seen = (
            len(data) >= LONG_TEXT and next(searches, None) is not None and data.strip() in text
        )
        return SEEN if is_seen else data
    if isinstance(data, list):
        return [_shorten(entry, text, searches) for entry in data]
    if isinstance(data, Mapping):
        return {key: _shorten(entry, text, searches) for key, entry in data.items()}
    return data


def _cut_json(text: str, data: Any) -> str:
    """Remove the data, or a part of the data, from the text if the text contains it as JSON."""
    plain = text.strip()
    if _is_repeated_json(plain, data):
        return ""
    for fenced in islice(_FENCED.finditer(plain), MAX_FENCED):
        if _is_repeated_json(fenced[1].strip(), data):
            return plain[: fenced.start()] + plain[fenced.end() :]
    start = min((at for sign in "{[" if (at := plain.find(sign)) >= 0), default=-1)
    if start < 0:
        return plain
    try:
        value, end = _DECODER.raw_decode(plain, start)
    except (ValueError, RecursionError):
        return plain
    is_value = isinstance(value, dict | list) and value and _contains(data, value)
    return plain[:start] + plain[end:] if is_value else plain


def _is_repeated_json(text: str, data: Any) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    inner = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
    return _contains(data, value) or _is_same(data, inner)


def _is_value(text: str, data: Any) -> bool:
    plain = text.strip()
    return any(isinstance(each, str) and each.strip() == plain for each in _list_values(data))


def _contains(data: Any, value: Any) -> bool:
    return any(_is_same(each, value) for each in _list_values(data))


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _list_values(data: Any) -> Iterator[Any]:
    """Yield the data and every value in it."""
    waiting = [data]
    while waiting:
        here = waiting.pop()
        yield here
        waiting += (
            here.values() if isinstance(here, Mapping) else here if isinstance(here, list) else ()
        )


def _list_words(data: Any) -> Iterator[str]:
    for value in _list_values(data):
        if isinstance(value, Mapping):
            for key in value:
                yield from _WORD.findall(str(key).lower())
        elif not isinstance(value, list):
            yield from _WORD.findall(("null" if value is None else str(value)).lower())
