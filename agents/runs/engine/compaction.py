"""Compaction: choose the parts of a long history to shorten, so that a request fits the model's
context window.

The choice is repeated for every request from stored rows: all requests of the run are rebuilt, each
with the tokens that the model reported, and with a flag if the provider first refused it as too
long. So the same parts stay short from pass to pass, on any worker, and a provider's prompt cache
recognizes the beginning. Shortening happens in steps: once a request exceeds 70% of the window, it
is shortened to 50%.

First, results of earlier passes become their summaries, the largest first. Then texts of earlier
passes are cut, the oldest first. If the newest results alone are too large, the largest of them are
cut to the space that is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agents.employees.context_windows import find_context_tokens
from agents.employees.models import Employee
from agents.providers.base import ContextWindow
from tools.contract import Tool, canonical_json

FULL = 0.70
"""The share of the window beyond which parts are shortened; the rest is for the response and for
estimation errors."""
GOAL = 0.50
"""The share of the window down to which parts are shortened."""
READ_RESULTS = "results.read"
"""The tool that reads a shortened result in full."""

SUMMARY_LENGTH = 320
"""The number of characters counted for a shortened result, which may be slightly longer."""
TEXT_LENGTH = 200
"""The number of characters kept of a shortened text."""
MESSAGE_OVERHEAD = 40
"""The number of characters counted for each message or call in addition to its texts."""

_USUAL_RATE = 0.3
_MIN_RATE, _MAX_RATE = 1 / 6, 1.5
"""Bounds for a server's rate of tokens per character. A rate beyond a bound is replaced with the
bound, because such a server counts something else, for example only uncached tokens."""


@dataclass(frozen=True)
class RequestRoom:
    """The room for one request in the model's context window.

    Attributes:
        tokens: the model's context window.
        tool_characters: the size of the tools' definitions, in characters.
        can_read_results: True if the employee may read shortened results in full.
        refused: set if the provider refused this request as too long, because its window is smaller
            than assumed.
    """

    tokens: int
    tool_characters: int = 0
    can_read_results: bool = False
    refused: ContextWindow | None = None


@dataclass(frozen=True)
class PassSizes:
    """The sizes of one recorded pass, in characters.

    Attributes:
        new_texts: the messages of people since the previous pass.
        response: the model's message.
        text: the text of that message, without calls and other fields.
        results: the tool messages.
        input_tokens: the tokens that the provider reported for the request; 0 if it reported none.
        refused: set if the provider refused the request as too long for this window, before it
            accepted a shorter one.
    """

    new_texts: int
    response: int
    text: int
    results: Sequence[int]
    input_tokens: int
    refused: ContextWindow | None = None


@dataclass(frozen=True)
class Shortening:
    """The parts that one request is the first to shorten, and the tokens that this saves.

    Attributes:
        results, texts: the number of shortened results and texts.
        tokens_before, tokens_after: the estimated size of the request without and with these cuts.
    """

    results: int
    texts: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True)
class Cuts:
    """The shortened parts of a history; passes and their results are counted from 0.

    Attributes:
        results: the number of characters to keep, by (pass, result); 0 keeps only the summary.
        texts: the passes with a shortened text.
        added: the cuts that the previous request did not have; None if there are none.
        refused: set if the provider refused the request with fewer cuts as too long for this
            window.
    """

    results: dict[tuple[int, int], int] = field(default_factory=dict)
    texts: frozenset[int] = frozenset()
    added: Shortening | None = field(default=None, compare=False)
    refused: ContextWindow | None = field(default=None, compare=False)

    @property
    def is_empty(self) -> bool:
        return not (self.results or self.texts)


def measure_room(
    employee: Employee, tools: Sequence[Tool], refused: ContextWindow | None
) -> RequestRoom:
    """Return the room for the employee's next request."""
    return RequestRoom(
        tokens=find_context_tokens(employee, employee.provider),
        tool_characters=sum(map(_measure_definition, tools)),
        can_read_results=any(tool.name == READ_RESULTS for tool in tools),
        refused=refused,
    )


@lru_cache(maxsize=1024)
def _measure_definition(tool: Tool) -> int:
    return len(canonical_json(tool.definition))


def measure_message(message: dict[str, Any]) -> tuple[int, int]:
    """Return the number of characters of a model's message, and of its text alone; only strings and
    calls are counted."""
    content = message.get("content")
    text = len(content) if isinstance(content, str) else 0
    size = MESSAGE_OVERHEAD
    for value in message.values():
        if isinstance(value, str):
            size += len(value)
    for call in message.get("tool_calls") or ():
        function = call["function"]
        size += 2 * MESSAGE_OVERHEAD + len(function["name"]) + len(function["arguments"])
    return size, text


def choose_cuts(passes: Sequence[PassSizes], fixed: int, unread: int, room: RequestRoom) -> Cuts:
    """Choose the parts that the next request shortens.

    Args:
        passes: the recorded passes of the run.
        fixed: the number of characters at the beginning of every request.
        unread: the number of characters that people have written since the last pass.
    """
    rebuilding = _Rebuilding(passes, fixed + room.tool_characters, room.tokens)
    rebuilding.rebuild_passes()
    rebuilding.size += unread
    size, results, texts = rebuilding.size, dict(rebuilding.cuts), frozenset(rebuilding.texts)
    rebuilding.fit(len(passes), room.refused)
    cut = sum(results.get(place) != length for place, length in rebuilding.cuts.items())
    added = Shortening(
        cut,
        len(rebuilding.texts - texts),
        round(size * rebuilding.rate),
        round(rebuilding.size * rebuilding.rate),
    )
    is_new = bool(added.results or added.texts)
    return Cuts(
        rebuilding.cuts, frozenset(rebuilding.texts), added if is_new else None, room.refused
    )


class _Rebuilding:
    """Rebuilds the requests of a run one after the other, with their sizes and cuts."""

    def __init__(self, passes: Sequence[PassSizes], fixed: int, context: int) -> None:
        self.passes = passes
        self.size: float = fixed
        self.context: float = context
        self.rate = _USUAL_RATE
        self.cuts: dict[tuple[int, int], int] = {}
        self.texts: set[int] = set()
        self.large: dict[tuple[int, int], int] = {}
        """The current size of each result that is large enough to cut."""

    def rebuild_passes(self) -> None:
        for number, sizes in enumerate(self.passes):
            self.size += sizes.new_texts
            self.fit(number, sizes.refused)
            if sizes.input_tokens:
                self.rate = min(max(sizes.input_tokens / self.size, _MIN_RATE), _MAX_RATE)
            self.size += sizes.response + sum(sizes.results) + MESSAGE_OVERHEAD * len(sizes.results)
            for index, size in enumerate(sizes.results):
                if size > 2 * SUMMARY_LENGTH:
                    self.large[number, index] = size

    def fit(self, count: int, refused: ContextWindow | None) -> None:
        """Cut the request after `count` passes so that it fits the window; if the server refused
        it, cut it to half of its size or half of the window, whichever is smaller."""
        limit, goal = (share * self.context / self.rate for share in (FULL, GOAL))
        if self.size > limit:
            self.shrink(count, limit, goal)
        if refused is not None:
            tokens = refused.requested or self.size * self.rate
            self.context = min(self.context, refused.limit or tokens)
            goal = GOAL * self.size * min(1.0, self.context / tokens)
            self.shrink(count, goal, goal)

    def shrink(self, count: int, limit: float, goal: float) -> None:
        """Shrink the request to `goal` characters, or at least to `limit`."""
        newest = count - 1
        for place in sorted(self.large, key=lambda place: (-self.large[place], place)):
            if self.size <= goal:
                break
            if place[0] < newest:
                self._cut(place, 0)
        if self.size > limit:
            self._cut_texts(newest, goal)
        if self.size > limit:
            self._cut_newest(newest, limit)

    def _cut(self, place: tuple[int, int], length: int) -> None:
        """Cut a result to this length; 0 keeps only its summary."""
        self.size -= self.large.pop(place) - (length or SUMMARY_LENGTH)
        self.cuts[place] = length
        if length > 2 * SUMMARY_LENGTH:
            self.large[place] = length

    def _cut_texts(self, newest: int, goal: float) -> None:
        for number in range(newest):
            text = self.passes[number].text
            if self.size <= goal:
                return
            if text > 2 * TEXT_LENGTH and number not in self.texts:
                self.texts.add(number)
                self.size -= text - TEXT_LENGTH

    def _cut_newest(self, newest: int, limit: float) -> None:
        """Cut the largest results of the newest pass to one common length, so that they fit."""
        sizes = {place: size for place, size in self.large.items() if place[0] == newest}
        room, remaining = max(limit - self.size + sum(sizes.values()), 0.0), len(sizes)
        level = 0.0
        for size in sorted(sizes.values()):
            level = room / remaining
            if size > level:
                break
            room, remaining = room - size, remaining - 1
        for place, size in sizes.items():
            if size > level:
                self._cut(place, max(int(level) - SUMMARY_LENGTH, SUMMARY_LENGTH))
