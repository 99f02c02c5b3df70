"""Finds everybody who asked for a call: under the two-person rule, none of them decides its card."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Q

from agents.accounts.models import Membership
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.platform.refusals import Forbidden
from agents.platform.row_ids import row_id_or_none
from agents.runs.actions import OF_SCHEDULES
from agents.runs.models import Message, Origin, Run, ToolCall
from tools.schedules.models import Schedule

CREATE_SCHEDULE = "schedule.create"

People = dict[int, dict[int, str]]
"""User names by user id, for each run or call."""


@dataclass(frozen=True)
class Asker:
    """A person who asked for a call.

    Attributes:
        act: for people, e.g. "edited this call".
    """

    user_id: int
    name: str
    act: str


class _Above(NamedTuple):
    """One run, and the run or schedule that started it."""

    pk: int
    parent_id: int | None
    parent_call_id: int | None
    origin: str
    client_request_id: str
    created_by_id: int | None
    created_by__username: str


class _Plan(NamedTuple):
    """One schedule: who wrote its task."""

    pk: int
    made_by_id: int | None
    made_by__username: str
    made_in_run: str


@dataclass
class _Origins:
    """The runs behind some cards, with everything that leads to them."""

    runs: dict[int, _Above] = field(default_factory=dict)
    plans: dict[int, _Plan] = field(default_factory=dict)
    callers: dict[int, int | None] = field(default_factory=dict)
    """The calling call of each call that a tool or a recipe made."""
    creations: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The calls of each run that create schedules."""

    def plan_of(self, run: _Above) -> _Plan | None:
        number = _schedule_of(run)
        return self.plans.get(number) if number is not None else None

    def directly_above(self, run: _Above) -> Iterator[int]:
        """Return the run that delegated this one, or in which its schedule was created."""
        if run.parent_id is not None:
            yield run.parent_id
        plan = self.plan_of(run)
        made_in = row_id_or_none(plan.made_in_run) if plan is not None else None
        if made_in is not None:
            yield made_in

    def chain_of(self, run_id: int) -> list[_Above]:
        """Return the run and the runs above it, the nearest first."""
        found, ahead = dict[int, _Above](), [run_id]
        for pk in ahead:
            if pk in self.runs and pk not in found:
                found[pk] = self.runs[pk]
                ahead += self.directly_above(self.runs[pk])
        return list(found.values())

    def calls_behind(self, call_id: int | None) -> Iterator[int]:
        """Return the call, and the calls that led to it."""
        while call_id is not None:
            yield call_id
            call_id = self.callers.get(call_id)


def askers_of(cards: Collection[Approval]) -> dict[int, list[Asker]]:
    """Return by card id the people who asked for its call, each once, with what they did first.

    People asked for a call if they started its run or one above it, sent a message to one, answered a question in one,
    gave a reason in one that its employee was told, created its schedule, or edited the call or one that led to it.
    Continuing a run counts as sending a message.

    Costs five queries however many cards there are, and two more for each step to runs above them.
    """
    if not cards:
        return {}
    origins = _load_origins(cards)
    runs = origins.runs.keys()
    later = Message.objects.filter(
        run_id__in=runs, number__gt=1
    )  # the first is the task, from the person who started the run
    messages = _people(later.values_list("run_id", "author_id", "author__username").order_by("number"))
    answers, reasons = _load_words(runs)
    edits = _load_edits({*origins.callers, *(call for calls in origins.creations.values() for call in calls)})
    found = {}
    for card in cards:
        by_person: dict[int, Asker] = {}
        for user_id, name, act in _acts(card, origins, (messages, answers, reasons, edits)):
            by_person.setdefault(user_id, Asker(user_id, name, act))
        found[card.pk] = list(by_person.values())
    return found


def refuse_asker(member: Membership, run: Run, card: Approval) -> None:
    """Raise Forbidden if two people are needed and this member asked for the card's call."""
    if not run.organization.four_eyes:
        return
    asked = askers_of([card])[card.pk]
    if any(asker.user_id == member.user_id for asker in asked):
        raise Forbidden(f"two-person rule (four eyes): {in_words(asked)}, so someone else must decide")


def in_words(askers: Iterable[Asker]) -> str:
    """`Ada started this run, and Ben edited this call`"""
    told = [f"{asker.name} {asker.act}" for asker in askers]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])}, and {told[-1]}" if told else ""


def _acts(card: Approval, origins: _Origins, people: tuple[People, ...]) -> Iterator[tuple[int, str, str]]:
    messages, answers, reasons, edits = people
    for run in origins.chain_of(card.run_id):
        which = "this run" if run.pk == card.run_id else "a run that led to it"
        if run.created_by_id is not None:
            yield run.created_by_id, run.created_by__username, f"started {which}"
        plan = origins.plan_of(run)
        if plan is not None and plan.made_by_id is not None:
            yield plan.made_by_id, plan.made_by__username, "made its schedule"
        for user_id, name in messages[run.pk].items():
            yield user_id, name, f"sent a message to {which}"
        for user_id, name in answers[run.pk].items():
            yield user_id, name, f"answered a question in {which}"
        for user_id, name in reasons[run.pk].items():
            yield user_id, name, f"gave a reason in {which}"
    for call_id in origins.calls_behind(card.tool_call_id):
        for user_id, name in edits[call_id].items():
            yield user_id, name, "edited this call"
    for run in origins.chain_of(card.run_id):
        led = {*origins.calls_behind(run.parent_call_id)}
        led |= origins.creations[run.pk] if run.pk != card.run_id else set()
        for call_id in led:
            for user_id, name in edits[call_id].items():
                yield user_id, name, "edited a call that led to it"


def _load_origins(cards: Collection[Approval]) -> _Origins:
    origins = _Origins()
    wanted = {card.run_id for card in cards}
    while wanted:
        rows = Run.objects.filter(pk__in=wanted).order_by().values_list(*_Above._fields)
        fresh = [_Above(*row) for row in rows]
        origins.runs |= {run.pk: run for run in fresh}
        _add_plans(origins, fresh)
        wanted = {pk for run in fresh for pk in origins.directly_above(run)} - origins.runs.keys()
    _add_callers(origins, {card.tool_call_id for card in cards})
    return origins


def _add_plans(origins: _Origins, runs: Iterable[_Above]) -> None:
    numbers = {number for run in runs if (number := _schedule_of(run)) is not None} - origins.plans.keys()
    if not numbers:
        return
    plans = [_Plan(*row) for row in Schedule.objects.filter(pk__in=numbers).order_by().values_list(*_Plan._fields)]
    origins.plans |= {plan.pk: plan for plan in plans}
    made_in = {run_id for plan in plans if (run_id := row_id_or_none(plan.made_in_run)) is not None}
    if made_in:
        creations = ToolCall.objects.filter(run_id__in=made_in, tool=CREATE_SCHEDULE).order_by()
        for run_id, call_id in creations.values_list("run_id", "pk"):
            origins.creations[run_id].add(call_id)


def _add_callers(origins: _Origins, call_ids: set[int]) -> None:
    wanted = call_ids | {run.parent_call_id for run in origins.runs.values() if run.parent_call_id is not None}
    while wanted:
        rows = ToolCall.objects.filter(pk__in=wanted).order_by().values_list("pk", "parent_call_id")
        fresh = dict(rows)
        origins.callers |= fresh
        wanted = {pk for pk in fresh.values() if pk is not None} - origins.callers.keys()


def _schedule_of(run: _Above) -> int | None:
    """The id of the schedule that started the run; its request names it."""
    number = run.client_request_id.removeprefix(OF_SCHEDULES).partition(":")[0]
    return row_id_or_none(number) if run.origin == Origin.SCHEDULE else None


def _load_edits(call_ids: set[int]) -> People:
    """Return the people who edited each call: an edit replaces a card that nobody approved."""
    edited = Approval.objects.filter(tool_call_id__in=call_ids, status=ApprovalStatus.SUPERSEDED, start_after=None)
    return _people(edited.values_list("tool_call_id", "decided_by_id", "decided_by__username").order_by("sequence"))


def _load_words(run_ids: Collection[int]) -> tuple[People, People]:
    """Return the people whose answers, and those whose reasons, the employee read in each run."""
    answered = Q(status=ApprovalStatus.ANSWERED)
    denied = Q(status=ApprovalStatus.DENIED) & ~Q(reason="")
    settled = Q(kind=ApprovalKind.UNKNOWN)  # nobody has decided an open one
    read = Approval.objects.filter(answered | denied | settled, run_id__in=run_ids).order_by("pk")
    rows = list(read.values_list("kind", "run_id", "decided_by_id", "decided_by__username"))
    answers = _people(row[1:] for row in rows if row[0] == ApprovalKind.QUESTION)
    return answers, _people(row[1:] for row in rows if row[0] != ApprovalKind.QUESTION)


def _people(rows: Iterable[tuple[int, int | None, str]]) -> People:
    found: People = defaultdict(dict)
    for key, user_id, name in rows:
        if user_id is not None:
            found[key][user_id] = name
    return found
