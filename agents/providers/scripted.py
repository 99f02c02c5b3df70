"""A provider without a model: it plays YAML scripts, so that the demo needs no key and tests know what comes.

```yaml
scripts:
  - task: "(?i)deactivate (?P<region>[A-Z]+)"   # searched in the head of the person's latest message
    title: Deactivate a region                  # shown when a task is unknown
    passes:
      - text: "Let me look."                    # streamed word by word; delay_ms is spread over the words
        delay_ms: 300
        when: "{{ not calls }}"                 # optional; a false one skips this pass
        calls:
          - {tool: data.searchRecords, params: {region: "{{ match.region }}"}}
      - calls:
          - tool: data.updateRecord
            for_each: "{{ last('data.searchRecords').data.records }}"
            params: {record_id: "{{ item.id }}", changes: {status: inactive}}
        fail: {code: rate_limited, retry_after: 2, times: 1}     # the provider fails so
    answer: "Updated {{ results('data.updateRecord') | length }}, denied {{ denied() | length }}."
```

Names in expressions, all about the task in play (since the message that started its script):
`calls` the outcomes of all calls, in order (CallOutcome: tool, params, status, success, data, summary, reason) ·
`results(tool)` the succeeded ones · `denied(tool)` those that a person denied · `last(tool)` the latest of any status,
or nothing; without a tool each means every tool · `earlier` those before this task · `task` the person's message ·
`match` the named groups of the regular expression · `offered(tool)` whether the employee may use it · in a call with
`for_each`: `item` and `index`.

Expressions are written as in Jinja: if, for and set, its usual filters and tests (see filters.py), but no macros. All
expressions of one answer together may do about a second of work and make 10 MB of values (see allowance.py).

Nothing is remembered between requests: what comes next follows from the messages alone (the ids of the calls say which
pass they came from), so a replay after a crash gives the same. The one exception is the count of `fail.times`, which
lives in this process: with several workers, or after a restart, a failure may come more often.
"""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.providers.allowance import STEP, Allowance, ExpressionError
from agents.providers.base import (
    GO_ON,
    CallOutcome,
    ModelRequest,
    ModelResponse,
    ProviderConfig,
    ProviderError,
    ProviderStopped,
    RequestedCall,
    Usage,
)
from agents.providers.expressions import Scope, evaluate, is_true, render
from agents.providers.parts import text_of
from agents.providers.patterns import find_groups
from agents.providers.scripts import Script, ScriptedCall, ScriptedFailure, ScriptedPass, scripts_from
from tools.contract import made_storable

MAX_CALLS = 100
MAX_PIECES = 200
SEARCHED = 2000
"""Characters of a task in which a script's regular expression is searched."""
UNKNOWN_TASK = "**Nothing was done:** I follow a script, and it does not know this task."
_CALL_ID = re.compile(r"call_\d+_(\d+)_\d+")
_failed_times: Counter[tuple[str, str, int]] = Counter()
_failed_lock = threading.Lock()


@dataclass(frozen=True)
class _Position:
    """Where in its script a conversation stands; `is_over` once it was answered and somebody wrote something else."""

    script: Script
    message_index: int
    task: str
    groups: dict[str, Any]
    next_pass: int
    is_over: bool


@dataclass(frozen=True)
class _Turn:
    """One request being played."""

    request: ModelRequest
    on_text: Callable[[str], None]
    stopped: threading.Event
    deadline: float
    text: list[str]

    def say(self, text: str, delay_ms: int = 0) -> None:
        """Stream the text in pieces of a word or a few, over the delay."""
        lead = "\n\n" if text and self.text else ""
        words = re.findall(r"\s*\S+\s*?(?=\s|$)|\s+$", text)
        size = 1 + len(words) // MAX_PIECES
        pieces = ["".join(words[start : start + size]) for start in range(0, len(words), size)]
        pause = delay_ms / 1000 / max(1, len(pieces))
        for number, piece in enumerate(pieces or [""]):
            self.wait(pause)
            if piece:
                self.on_text(piece if number else lead + piece)
        if text:
            self.text.append(text)

    def wait(self, seconds: float) -> None:
        left = self.deadline - time.monotonic()
        if self.stopped.wait(max(0.0, min(seconds, left))):
            raise ProviderStopped
        if seconds >= left:
            raise ProviderError("timeout", "The script's delay is longer than the time for an answer", transient=True)


class ScriptedProvider:
    """A Provider that follows a script; see the head of the file. Every fault of a script is "bad_script"."""

    def __init__(self, config: ProviderConfig) -> None:
        self._text = config.script
        self._timeout_s = config.timeout_s

    def refusal(self, seconds: float) -> str:  # noqa: ARG002 - a script connects to nothing
        return ""

    def check(self) -> None:
        self._scripts()

    def ask(self, request: ModelRequest, on_text: Callable[[str], None], stopped: threading.Event) -> ModelResponse:
        scripts = self._scripts()
        deadline = min(request.deadline, time.monotonic() + self._timeout_s)
        turn = _Turn(request, on_text, stopped, deadline, [])
        turn.wait(0)
        position = _position(scripts, request.messages, turn)
        if position is None or position.is_over:
            turn.say(_tasks_to_play(scripts))
            return _response(turn, [])
        scope = _scope(position, turn)
        if not request.closing:
            entries = self._play(position, scope, turn)
            if entries:
                return _response(turn, entries)
        turn.say(_answer(position.script, scope, closing=request.closing))
        return _response(turn, [])

    def _scripts(self) -> tuple[Script, ...]:
        try:
            return scripts_from(self._text)
        except ValueError as error:
            raise _bad_script(str(error)) from error

    def _play(self, position: _Position, scope: Scope, turn: _Turn) -> list[dict[str, Any]]:
        """Play on until a pass makes calls; the calls, or none when the passes are used up."""
        for number in range(position.next_pass, len(position.script.passes)):
            place = f"{position.script.shown_title!r}, pass {number + 1}"
            part = position.script.passes[number]
            try:
                entries = self._play_pass(part, number, scope, turn)
            except ExpressionError as error:
                raise _bad_script(f"{place}: {error}") from error
            if entries:
                return entries
        return []

    def _play_pass(self, part: ScriptedPass, number: int, scope: Scope, turn: _Turn) -> list[dict[str, Any]]:
        if not is_true(part.when, scope):
            return []
        if part.fail is not None:
            self._fail(part.fail, number, scope.names["task"])
        turn.say(str(render(part.text, scope)), part.delay_ms)
        asked = [one for call in part.calls for one in _calls_of(call, scope)]
        if len(asked) > MAX_CALLS:
            raise ExpressionError(f"{len(asked)} calls in one pass, at most {MAX_CALLS} are allowed")
        answers = sum(message.get("role") == "assistant" for message in turn.request.messages)
        return [
            {
                "id": f"call_{answers + 1}_{number}_{index}",
                "type": "function",
                "function": {"name": tool, "arguments": arguments},
            }
            for index, (tool, arguments) in enumerate(asked)
        ]

    def _fail(self, failure: ScriptedFailure, number: int, task: str) -> None:
        if failure.times is not None:
            with _failed_lock:
                key = (self._text, task, number)
                if _failed_times[key] >= failure.times:
                    return
                _failed_times[key] += 1
        raise ProviderError(
            failure.code, failure.message, transient=failure.is_transient, retry_after=failure.retry_after
        )


def _bad_script(what: str) -> ProviderError:
    return ProviderError("bad_script", f"The script is wrong: {what}", transient=False)


def _position(scripts: Sequence[Script], messages: Sequence[dict[str, Any]], turn: _Turn) -> _Position | None:
    """Where the script of the latest message that any script knows stands; a message during it changes nothing."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") != "user":
            continue
        task = text_of(messages[index].get("content"))
        for script in scripts:
            turn.wait(0)
            groups = find_groups(script.task, task[:SEARCHED])
            if groups is not None:
                next_pass, is_over = _progress(messages[index + 1 :])
                return _Position(script, index, task, groups, next_pass, is_over)
    return None


def _progress(since: Sequence[dict[str, Any]]) -> tuple[int, bool]:
    """The next pass after the message that began the script, and whether somebody wrote after the answer.

    An answer alone does not end it: a run that had used up its passes may be continued.
    """
    next_pass, answered = 0, False
    for message in since:
        if message.get("role") == "user" and answered and text_of(message.get("content")) != GO_ON:
            return next_pass, True
        if message.get("role") != "assistant":
            continue
        calls = message.get("tool_calls")
        answered = not calls
        if not calls:
            continue
        known = _CALL_ID.fullmatch(str(calls[0].get("id")))
        next_pass = int(known.group(1)) + 1 if known else next_pass + 1
    return next_pass, False


def _tasks_to_play(scripts: Sequence[Script]) -> str:
    titles = "\n".join(f"- {script.shown_title}" for script in scripts)
    return f"{UNKNOWN_TASK}\n\nThese it knows:\n\n{titles}"


def _scope(position: _Position, turn: _Turn) -> Scope:
    """Return the names that the script's expressions can use; they end when the turn is stopped or late."""
    request, allowance = turn.request, Allowance(look=lambda: turn.wait(0))
    before = sum(message.get("role") == "assistant" for message in request.messages[: position.message_index])
    outcomes = list(request.outcomes())
    calls = [outcome for outcome in outcomes if outcome.pass_number > before]
    offered = {tool["function"]["name"] for tool in request.tools}

    def of(tool: str | None) -> list[CallOutcome]:
        allowance.spend(STEP * len(calls))
        return [call for call in calls if tool is None or call.tool == tool]

    names = {
        "calls": calls,
        "earlier": [outcome for outcome in outcomes if outcome.pass_number <= before],
        "results": lambda tool=None: [call for call in of(tool) if call.success],
        "denied": lambda tool=None: [call for call in of(tool) if call.status == "denied"],
        "last": lambda tool=None: next(reversed(of(tool)), None),
        "task": position.task,
        "match": position.groups,
        "offered": lambda tool: tool in offered,
    }
    return Scope(names, allowance)


def _calls_of(call: ScriptedCall, scope: Scope) -> list[tuple[str, str]]:
    """The tool and the raw arguments of each call that this entry stands for."""
    if call.for_each is None:
        return [_call_of(call, scope)] if is_true(call.when, scope) else []
    items = evaluate(call.for_each, scope) if isinstance(call.for_each, str) else render(call.for_each, scope)
    if not isinstance(items, list | tuple | range):
        raise ExpressionError(f"for_each of {call.tool} is a {type(items).__name__}, not a list")
    asked = []
    for index, item in enumerate(items):
        scope.allowance.spend(STEP)
        each = scope.with_names(item=item, index=index)
        if is_true(call.when, each):
            asked.append(_call_of(call, each))
    return asked


def _call_of(call: ScriptedCall, scope: Scope) -> tuple[str, str]:
    scope.allowance.pay(call.tool if call.arguments is None else call.arguments)
    if call.arguments is not None:
        return call.tool, call.arguments
    try:
        return call.tool, json.dumps(render(call.params, scope), ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ExpressionError(f"params of {call.tool}: {error}") from error


def _answer(script: Script, scope: Scope, *, closing: bool) -> str:
    """The answer; a closing pass may come before its results, so there what is missing is left out."""
    try:
        return str(render(script.answer, scope))
    except ExpressionError as error:
        if not closing:
            raise _bad_script(f"{script.shown_title!r}, answer: {error}") from error
    try:
        return str(render(script.answer, replace(scope, strict=False)))
    except ExpressionError:
        return "I could not finish this task; the results so far are above."


def _response(turn: _Turn, entries: list[dict[str, Any]]) -> ModelResponse:
    text, entries = made_storable(["\n\n".join(turn.text), entries])
    calls = tuple(
        RequestedCall(entry["id"], entry["function"]["name"], entry["function"]["arguments"]) for entry in entries
    )
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if entries:
        message["tool_calls"] = [_resendable(entry) for entry in entries]
    elif not text:
        message["content"] = ""
    return ModelResponse(message=message, text=text, calls=calls, usage=Usage())


def _resendable(entry: dict[str, Any]) -> dict[str, Any]:
    try:
        intact = isinstance(json.loads(entry["function"]["arguments"]), dict)
    except (ValueError, RecursionError):
        intact = False
    return entry if intact else {**entry, "function": {**entry["function"], "arguments": "{}"}}
