"""What of a long history is shortened, so that a request fits the model's context.

Decided anew for every request, from rows alone: the requests before it are gone through again, each with what the model
said it took, and whether the provider had found it too long at first. So the same things are short from pass to pass,
whoever drives the run, and a provider's cache finds the beginning that it knows. It happens in steps: beyond 70 % of
the context, until half of it is used.

In this order: results of earlier passes, the largest first, to their summaries; texts of earlier passes, the oldest
first; and where the newest results alone are too large, the largest of them to what there is room for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agents.employees.models import Employee, ModelProvider, ProviderKind
from tools.contract import Tool, canonical_json

FULL = 0.70
"""Of the context, beyond which something is shortened; the rest is for the answer, and for errors of the estimate."""
GOAL = 0.50
USUAL_CONTEXT = 128_000
OLLAMA_CONTEXT = 16_384
"""What Ollama is told where nobody has said more: its own is too small for tools, and it never says that it forgets."""
READS_ON = "results.read"

SUMMARY = 320
"""Characters that a shortened result counts for, and at most a little more than it has."""
TEXT = 200
"""Characters that stay of a shortened text."""
OF_A_MESSAGE = 40
"""Characters that a message and a call take besides what they say."""

_USUAL_RATE = 0.3
_LEAST_RATE, _MOST_RATE = 1 / 6, 1.5
"""Tokens of a character. A server that says less or more counts something else, such as what its cache did not hold."""

_KNOWN = {
    "gpt-5": 272_000,
    "gpt-4.1": 1_000_000,
    "gpt-4o": 128_000,
    "gpt-4-turbo": 128_000,
    "gpt-4": 8_192,
    "gpt-3.5-turbo": 16_385,
    "o1": 200_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "claude-": 200_000,
    "gemini-": 1_000_000,
}
"""Tokens that these models take, by the beginning of their names."""


@dataclass(frozen=True)
class Room:
    """What a request may take.

    Attributes:
        tokens: of the model's context.
        tools: characters of their definitions.
        reads_on: the employee may read the whole of a shortened result.
        harder: the provider has refused this request as too long: it sees less than was believed.
    """

    tokens: int
    tools: int = 0
    reads_on: bool = False
    harder: bool = False


@dataclass(frozen=True)
class Sizes:
    """Characters of one recorded pass.

    Attributes:
        asked: what people had said since the pass before.
        response: the model's message; `text` is what of it is no call.
        results: the tool messages.
        input_tokens: what the provider said that its request took; 0 if it said nothing.
        harder: the provider had refused its request as too long before it took a shorter one.
    """

    asked: int
    response: int
    text: int
    results: Sequence[int]
    input_tokens: int
    harder: bool = False


@dataclass(frozen=True)
class Step:
    """What one request is the first to be short of, and about how many tokens that saves.

    Attributes:
        results, texts: how many.
        tokens_before, tokens_after: that the request would have taken without it, and takes with it.
    """

    results: int
    texts: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True)
class Cuts:
    """What is shortened; passes and their results are counted from 0.

    Attributes:
        results: by (pass, result), how many characters stay; 0 for the summary.
        texts: of these passes.
        step: what of it the request before had whole; None if nothing.
        harder: the room was.
    """

    results: dict[tuple[int, int], int] = field(default_factory=dict)
    texts: frozenset[int] = frozenset()
    step: Step | None = field(default=None, compare=False)
    harder: bool = field(default=False, compare=False)

    def __bool__(self) -> bool:
        return bool(self.results or self.texts)


def room_for(employee: Employee, provider: ModelProvider, tools: Iterable[Tool]) -> Room:
    """What a request of this employee may take."""
    offered = list(tools)
    reads_on = any(tool.name == READS_ON for tool in offered)
    return Room(context_of(employee, provider), sum(map(_size_of_definition, offered)), reads_on)


def context_of(employee: Employee, provider: ModelProvider) -> int:
    """How many tokens the employee's model sees at once: as its form says, as Ollama is told, or as is known of it."""
    if provider.kind == ProviderKind.OLLAMA:
        told = num_ctx_of(employee)
        return min(told, employee.context_tokens or told)
    if employee.context_tokens:
        return employee.context_tokens
    name = employee.model.rpartition("/")[2].lower()
    known = max((beginning for beginning in _KNOWN if name.startswith(beginning)), key=len, default="")
    return _KNOWN.get(known, USUAL_CONTEXT)


def num_ctx_of(employee: Employee) -> int:
    """How many tokens Ollama is told to see: never left to Ollama, which forgets the oldest part and says nothing."""
    return employee.num_ctx or _in_options(employee.extra_body) or employee.context_tokens or OLLAMA_CONTEXT


def _in_options(body: dict[str, Any]) -> int | None:
    options = body.get("options")
    told = options.get("num_ctx") if isinstance(options, dict) else None
    return told if isinstance(told, int) and told > 0 else None


@lru_cache(maxsize=1024)
def _size_of_definition(tool: Tool) -> int:
    return len(canonical_json(tool.definition))


def sizes_of_message(message: dict[str, Any]) -> tuple[int, int]:
    """Characters of a model's message, and of its text alone; only strings and calls count."""
    content = message.get("content")
    text = len(content) if isinstance(content, str) else 0
    size = OF_A_MESSAGE
    for value in message.values():
        if isinstance(value, str):
            size += len(value)
    for call in message.get("tool_calls") or ():
        function = call["function"]
        size += 2 * OF_A_MESSAGE + len(function["name"]) + len(function["arguments"])
    return size, text


def cuts_for(passes: Sequence[Sizes], fixed: int, asked: int, room: Room) -> Cuts:
    """What the next request is short of.

    Args:
        passes: the recorded ones.
        fixed: characters that every request begins with.
        asked: characters that people have said since the last pass.
    """
    replay = _Replay(passes, fixed + room.tools, room.tokens)
    replay.go_through()
    replay.shown += asked
    shown, results, texts = replay.shown, dict(replay.cuts), frozenset(replay.texts)
    replay.fit(len(passes), room.harder)
    cut = sum(results.get(place) != kept for place, kept in replay.cuts.items())
    step = Step(cut, len(replay.texts - texts), round(shown * replay.rate), round(replay.shown * replay.rate))
    return Cuts(replay.cuts, frozenset(replay.texts), step if step.results or step.texts else None, room.harder)


class _Replay:
    """The requests of a run one after the other: what each showed, and what was shortened for it."""

    def __init__(self, passes: Sequence[Sizes], fixed: int, context: int) -> None:
        self.passes = passes
        self.shown: float = fixed
        self.context: float = context
        self.rate = _USUAL_RATE
        self.cuts: dict[tuple[int, int], int] = {}
        self.texts: set[int] = set()
        self.large: dict[tuple[int, int], int] = {}
        """What is shown of each result that is worth cutting."""

    def go_through(self) -> None:
        for number, sizes in enumerate(self.passes):
            self.shown += sizes.asked
            self.fit(number, sizes.harder)
            if sizes.input_tokens:
                self.rate = min(max(sizes.input_tokens / self.shown, _LEAST_RATE), _MOST_RATE)
            self.shown += sizes.response + sum(sizes.results) + OF_A_MESSAGE * len(sizes.results)
            for index, size in enumerate(sizes.results):
                if size > 2 * SUMMARY:
                    self.large[number, index] = size

    def fit(self, count: int, harder: bool) -> None:
        """Shorten what has to be for the request after `count` passes; `harder`: to half, because that was refused."""
        most, goal = (part * self.context / self.rate for part in (FULL, GOAL))
        if self.shown > most:
            self.shrink(count, most, goal)
        if harder:
            self.context = min(self.context, self.shown * self.rate)
            self.shrink(count, self.shown * GOAL, self.shown * GOAL)

    def shrink(self, count: int, most: float, goal: float) -> None:
        """Bring what is shown to `goal` characters, or at least below `most`."""
        newest = count - 1
        for place in sorted(self.large, key=lambda place: (-self.large[place], place)):
            if self.shown <= goal:
                break
            if place[0] < newest:
                self._cut(place, 0)
        if self.shown > most:
            self._cut_texts(newest, goal)
        if self.shown > most:
            self._cut_newest(newest, most)

    def _cut(self, place: tuple[int, int], kept: int) -> None:
        """Leave so many characters of a result, or its summary."""
        self.shown -= self.large.pop(place) - (kept or SUMMARY)
        self.cuts[place] = kept
        if kept > 2 * SUMMARY:
            self.large[place] = kept

    def _cut_texts(self, newest: int, goal: float) -> None:
        for number in range(newest):
            text = self.passes[number].text
            if self.shown <= goal:
                return
            if text > 2 * TEXT and number not in self.texts:
                self.texts.add(number)
                self.shown -= text - TEXT

    def _cut_newest(self, newest: int, most: float) -> None:
        """Cut the largest results of the pass to one length, at which all of them have room."""
        sizes = {place: size for place, size in self.large.items() if place[0] == newest}
        room, rest = max(most - self.shown + sum(sizes.values()), 0.0), len(sizes)
        level = 0.0
        for size in sorted(sizes.values()):
            level = room / rest
            if size > level:
                break
            room, rest = room - size, rest - 1
        for place, size in sizes.items():
            if size > level:
                self._cut(place, max(int(level) - SUMMARY, SUMMARY))
