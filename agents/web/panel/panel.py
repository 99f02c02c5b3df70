"""The activity panel: events become lines of HTML, the same ones for the page and for the socket.

The lines of one batch are all made from the same rows, as they are now, so an old event never brings back a live card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.template.loader import get_template
from django.urls import reverse

from agents.accounts.models import Membership
from agents.approvals.models import Approval
from agents.employees.budgets import in_words
from agents.platform.queries.runs import PASS_USE, SHOWN_CALLS, PassUse
from agents.providers.scripted import UNKNOWN_TASK
from agents.runs.models import CallStatus, Event, EventType, ExitReason, Run, ToolCall
from agents.web.cards.cards import ICONS, Card, cards_of, connected_name, tool_of
from agents.web.panel import sentences
from agents.web.panel.children import Child, children_of
from agents.web.panel.documents import Document, documents_of
from agents.web.panel.slots import OF_CALLS, is_replacement, slot_of
from agents.web.panel.strip import Strip, strip_of
from agents.web.panel.tree import data_html, params_html

LINE_TEMPLATES = "lines"
"""The engine of `templates/activity`, see `agents/web/line_templates.py`."""
# What is told by its payload alone.
IN_WORDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    EventType.RUN_WAITING: lambda payload: {"waits_for": sentences.waits_for(payload)},
    EventType.HISTORY_SHORTENED: lambda payload: {"told": sentences.shortened(payload)},
    EventType.ANSWER_CUT: lambda payload: {"told": sentences.describe_cut(payload)},
    EventType.USAGE_REPORTED: lambda payload: {"told": sentences.describe_usage(payload)},
    EventType.PROVIDER_DELAYED: lambda payload: {
        "retry_at": datetime.fromisoformat(payload["retry_at"]),
        "told": sentences.describe_delay(payload),
    },
}
# Each call's first line comes right after its pass was recorded, so these tell what the pass has cost.
RIGHT_BEFORE_AN_END = (EventType.ASSISTANT_MESSAGE, EventType.ANSWER_CUT, EventType.HISTORY_SHORTENED)
FIRST_OF_CALLS = frozenset(
    {EventType.TOOL_START, EventType.TOOL_SKIPPED, EventType.TOOL_REJECTED, EventType.APPROVAL_REQUESTED}
)
# What lines and cards show of a run beside its own row.
RUN_PARTS = ("employee", "organization", "created_by")
CATEGORY_ICONS = {
    "data": "database",
    "analysis": "chart-column",
    "content": "file-text",
    "report": "scroll-text",
    "utility": "calculator",
    "employee": "users",
    "web": "globe",
    "search_google": "search",
}


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
class Page:
    """The one page that lines are for.

    Attributes:
        token: its CSRF token, so that cards work as plain forms.
        member: who looks at it.
        top: the number of the run's end that stands above the panel, so that its line only points there.
    """

    token: str = ""
    member: Membership | None = None
    top: int = 0


SHARED = Page()
"""Lines for all who look."""


@dataclass(frozen=True)
class Mark:
    """How a call's status looks: a class, a symbol (none: it turns) and a word."""

    look: str
    icon: str
    word: str


RUNNING = Mark("spinner", "", "running")
WAITING = Mark("mark wait", "clock", "waiting")
MARKS = {
    CallStatus.READY.value: RUNNING,
    CallStatus.EXECUTING.value: RUNNING,
    CallStatus.SUCCEEDED.value: Mark("mark good", "check", "succeeded"),
    CallStatus.AWAITING_APPROVAL.value: WAITING,
    CallStatus.SUSPENDED.value: WAITING,
    CallStatus.APPROVED.value: WAITING,
    CallStatus.DUPLICATE.value: Mark("mark", "equal", "duplicate"),
    CallStatus.OUTCOME_UNKNOWN.value: Mark("mark bad", "circle-question-mark", "outcome unknown"),
}


@dataclass(frozen=True)
class _Facts:
    """The rows that the lines of one batch are about, as they are now; what not every batch needs is fetched late.

    Attributes:
        asked: the calls about which a person is asked, or was: those that have a card, whatever their tools are.
    """

    run_id: int
    given_run: Run | None
    calls: dict[int, ToolCall]
    asked: frozenset[int]
    events: list[Event]
    page: Page

    @cached_property
    def run(self) -> Run:
        return self.given_run or Run.objects.select_related(*RUN_PARTS).get(pk=self.run_id)

    @cached_property
    def figures(self) -> dict[int, str]:
        """What each recorded pass has cost, in words; only of passes that a line of the batch may tell it for."""
        numbers = {number for event in self.events if (number := self._pass_told_by(event))}
        uses = PASS_USE.rows(self.run_id, min(numbers), max(numbers)) if numbers else []
        return {use.number: figures_of(use) for use in uses if use.number in numbers}

    @cached_property
    def answers(self) -> frozenset[str]:
        """The answers that the run's ends show; an end is recorded together with its answer's own line."""
        ends = [event.payload.get("answer", "") for event in self.events if event.type == EventType.RUN_FINISHED]
        if self.events[-1].type in RIGHT_BEFORE_AN_END:
            later = Event.objects.filter(run_id=self.run_id, seq__gt=self.events[-1].seq, type=EventType.RUN_FINISHED)
            ends += later.order_by("seq").values_list("payload__answer", flat=True)[:1]
        return frozenset(filter(None, ends))

    @cached_property
    def documents(self) -> dict[int, Document]:
        """What the drafts of the batch have written."""
        return documents_of(self.run_id, self.events, self.calls)

    @cached_property
    def children(self) -> dict[int, Child]:
        """The runs for which calls of the batch wait, or have waited."""
        suspending = [call.pk for call in self.calls.values() if _suspends(call)]
        return children_of(suspending) if suspending else {}

    @cached_property
    def strips(self) -> dict[int, Strip]:
        """The strip of each pass whose beginning and calls are in the batch."""
        begun = {event.payload["pass_number"] for event in self.events if event.type == EventType.PASS_STARTED}
        of_pass: dict[int, list[ToolCall]] = {}
        for call in self.calls.values():
            if call.pass_number in begun and self.has_bar(call):
                of_pass.setdefault(call.pass_number, []).append(call)
        return {number: strip for number, calls in of_pass.items() if (strip := strip_of(calls))}

    @cached_property
    def cards(self) -> dict[int, Card]:
        """The newest card of each call that has one, together with the call as it is then."""
        if not self.asked:
            return {}
        approvals = Approval.objects.filter(tool_call_id__in=self.asked).select_related("decided_by", "tool_call")
        shown = approvals.defer("tool_call__result", "tool_call__content").order_by("sequence")
        newest = {one.tool_call_id: one for one in shown}
        for one in newest.values():
            one.run = self.run
        return {card.call.pk: card for card in cards_of(newest.values())}

    def unfolded(self, call: ToolCall, card: Card | None) -> dict[str, str]:
        """What stands below the call's line: its card as this page shows it, and another employee's task."""
        found, child = {}, self.children.get(call.pk)
        if card is not None:
            shown = {"card": card, "call": call, "token": self.page.token, "member": self.page.member}
            found["card"] = get_template("cards/card.html").render(shown)
        if child is not None:
            found["child"] = get_template("parts/child.html").render({"child": child})
        return found

    def has_bar(self, call: ToolCall) -> bool:
        """Whether the call has started, and without waiting for anybody: its bar would lie hours from the others."""
        return call.started_at is not None and call.pk not in self.asked and not _suspends(call)

    def _pass_told_by(self, event: Event) -> int:
        """The pass that was recorded before this event, or 0."""
        if event.type in (EventType.ASSISTANT_MESSAGE, EventType.PASS_STARTED):
            return int(event.payload["pass_number"])
        if event.type in FIRST_OF_CALLS:
            call = self.calls[int(event.payload["call_id"])]
            return call.pass_number if call.index == 0 else 0
        return 0


def lines_of(run_id: int, events: Iterable[Event], run: Run | None = None, page: Page = SHARED) -> list[Line]:
    """A line for each event, rendered from the rows as they are now.

    Args:
        run: the run's row with its parts, if it is at hand.
    """
    wanted = list(events)
    call_ids = {int(one.payload["call_id"]) for one in wanted if one.type in OF_CALLS}
    rows = SHOWN_CALLS.rows(run_id, min(call_ids), max(call_ids)) if call_ids else []
    rows = [row for row in rows if row.call.pk in call_ids]
    calls = {row.call.pk: row.call for row in rows}
    asked = frozenset(row.call.pk for row in rows if row.has_card)
    facts = _Facts(run_id, run, calls, asked, wanted, page)
    return [_line(event, facts) for event in wanted]


def figures_of(use: PassUse) -> str:
    """Describe the cost of a pass: `1,200 + 80 tokens · 0.0042 USD · 2.1 s`; scripts have no tokens, some no price.

    Estimates begin with `about`.
    """
    about = "about " if use.usage_estimated else ""
    has_tokens = use.input_tokens or use.output_tokens
    tokens = f"{about}{use.input_tokens:,} + {use.output_tokens:,} tokens · " if has_tokens else ""
    cost = f"{about}{in_words(use.cost_micros, use.currency)} · " if use.cost_micros else ""
    return f"{tokens}{cost}{use.duration_ms / 1000:.1f} s"


def _line(event: Event, facts: _Facts) -> Line:
    line = Line(event.seq, event.type, event.payload, event.created_at, slot_of(event))
    name = "approval_replaced" if is_replacement(event) else event.type
    template = get_template(f"{name}.html", using=LINE_TEMPLATES)
    html = template.render({"line": line, "payload": event.payload, **_about(line, event, facts)})
    return replace(line, html=html.strip())


def _about(line: Line, event: Event, facts: _Facts) -> dict[str, Any]:
    payload = event.payload
    if event.type in OF_CALLS:
        return _about_call(event, facts)
    if event.type in IN_WORDS:
        return IN_WORDS[event.type](payload)
    if event.type == EventType.ASSISTANT_MESSAGE:
        return {"figures": facts.figures.get(payload["pass_number"]), "is_answer": payload["text"] in facts.answers}
    if event.type == EventType.PASS_STARTED:
        number = payload["pass_number"]
        return {"figures": facts.figures.get(number), "strip": facts.strips.get(number)}
    if event.type == EventType.RUN_FINISHED:
        is_on_top = event.seq == facts.page.top
        return {"is_on_top": is_on_top, "end": "" if is_on_top else _end(line, event, facts)}
    return {}


def _end(line: Line, event: Event, facts: _Facts) -> str:
    is_plain = event.payload["exit_reason"] == ExitReason.FINAL_ANSWER and not is_unplayed(event)
    told = {"line": line, "payload": event.payload, "is_unplayed": is_unplayed(event)}
    return get_template("parts/end.html").render({**told, "run": None if is_plain else facts.run})


def is_unplayed(end: Event) -> bool:
    """Whether a scripted employee ended with saying that none of its scripts fits the task."""
    return str(end.payload.get("answer", "")).startswith(UNKNOWN_TASK)


def _about_call(event: Event, facts: _Facts) -> dict[str, Any]:
    call = facts.calls[int(event.payload["call_id"])]
    card = facts.cards.get(call.pk)
    if card is not None:
        call = card.call
    tool = tool_of(call)
    about: dict[str, Any] = {
        "call": call,
        "title": tool.title if tool else call.tool,
        "connected_as": connected_name(tool),
        "call_url": reverse("call", args=[call.run_id, call.pk]),
        **({} if is_replacement(event) else facts.unfolded(call, card)),
        "icon_name": icon_of(call.tool),
        "level_icon": ICONS[call.level],
        "mark": MARKS.get(call.status) or Mark("mark bad", "x", call.get_status_display()),
        "params": params_html(call.params),
        "asked_params": params_html(call.model_params) if call.model_params is not None else "",
    }
    if event.type in FIRST_OF_CALLS and call.index == 0:
        about["figures"] = facts.figures.get(call.pass_number)
    if call.started_at is not None and facts.has_bar(call):
        about["began_ms"] = round(call.started_at.timestamp() * 1000)
    return about | _about_result(call, event.payload["result"], facts) if event.type == EventType.TOOL_RESULT else about


def _about_result(call: ToolCall, result: dict[str, Any], facts: _Facts) -> dict[str, Any]:
    data = result.get("data") if not result.get("markdown") else None
    return {
        "result": result,
        "data": data_html(data) if data is not None else "",
        "document": facts.documents.get(call.pk),
    }


def icon_of(tool_name: str) -> str:
    """The symbol of a tool's category."""
    return CATEGORY_ICONS.get(tool_name.partition(".")[0], "wrench")


def _suspends(call: ToolCall) -> bool:
    tool = tool_of(call)
    return tool is None or tool.suspends
