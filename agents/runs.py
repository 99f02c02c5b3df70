"""What people do to a run: start it, say something, cancel it, give it more passes."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models.functions import Now

from agents import stops
from agents.engine import budgets, endings, parking
from agents.engine.endings import Ending
from agents.events import Recording, recording, starting
from agents.models import (
    Employee,
    EventType,
    ExitReason,
    Membership,
    Message,
    Origin,
    Role,
    Run,
    RunStatus,
)
from agents.models.run import title_of
from agents.providers.base import GO_ON
from agents.refusals import Conflict, Forbidden, Invalid, NotFound
from tools.toolbox.toolbox import MODES

MOST_TEXT = 20_000
OF_SCHEDULES = "schedule:"
"""So the requests of schedules begin, and nobody else's: a firing whose id somebody had used would start nothing."""


@dataclass(frozen=True)
class Submission:
    """A task for an employee.

    Attributes:
        mode: empty means the employee's own.
        client_request_id: the same one again starts nothing new; only a schedule's begins with OF_SCHEDULES.
        told: more for the run's first event.
    """

    employee_id: int
    task: str
    mode: str = ""
    client_request_id: str = ""
    origin: Origin = Origin.TASK
    told: dict[str, Any] = field(default_factory=dict)


def submit(member: Membership, submission: Submission) -> tuple[Run, bool]:
    """Start a run; returns it and whether it is new.

    Raises:
        Forbidden, NotFound, Invalid, Conflict; BudgetExhausted, which is one: the month's budget is used up.
    """
    _demand(member, Role.OPERATOR, "start a run")
    task = checked_text("task", submission.task)
    _check_request_id(submission)
    if submission.mode and submission.mode not in MODES:
        raise Invalid("mode", f"mode is {submission.mode!r}, but has to be one of {', '.join(MODES)}")
    own = Employee.objects.select_related("organization").filter(organization_id=member.organization_id)
    employee = own.filter(pk=submission.employee_id).first()
    if employee is None:
        raise NotFound(f"there is no employee {submission.employee_id}")
    if not employee.is_active:
        raise Conflict(f"{employee.name} is not active")
    stops.refuse_stopped(employee)
    run = Run(
        organization_id=member.organization_id,
        employee=employee,
        created_by=member.user,
        origin=submission.origin,
        client_request_id=submission.client_request_id,
        task=task,
        title=title_of(task),
        mode=submission.mode or employee.mode,
        max_passes=employee.max_passes,
        deadline_at=Now() + timedelta(minutes=employee.run_minutes) if employee.run_minutes else None,
    )
    if earlier := _same_request(run):
        return earlier, False
    budgets.refuse_new_run(employee)
    try:
        with starting(run) as record:
            Message.objects.create(run=run, number=1, author=member.user, text=task)
            record.publish(EventType.RUN_STARTED, by=member.user.get_username(), **submission.told)
    except IntegrityError:
        earlier = _same_request(run)
        if earlier is None:
            raise
        return earlier, False
    return Run.objects.get(pk=run.pk), True


def _check_request_id(submission: Submission) -> None:
    sent = submission.client_request_id
    if len(sent) > 200 or "\0" in sent:
        raise Invalid("client_request_id", "client_request_id may have at most 200 characters, and no NUL")
    if sent.startswith(OF_SCHEDULES) and submission.origin != Origin.SCHEDULE:
        kept = f"what begins with {OF_SCHEDULES!r} is kept for schedules"
        raise Invalid("client_request_id", f"client_request_id is {sent!r}, but {kept}; choose another")


def _same_request(run: Run) -> Run | None:
    if not run.client_request_id:
        return None
    same = Run.objects.filter(organization_id=run.organization_id, client_request_id=run.client_request_id)
    return same.first()


def cancel(member: Membership, run_id: int) -> Run:
    """Cancel the run now, or as soon as what executes has ended.

    Raises:
        Forbidden, NotFound, Conflict: it has ended already.
    """
    _demand(member, Role.OPERATOR, "cancel a run")
    with recording(_own(member, run_id)) as record:
        run = record.run
        if run.has_ended:
            raise Conflict(f"the run has ended already: {run.get_status_display()}", run_status=run.status)
        if run.cancel_requested_at is None:
            run.cancel_requested_at = record.now
            record.publish(EventType.CANCEL_REQUESTED, by=member.user.get_username())
            record.audit(_actor(member), "run_cancelled", f"run:{run.pk}")
        if run.status != RunStatus.RUNNING:
            endings.end(record, Ending(ExitReason.CANCELLED))
    return Run.objects.get(pk=run_id)


def add_message(member: Membership, run_id: int, text: str) -> Run:
    """Tell the employee something more; an ended run goes on with it, a running one hears it before its next pass.

    Raises:
        Forbidden, NotFound, Invalid, Conflict: it was cancelled, or is a call by hand.
    """
    _demand(member, Role.OPERATOR, "send a message")
    checked = checked_text("text", text)
    with recording(_own(member, run_id)) as record:
        _refuse_trial(record.run)
        _refuse_cancelled(record.run)
        _append_message(record, member, checked)
        if record.run.has_ended:
            _go_on(record, member, record.run.employee.max_passes)
    return Run.objects.get(pk=run_id)


def continue_run(member: Membership, run_id: int, max_passes: int | None = None) -> Run:
    """Give an ended run more passes (its employee's number unless said otherwise, 1 to 100).

    Raises:
        Forbidden, NotFound, Invalid, Conflict: it has not ended, was cancelled, or is a call by hand.
    """
    _demand(member, Role.OPERATOR, "continue a run")
    if max_passes is not None and not 1 <= max_passes <= 100:
        raise Invalid("max_passes", f"max_passes is {max_passes}, but has to be 1 to 100")
    with recording(_own(member, run_id)) as record:
        _refuse_trial(record.run)
        _refuse_cancelled(record.run)
        if not record.run.has_ended:
            raise Conflict("the run has not ended", run_status=record.run.status)
        _append_message(record, member, GO_ON)
        _go_on(record, member, max_passes or record.run.employee.max_passes)
    return Run.objects.get(pk=run_id)


def _append_message(record: Recording, member: Membership, text: str) -> None:
    run = record.run
    run.message_count += 1
    Message.objects.create(run=run, number=run.message_count, author=member.user, text=text)
    record.publish(EventType.MESSAGE_ADDED, text=text, by=member.user.get_username())


def _go_on(record: Recording, member: Membership, passes: int) -> None:
    run = record.run
    stops.refuse_stopped(run.employee)
    budgets.check(run)
    run.exit_reason, run.problem, run.finished_at = "", "", None
    run.crash_count = run.patience_tries = 0
    run.patience_since = None
    run.max_passes = run.pass_number + passes
    minutes = run.employee.run_minutes
    run.deadline_at = record.now + timedelta(minutes=minutes) if minutes else None
    parking.requeue(record)
    record.publish(EventType.RUN_RESUMED, by=member.user.get_username())


def _refuse_trial(run: Run) -> None:
    if run.origin == Origin.MANUAL:
        raise Conflict("this was one call by hand, and nobody is at work in it: start a run with a task instead")


def _refuse_cancelled(run: Run) -> None:
    if run.status == RunStatus.CANCELLED or run.cancel_requested_at is not None:
        raise Conflict("the run was cancelled", run_status=run.status)


def _own(member: Membership, run_id: int) -> int:
    """The id, if the run is of the member's organisation."""
    if not Run.objects.filter(organization_id=member.organization_id, pk=run_id).exists():
        raise NotFound(f"there is no run {run_id}")
    return run_id


def _demand(member: Membership, role: Role, act: str) -> None:
    if not member.may(role):
        raise Forbidden(f"{member.as_noun} may not {act}")


def _actor(member: Membership) -> str:
    return f"user:{member.user.get_username()}"


def checked_text(field: str, text: str) -> str:
    """What a person wrote, without blanks around it.

    Raises:
        Invalid: it is empty, longer than 20,000 characters, or cannot be kept.
    """
    stripped = text.strip()
    if not stripped:
        raise Invalid(field, f"{field} is empty")
    if len(text) > MOST_TEXT:
        raise Invalid(field, f"{field} has {len(text):,} characters; at most {MOST_TEXT:,} are allowed")
    if "\0" in text:
        raise Invalid(field, f"{field} contains a NUL character")
    return stripped
