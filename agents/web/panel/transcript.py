"""A run's transcript: its events in order with complete params and results, as Markdown or as JSON.

Other programs render the Markdown, so all text that others wrote is put into a fence or a code span
that it cannot close, and hidden characters become tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agents.approvals.warnings.marks import Mark, name_marks
from agents.runs.budgets import compute_run_cost, format_money
from agents.runs.described import Description
from agents.runs.descriptions import CALL_EVENTS, NOTE_EVENTS, describe
from agents.runs.models import Event, EventType, Run, ToolCall
from agents.triggers.receiving import find_received_message
from agents.web.panel.event_marks import load_event_marks
from agents.web.panel.line_facts import load_pass_figures
from agents.web.text import durations
from agents.web.text.safe_text import replace_hidden_characters

ENTRIES_PER_PAGE = 100
MAX_INLINE_LENGTH = 500
NOTHING = "—"
BACKTICKS = re.compile("`+")
CALL_COLUMNS = ("run_id", "tool", "level", "status", "params", "pass_number", "duration_ms")


@dataclass
class TranscriptEntry:
    """One event with its description and its rows.

    Attributes:
        is_first: True if this is the call's first event, which shows the call's params.
        result: the event's result, possibly cut, until the complete one is loaded.
        marks: the marks of the card that the event requests, or of the call that it introduces.
    """

    event: Event
    description: Description
    call: ToolCall | None = None
    is_first: bool = False
    figures: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()

    @property
    def is_cut(self) -> bool:
        return bool(self.result.get("truncated"))


def read_entries(run_id: int, after: int, until: int, seen: set[int]) -> list[TranscriptEntry]:
    """Read the next entries, at most 100.

    Args:
        after, until: bounds of the events' numbers; `after` is excluded.
        seen: the calls of earlier entries; the calls of these entries are added.
    """
    rows = Event.objects.filter(run_id=run_id, seq__gt=after, seq__lte=until)
    events = list(rows.order_by("seq")[:ENTRIES_PER_PAGE])
    ids = {int(event.payload["call_id"]) for event in events if event.type in CALL_EVENTS}
    calls = (
        ToolCall.objects.filter(run_id=run_id, pk__in=ids).only(*CALL_COLUMNS).in_bulk()
        if ids
        else {}
    )
    started = [
        event.payload["pass_number"] for event in events if event.type == EventType.PASS_STARTED
    ]
    figures = load_pass_figures(run_id, started)
    marks = load_event_marks(events)
    entries = []
    for event in events:
        entry = TranscriptEntry(
            event,
            describe(event),
            figures=figures.get(event.payload.get("pass_number", 0), ""),
            marks=marks.get(event.pk, ()),
        )
        if event.type in CALL_EVENTS:
            entry.call = calls[int(event.payload["call_id"])]
            entry.is_first = entry.call.pk not in seen
            seen.add(entry.call.pk)
            entry.result = event.payload.get("result", {})
        entries.append(entry)
    return entries


def load_result(call_id: int) -> dict[str, Any]:
    """Load the complete result of a call."""
    return ToolCall.objects.values_list("result", flat=True).get(pk=call_id) or {}


def fence(text: str, language: str = "") -> str:
    """Put the text into a code block that it cannot close: the fence is longer than any fence in
    the text."""
    shown = replace_hidden_characters(text)
    ticks = "`" * max(3, _measure_longest_ticks(shown) + 1)
    return f"{ticks}{language}\n{shown}\n{ticks}\n"


def quote(text: object) -> str:
    """Put the text into a code span that it cannot close, in one line of at most 500 characters."""
    shown = replace_hidden_characters(str(text), keep="")
    if len(shown) > MAX_INLINE_LENGTH:
        shown = f"{shown[:MAX_INLINE_LENGTH]}…"
    ticks = "`" * (_measure_longest_ticks(shown) + 1)
    return f"{ticks} {shown} {ticks}" if shown.strip() else "(empty)"


def _measure_longest_ticks(text: str) -> int:
    return max((len(found) for found in BACKTICKS.findall(text)), default=0)


def _format_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


class JsonTranscript:
    """A writer of one JSON object with the run and its events; pure ASCII, so that no hidden
    character remains."""

    content_type = "application/json"
    suffix = "json"

    def __init__(self) -> None:
        self._comma = ""

    def write_head(self, run: Run) -> str:
        return f'{{"run": {json.dumps(describe_run(run))},\n"events": ['

    def write_entry(self, entry: TranscriptEntry) -> str:
        event, call = entry.event, entry.call
        fields = {
            "seq": event.seq,
            "at": _format_time(event.created_at),
            "type": event.type,
            **event.payload,
        }
        if call is not None:
            fields |= {"tool": call.tool, "level": call.level, "pass_number": call.pass_number}
        if call is not None and event.type == EventType.TOOL_START:
            fields |= {"params": call.params}
            fields.pop("truncated", None)
        if entry.result:
            fields["result"] = {
                name: value for name, value in entry.result.items() if name != "truncated"
            }
        if entry.marks:
            fields["marks"] = [mark.as_json() for mark in entry.marks]
        comma, self._comma = self._comma, ","
        return f"{comma}\n{json.dumps(fields)}"

    def write_foot(self) -> str:
        return "\n]}\n"


class MarkdownTranscript:
    """A writer of Markdown with a section for each pass, and calls with their params and
    results."""

    content_type = "text/markdown; charset=utf-8"
    suffix = "md"

    def __init__(self) -> None:
        self._writers: dict[str, Callable[[TranscriptEntry], str]] = {
            EventType.PASS_STARTED: self._write_pass,
            EventType.ASSISTANT_MESSAGE: self._write_message,
            EventType.ASSISTANT_THOUGHT: self._write_thought,
            EventType.TOOL_RESULT: self._write_result,
            EventType.RUN_FINISHED: self._write_end,
            **dict.fromkeys(NOTE_EVENTS, self._write_note),
        }
        """The writers by type of event; other events become lists of their fields."""

    def write_head(self, run: Run) -> str:
        facts = describe_run(run)
        fields = {name: facts[name] for name in HEAD_FACTS if facts[name] != ""}
        lines = [
            f"- {_to_words(name)}: {NOTHING if fact is None else quote(fact)}\n"
            for name, fact in fields.items()
        ]
        head = f"# Run {run.pk}\n\n{''.join(lines)}\n## Task\n\n{fence(run.task)}"
        message = find_received_message(run)
        return (
            head
            if message is None
            else f"{head}\n## Message from outside\n\n{fence(_format_json(message), 'json')}"
        )

    def write_entry(self, entry: TranscriptEntry) -> str:
        write = self._writers.get(entry.event.type, _list_fields)
        marked = f"\nMarked: {name_marks(entry.marks)}\n" if entry.marks else ""
        return f"\n{self._write_call(entry) if entry.is_first else ''}{write(entry)}{marked}"

    def write_foot(self) -> str:
        return ""

    def _write_call(self, entry: TranscriptEntry) -> str:
        call = entry.call
        assert call is not None
        level, params = quote(call.level), fence(_format_json(call.params), "json")
        return f"### Call {call.pk}: {quote(call.tool)}\n\nLevel {level}, with these params:\n\n{params}\n"

    def _write_pass(self, entry: TranscriptEntry) -> str:
        return f"## {entry.description.words}\n\n{entry.figures}\n"

    def _write_message(self, entry: TranscriptEntry) -> str:
        return f"The employee:\n\n{fence(entry.description.markdown, 'markdown')}"

    def _write_thought(self, entry: TranscriptEntry) -> str:
        return f"The employee thought:\n\n{fence(entry.description.text)}"

    def _write_note(self, entry: TranscriptEntry) -> str:
        text = f"\n{fence(entry.description.text, 'markdown')}" if entry.description.text else ""
        return f"{_name_event(entry, entry.description.words)}\n{text}"

    def _write_result(self, entry: TranscriptEntry) -> str:
        result, call = entry.result, entry.call
        assert call is not None
        heading = "Result" if result.get("success") else "Failure"
        duration = durations.format_duration(int(entry.event.payload.get("duration_ms") or 0))
        parts = [
            f"{heading} of call {call.pk} after {duration}: {quote(result.get('summary') or '')}\n"
        ]
        if result.get("error"):
            parts.append(fence(_format_json(result["error"]), "json"))
        if result.get("markdown"):
            parts.append(fence(result["markdown"], "markdown"))
        if result.get("data") is not None:
            parts.append(fence(_format_json(result["data"]), "json"))
        return "\n".join(parts)

    def _write_end(self, entry: TranscriptEntry) -> str:
        payload = entry.event.payload
        answer = (
            f"\n{fence(entry.description.markdown, 'markdown')}"
            if entry.description.markdown
            else ""
        )
        facts = ", ".join(
            (quote(payload["status"]), quote(payload["exit_reason"]), _format_event_time(entry))
        )
        return f"## End\n\n{facts}\n{answer}"


LONG_TEXTS = ("text", "reason")
HEAD_FACTS = (
    "title", "status", "exit_reason", "problem", "employee", "started_by", "delegated_by", "cost", "created_at",
    "finished_at",
)  # fmt: skip


def _list_fields(entry: TranscriptEntry) -> str:
    """Describe the event in one line, with its plain fields; its texts are in fences below.

    The description is left out if it only repeats one of these texts.
    """
    payload = {
        name: value
        for name, value in entry.event.payload.items()
        if value not in (None, "", [], {})
    }
    if entry.call is not None:
        payload = {
            name: payload[name]
            for name in payload
            if name not in ("tool", "params", "display_name", "level")
        }
    plain = [
        f"{_to_words(name)} {quote(_format_plain(value))}"
        for name, value in payload.items()
        if name not in LONG_TEXTS
    ]
    texts = [f"\n{fence(str(payload[name]))}" for name in LONG_TEXTS if name in payload]
    details = f": {', '.join(plain)}" if plain else ""
    words = entry.description.short
    is_repeated = words in (payload.get(name) for name in LONG_TEXTS)
    head = _name_event(entry, "" if is_repeated else words)
    return f"{head}, {_format_event_time(entry)}{details}\n{''.join(texts)}"


def _name_event(entry: TranscriptEntry, words: str) -> str:
    """Name the type of the event, with the words in a code span.

    The type comes first because a long code span at the start of a line looks like a fence.
    """
    name = f"*{_to_words(entry.event.type).capitalize()}*"
    return f"{name}: {quote(words)}" if words else name


def _format_plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _to_words(name: str) -> str:
    return re.sub("[^a-z]+", " ", name)


def _format_event_time(entry: TranscriptEntry) -> str:
    return _format_time(entry.event.created_at)


def _format_time(moment: datetime) -> str:
    """Format a time like `2026-11-22T05:34:50.123+00:00`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def _describe_cost(run: Run) -> str | None:
    """Describe the cost; None if no model was used, or its price is unknown."""
    cost = compute_run_cost(run) if run.input_tokens or run.output_tokens else None
    return None if cost is None else format_money(cost, run.organization.currency)


def describe_run(run: Run) -> dict[str, Any]:
    """Describe the run itself; an unknown cost and the end of an unfinished run are None."""
    return {
        "id": str(run.pk),
        "title": run.title,
        "task": run.task,
        "outside_message": find_received_message(run),
        "status": run.status,
        "exit_reason": run.exit_reason,
        "problem": run.problem,
        "answer": run.answer,
        "employee": run.employee.name,
        "started_by": run.created_by.get_username() if run.created_by else "",
        "delegated_by": f"{run.parent.employee.name}, run {run.parent_id}" if run.parent else "",
        "passes": run.pass_number,
        "input_tokens": run.input_tokens,
        "output_tokens": run.output_tokens,
        "cost": _describe_cost(run),
        "created_at": _format_time(run.created_at),
        "finished_at": None if run.finished_at is None else _format_time(run.finished_at),
    }
