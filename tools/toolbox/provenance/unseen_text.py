"""Unseen text: names and values in a call's params that were not seen in exactly this form.

Private data can hide in such a text in any encoding, so texts are compared exactly, not by their
words or parts.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from tools.toolbox.provenance.folding import are_joined, unescape_json
from tools.toolbox.provenance.matching import MAX_STEPS, SeenText
from tools.toolbox.provenance.parts import MAX_LEAVES

_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//|", re.IGNORECASE)
_BEFORE_ADDRESS = re.compile(r"(?:\A|[\s\"'(<>\[,|])\Z")
_GOES_ON = re.compile(r"[\w/?&=#%~+@$:*-]|[.,;!]\w")
"""The continuation of an address: the text before it is only the start of a longer address."""
_UNESCAPED = "/?&=#~+@$:*-.,;!()'"
"""Signs that an address contains without escapes."""

_IsAlone = Callable[[str, int, int], bool]
"""Returns True if a text from one position to another is not part of a longer word or address."""


class _Source(NamedTuple):
    """A text, and the params of the call that returned it, decoded and in lower case."""

    text: str
    request: str


def has_unseen_text(
    params: Mapping[str, Any],
    hosts: Collection[str],
    known: Iterable[SeenText],
    private: Iterable[SeenText],
) -> bool:
    """Return True if a name or a value in the params was not seen in exactly this form, or if there
    are too many.

    The bare address of a contacted host is always allowed; a path and query must have been seen
    together. A result that repeats a text of its call's own params is not a source of that text.

    Args:
        hosts: the hosts that the call contacts.
        known: the texts whose values the call may send.
        private: other results; the call may open whole addresses that they contain.
    """
    sendable = [_read(source) for source in known]
    whole = [*sendable, *map(_read, private)]

    def is_seen(text: str) -> bool:
        carried = _cut_host(text, hosts)
        if carried is None:
            return _is_written(text, sendable)
        start = text.removesuffix(carried)
        is_path = partial(_is_path_alone, hosts=hosts)
        return carried in ("", "/") or any(
            _occurs(start + form, _without_repeats(form, whole), _is_address_alone)
            or _occurs(form, _without_repeats(form, sendable), is_path)
            for form in _spell_escapes(carried)
        )

    texts = _list_texts(params)
    return not all(map(is_seen, islice(texts, MAX_LEAVES))) or any(True for _ in texts)


def _read(source: SeenText) -> _Source:
    request = unquote(unescape_json(source.request)).lower()
    return _Source(source.plain.replace("&amp;", "&"), request)


def _without_repeats(text: str, sources: Iterable[_Source]) -> Iterator[str]:
    plain = unquote(text).lower()
    return (source.text for source in sources if plain not in source.request)


def _list_texts(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield each name, text and number in the params as text."""
    waiting: list[Any] = [params]
    while waiting:  # no recursion, because params may be nested deeply
        here = waiting.pop()
        if isinstance(here, Mapping):
            yield from map(str, here)
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
        elif isinstance(here, str | int | float) and not isinstance(here, bool):
            text = str(here).strip()
            yield from [text] if text else []


def _cut_host(text: str, hosts: Collection[str]) -> str | None:
    """Return what follows the host in an address of one of the hosts; None for any other text."""
    start = _SCHEME.match(text)
    address = text[start.end() :] if start else text
    for host in hosts:
        rest = address[len(host) :]
        if address[: len(host)].lower() == host.lower() and rest[:1] in ("", *"/?#:"):
            return rest
    return None


def _spell_escapes(carried: str) -> set[str]:
    """Return the path and query with and without percent escapes. Unusual escapes are not
    respelled, because data can hide in the choice of escapes."""
    spellings = {unquote(carried), quote(unquote(carried), safe=_UNESCAPED)}
    return spellings if carried in spellings else {carried}


def _is_written(text: str, sources: Iterable[_Source]) -> bool:
    """Return True if the text was seen in exactly this form; case is ignored if it is usual, such
    as all capitals."""
    texts = list(_without_repeats(text, sources))
    if _occurs(text, texts, _is_word_alone):
        return True
    is_usual = text in (text.lower(), text.upper(), text.title(), text.capitalize())
    return is_usual and _occurs(text.lower(), map(str.lower, texts), _is_word_alone)


def _occurs(text: str, sources: Iterable[str], is_alone: _IsAlone) -> bool:
    return any(_occurs_in(source, text, is_alone) for source in sources)


def _occurs_in(source: str, text: str, is_alone: _IsAlone) -> bool:
    at = source.find(text)
    for _ in range(MAX_STEPS):
        if at < 0:
            return False
        if is_alone(source, at, at + len(text)):
            return True
        at = source.find(text, at + 1)
    return False


def _is_word_alone(source: str, start: int, end: int) -> bool:
    before, after = source[max(start - 1, 0) : start], source[end : end + 1]
    return not (are_joined(before, source[start]) or are_joined(source[end - 1], after))


def _is_address_alone(source: str, start: int, end: int) -> bool:
    is_start = _BEFORE_ADDRESS.search(source, max(start - 1, 0), start) is not None
    return is_start and not _GOES_ON.match(source, end)


def _is_path_alone(source: str, start: int, end: int, *, hosts: Collection[str]) -> bool:
    """Return True for a whole link without a host, or with one of the hosts that the call
    contacts."""
    if _GOES_ON.match(source, end):
        return False
    for host in hosts:
        at = start - len(host)
        if at >= 0 and source[at:start].lower() == host.lower():
            return not are_joined(source[max(at - 1, 0) : at], source[at])
    return _is_address_alone(source, start, end)
