"""Matching: find a call's values in what people typed and what earlier calls returned.

A source is folded once (`SourceIndex`), and every value is then found by searching bytes, so that a
megabyte of results takes a few milliseconds.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache, partial
from itertools import accumulate
from typing import Any

from tools.contract.param_naming import ParamNaming
from tools.toolbox.provenance.folding import fold_text, fold_words, is_bounded, unescape_json
from tools.toolbox.provenance.parts import Leaf, Needle, Part, list_leaves
from tools.toolbox.provenance.sightings import Provenance, SeenIn, Sighting

MANY_VALUES = 60
"""With more values than this, it saves time to list the words of the results first."""
MAX_STEPS = 200
"""The maximum number of occurrences of a word that are checked one by one; a hostile text can have
a million."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_BETWEEN = b" \xff "
"""A word that texts never contain, so that a value is never found across two sources."""


@dataclass(frozen=True)
class SeenText:
    """A text in which values are looked for.

    Attributes:
        text: what a person typed, or a result.
        is_json: the text is a JSON document, whose escapes are decoded.
        request: the params of the call, as JSON; a result that only repeats their values is not the
            origin.
        is_own_data: the source is data of the organization, even if its values come from outside
            (uploaded files).
        tool, title, call_id, run_id: as in `Sighting`.
        version: the version of the tool.
    """

    origin: SeenIn
    text: str
    is_json: bool = False
    request: str = ""
    is_own_data: bool = False
    tool: str = ""
    title: str = ""
    call_id: int | None = None
    run_id: int | None = None
    version: str = ""

    @property
    def plain(self) -> str:
        """The text without the escapes of JSON."""
        return unescape_json(self.text) if self.is_json else self.text

    @cached_property
    def requested(self) -> "_Corpus":
        """The params of the call that returned this text."""
        return _Corpus([SeenText(self.origin, self.request, is_json=True)])


class _Corpus:
    """Several sources joined into one text, folded for searching."""

    def __init__(self, sources: Iterable[SeenText]) -> None:
        self.sources = list(sources)
        folded = [fold_text(each.plain) for each in self.sources]
        self._starts = [0, *accumulate(len(each) + len(_BETWEEN) for each in folded)]
        self._folded = _BETWEEN.join(folded)
        self._words = fold_words(self._folded)
        self._absent: set[bytes] = set()

    @cached_property
    def vocabulary(self) -> frozenset[bytes]:
        """Every word of the sources; listing them costs more than searching for a few values."""
        return frozenset(self._words.split())

    @cached_property
    def _compact(self) -> tuple[bytes, list[int]]:
        """The texts, reduced to letters and digits, and the position at which each source
        starts."""
        ends = [*self._starts[1:-1], len(self._words) + len(_BETWEEN)] if self.sources else []
        pairs = zip(self._starts, ends, strict=False)
        texts = [
            self._words[start : end - len(_BETWEEN)].translate(None, b" ") for start, end in pairs
        ]
        return b"\xff".join(texts), [0, *accumulate(len(each) + 1 for each in texts)]

    def find(self, part: Part, *, is_many: bool = False) -> SeenText | None:
        """Return the first source that has the value and does not merely repeat the params of its
        own call."""
        return next(self.find_all(part, is_many=is_many), None)

    def find_all(self, part: Part, *, is_many: bool = False) -> Iterator[SeenText]:
        """Yield each source that has the value and does not merely repeat the params of its own
        call."""
        for needle in part.needles:
            if is_many and not self._may_contain(needle):
                continue
            for source in self._find_sources(needle):
                if not source.request or source.requested.find(part) is None:
                    yield source

    def _may_contain(self, needle: Needle) -> bool:
        """Return False if a word of the needle is not in any source. Only ASCII words are checked,
        because some scripts put no spaces between words."""
        if needle.number is not None:
            return any(
                self.vocabulary.issuperset(spelling.split())
                for spelling in _spell_number(needle.number)[0]
            )
        return all(word in self.vocabulary for word in needle.words if word.isascii())

    def _find_sources(self, needle: Needle) -> Iterator[SeenText]:
        """Yield each source that contains the needle, in order and once."""
        starts = self._compact[1] if needle.code else self._starts
        search = self._choose_search(needle)
        at = search(0) if self.sources else -1
        while at >= 0:
            number = bisect_right(starts, at) - 1
            yield self.sources[number]
            if number + 1 >= len(self.sources):
                return
            at = search(starts[number + 1])

    def _choose_search(self, needle: Needle) -> Callable[[int], int]:
        """Return a function that finds the needle from a position on, or returns -1 if it is not
        there."""
        if needle.code:
            return partial(self._compact[0].find, needle.code)
        if needle.number is not None:
            return partial(_find_number, self._folded, self._words, needle.number)
        return partial(self._find_words, needle.words)

    def _find_words(self, words: tuple[bytes, ...], start: int) -> int:
        """Return the position of these words in a row, or -1; absent words are remembered."""
        if not self._absent.isdisjoint(words):
            return -1
        anchor = max(words, key=len)
        if self._words.find(anchor) < 0:
            self._absent.add(anchor)
            return -1
        return _find_words(self._words, words, start)


@dataclass(frozen=True)
class OwnData:
    """The organization's own values that a request carries to the outside.

    Attributes:
        is_partial: there were too many values or results to check all of them.
        has_unseen_text: the run has read private data, and the request has text that was not seen
            in exactly this form, so such data can hide in it.
    """

    values: tuple[str, ...] = ()
    is_partial: bool = False
    has_unseen_text: bool = False


class SourceIndex:
    """All texts in which a run's values are looked for; each kind of text is folded when it is
    first used.

    Attributes:
        sources: the texts.
        is_partial: some of the texts were left out.
    """

    def __init__(self, sources: Iterable[SeenText], *, is_partial: bool = False) -> None:
        self.sources = list(sources)
        self.is_partial = is_partial

    @cached_property
    def typed(self) -> _Corpus:
        """Texts that people typed."""
        return _Corpus(each for each in self.sources if each.origin is SeenIn.PERSON)

    @cached_property
    def outside(self) -> _Corpus:
        """Results from outside."""
        return _Corpus(each for each in self.sources if each.origin is SeenIn.OUTSIDE)

    @cached_property
    def own(self) -> _Corpus:
        """Results on the organization's own data."""
        return _Corpus(each for each in self.sources if each.origin is SeenIn.OWN)

    def has_results_with(self, part: Part, *, is_many: bool) -> bool:
        """Return True if any result has the value."""
        return any(corpus.find(part, is_many=is_many) for corpus in (self.own, self.outside))

    @cached_property
    def known_outside(self) -> _Corpus:
        """Results from outside that are not the organization's own data."""
        return _Corpus(each for each in self.outside.sources if not each.is_own_data)

    @cached_property
    def own_data(self) -> _Corpus:
        """Everything that is the organization's own data, uploaded files included."""
        return _Corpus(
            [*self.own.sources, *(each for each in self.outside.sources if each.is_own_data)]
        )


def trace(
    index: SourceIndex,
    params: Mapping[str, Any],
    offered: frozenset[Any] = frozenset(),
    naming: ParamNaming | None = None,
) -> Provenance:
    """Find the origin of each value in the params; see `list_leaves` for `offered` and `naming`."""
    found = list_leaves(params, offered, naming)
    is_many = _has_many(found.leaves)
    sightings = [
        sighting for leaf in found.leaves for sighting in _trace_leaf(index, leaf, is_many)
    ]
    return Provenance(tuple(sightings), found.unread, index.is_partial)


def find_own_data(
    index: SourceIndex,
    params: Mapping[str, Any],
    has_same_recipients: Callable[[SeenText], bool],
    offered: frozenset[Any] = frozenset(),
) -> OwnData:
    """Find the values that a request to the outside carries from the organization's own data.

    These are left out: hosts, because the request goes there anyway; addresses that were seen
    whole; values that a person typed in this run; and values that all recipients know from an
    earlier result.

    Args:
        has_same_recipients: returns True if all recipients of this request already know the
            given result from outside.
    """
    found: list[str] = []
    listed = list_leaves(params, offered)
    is_many = _has_many(listed.leaves)

    def is_known(part: Part) -> bool:
        told = index.known_outside.find_all(part, is_many=is_many)
        return bool(index.typed.find(part, is_many=is_many)) or any(map(has_same_recipients, told))

    for leaf in listed.leaves:
        whole = leaf.whole
        if whole is not None and (whole.is_host or index.typed.find(whole, is_many=is_many)):
            continue
        if (
            whole is not None
            and _ADDRESS.fullmatch(whole.text)
            and index.has_results_with(whole, is_many=is_many)
        ):
            continue
        is_whole = whole is not None and index.own_data.find(whole, is_many=is_many)
        parts = [whole] if whole is not None and is_whole else leaf.parts
        carried = (
            part
            for part in parts
            if not part.is_host and index.own_data.find(part, is_many=is_many)
        )
        found += [part.text for part in carried if not is_known(part)]
    is_partial = index.is_partial or bool(listed.unread and index.own_data.sources)
    return OwnData(tuple(dict.fromkeys(found)), is_partial)


def _has_many(leaves: Iterable[Leaf]) -> bool:
    return sum(1 + len(leaf.parts) for leaf in leaves) > MANY_VALUES


def _trace_leaf(index: SourceIndex, leaf: Leaf, is_many: bool) -> Iterator[Sighting]:
    """Yield the origin of the value; if only parts of it are from outside, the origins of those
    parts."""
    whole = leaf.whole
    if whole is not None and index.typed.find(whole, is_many=is_many):
        yield _build_sighting(leaf, whole, SeenIn.PERSON)
        return
    found = [part for part in leaf.parts if not index.typed.find(part, is_many=is_many)]
    if whole is not None and (source := index.outside.find(whole, is_many=is_many)):
        yield replace(
            _build_sighting(leaf, whole, SeenIn.OUTSIDE, source), keys=_list_keys([whole, *found])
        )
        return
    outside = [
        (part, source) for part in found if (source := index.outside.find(part, is_many=is_many))
    ]
    for part, source in outside:
        yield _build_sighting(leaf, part, SeenIn.OUTSIDE, source)
    if not outside:
        yield from _trace_own(index, leaf, found, is_many)


def _trace_own(
    index: SourceIndex, leaf: Leaf, parts: list[Part], is_many: bool
) -> Iterator[Sighting]:
    """Yield the first origin, in the organization's own data, of the value or one of its parts. If
    there is none, yield a sighting with the origin NOWHERE."""
    searched = [*filter(None, [leaf.whole]), *parts]
    for part in searched:
        if source := index.own.find(part, is_many=is_many):
            yield replace(
                _build_sighting(leaf, part, SeenIn.OWN, source), keys=_list_keys(searched)
            )
            return
    if leaf.whole is not None:
        yield _build_sighting(leaf, leaf.whole, SeenIn.NOWHERE)


def _list_keys(parts: Iterable[Part]) -> tuple[str, ...]:
    return tuple(key for part in parts for key in part.keys)


def _build_sighting(
    leaf: Leaf, part: Part, origin: SeenIn, source: SeenText | None = None
) -> Sighting:
    found = Sighting(leaf.path, leaf.param, part.text, origin, leaf.stands_out, keys=part.keys)
    if source is None:
        return found
    return replace(
        found, tool=source.tool, title=source.title, call_id=source.call_id, run_id=source.run_id
    )


def _find_words(text: bytes, words: tuple[bytes, ...], start: int) -> int:
    """Return the position of these whole words in a row, or -1."""
    anchor = max(words, key=len)
    pattern = _compile_words(words)
    reach = 2 * sum(len(word) + 1 for word in words) + 40
    at = text.find(anchor, start)
    for _ in range(MAX_STEPS):
        if at < 0:
            return -1
        match = pattern.search(text, max(at - reach, start), at + reach)
        if match is not None and is_bounded(text, match.start(), match.end()):
            return match.start()
        at = text.find(anchor, at + len(anchor))
    match = _compile_bounded(words).search(text, max(at, start)) if at >= 0 else None
    return match.start() if match else -1


@lru_cache(maxsize=512)
def _compile_words(words: tuple[bytes, ...]) -> re.Pattern[bytes]:
    return re.compile(b" +".join(map(re.escape, words)))


@lru_cache(maxsize=64)
def _compile_bounded(words: tuple[bytes, ...]) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![0-9a-z])" + b" +".join(map(re.escape, words)) + rb"(?![0-9a-z])")


def _find_number(folded: bytes, words: bytes, number: Decimal, start: int) -> int:
    """Return the position of this number in any of its usual spellings, or -1."""
    spellings, pattern = _spell_number(number)
    found = (_find_spelling(folded, words, (spelling, pattern), start) for spelling in spellings)
    return min((at for at in found if at >= 0), default=-1)


def _find_spelling(
    folded: bytes, words: bytes, spelled: tuple[bytes, re.Pattern[bytes]], start: int
) -> int:
    spelling, pattern = spelled
    at = words.find(spelling, start)
    for _ in range(MAX_STEPS):
        if at < 0 or pattern.match(folded, at):
            return at
        at = words.find(spelling, at + 1)
    match = pattern.search(folded, at) if at >= 0 else None
    return match.start() if match else -1


@lru_cache(maxsize=512)
def _spell_number(number: Decimal) -> tuple[list[bytes], re.Pattern[bytes]]:
    """Return the possible beginnings in folded words, and the pattern of the whole number."""
    whole, _, fraction = f"{number:f}".partition(".")
    fraction = fraction.rstrip("0")
    grouped = f"{int(whole):,}"
    spellings = {whole, grouped.replace(",", " ")}
    begin = rf"(?:{whole}|{grouped.replace(',', '[,. ' + chr(39) + ']')})"
    end = rf"[.,]{fraction}0*" if fraction else r"(?:[.,]0{1,2})?"
    pattern = rf"(?<!\d)(?<!\d[.,']){begin}{end}(?!\d)(?![.,' ]\d{{3}}(?!\d))(?![.,]\d)"
    return sorted(each.encode() for each in spellings), re.compile(pattern.encode())
