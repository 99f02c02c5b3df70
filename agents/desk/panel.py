"""The activity panel: events become lines of HTML, the same ones for the page and for the socket.

A line that belongs to something that moves on (a tool call, a pass' text) has a slot. A later line of the same slot
takes the earlier one's place, so the panel shows everything as it is now, and an old event never brings back a live
card.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.template.loader import get_template

from agents.models import Approval, Event, EventType, Pass, Run, ToolCall
from tools.contract import Level

from .cards import Card, cards_of, tool_of

OF_CALLS = frozenset(
    {
        EventType.TOOL_START,
        EventType.TOOL_PROGRESS,
        EventType.TOOL_RESULT,
        EventType.TOOL_SKIPPED,
        EventType.TOOL_REJECTED,
        EventType.APPROVAL_REQUESTED,
        EventType.APPROVAL_DECIDED,
        EventType.CALL_RESOLVED,
    }
)
MOST_ROWS = 20
HARMLESS = frozenset({Level.READ.value, Level.DRAFT.value})
# What lines and cards show of a call; its result may be large, and events carry what is shown of it.
CALL_FIELDS = (
    "run_id", "tool", "version", "level", "status", "params", "model_params", "why", "pass_number", "duration_ms",
    "duplicate_of_id", "idempotency_key", "started_at", "definition_hash",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One event with its HTML; `slot` is empty for a line that nothing replaces."""

    seq: int
    type: str
    payload: dict[str, Any]
    created_at: datetime
    slot: str
    html: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of a result for people; `left_out` rows are not shown."""

    columns: list[str]
    rows: list[list[Any]]
    left_out: int


@dataclass(frozen=True)
class _Facts:
    """The rows that the lines of one batch are about, as they are now; what not every batch needs is fetched late."""

    run_id: int
    given_run: Run | None
    calls: dict[int, ToolCall]
    pass_numbers: set[int]

    @cached_property
    def run(self) -> Run:
        return self.given_run or Run.objects.select_related("employee").get(pk=self.run_id)

    @cached_property
    def passes(self) -> dict[int, Pass]:
        rows = Pass.objects.filter(run_id=self.run_id, number__in=self.pass_numbers).defer("response", "text")
        return {one.number: one for one in rows}

    @cached_property
    def answers(self) -> frozenset[str]:
        """The answers that the run's ends show."""
        ends = Event.objects.filter(run_id=self.run_id, type=EventType.RUN_FINISHED).order_by()
        return frozenset(ends.values_list("payload__answer", flat=True))

    @cached_property
    def cards(self) -> dict[int, Card]:
        """The newest card of each call that has one, together with the call as it is then."""
        asked = [call.pk for call in self.calls.values() if _may_have_card(call)]
        if not asked:
            return {}
        approvals = Approval.objects.filter(tool_call_id__in=asked).select_related("decided_by", "tool_call")
        shown = approvals.defer("tool_call__result", "tool_call__content").order_by("sequence")
        newest = {one.tool_call_id: one for one in shown}
        for one in newest.values():
            one.run = self.run
        return {card.call.pk: card for card in cards_of(newest.values())} if newest else {}


def slot_of(event: Event) -> str:
    """Which earlier line this event's line takes the place of: `call-7`, `text-2`, or none."""
    payload = event.payload
    if event.type in OF_CALLS and payload.get("call_id"):
        return f"call-{payload['call_id']}"
    if event.type in (EventType.QUESTION_ASKED, EventType.QUESTION_ANSWERED):
        return f"question-{payload.get('approval_id')}"
    if event.type == EventType.ASSISTANT_MESSAGE:
        return f"text-{payload.get('pass_number')}"
    if event.type == EventType.PASS_STARTED:
        return f"pass-{payload.get('pass_number')}"
    return ""


def lines_of(run_id: int, events: Iterable[Event], run: Run | None = None, page_token: str = "") -> list[Line]:
    """A line for each event, rendered from the rows as they are now.

    Args:
        run: the run's row with its employee, if it is at hand.
        page_token: the CSRF token of the one page that the lines are for, so that cards work as plain forms; empty for
            lines that all who look share.
    """
    wanted = list(events)
    facts = _facts(run_id, run, wanted)
    return [_line(event, facts, page_token) for event in wanted]


def folded(events: Iterable[Event]) -> list[Event]:
    """The events whose lines are still to be seen, each at the place of the first of its slot."""
    places: dict[str, int] = {}
    kept: list[Event] = []
    for event in events:
        slot = slot_of(event)
        if slot and slot in places:
            kept[places[slot]] = event
            continue
        if slot:
            places[slot] = len(kept)
        kept.append(event)
    return kept


def table_of(data: Any) -> Table | None:
    """The list of objects in a result's data as a table; None if there is none."""
    rows = data if isinstance(data, list) else _only_rows(data)
    if not rows or not all(isinstance(row, dict) for row in rows):
        return None
    columns = list(dict.fromkeys(name for row in rows[:MOST_ROWS] for name in row))
    cells = [[row.get(name) for name in columns] for row in rows[:MOST_ROWS]]
    return Table(columns, cells, max(0, len(rows) - MOST_ROWS))


def _only_rows(data: Any) -> list[Any] | None:
    if not isinstance(data, dict):
        return None
    lists = [value for value in data.values() if isinstance(value, list) and value]
    return lists[0] if len(lists) == 1 else None


def _line(event: Event, facts: _Facts, page_token: str) -> Line:
    line = Line(event.seq, event.type, event.payload, event.created_at, slot_of(event))
    context = {"line": line, "payload": event.payload, "token": page_token} | _about(event, facts)
    html = get_template(f"activity/{event.type}.html").render(context)
    return replace(line, html=html.strip())


def _about(event: Event, facts: _Facts) -> dict[str, Any]:
    payload = event.payload
    if event.type in OF_CALLS:
        return _about_call(event, facts)
    if event.type == EventType.ASSISTANT_MESSAGE:
        return {"pass": facts.passes.get(payload["pass_number"]), "is_answer": payload["text"] in facts.answers}
    return {"run": facts.run} if event.type == EventType.RUN_FINISHED else {}


def _about_call(event: Event, facts: _Facts) -> dict[str, Any]:
    call = facts.calls[int(event.payload["call_id"])]
    card = facts.cards.get(call.pk)
    if card is not None:
        call = card.call
    tool = tool_of(call.tool)
    about: dict[str, Any] = {"call": call, "title": tool.title if tool else call.tool, "card": card}
    if event.type == EventType.TOOL_RESULT:
        result = event.payload["result"]
        about |= {"result": result, "table": table_of(result.get("data"))}
    return about


def _facts(run_id: int, run: Run | None, events: list[Event]) -> _Facts:
    call_ids = {int(one.payload["call_id"]) for one in events if one.type in OF_CALLS}
    rows = ToolCall.objects.filter(run_id=run_id, pk__in=call_ids).only(*CALL_FIELDS).order_by() if call_ids else ()
    numbers = {one.payload["pass_number"] for one in events if one.type == EventType.ASSISTANT_MESSAGE}
    return _Facts(run_id, run, {call.pk: call for call in rows}, numbers)


def _may_have_card(call: ToolCall) -> bool:
    tool = tool_of(call.tool)
    return call.level not in HARMLESS or tool is None or tool.open_world
