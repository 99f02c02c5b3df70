"""The current rows behind the lines of one batch of events."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from agents.accounts.models import Membership
from agents.runs.budgets import format_money
from agents.runs.descriptions import CALL_EVENTS
from agents.runs.models import Approval, Event, EventType, Run, ToolCall
from agents.runs.queries.runs import DISPLAYED_CALLS, PASS_USAGE, TIMELINE_TYPES, PassUsage
from agents.web.cards.cards import Card, find_call_tool, load_cards
from agents.web.panel.call_inputs import RecordNames, load_record_names
from agents.web.panel.child_runs import ChildRun, load_child_runs
from agents.web.panel.documents import Document, load_documents
from agents.web.panel.timeline import DrawnSegment, load_timeline_from

RUN_RELATIONS = ("employee", "organization", "created_by")
"""The related rows that lines and cards show besides the run."""
EVENTS_BEFORE_END = (EventType.ASSISTANT_MESSAGE, EventType.ANSWER_CUT, EventType.HISTORY_SHORTENED)
"""The types of events that can directly precede the run's end, in the same transaction. A message
with the answer is hidden, because the end shows it."""
FIRST_CALL_EVENTS = frozenset(
    {
        EventType.TOOL_START,
        EventType.TOOL_SKIPPED,
        EventType.TOOL_REJECTED,
        EventType.APPROVAL_REQUESTED,
    }
)


@dataclass(frozen=True)
class PageContext:
    """The page for which lines are rendered.

    Attributes:
        token: the CSRF token, so that cards work as plain forms.
        member: the viewer.
        end_on_top: the event number of the run's end that the page shows above the panel.
    """

    token: str = ""
    member: Membership | None = None
    end_on_top: int = 0


ALL_VIEWERS = PageContext()
"""The context of lines that sockets send to every viewer, without a page."""


@dataclass(frozen=True)
class LineFacts:
    """The rows of one batch; rows that only some batches need are loaded when a line asks for them.

    Attributes:
        loaded_run: the run's row with its relations, if the caller has loaded it.
        calls: the calls that the events are about, by id.
        calls_with_cards: the ids of the calls that have a card.
    """

    run_id: int
    loaded_run: Run | None
    calls: dict[int, ToolCall]
    calls_with_cards: frozenset[int]
    events: list[Event]
    context: PageContext

    @cached_property
    def run(self) -> Run:
        return self.loaded_run or Run.objects.select_related(*RUN_RELATIONS).get(pk=self.run_id)

    @cached_property
    def figures(self) -> dict[int, str]:
        """The usage of each recorded pass that a line of the batch shows, in words."""
        numbers = {number for event in self.events if (number := self.find_recorded_pass(event))}
        return load_pass_figures(self.run_id, numbers)

    @cached_property
    def answers(self) -> frozenset[str]:
        """The answers that `run_finished` events show, including an end that may directly follow
        the batch."""
        ends = [
            event.payload.get("answer", "")
            for event in self.events
            if event.type == EventType.RUN_FINISHED
        ]
        if self.events[-1].type in EVENTS_BEFORE_END:
            later = Event.objects.filter(
                run_id=self.run_id, seq__gt=self.events[-1].seq, type=EventType.RUN_FINISHED
            )
            ends += later.order_by("seq").values_list("payload__answer", flat=True)[:1]
        return frozenset(filter(None, ends))

    @cached_property
    def documents(self) -> dict[int, Document]:
        """The documents that calls of the batch have drafted, by call."""
        return load_documents(self.run_id, self.events, self.calls)

    @cached_property
    def children(self) -> dict[int, ChildRun]:
        """The delegated runs that calls of the batch wait for or have waited for, by call."""
        suspending = [call.pk for call in self.calls.values() if can_suspend(call)]
        return load_child_runs(suspending) if suspending else {}

    @cached_property
    def started_passes(self) -> frozenset[int]:
        """The passes whose own line is in the batch."""
        starts = [event for event in self.events if event.type == EventType.PASS_STARTED]
        return frozenset(event.payload["pass_number"] for event in starts)

    @cached_property
    def record_names(self) -> RecordNames:
        """The names of the records that calls of the batch name by id."""
        return load_record_names(self.calls.values())

    @cached_property
    def timeline_seq(self) -> int:
        """The number of the batch's last event that the timeline shows; 0 if there is none."""
        return max((event.seq for event in self.events if event.type in TIMELINE_TYPES), default=0)

    @cached_property
    def segments(self) -> list[DrawnSegment]:
        """The segments of the timeline that the batch changes."""
        return load_timeline_from(self.run_id, self.events[0].seq)

    @cached_property
    def cards(self) -> dict[int, Card]:
        """The newest card of each call that has one, with its own copy of the call."""
        if not self.calls_with_cards:
            return {}
        approvals = Approval.objects.filter(tool_call_id__in=self.calls_with_cards)
        approvals = approvals.select_related("decided_by", "tool_call").order_by("sequence")
        newest = {
            each.tool_call_id: each
            for each in approvals.defer("tool_call__result", "tool_call__content")
        }
        for approval in newest.values():
            approval.run = self.run
        return {card.call.pk: card for card in load_cards(newest.values())}

    def find_recorded_pass(self, event: Event) -> int:
        """Find the number of the pass that was recorded just before this event; 0 for none.

        The first line of a pass's calls directly follows that recording, so it carries the pass's
        usage to open pages.
        """
        if event.type in (EventType.ASSISTANT_MESSAGE, EventType.PASS_STARTED):
            return int(event.payload["pass_number"])
        if event.type in FIRST_CALL_EVENTS:
            call = self.calls[int(event.payload["call_id"])]
            return call.pass_number if call.index == 0 else 0
        return 0


def load_facts(
    run_id: int, events: Iterable[Event], run: Run | None = None, context: PageContext = ALL_VIEWERS
) -> LineFacts:
    """Load the rows that every batch needs: its calls, with one query."""
    batch = list(events)
    call_ids = {int(event.payload["call_id"]) for event in batch if event.type in CALL_EVENTS}
    rows = DISPLAYED_CALLS.fetch_all(run_id, min(call_ids), max(call_ids)) if call_ids else []
    rows = [row for row in rows if row.call.pk in call_ids]
    calls = {row.call.pk: row.call for row in rows}
    calls_with_cards = frozenset(row.call.pk for row in rows if row.has_card)
    return LineFacts(run_id, run, calls, calls_with_cards, batch, context)


def load_pass_figures(run_id: int, numbers: Collection[int]) -> dict[int, str]:
    """Load the usage of these passes of a run, in words."""
    usages = PASS_USAGE.fetch_all(run_id, min(numbers), max(numbers)) if numbers else []
    return {usage.number: _describe_usage(usage) for usage in usages if usage.number in numbers}


def _describe_usage(usage: PassUsage) -> str:
    """Describe the usage of a pass: `1,200 + 80 tokens · 0.0042 USD · 2.1 s`, without tokens or
    cost if they are zero.

    Estimates begin with `about`.
    """
    about = "about " if usage.usage_estimated else ""
    has_tokens = usage.input_tokens or usage.output_tokens
    tokens = (
        f"{about}{usage.input_tokens:,} + {usage.output_tokens:,} tokens · " if has_tokens else ""
    )
    cost = (
        f"{about}{format_money(usage.cost_micros, usage.currency)} · " if usage.cost_micros else ""
    )
    return f"{tokens}{cost}{usage.duration_ms / 1000:.1f} s"


def can_suspend(call: ToolCall) -> bool:
    """Return True if the call may wait for a person or another employee; also return True if its
    tool is no longer installed."""
    tool = find_call_tool(call)
    return tool is None or tool.suspends
