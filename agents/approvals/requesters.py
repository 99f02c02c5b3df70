"""Requesters: the people who asked for a call. Under the two-person rule, none of them may decide its card."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Q

from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.platform.row_ids import parse_row_id_or_none
from agents.runs.models import Message, Origin, Run, ToolCall
from agents.runs.models.run import SCHEDULE_REQUEST_PREFIX
from agents.triggers.models import ReceivedMessage
from tools.schedules.models import Schedule

CREATE_SCHEDULE = "schedule.create"

People = dict[int, dict[int, str]]
"""User names by user id, for each run or call."""


@dataclass(frozen=True)
class Requester:
    """A person who asked for a call.

    Attributes:
        act: the way they asked, such as "edited this call".
    """

    user_id: int
    name: str
    act: str


class _RunOrigin(NamedTuple):
    """A run, with the run or schedule that started it."""

    pk: int
    parent_id: int | None
    parent_call_id: int | None
    origin: str
    client_request_id: str
    created_by_id: int | None
    created_by__username: str


class _ScheduleOrigin(NamedTuple):
    """A schedule, with the author of its task."""

    pk: int
    made_by_id: int | None
    made_by__username: str
    made_in_run: str


@dataclass
class _RequestOrigins:
    """The runs and calls of some cards, and everything that led to them."""

    runs: dict[int, _RunOrigin] = field(default_factory=dict)
    schedules: dict[int, _ScheduleOrigin] = field(default_factory=dict)
    triggers: dict[int, list[tuple[int, str, str]]] = field(default_factory=dict)
    """The people behind the trigger of a run, and whoever sent its message again."""
    callers: dict[int, int | None] = field(default_factory=dict)
    """The calling call of each call that a tool or a recipe made."""
    creations: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The calls of each run that create schedules."""

    def find_schedule(self, run: _RunOrigin) -> _ScheduleOrigin | None:
        number = _get_schedule_id(run)
        return self.schedules.get(number) if number is not None else None

    def list_parents(self, run: _RunOrigin) -> Iterator[int]:
        """Yield the run that delegated this one, and the run in which its schedule was created."""
        if run.parent_id is not None:
            yield run.parent_id
        schedule = self.find_schedule(run)
        made_in = parse_row_id_or_none(schedule.made_in_run) if schedule is not None else None
        if made_in is not None:
            yield made_in

    def list_chain(self, run_id: int) -> list[_RunOrigin]:
        """List the run and the runs that led to it, the nearest first."""
        found, ahead = dict[int, _RunOrigin](), [run_id]
        for pk in ahead:
            if pk in self.runs and pk not in found:
                found[pk] = self.runs[pk]
                ahead += self.list_parents(self.runs[pk])
        return list(found.values())

    def list_callers(self, call_id: int | None) -> Iterator[int]:
        """Yield the call and the calls that led to it."""
        while call_id is not None:
            yield call_id
            call_id = self.callers.get(call_id)


def find_requesters(cards: Collection[Approval]) -> dict[int, list[Requester]]:
    """Find, by card id, the people who asked for the card's call, each once with their first act.

    Consider the call's run and the runs that led to it. A person asked for the call by starting one of these, creating
    its schedule, sending it a message, answering its question, giving it a reason that its employee read, or editing
    the call or one that led to it. Continuing a run counts as sending a message.

    Costs five queries for any number of cards, and two more for each level of runs above them.
    """
    if not cards:
        return {}
    origins = _load_origins(cards)
    runs = origins.runs.keys()
    later = Message.objects.filter(run_id__in=runs, number__gt=1)  # the first is the task
    messages = _group_people(later.values_list("run_id", "author_id", "author__username").order_by("number"))
    answers, reasons = _load_answers_and_reasons(runs)
    edits = _load_edits({*origins.callers, *(call for calls in origins.creations.values() for call in calls)})
    found = {}
    for card in cards:
        by_person: dict[int, Requester] = {}
        for user_id, name, act in _list_acts(card, origins, (messages, answers, reasons, edits)):
            by_person.setdefault(user_id, Requester(user_id, name, act))
        found[card.pk] = list(by_person.values())
    return found


def describe_requesters(requesters: Iterable[Requester]) -> str:
    """Return a text such as "Ada started this run, and Ben edited this call"; empty for nobody."""
    acts = [f"{requester.name} {requester.act}" for requester in requesters]
    return acts[0] if len(acts) == 1 else f"{', '.join(acts[:-1])}, and {acts[-1]}" if acts else ""


def _list_acts(card: Approval, origins: _RequestOrigins, people: tuple[People, ...]) -> Iterator[tuple[int, str, str]]:
    messages, answers, reasons, edits = people
    for run in origins.list_chain(card.run_id):
        which = "this run" if run.pk == card.run_id else "a run that led to this one"
        if run.created_by_id is not None:
            yield run.created_by_id, run.created_by__username, f"started {which}"
        schedule = origins.find_schedule(run)
        if schedule is not None and schedule.made_by_id is not None:
            yield schedule.made_by_id, schedule.made_by__username, "created the schedule"
        for user_id, name, act in origins.triggers.get(run.pk, ()):
            yield user_id, name, act
        for user_id, name in messages[run.pk].items():
            yield user_id, name, f"sent a message to {which}"
        for user_id, name in answers[run.pk].items():
            yield user_id, name, f"answered a question in {which}"
        for user_id, name in reasons[run.pk].items():
            yield user_id, name, f"gave a reason in {which}"
    for call_id in origins.list_callers(card.tool_call_id):
        for user_id, name in edits[call_id].items():
            yield user_id, name, "edited this call"
    for run in origins.list_chain(card.run_id):
        led = {*origins.list_callers(run.parent_call_id)}
        led |= origins.creations[run.pk] if run.pk != card.run_id else set()
        for call_id in led:
            for user_id, name in edits[call_id].items():
                yield user_id, name, "edited a call that led to this one"


def _load_origins(cards: Collection[Approval]) -> _RequestOrigins:
    origins = _RequestOrigins()
    wanted = {card.run_id for card in cards}
    while wanted:
        rows = Run.objects.filter(pk__in=wanted).order_by().values_list(*_RunOrigin._fields)
        found_runs = [_RunOrigin(*row) for row in rows]
        origins.runs |= {run.pk: run for run in found_runs}
        _add_schedules(origins, found_runs)
        _add_triggers(origins, found_runs)
        wanted = {pk for run in found_runs for pk in origins.list_parents(run)} - origins.runs.keys()
    _add_callers(origins, {card.tool_call_id for card in cards})
    return origins


def _add_schedules(origins: _RequestOrigins, runs: Iterable[_RunOrigin]) -> None:
    ids = {pk for run in runs if (pk := _get_schedule_id(run)) is not None} - origins.schedules.keys()
    if not ids:
        return
    rows = Schedule.objects.filter(pk__in=ids).order_by().values_list(*_ScheduleOrigin._fields)
    schedules = [_ScheduleOrigin(*row) for row in rows]
    origins.schedules |= {schedule.pk: schedule for schedule in schedules}
    made_in = {run_id for schedule in schedules if (run_id := parse_row_id_or_none(schedule.made_in_run)) is not None}
    if made_in:
        creations = ToolCall.objects.filter(run_id__in=made_in, tool=CREATE_SCHEDULE).order_by()
        for run_id, call_id in creations.values_list("run_id", "pk"):
            origins.creations[run_id].add(call_id)


def _add_triggers(origins: _RequestOrigins, runs: Iterable[_RunOrigin]) -> None:
    """Add the people behind runs that triggers started; no statement runs if there is none."""
    ids = [run.pk for run in runs if run.origin == Origin.TRIGGER]
    if not ids:
        return
    for run_id, people in ReceivedMessage.objects.filter(run_id__in=ids).values_list("run_id", "requesters"):
        origins.triggers[run_id] = [(user_id, name, act) for user_id, name, act in people]


def _add_callers(origins: _RequestOrigins, call_ids: set[int]) -> None:
    wanted = call_ids | {run.parent_call_id for run in origins.runs.values() if run.parent_call_id is not None}
    while wanted:
        rows = ToolCall.objects.filter(pk__in=wanted).order_by().values_list("pk", "parent_call_id")
        callers = dict(rows)
        origins.callers |= callers
        wanted = {pk for pk in callers.values() if pk is not None} - origins.callers.keys()


def _get_schedule_id(run: _RunOrigin) -> int | None:
    """Return the id of the schedule that started the run, from the run's client request id."""
    number = run.client_request_id.removeprefix(SCHEDULE_REQUEST_PREFIX).partition(":")[0]
    return parse_row_id_or_none(number) if run.origin == Origin.SCHEDULE else None


def _load_edits(call_ids: set[int]) -> People:
    """Load the people who edited each call; an edit replaces a card that nobody approved."""
    edited = Approval.objects.filter(tool_call_id__in=call_ids, status=ApprovalStatus.SUPERSEDED, start_after=None)
    return _group_people(
        edited.values_list("tool_call_id", "decided_by_id", "decided_by__username").order_by("sequence")
    )


def _load_answers_and_reasons(run_ids: Collection[int]) -> tuple[People, People]:
    """Load, by run, the people whose answers the employee read, and those whose reasons it read."""
    answered = Q(status=ApprovalStatus.ANSWERED)
    denied = Q(status=ApprovalStatus.DENIED) & ~Q(reason="")
    resolved = Q(kind=ApprovalKind.UNKNOWN)  # an open one has no decider
    read = Approval.objects.filter(answered | denied | resolved, run_id__in=run_ids).order_by("pk")
    rows = list(read.values_list("kind", "run_id", "decided_by_id", "decided_by__username"))
    answers = _group_people(row[1:] for row in rows if row[0] == ApprovalKind.QUESTION)
    return answers, _group_people(row[1:] for row in rows if row[0] != ApprovalKind.QUESTION)


def _group_people(rows: Iterable[tuple[int, int | None, str]]) -> People:
    found: People = defaultdict(dict)
    for key, user_id, name in rows:
        if user_id is not None:
            found[key][user_id] = name
    return found
