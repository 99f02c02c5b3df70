"""Read what a run had seen before a call, from its rows: the results of its calls, and the texts
that people typed in it.

The gate, the start of a call, the simulator, the replay and the preview judge by the same rows. A
result counts in full, even if the employee saw only a part. It does not count if the call failed,
if a person wrote the result or changed the call's params, or if it belongs to another run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Max, Q

from agents.runs.models import CallStatus, Event, EventType, Message, Origin, Run, ToolCall
from agents.runs.provenance import ASK, find_typed_tasks, list_task_runs, read_answer
from tools.contract import Level
from tools.toolbox.grant_conditions import RecordedResult, RecordedWrite

MAX_RESULTS = 200
"""The maximum number of a tool's results in a run that count, newest first."""
MAX_RUNS = 200
"""The maximum number of runs whose results are kept while past calls are compared."""
_CHANGING = tuple(level.value for level in Level if level is not Level.READ)
"""The levels whose calls may store a value that then appears in a later result; drafts are stored,
too."""
_CONFIRMED = "confirmed_by"
"""The key in a result's metadata for the person who reported the result."""


class _ResultRow(NamedTuple):
    """A successful call with its result."""

    run_id: int
    pk: int
    tool: str
    definition_hash: str
    pass_number: int
    finished_at: datetime
    finished_seq: int
    params: Any
    result: Any

    def as_result(self) -> RecordedResult:
        data = self.result.get("data")
        place = (self.pass_number, self.finished_at)
        return RecordedResult(self.pk, self.tool, self.definition_hash, *place, self.params, data)


class _MessageRow(NamedTuple):
    """A message to a run.

    Attributes:
        is_typed: True if a person typed it on a page.
    """

    number: int
    created_at: datetime
    is_typed: bool
    text: str


class _Told(NamedTuple):
    """The texts from people to a run: messages, and the ids of the calls to which they replied on a
    page."""

    messages: list[_MessageRow]
    typed_replies: frozenset[int]


class RunResults:
    """Results, messages and writes of many runs, each loaded once."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[int, str], list[_ResultRow]] = {}
        self._whole: dict[int, list[str]] = {}
        self._writes: dict[int, list[RecordedWrite]] = {}
        self._told: dict[int, _Told] = {}

    def load(self, run_ids: Collection[int], tools: Collection[str]) -> None:
        """Load the results of these tools in these runs, in one query for each tool."""
        for tool in tools:
            missing = [
                pk for pk in run_ids if (pk, tool) not in self._loaded and pk not in self._whole
            ]
            found = _load_results(missing, tool) if missing else {}
            for pk in missing:
                self._loaded[pk, tool] = found.get((pk, tool), [])
        while len(self._loaded) > max(MAX_RUNS, len(run_ids) * (len(tools) + 1)):
            oldest = next(iter(self._loaded))
            self._whole.pop(oldest[0], None)
            del self._loaded[oldest]

    def load_facts(self, run_ids: Collection[int], tools: Collection[str]) -> None:
        """Load everything needed to compare calls of these runs with conditions on these tools'
        results; the number of queries does not depend on the number of runs."""
        unread = [pk for pk in run_ids if pk not in self._writes]
        self._writes.update(_load_writes(unread) if unread else {})
        unread = [pk for pk in run_ids if pk not in self._told]
        self._told.update(_load_told(unread) if unread else {})
        has_replies = any(self._told[pk].typed_replies for pk in run_ids)
        self.load(run_ids, {*tools, ASK} if has_replies else tools)

    def load_all(self, run_ids: Collection[int]) -> None:
        """Load everything that these runs had seen; the number of queries does not depend on the
        number of runs."""
        missing = [pk for pk in run_ids if pk not in self._whole]
        if not missing:
            return
        self._whole.update({pk: [] for pk in missing})
        for place, rows in _load_results(missing).items():
            self._loaded[place] = rows
            self._whole[place[0]].append(place[1])
        self._writes.update(_load_writes(missing))
        self._told.update(_load_told(missing))

    def list_rows(self, run_id: int, tool: str) -> list[_ResultRow]:
        """List the results of the tool in the run, newest first."""
        if (run_id, tool) not in self._loaded and run_id not in self._whole:
            self.load([run_id], [tool])
        return self._loaded.get((run_id, tool), [])

    def list_tools(self, run_id: int) -> list[str]:
        """List the tools with results in the run."""
        self.load_all([run_id])
        return self._whole[run_id]

    def list_writes(self, run_id: int) -> list[RecordedWrite]:
        """List the calls of the run's task that have changed something, or may have."""
        if run_id not in self._writes:
            self._writes.update(_load_writes([run_id]))
            if len(self._writes) > MAX_RUNS:
                del self._writes[next(iter(self._writes))]
        return self._writes[run_id]

    def list_messages(self, run_id: int) -> list[_MessageRow]:
        """List the messages to the run."""
        return self._get_told(run_id).messages

    def list_typed(self, run_id: int, last_message: int, is_seen: Any) -> list[str]:
        """List the messages and the free replies that people typed in a run.

        Texts that came over the API are not typed, since a program may pass on what others wrote;
        nor are the texts of outside agents, of triggers and of schedules that an employee made.

        Args:
            last_message: the number of the last message that counts.
            is_seen: decides whether the result of a question counts.
        """
        messages, typed_replies = self._get_told(run_id)
        rows = self.list_rows(run_id, ASK) if typed_replies else []
        replies = (row for row in rows if row.pk in typed_replies and is_seen(row))
        return [
            *(each.text for each in messages if each.is_typed and each.number <= last_message),
            *(text for row in replies for text in read_answer(row.params, row.result)),
        ]

    def _get_told(self, run_id: int) -> _Told:
        if run_id not in self._told:
            self._told.update(_load_told([run_id]))
            if len(self._told) > MAX_RUNS:
                del self._told[next(iter(self._told))]
        return self._told[run_id]


def _load_results(
    run_ids: Collection[int], tool: str | None = None
) -> Mapping[tuple[int, str], list[_ResultRow]]:
    """Load the results of these runs by run and tool, of one tool or of all, newest first."""
    rows = ToolCall.objects.filter(
        run_id__in=run_ids,
        status=CallStatus.SUCCEEDED,
        model_params__isnull=True,
        result__isnull=False,
    ).order_by("-finished_seq", "-pk")
    if tool is not None:
        rows = rows.filter(tool=tool)
    found: defaultdict[tuple[int, str], list[_ResultRow]] = defaultdict(list)
    for values in rows.values_list(*_ResultRow._fields).iterator(chunk_size=100):
        row = _ResultRow(*values)
        mine = found[row.run_id, row.tool]
        if len(mine) < MAX_RESULTS and _is_own_result(row.result):
            mine.append(row)
    return found


def _load_writes(run_ids: Collection[int]) -> Mapping[int, list[RecordedWrite]]:
    """Load the calls of each run's task that have changed something, or may have."""
    families = list_task_runs(run_ids)
    rows = ToolCall.objects.filter(
        run_id__in={pk for family in families.values() for pk in family},
        level__in=_CHANGING,
        started_at__isnull=False,
    )
    found: defaultdict[int, list[RecordedWrite]] = defaultdict(list)
    columns = rows.order_by("pk").values_list("run_id", "pk", "started_at", "params")
    for run_id, pk, started_at, params in columns:
        if started_at is not None:
            found[run_id].append(RecordedWrite(pk, started_at, params))
    return {
        pk: sorted(write for member in family for write in found.get(member, ()))
        for pk, family in families.items()
    }


def _load_told(run_ids: Collection[int]) -> Mapping[int, _Told]:
    """Load the texts from people to each run."""
    typed, replied = _list_typed(run_ids)
    found: dict[int, list[_MessageRow]] = {pk: [] for pk in run_ids}
    rows = Message.objects.filter(run_id__in=run_ids).order_by("pk")
    columns = ("run_id", "number", "created_at", "author_id", "text")
    for run_id, number, created_at, author_id, text in rows.values_list(*columns):
        is_typed = author_id is not None and (run_id, number) in typed
        found[run_id].append(_MessageRow(number, created_at, is_typed, text))
    return {pk: _Told(rows, replied.get(pk, frozenset())) for pk, rows in found.items()}


def _list_typed(
    run_ids: Collection[int],
) -> tuple[set[tuple[int, int]], dict[int, frozenset[int]]]:
    """List the messages that people typed on a page, each as run and number (the task is number 1);
    also list the calls to which people replied on a page, by run."""
    columns = ("organization_id", "origin", "parent_id", "client_request_id")
    runs = list(Run.objects.filter(pk__in=run_ids).only(*columns))
    later = Q(type=EventType.MESSAGE_ADDED, payload__typed_number__isnull=False)
    start = Q(type=EventType.RUN_STARTED, payload__is_typed=True)
    reply = Q(type=EventType.QUESTION_ANSWERED, payload__is_typed=True)
    events = Event.objects.filter(later | start | reply, run_id__in=run_ids).order_by()
    found = set(events.values_list("run_id", "type", "payload__typed_number", "payload__call_id"))
    started = {run_id for run_id, kind, *_ in found if kind == EventType.RUN_STARTED}
    by_person = find_typed_tasks(runs)
    tasks = {
        (run.pk, 1)
        for run in runs
        if run.pk in by_person and (run.origin == Origin.SCHEDULE or run.pk in started)
    }
    later_numbers = {
        (run_id, number) for run_id, kind, number, _ in found if kind == EventType.MESSAGE_ADDED
    }
    replied: defaultdict[int, set[int]] = defaultdict(set)
    for run_id, kind, _, call_id in found:
        if kind == EventType.QUESTION_ANSWERED:
            replied[run_id].add(int(call_id))
    return tasks | later_numbers, {pk: frozenset(calls) for pk, calls in replied.items()}


def _is_own_result(result: Any) -> bool:
    """Return True for a result that the tool itself returned."""
    is_success = isinstance(result, dict) and result.get("success") is True
    return is_success and _CONFIRMED not in (result.get("metadata") or {})


@dataclass(frozen=True)
class Edge:
    """The point up to which a run had seen facts: the numbers of its last ended call and last
    message."""

    seq: int
    message: int

    @classmethod
    def from_json(cls, stored: Any) -> Edge:
        """Load an edge from `as_json`."""
        return cls(int(stored["seq"]), int(stored["message"]))

    def as_json(self) -> dict[str, int]:
        return {"seq": self.seq, "message": self.message}


class SeenFacts:
    """The facts that a run has seen up to now, or up to an edge; rows are loaded on first use."""

    def __init__(self, run_id: int, edge: Edge | None = None) -> None:
        self._run_id, self._results = run_id, RunResults()
        self.is_used = False
        if edge is not None:
            self.edge = edge

    @cached_property
    def edge(self) -> Edge:
        """The point up to which the run has seen facts, determined on first use."""
        ended = ToolCall.objects.filter(run_id=self._run_id).order_by()
        messages = Message.objects.filter(run_id=self._run_id).order_by()
        return Edge(
            ended.aggregate(last=Max("finished_seq"))["last"] or 0,
            messages.aggregate(last=Max("number"))["last"] or 0,
        )

    def list_results(self, tool: str) -> Sequence[RecordedResult]:
        """List the successful results of the tool in the run, newest first."""
        self.is_used, last = True, self.edge.seq
        rows = self._results.list_rows(self._run_id, tool)
        return [row.as_result() for row in rows if row.finished_seq <= last]

    def list_writes(self) -> Sequence[RecordedWrite]:
        """List the calls of the task that have changed something, or may have."""
        return self._results.list_writes(self._run_id)

    def list_typed(self) -> Sequence[str]:
        """List the texts that people typed in the run."""
        self.is_used, edge = True, self.edge
        return self._results.list_typed(
            self._run_id, edge.message, lambda row: row.finished_seq <= edge.seq
        )


@dataclass(frozen=True)
class PastFacts:
    """The facts that a run had seen when a past call was recorded.

    Attributes:
        pass_number, created_at: those of the call.
        is_nested: True if another call made this call, in the same pass.
    """

    run_id: int
    pass_number: int
    created_at: datetime
    is_nested: bool = False
    results: RunResults = field(default_factory=RunResults)

    def list_results(self, tool: str) -> Sequence[RecordedResult]:
        """List the successful results of the tool before the call, newest first."""
        rows = self.results.list_rows(self.run_id, tool)
        return [row.as_result() for row in rows if self._is_earlier(row)]

    def list_all_results(self) -> list[RecordedResult]:
        """List the successful results of all tools before the call."""
        tools = self.results.list_tools(self.run_id)
        return [result for tool in tools for result in self.list_results(tool)]

    def list_writes(self) -> Sequence[RecordedWrite]:
        """List the calls of the task that have changed something, or may have."""
        return self.results.list_writes(self.run_id)

    def list_typed(self) -> Sequence[str]:
        """List the texts that people had typed in the run."""
        messages = self.results.list_messages(self.run_id)
        earlier = [each.number for each in messages if each.created_at <= self.created_at]
        return self.results.list_typed(self.run_id, max(earlier, default=0), self._is_earlier)

    def _is_earlier(self, row: _ResultRow) -> bool:
        is_before = self.is_nested or row.pass_number < self.pass_number
        return is_before and row.finished_at <= self.created_at
