"""A run's transcript: its events one after the other with whole params and results, as Markdown or as JSON.

Markdown is read in programs that would render it, so everything that others wrote stands in a fence or a code span
that it cannot close, with hidden characters as tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agents.employees.budgets import in_words, known_cost
from agents.platform.queries.runs import PASS_USE
from agents.runs.models import Event, EventType, Run, ToolCall
from agents.web.panel import sentences
from agents.web.panel.panel import figures_of
from agents.web.panel.slots import OF_CALLS
from agents.web.text import durations
from agents.web.text.safe_text import visible_text

PAGE = 100
LONGEST_INLINE = 500
NOTHING = "—"
TICKS = re.compile("`+")
CALL_COLUMNS = ("run_id", "tool", "level", "status", "params", "pass_number", "duration_ms")


@dataclass
class Entry:
    """One event with the rows that it is about.

    Attributes:
        is_first: the call's first event, which tells its params.
        result: the whole result, once it was read; until then as the event has it.
    """

    event: Event
    call: ToolCall | None = None
    is_first: bool = False
    figures: str = ""
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def is_cut(self) -> bool:
        return bool(self.result.get("truncated"))


def read_entries(run_id: int, after: int, upto: int, seen: set[int]) -> list[Entry]:
    """At most 100 entries after that number; `seen` are the calls that were met, and it grows."""
    rows = Event.objects.filter(run_id=run_id, seq__gt=after, seq__lte=upto)
    events = list(rows.order_by("seq")[:PAGE])
    ids = {int(event.payload["call_id"]) for event in events if event.type in OF_CALLS}
    calls = ToolCall.objects.filter(run_id=run_id, pk__in=ids).only(*CALL_COLUMNS).in_bulk() if ids else {}
    begun = [event.payload["pass_number"] for event in events if event.type == EventType.PASS_STARTED]
    uses = PASS_USE.rows(run_id, min(begun), max(begun)) if begun else []
    costs = {use.number: figures_of(use) for use in uses}
    entries = []
    for event in events:
        entry = Entry(event, figures=costs.get(event.payload.get("pass_number", 0), ""))
        if event.type in OF_CALLS:
            entry.call = calls[int(event.payload["call_id"])]
            entry.is_first = entry.call.pk not in seen
            seen.add(entry.call.pk)
            entry.result = event.payload.get("result", {})
        entries.append(entry)
    return entries


def whole_result(call_id: int) -> dict[str, Any]:
    """The result of one call, however long it is."""
    return ToolCall.objects.values_list("result", flat=True).get(pk=call_id) or {}


def fenced(text: str, language: str = "") -> str:
    """A block that the text cannot close: its fence is longer than any that stands in it."""
    shown = visible_text(text)
    fence = "`" * max(3, _longest_ticks(shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}\n"


def inline(text: object) -> str:
    """A code span that the text cannot close, in one line of at most 500 characters."""
    shown = visible_text(str(text), keep="")
    if len(shown) > LONGEST_INLINE:
        shown = f"{shown[:LONGEST_INLINE]}…"
    ticks = "`" * (_longest_ticks(shown) + 1)
    return f"{ticks} {shown} {ticks}" if shown.strip() else "(empty)"


def _longest_ticks(text: str) -> int:
    return max((len(found) for found in TICKS.findall(text)), default=0)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


class AsJson:
    """One object: the run, and its events in order; pure ASCII, so that nothing hides in it."""

    content_type = "application/json"
    suffix = "json"

    def __init__(self) -> None:
        self._comma = ""

    def head(self, run: Run) -> str:
        return f'{{"run": {json.dumps(facts_of(run))},\n"events": ['

    def entry(self, entry: Entry) -> str:
        event, call = entry.event, entry.call
        told = {"seq": event.seq, "at": _at(event.created_at), "type": event.type, **event.payload}
        if call is not None:
            told |= {"tool": call.tool, "level": call.level, "pass_number": call.pass_number}
        if call is not None and event.type == EventType.TOOL_START:
            told |= {"params": call.params}
            told.pop("truncated", None)
        if entry.result:
            told["result"] = {name: value for name, value in entry.result.items() if name != "truncated"}
        comma, self._comma = self._comma, ","
        return f"{comma}\n{json.dumps(told)}"

    def foot(self) -> str:
        return "\n]}\n"


class AsMarkdown:
    """Text to read: passes as sections, calls with their params and results."""

    content_type = "text/markdown; charset=utf-8"
    suffix = "md"

    def __init__(self) -> None:
        self._writers: dict[str, Callable[[Entry], str]] = {
            EventType.PASS_STARTED: self._pass_started,
            EventType.ASSISTANT_MESSAGE: lambda one: (
                f"The employee:\n\n{fenced(one.event.payload['text'], 'markdown')}"
            ),
            EventType.TOOL_RESULT: self._tool_result,
            EventType.ASSISTANT_THOUGHT: lambda one: f"The employee thought:\n\n{fenced(one.event.payload['text'])}",
            EventType.ANSWER_CUT: lambda one: f"*{sentences.describe_cut(one.event.payload)}*\n",
            EventType.USAGE_REPORTED: lambda one: f"*{sentences.describe_usage(one.event.payload)}*\n",
            EventType.HISTORY_SHORTENED: lambda one: f"*{sentences.shortened(one.event.payload)}*\n",
            EventType.RUN_FINISHED: self._run_finished,
        }

    def head(self, run: Run) -> str:
        facts = facts_of(run)
        told = {name: facts[name] for name in HEAD_FACTS if facts[name] != ""}
        lines = [f"- {_word(name)}: {NOTHING if fact is None else inline(fact)}" for name, fact in told.items()]
        return f"# Run {run.pk}\n\n{chr(10).join(lines)}\n\n## Task\n\n{fenced(run.task)}"

    def entry(self, entry: Entry) -> str:
        write = self._writers.get(entry.event.type, _plainly)
        return f"\n{self._call_begins(entry) if entry.is_first else ''}{write(entry)}"

    def foot(self) -> str:
        return ""

    def _call_begins(self, entry: Entry) -> str:
        call = entry.call
        assert call is not None
        params = fenced(_as_json(call.params), "json")
        return (
            f"### Call {call.pk}: {inline(call.tool)}\n\nLevel {inline(call.level)}, with these params:\n\n{params}\n"
        )

    def _pass_started(self, entry: Entry) -> str:
        return f"## Pass {int(entry.event.payload['pass_number'])}\n\n{entry.figures}\n"

    def _tool_result(self, entry: Entry) -> str:
        result, call = entry.result, entry.call
        assert call is not None
        became = "Result" if result.get("success") else "Failure"
        took = durations.in_words(int(entry.event.payload.get("duration_ms") or 0))
        parts = [f"{became} of call {call.pk} after {took}: {inline(result.get('summary') or '')}\n"]
        if result.get("error"):
            parts.append(fenced(_as_json(result["error"]), "json"))
        if result.get("markdown"):
            parts.append(fenced(result["markdown"], "markdown"))
        if result.get("data") is not None:
            parts.append(fenced(_as_json(result["data"]), "json"))
        return "\n".join(parts)

    def _run_finished(self, entry: Entry) -> str:
        payload = entry.event.payload
        answer = f"\n{fenced(payload['answer'], 'markdown')}" if payload.get("answer") else ""
        return f"## End\n\n{inline(payload['status'])}, {inline(payload['exit_reason'])}, {_time(entry)}\n{answer}"


LONG_TEXTS = ("text", "reason")
HEAD_FACTS = (
    "title", "status", "exit_reason", "problem", "employee", "started_by", "handed_over_by", "cost", "created_at",
    "finished_at",
)  # fmt: skip


def _plainly(entry: Entry) -> str:
    """What happened and when, its plain values in one line and its texts in fences."""
    payload = {name: value for name, value in entry.event.payload.items() if value not in (None, "", [], {})}
    if entry.call is not None:
        payload = {name: payload[name] for name in payload if name not in ("tool", "params", "display_name", "level")}
    plain = [f"{_word(name)} {inline(_one_line(value))}" for name, value in payload.items() if name not in LONG_TEXTS]
    texts = [f"\n{fenced(str(payload[name]))}" for name in LONG_TEXTS if name in payload]
    said = f": {', '.join(plain)}" if plain else ""
    return f"*{_word(entry.event.type).capitalize()}*, {_time(entry)}{said}\n{''.join(texts)}"


def _one_line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _word(name: str) -> str:
    return re.sub("[^a-z]+", " ", name)


def _time(entry: Entry) -> str:
    return _at(entry.event.created_at)


def _at(moment: datetime) -> str:
    """`2026-11-22T05:34:50.123+00:00`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def _cost(run: Run) -> str | None:
    """None where no model was paid for, or nobody has said what it costs."""
    cost = known_cost(run) if run.input_tokens or run.output_tokens else None
    return None if cost is None else in_words(cost, run.organization.currency)


def facts_of(run: Run) -> dict[str, Any]:
    """What a transcript says of the run itself; None for a cost that is not known and an end that has not come."""
    return {
        "id": str(run.pk),
        "title": run.title,
        "task": run.task,
        "status": run.status,
        "exit_reason": run.exit_reason,
        "problem": run.problem,
        "answer": run.answer,
        "employee": run.employee.name,
        "started_by": run.created_by.get_username() if run.created_by else "",
        "handed_over_by": f"{run.parent.employee.name}, run {run.parent_id}" if run.parent else "",
        "passes": run.pass_number,
        "input_tokens": run.input_tokens,
        "output_tokens": run.output_tokens,
        "cost": _cost(run),
        "created_at": _at(run.created_at),
        "finished_at": None if run.finished_at is None else _at(run.finished_at),
    }
