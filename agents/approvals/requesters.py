"""Requesters: the people who requested a call. Under the two-person rule, none of them may decide
its card."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Q

from agents.platform.row_ids import parse_row_id_or_none
from agents.runs.models import (
    Approval,
    ApprovalKind,
    ApprovalStatus,
    Message,
    Origin,
    Run,
    ToolCall,
)
from agents.runs.models.run import SCHEDULE_REQUEST_PREFIX
from agents.runs.origins import ORIGINS, Act
from tools.schedules.models import Schedule

CREATE_SCHEDULE = "schedule.create"

People = dict[int, dict[int, str]]
"""For each run id or call id, the names of people by user id."""


@dataclass(frozen=True)
class Requester:
    """A person who requested a call.

    Attributes:
        act: their action, such as "edited this call".
    """

    user_id: int
    name: str
    act: str


class _People(NamedTuple):
    """The people who acted on runs, by run id, and on calls, by call id.

    Attributes:
        edits: the people who edited a call, by call id; `edits_by_run` has the same people by run
            id.
    """

    messages: People
    answers: People
    reasons: People
    edits: People
    edits_by_run: People


class _RunOrigin(NamedTuple):
    """A run, with the columns that show what started it."""

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
    """The runs and calls of some cards, all runs, schedules and calls that led to them, and all
    runs whose answers were available to them."""

    runs: dict[int, _RunOrigin] = field(default_factory=dict)
    children: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The ids of the runs that a run delegated, by the run's id."""
    schedules: dict[int, _ScheduleOrigin] = field(default_factory=dict)
    acts: dict[int, list[Act]] = field(default_factory=dict)
    """For each run id, the people that the app that started the run reports: those behind a
    trigger, for example, and whoever sent a received message again."""
    callers: dict[int, int | None] = field(default_factory=dict)
    """The call whose tool or recipe made a call, by the call's id; None if the model made it."""
    creations: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The ids of a run's calls that create schedules, by run id."""

    def find_schedule(self, run: _RunOrigin) -> _ScheduleOrigin | None:
        number = _get_schedule_id(run)
        return self.schedules.get(number) if number is not None else None

    def list_parents(self, run: _RunOrigin) -> Iterator[int]:
        """Yield the id of the run that delegated this run, and the id of the run in which its
        schedule was created."""
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

    def list_delegated(self, run_id: int) -> list[_RunOrigin]:
        """List the runs delegated by this run or by those that led to it, at any level: this run
        can read their answers."""
        chain = [run.pk for run in self.list_chain(run_id)]
        found, ahead = dict[int, _RunOrigin](), list(chain)
        for pk in ahead:
            for child in sorted(self.children[pk] - found.keys() - set(chain)):
                found[child] = self.runs[child]
                ahead.append(child)
        return list(found.values())

    def list_callers(self, call_id: int | None) -> Iterator[int]:
        """Yield the id of the call, and the ids of the calls that led to it."""
        while call_id is not None:
            yield call_id
            call_id = self.callers.get(call_id)


def find_requesters(cards: Collection[Approval]) -> dict[int, list[Requester]]:
    """Find, by card id, the people who requested the card's call, each with their first action.

    Consider the call's run, the runs that led to it, and the runs that any of these delegated. A
    person requested the call by starting one of these runs, creating its schedule, sending it a
    message, answering its question, or giving a reason that its employee read; or by editing the
    call, a call that led to it, or a call in a delegated run. Continuing a run counts as sending a
    message.

    This takes five queries for any number of cards, and two more for each level of runs above or
    below.
    """
    if not cards:
        return {}
    origins = _load_origins(cards)
    runs = origins.runs.keys()
    later = Message.objects.filter(run_id__in=runs, number__gt=1)  # the first is the task
    messages = _group_people(
        later.values_list("run_id", "author_id", "author__username").order_by("number")
    )
    answers, reasons = _load_answers_and_reasons(runs)
    edits = _load_edits(origins)
    people = _People(messages, answers, reasons, *edits)
    found = {}
    for card in cards:
        by_person: dict[int, Requester] = {}
        for user_id, name, act in _list_acts(card, origins, people):
            by_person.setdefault(user_id, Requester(user_id, name, act))
        found[card.pk] = list(by_person.values())
    return found


def describe_requesters(requesters: Iterable[Requester]) -> str:
    """Return a text such as "Ada started this run, and Ben edited this call"; empty if there is
    nobody."""
    acts = [f"{requester.name} {requester.act}" for requester in requesters]
    return acts[0] if len(acts) == 1 else f"{', '.join(acts[:-1])}, and {acts[-1]}" if acts else ""


def _list_acts(
    card: Approval, origins: _RequestOrigins, people: _People
) -> Iterator[tuple[int, str, str]]:
    chain, delegated = origins.list_chain(card.run_id), origins.list_delegated(card.run_id)
    for run in chain:
        yield from _list_acts_in(
            run, "this run" if run.pk == card.run_id else "a run that led to this one", people
        )
        schedule = origins.find_schedule(run)
        if schedule is not None and schedule.made_by_id is not None:
            yield schedule.made_by_id, schedule.made_by__username, "created the schedule"
        yield from origins.acts.get(run.pk, ())
    for call_id in origins.list_callers(card.tool_call_id):
        for user_id, name in people.edits[call_id].items():
            yield user_id, name, "edited this call"
    for run in chain:
        led = {*origins.list_callers(run.parent_call_id)}
        led |= origins.creations[run.pk] if run.pk != card.run_id else set()
        for call_id in led:
            for user_id, name in people.edits[call_id].items():
                yield user_id, name, "edited a call that led to this one"
    for run in delegated:
        yield from _list_acts_in(run, "a delegated run", people)
        led_below = (people.edits[call_id] for call_id in origins.list_callers(run.parent_call_id))
        for found in (people.edits_by_run[run.pk], *led_below):
            for user_id, name in found.items():
                yield user_id, name, "edited a call of a delegated run"


def _list_acts_in(run: _RunOrigin, which: str, people: _People) -> Iterator[tuple[int, str, str]]:
    if run.created_by_id is not None:
        yield run.created_by_id, run.created_by__username, f"started {which}"
    for user_id, name in people.messages[run.pk].items():
        yield user_id, name, f"sent a message to {which}"
    for user_id, name in people.answers[run.pk].items():
        yield user_id, name, f"answered a question in {which}"
    for user_id, name in people.reasons[run.pk].items():
        yield user_id, name, f"gave a reason in {which}"


def _load_origins(cards: Collection[Approval]) -> _RequestOrigins:
    origins = _RequestOrigins()
    wanted, asked = {card.run_id for card in cards}, set[int]()
    while wanted:
        rows = Run.objects.filter(Q(pk__in=wanted) | Q(parent_id__in=wanted)).order_by()
        found_runs = [_RunOrigin(*row) for row in rows.values_list(*_RunOrigin._fields)]
        asked |= wanted
        new = [run for run in found_runs if run.pk not in origins.runs]
        origins.runs |= {run.pk: run for run in new}
        for run in new:
            if run.parent_id is not None:
                origins.children[run.parent_id].add(run.pk)
        _add_schedules(origins, new)
        _add_acts(origins, new)
        wanted = {pk for run in new for pk in (run.pk, *origins.list_parents(run))} - asked
    _add_callers(origins, {card.tool_call_id for card in cards})
    return origins


def _add_schedules(origins: _RequestOrigins, runs: Iterable[_RunOrigin]) -> None:
    ids = {
        pk for run in runs if (pk := _get_schedule_id(run)) is not None
    } - origins.schedules.keys()
    if not ids:
        return
    rows = Schedule.objects.filter(pk__in=ids).order_by().values_list(*_ScheduleOrigin._fields)
    schedules = [_ScheduleOrigin(*row) for row in rows]
    origins.schedules |= {schedule.pk: schedule for schedule in schedules}
    made_in = {
        run_id
        for schedule in schedules
        if (run_id := parse_row_id_or_none(schedule.made_in_run)) is not None
    }
    if made_in:
        creations = ToolCall.objects.filter(run_id__in=made_in, tool=CREATE_SCHEDULE).order_by()
        for run_id, call_id in creations.values_list("run_id", "pk"):
            origins.creations[run_id].add(call_id)


def _add_acts(origins: _RequestOrigins, runs: Iterable[_RunOrigin]) -> None:
    """Add the people behind runs that another app started. If there are no such runs, do not run a
    query."""
    for origin, source in ORIGINS.items():
        if ids := [run.pk for run in runs if run.origin == origin]:
            origins.acts |= source.load_acts(ids)


def _add_callers(origins: _RequestOrigins, call_ids: set[int]) -> None:
    wanted = call_ids | {
        run.parent_call_id for run in origins.runs.values() if run.parent_call_id is not None
    }
    while wanted:
        rows = ToolCall.objects.filter(pk__in=wanted).order_by().values_list("pk", "parent_call_id")
        callers = dict(rows)
        origins.callers |= callers
        wanted = {pk for pk in callers.values() if pk is not None} - origins.callers.keys()


def _get_schedule_id(run: _RunOrigin) -> int | None:
    """Return the id of the schedule that started the run, as the run's client request id names it;
    None if no schedule started the run."""
    number = run.client_request_id.removeprefix(SCHEDULE_REQUEST_PREFIX).partition(":")[0]
    return parse_row_id_or_none(number) if run.origin == Origin.SCHEDULE else None


def _load_edits(origins: _RequestOrigins) -> tuple[People, People]:
    """Load the people who edited calls: by call, and by run for delegated runs.

    An edit leaves a replaced card that nobody approved, while undoing an approval leaves a card
    that was approved.
    """
    calls = {*origins.callers, *(call for calls in origins.creations.values() for call in calls)}
    delegated = {child for children in origins.children.values() for child in children}
    wanted = (
        Q(tool_call_id__in=calls) | Q(run_id__in=delegated)
        if delegated
        else Q(tool_call_id__in=calls)
    )
    edited = Approval.objects.filter(
        wanted, status=ApprovalStatus.SUPERSEDED, start_after=None
    ).order_by("sequence")
    rows = list(
        edited.values_list("tool_call_id", "run_id", "decided_by_id", "decided_by__username")
    )
    by_call = _group_people((call_id, user_id, name) for call_id, _, user_id, name in rows)
    return by_call, _group_people(row[1:] for row in rows)


def _load_answers_and_reasons(run_ids: Collection[int]) -> tuple[People, People]:
    """Load, by run, the people whose answers the employee has read, and the people whose reasons it
    has read."""
    answered = Q(status=ApprovalStatus.ANSWERED)
    denied = Q(status=ApprovalStatus.DENIED) & ~Q(reason="")
    resolved = Q(kind=ApprovalKind.UNKNOWN)  # open cards have no decider and are skipped
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
