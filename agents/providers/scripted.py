"""A provider that plays YAML scripts in place of a model, so that the demo needs no key and tests
are predictable.

The model of an employee with this provider is the name of a script file in the installation,
without `.yaml`.

```yaml
scripts:
  - task: "(?i)deactivate (?P<region>[A-Z]+)"   # searched in the beginning of the latest message
    title: Deactivate a region                  # listed for an unknown task
    passes:
      - text: "Let me look."                    # streamed word by word over delay_ms
        delay_ms: 300
        when: "{{ not calls }}"                 # optional; a false one skips this pass
        calls:
          - {tool: data.searchRecords, params: {region: "{{ match.region }}"}}
      - calls:
          - tool: data.updateRecord
            for_each: "{{ last('data.searchRecords').data.records }}"
            params: {record_id: "{{ item.id }}", changes: {status: inactive}}
        fail: {code: rate_limited, retry_after: 2, times: 1}     # the provider fails
    answer: "Updated {{ results('data.updateRecord') | length }}, denied {{ denied() | length }}."
```

Names in expressions, about the current task, which begins with the message that started its script:
`calls` the outcomes of all calls, in order (CallOutcome: tool, params, status, success, data,
summary, reason) · `results(tool)` the successful ones · `denied(tool)` those that a person denied ·
`last(tool)` the latest of any status, or nothing; without a tool, these functions cover all tools ·
`earlier` the outcomes before this task · `task` the person's message · `match` the named groups of
the regular expression · `offered(tool)` true if the employee may use it · in a call with
`for_each`: `item` and `index`.

Expressions are evaluated in Jinja's sandbox: they cannot change values or reach anything private.
Their time and memory have no limit, so only people who run the installation may write scripts.

Nothing is remembered between requests: the messages alone determine the next pass (the ids of calls
contain their pass), so a retry after a crash gives the same answer. The only exception is
`fail.times`, which each process counts separately: with several workers, or after a restart, a
failure may happen more often.
"""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.providers.base import (
    CONTINUE_REQUEST,
    CallOutcome,
    ModelRequest,
    ModelResponse,
    ProviderConfig,
    ProviderError,
    ProviderStopped,
    RequestedCall,
    Usage,
)
from agents.providers.content_text import extract_text
from agents.providers.expressions import ExpressionError, ExpressionScope, is_true, render
from agents.providers.script_format import (
    Script,
    ScriptedCall,
    ScriptedFailure,
    ScriptedPass,
    load_scripts,
)
from agents.providers.script_patterns import find_groups
from tools.contract import make_storable

MAX_CALLS = 100
MAX_PIECES = 200
SEARCHED_LENGTH = 2000
"""The number of characters at the beginning of a task that a script's regular expression can
match."""
UNKNOWN_TASK = "I am a demo employee and don't know this task."
_CALL_ID = re.compile(r"call_\d+_(\d+)_\d+")
_failed_times: Counter[tuple[str, str, int]] = Counter()
_failed_lock = threading.Lock()


@dataclass(frozen=True)
class _ScriptPosition:
    """The position of a conversation in its script. `is_over` is True if a person has written
    another message after the answer, other than a request to continue."""

    script: Script
    message_index: int
    task: str
    groups: dict[str, Any]
    next_pass: int
    is_over: bool


@dataclass(frozen=True)
class _Playback:
    """A request that is being answered, with the text streamed so far."""

    request: ModelRequest
    on_text: Callable[[str], None]
    stopped: threading.Event
    deadline: float
    text: list[str]

    def say(self, text: str, delay_ms: int = 0) -> None:
        """Stream the text in pieces of whole words, spread evenly over the delay."""
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
        """Wait for these seconds. Raise ProviderStopped if the request is stopped, and
        ProviderError if its deadline comes first."""
        left = self.deadline - time.monotonic()
        if self.stopped.wait(max(0.0, min(seconds, left))):
            raise ProviderStopped
        if seconds >= left:
            raise ProviderError(
                "timeout",
                "The script's delay is longer than the time limit for a response",
                transient=True,
            )


class ScriptedProvider:
    """A provider that follows a script, as the module's docstring describes. A fault in a script
    raises a ProviderError with the code "bad_script"."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config

    def explain_refusal(self, seconds: float) -> str | None:  # noqa: ARG002 - a script connects to nothing
        return None

    def check(self) -> str:
        for name in self._config.models:
            self._load_scripts(name)
        return ""

    def ask(
        self, request: ModelRequest, on_text: Callable[[str], None], stopped: threading.Event
    ) -> ModelResponse:
        scripts = self._load_scripts(request.model)
        deadline = min(request.deadline, time.monotonic() + self._config.timeout_s)
        playback = _Playback(request, on_text, stopped, deadline, [])
        playback.wait(0)
        position = _find_position(scripts, request.messages, playback)
        if position is None or position.is_over:
            playback.say(_list_tasks(scripts))
            return _build_response(playback, [])
        scope = _build_scope(position, request)
        if not request.closing:
            entries = self._play(position, scope, playback)
            if entries:
                return _build_response(playback, entries)
        playback.say(_render_answer(position.script, scope, closing=request.closing))
        return _build_response(playback, [])

    def _load_scripts(self, name: str) -> tuple[Script, ...]:
        try:
            return load_scripts(self._config.scripts_dir, name)
        except LookupError as error:
            raise ProviderError("bad_script", str(error), transient=False) from error
        except ValueError as error:
            raise _build_script_error(str(error)) from error

    def _play(
        self, position: _ScriptPosition, scope: ExpressionScope, playback: _Playback
    ) -> list[dict[str, Any]]:
        """Play passes until a pass requests calls; return these calls, or an empty list after the
        last pass."""
        for number in range(position.next_pass, len(position.script.passes)):
            place = f"{position.script.shown_title!r}, pass {number + 1}"
            part = position.script.passes[number]
            try:
                entries = self._play_pass(part, number, scope, playback)
            except ExpressionError as error:
                raise _build_script_error(f"{place}: {error}") from error
            if entries:
                return entries
        return []

    def _play_pass(
        self, part: ScriptedPass, number: int, scope: ExpressionScope, playback: _Playback
    ) -> list[dict[str, Any]]:
        if not is_true(part.when, scope):
            return []
        if part.fail is not None:
            _fail(part.fail, (playback.request.model, scope.names["task"], number))
        playback.say(str(render(part.text, scope)), part.delay_ms)
        calls = [each for call in part.calls for each in _expand_call(call, scope)]
        if len(calls) > MAX_CALLS:
            raise ExpressionError(
                f"{len(calls)} calls in one pass, at most {MAX_CALLS} are allowed"
            )
        responses = sum(message.get("role") == "assistant" for message in playback.request.messages)
        return [
            {
                "id": f"call_{responses + 1}_{number}_{index}",
                "type": "function",
                "function": {"name": tool, "arguments": arguments},
            }
            for index, (tool, arguments) in enumerate(calls)
        ]


def _fail(failure: ScriptedFailure, place: tuple[str, str, int]) -> None:
    """Raise the failure, unless it has already happened `times` times at this place. A place is the
    combination of a script, a task and the number of a pass."""
    if failure.times is not None:
        with _failed_lock:
            if _failed_times[place] >= failure.times:
                return
            _failed_times[place] += 1
    raise ProviderError(
        failure.code,
        failure.message,
        transient=failure.is_transient,
        retry_after=failure.retry_after,
    )


def _build_script_error(fault: str) -> ProviderError:
    return ProviderError("bad_script", f"The script is wrong: {fault}", transient=False)


def _find_position(
    scripts: Sequence[Script], messages: Sequence[dict[str, Any]], playback: _Playback
) -> _ScriptPosition | None:
    """Find the newest message that matches a script, and the position in that script; None if no
    message matches."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") != "user":
            continue
        task = extract_text(messages[index].get("content"))
        for script in scripts:
            playback.wait(0)
            groups = find_groups(script.task, task[:SEARCHED_LENGTH])
            if groups is not None:
                next_pass, is_over = _find_progress(messages[index + 1 :])
                return _ScriptPosition(script, index, task, groups, next_pass, is_over)
    return None


def _find_progress(since: Sequence[dict[str, Any]]) -> tuple[int, bool]:
    """Return the number of the next pass, and True if the script is over because a person has
    written after the answer.

    An answer alone does not end the script, because a run that used all its passes may be
    continued.
    """
    next_pass, answered = 0, False
    for message in since:
        if (
            message.get("role") == "user"
            and answered
            and extract_text(message.get("content")) != CONTINUE_REQUEST
        ):
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


def _list_tasks(scripts: Sequence[Script]) -> str:
    titles = "\n".join(f"- {script.shown_title}" for script in scripts)
    return f"{UNKNOWN_TASK}\n\nTry:\n\n{titles}"


def _build_scope(position: _ScriptPosition, request: ModelRequest) -> ExpressionScope:
    before = sum(
        message.get("role") == "assistant" for message in request.messages[: position.message_index]
    )
    outcomes = list(request.outcomes())
    calls = [outcome for outcome in outcomes if outcome.pass_number > before]
    offered = {tool["function"]["name"] for tool in request.tools}

    def find_calls(tool: str | None) -> list[CallOutcome]:
        return [call for call in calls if tool is None or call.tool == tool]

    names = {
        "calls": calls,
        "earlier": [outcome for outcome in outcomes if outcome.pass_number <= before],
        "results": lambda tool=None: [call for call in find_calls(tool) if call.success],
        "denied": lambda tool=None: [call for call in find_calls(tool) if call.status == "denied"],
        "last": lambda tool=None: next(reversed(find_calls(tool)), None),
        "task": position.task,
        "match": position.groups,
        "offered": lambda tool: tool in offered,
    }
    return ExpressionScope(names)


def _expand_call(call: ScriptedCall, scope: ExpressionScope) -> list[tuple[str, str]]:
    """Return the calls that an entry of a script describes, each as the tool's name and the raw
    arguments."""
    if call.for_each is None:
        return [_build_call(call, scope)] if is_true(call.when, scope) else []
    items = render(call.for_each, scope)
    if not isinstance(items, list | tuple | range):
        raise ExpressionError(f"for_each of {call.tool} is a {type(items).__name__}, not a list")
    calls = []
    for index, item in enumerate(items):
        each = scope.with_names(item=item, index=index)
        if is_true(call.when, each):
            calls.append(_build_call(call, each))
    return calls


def _build_call(call: ScriptedCall, scope: ExpressionScope) -> tuple[str, str]:
    if call.arguments is not None:
        return call.tool, call.arguments
    try:
        return call.tool, json.dumps(render(call.params, scope), ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ExpressionError(f"params of {call.tool}: {error}") from error


def _render_answer(script: Script, scope: ExpressionScope, *, closing: bool) -> str:
    """Render the answer; if `closing`, missing values become empty texts, because a closing pass
    may come before the results."""
    try:
        return str(render(script.answer, scope))
    except ExpressionError as error:
        if not closing:
            raise _build_script_error(f"{script.shown_title!r}, answer: {error}") from error
    try:
        return str(render(script.answer, replace(scope, strict=False)))
    except ExpressionError:
        return "I could not finish this task; the results so far are above."


def _build_response(playback: _Playback, entries: list[dict[str, Any]]) -> ModelResponse:
    text, entries = make_storable(["\n\n".join(playback.text), entries])
    calls = tuple(
        RequestedCall(entry["id"], entry["function"]["name"], entry["function"]["arguments"])
        for entry in entries
    )
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if entries:
        message["tool_calls"] = [_repair_entry(entry) for entry in entries]
    elif not text:
        message["content"] = ""
    return ModelResponse(message=message, text=text, calls=calls, usage=Usage())


def _repair_entry(entry: dict[str, Any]) -> dict[str, Any]:
    try:
        intact = isinstance(json.loads(entry["function"]["arguments"]), dict)
    except (ValueError, RecursionError):
        intact = False
    return entry if intact else {**entry, "function": {**entry["function"], "arguments": "{}"}}
