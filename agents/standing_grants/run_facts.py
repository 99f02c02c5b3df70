"""Read what a run had seen before a call, from its rows: the results of its calls, and the texts
that people typed in it.

The gate, the start of a call, the simulator, the replay and the preview judge by the same rows. A
result counts in full, even if the employee saw only a part. It does not count if the call failed,
if a person wrote the result or changed the call's params, or if it belongs to another run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Max

from agents.runs.models import CallStatus, Event, EventType, Message, Origin, Run, ToolCall
from agents.runs.provenance import ASK, has_typed_task, list_task_runs, read_answer
from tools.contract import Level
from tools.toolbox.grant_conditions import RecordedResult, RecordedWrite

MAX_RESULTS = 200
"""The most results of a tool in a run that count, the newest."""
MAX_RUNS = 200
"""The most runs whose results are kept while past calls are compared."""
_CHANGING = tuple(level.value for level in Level if level is not Level.READ)
"""The levels whose calls may store a value where a later result has it; a draft is stored, too."""
_CONFIRMED = "confirmed_by"
"""The name in a result's metadata of the person who reported it."""


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


class RunResults:
    """The results of many runs, each loaded once."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[int, str], list[_ResultRow]] = {}
        self._writes: dict[int, list[RecordedWrite]] = {}

    def load(self, run_ids: Collection[int], tools: Iterable[str]) -> None:
        """Load the results of these tools in these runs, in one query for each tool."""
        for tool in tools:
            missing = [pk for pk in run_ids if (pk, tool) not in self._loaded]
            found: Mapping[int, list[_ResultRow]] = _load_results(missing, tool)
            for pk in missing:
                self._loaded[pk, tool] = found.get(pk, [])
        while len(self._loaded) > max(MAX_RUNS, len(run_ids) * 2):
            del self._loaded[next(iter(self._loaded))]

    def list_rows(self, run_id: int, tool: str) -> list[_ResultRow]:
        """List the results of the tool in the run, newest first."""
        if (run_id, tool) not in self._loaded:
            self.load([run_id], [tool])
        return self._loaded[run_id, tool]

    def list_writes(self, run_id: int) -> list[RecordedWrite]:
        """List the calls of the run's task that have changed something, or may have."""
        if run_id not in self._writes:
            rows = ToolCall.objects.filter(
                run_id__in=list_task_runs(run_id), level__in=_CHANGING, started_at__isnull=False
            )
            columns = rows.order_by("pk").values_list("pk", "started_at", "params")
            self._writes[run_id] = [
                RecordedWrite(pk, started_at, params)
                for pk, started_at, params in columns
                if started_at is not None
            ]
            if len(self._writes) > MAX_RUNS:
                del self._writes[next(iter(self._writes))]
        return self._writes[run_id]


def _load_results(run_ids: Collection[int], tool: str) -> Mapping[int, list[_ResultRow]]:
    rows = ToolCall.objects.filter(
        run_id__in=run_ids,
        tool=tool,
        status=CallStatus.SUCCEEDED,
        model_params__isnull=True,
        result__isnull=False,
    ).order_by("-finished_seq", "-pk")
    found: defaultdict[int, list[_ResultRow]] = defaultdict(list)
    for values in rows.values_list(*_ResultRow._fields).iterator(chunk_size=100):
        row = _ResultRow(*values)
        if len(found[row.run_id]) < MAX_RESULTS and _is_own_result(row.result):
            found[row.run_id].append(row)
    return found


def _is_own_result(result: Any) -> bool:
    """Return True for a result that the tool itself returned."""
    is_success = isinstance(result, dict) and result.get("success") is True
    return is_success and _CONFIRMED not in (result.get("metadata") or {})


@dataclass(frozen=True)
class Edge:
    """The end of what a run had seen: the number of its last ended call and of its last message."""

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
        """The end of what the run has seen, as of the first use."""
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
        return list_typed(self._run_id, edge.message, lambda row: row.finished_seq <= edge.seq)


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

    def list_writes(self) -> Sequence[RecordedWrite]:
        """List the calls of the task that have changed something, or may have."""
        return self.results.list_writes(self.run_id)

    def list_typed(self) -> Sequence[str]:
        """List the texts that people had typed in the run."""
        messages = Message.objects.filter(run_id=self.run_id, created_at__lte=self.created_at)
        last = messages.order_by().aggregate(last=Max("number"))["last"] or 0
        return list_typed(self.run_id, last, self._is_earlier)

    def _is_earlier(self, row: _ResultRow) -> bool:
        is_before = self.is_nested or row.pass_number < self.pass_number
        return is_before and row.finished_at <= self.created_at


def list_typed(run_id: int, last_message: int, is_seen: Any) -> list[str]:
    """List the messages and the free replies that people typed in a run.

    Texts that came over the API are not typed, since a program may pass on what others wrote; nor
    are the texts of outside agents, of triggers and of schedules that an employee made.
    """
    run = Run.objects.only("organization_id", "origin", "parent_id", "client_request_id").get(
        pk=run_id
    )
    typed = _list_typed_numbers(run)
    messages = Message.objects.filter(
        run_id=run_id, author__isnull=False, number__lte=last_message, number__in=typed
    ).order_by("pk")
    answered = Event.objects.filter(
        run_id=run_id, type=EventType.QUESTION_ANSWERED, payload__is_typed=True
    )
    # SQLite reads the text of an id as a number.
    calls = set(map(str, answered.order_by().values_list("payload__call_id", flat=True)))
    rows = _load_results([run_id], ASK).get(run_id, []) if calls else []
    replies = (row for row in rows if str(row.pk) in calls and is_seen(row))
    return [
        *messages.values_list("text", flat=True),
        *(text for row in replies for text in read_answer(row.params, row.result)),
    ]


def _list_typed_numbers(run: Run) -> list[int]:
    """List the numbers of the run's messages that people typed on a page; the task is number 1."""
    events = Event.objects.filter(run_id=run.pk).order_by()
    later = events.filter(type=EventType.MESSAGE_ADDED, payload__typed_number__isnull=False)
    is_typed = has_typed_task(run) and (
        run.origin == Origin.SCHEDULE
        or events.filter(type=EventType.RUN_STARTED, payload__is_typed=True).exists()
    )
    return [*([1] if is_typed else []), *later.values_list("payload__typed_number", flat=True)]
