"""What starts by itself: people make, pause, resume and cancel schedules, and the sweeper fires those that are due.

A time fires at most once, with any number of sweepers: the schedule's row is locked, looked at again, and moved on to
its next time in the commit that starts the run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from zoneinfo import ZoneInfoNotFoundError

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from agents.accounts import audit
from agents.accounts.models import Membership, Role
from agents.employees.models import Employee
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound, Refusal
from agents.runs import actions
from agents.runs.models import Origin, Run
from tools.contract import ErrorCode, ToolError
from tools.schedules import changes
from tools.schedules.models import Schedule
from tools.schedules.times import times_of
from tools.schedules.words import in_words

MOST_COUNTED = 100
"""Missed times are counted up to this."""
MACHINE = "gadget"


def create(member: Membership, employee_id: int, task: str, when: tuple[str, str]) -> Schedule:
    """Make a schedule that works on behalf of this member.

    Args:
        when: a cron expression of five fields, and the name of its time zone.

    Raises:
        Forbidden, NotFound, Conflict: the employee is not active, there is such a schedule, or there are too many.
        Invalid: the task, the cron expression or the time zone is wrong.
    """
    _demand(member, "make a schedule")
    with _in_words():
        times = times_of(*when)
    checked = actions.checked_text("task", task)
    employee = Employee.objects.filter(organization_id=member.organization_id, pk=employee_id).first()
    if employee is None:
        raise NotFound(f"There is no employee {employee_id}.")
    if not employee.is_active:
        raise Conflict(f"{employee.name} is not active.")
    wanted = changes.Wanted(employee.pk, checked, times, member.user.pk)
    with transaction.atomic(), _in_words():
        made = changes.create(member.organization_id, wanted)
        _record(member, "schedule_created", made, task=made.task[:200], when=in_words(times), employee=employee.name)
    return made


def pause(member: Membership, schedule_id: int) -> Schedule:
    """It fires no more until somebody resumes it.

    Raises:
        Forbidden, NotFound, Conflict: it is not active.
    """
    with _changing(member, schedule_id, "pause a schedule") as schedule:
        if not schedule.is_active:
            raise Conflict(f"Schedule {schedule_id} is {schedule.state} already.")
        changes.pause(schedule)
        _record(member, "schedule_paused", schedule)
    return schedule


def resume(member: Membership, schedule_id: int) -> Schedule:
    """It fires again, from its next time on, and on behalf of this member from now on.

    Raises:
        Forbidden, NotFound, Conflict: it is active or cancelled, or its employee is gone or not active.
    """
    with _changing(member, schedule_id, "resume a schedule") as schedule:
        if schedule.is_active or schedule.cancelled_at is not None:
            raise Conflict(f"Schedule {schedule_id} is {schedule.state}.")
        if schedule.employee is None or not schedule.employee.is_active:
            raise Conflict("Its employee is gone, or not active.")
        changes.resume(schedule, member.user.pk)
        _record(member, "schedule_resumed", schedule)
    return schedule


def cancel(member: Membership, schedule_id: int) -> Schedule:
    """End it for good; a run that it has started goes on.

    Raises:
        Forbidden, NotFound, Conflict: it is cancelled already.
    """
    with _changing(member, schedule_id, "cancel a schedule") as schedule:
        if schedule.cancelled_at is not None:
            raise Conflict(f"Schedule {schedule_id} is cancelled already.")
        changes.cancel(schedule, member.user.get_username())
        _record(member, "schedule_cancelled", schedule)
    return schedule


def fire(schedule_id: int) -> bool:
    """Start the run of a time that has come and move on to the next one, in one commit; False if there is none.

    However many times were missed, one run makes up for all of them.
    """
    with transaction.atomic():
        rows = Schedule.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        rows = rows.filter(pk=schedule_id, is_active=True, next_at__lte=Now()).select_related("employee", "created_by")
        schedule = rows.annotate(now=Now()).first()
        if schedule is None or schedule.next_at is None:
            return False
        return _fire(schedule, schedule.next_at, schedule.now)


def after_restore() -> int:
    """After a restored backup: times that came since it was made may have fired, so none of them does again.

    Returns how many schedules moved on to their next time.
    """
    count = 0
    for pk in Schedule.objects.filter(is_active=True, next_at__lte=Now()).values_list("pk", flat=True):
        with transaction.atomic():
            rows = Schedule.objects.select_for_update(no_key=True).filter(pk=pk, is_active=True)
            for schedule in rows.annotate(now=Now()):
                _skip(schedule, "It may have fired before a backup was restored.", _next_after(schedule, schedule.now))
                count += 1
    return count


def _skip(schedule: Schedule, why: str, next_at: datetime | None) -> None:
    """Its time starts nothing; it moves on to the next one, or without any is switched off."""
    time = schedule.next_at.isoformat() if schedule.next_at else ""
    schedule.next_at, schedule.is_active, schedule.problem = next_at, next_at is not None, why[:300]
    schedule.save(update_fields=["next_at", "is_active", "problem"])
    _audit(MACHINE, "schedule_skipped", schedule, time=time, problem=schedule.problem)


def _fire(schedule: Schedule, time: datetime, now: datetime) -> bool:
    next_at = _next_after(schedule, now)
    member = _on_behalf_of(schedule)
    if problem := _why_never(schedule, member, next_at):
        changes.pause(schedule, problem)
        _audit(MACHINE, "schedule_switched_off", schedule, problem=problem)
        return True
    assert member is not None
    try:
        schedule.last_run, _ = _start(schedule, member, time, _missed(schedule, time, now))
    except Conflict as refusal:
        if refusal.extra.get("stopped"):
            return False  # it waits; whoever stopped it did so in this moment
        _skip(schedule, refusal.detail, next_at)
        return True
    schedule.next_at, schedule.problem, schedule.last_at, schedule.fired = next_at, "", time, F("fired") + 1
    schedule.save(update_fields=["next_at", "last_at", "last_run", "fired", "problem"])
    return True


def _start(schedule: Schedule, member: Membership, time: datetime, missed: int) -> tuple[Run, bool]:
    """The unique id of the request makes the run of one time the only one, whatever became of the schedule's row."""
    told = {"schedule_id": str(schedule.pk), "scheduled_for": time.isoformat(), "missed": missed}
    submission = actions.Submission(
        employee_id=schedule.employee_id or 0,
        task=schedule.task,
        client_request_id=f"{actions.OF_SCHEDULES}{schedule.pk}:{time.astimezone(UTC).isoformat()}",
        origin=Origin.SCHEDULE,
        told=told,
    )
    with transaction.atomic():
        return actions.submit(member, submission)


def _why_never(schedule: Schedule, member: Membership | None, next_at: datetime | None) -> str:
    """Why it cannot go on without a person; empty if it can."""
    employee, person = schedule.employee, schedule.created_by
    if employee is None:
        return "Its employee is gone."
    if not employee.is_active:
        return f"{employee.name} is not active any more."
    if person is None or member is None:
        name = person.get_username() if person else "The person for whom it worked"
        return f"{name} is not a member any more."
    if not member.may(Role.OPERATOR):
        return f"{person.get_username()} is {member.as_noun} by now, who may not start a run."
    return "" if next_at is not None else "It has no next time: its days or its time zone are gone."


def _on_behalf_of(schedule: Schedule) -> Membership | None:
    members = Membership.objects.filter(organization_id=schedule.organization_id, user__is_active=True)
    return members.select_related("user", "organization").filter(user=schedule.created_by_id).first()


def _next_after(schedule: Schedule, moment: datetime) -> datetime | None:
    try:
        return schedule.times.next_after(moment)
    except ZoneInfoNotFoundError:
        return None


def _missed(schedule: Schedule, time: datetime, now: datetime) -> int:
    """How many further times have come since, at most 100."""
    count, following = 0, schedule.times.next_after(time)
    while following is not None and following <= now and count < MOST_COUNTED:
        count, following = count + 1, schedule.times.next_after(following)
    return count


@contextmanager
def _changing(member: Membership, schedule_id: int, act: str) -> Iterator[Schedule]:
    """The member's schedule, locked; the block's refusals are told in words."""
    _demand(member, act)
    with transaction.atomic(), _in_words():
        yield changes.one_schedule(member.organization_id, schedule_id)


@contextmanager
def _in_words() -> Iterator[None]:
    """A refusal for people in the place of the one for models."""
    try:
        yield
    except ToolError as error:
        raise _refusal(error) from error


def _refusal(error: ToolError) -> Refusal:
    if error.code == ErrorCode.NOT_FOUND:
        return NotFound(error.message)
    if error.code in (ErrorCode.INVALID_CRON_SPEC, ErrorCode.INVALID_PARAMETER):
        return Invalid(error.parameter, error.message)
    return Conflict(error.message)


def _demand(member: Membership, act: str) -> None:
    if not member.may(Role.OPERATOR):
        raise Forbidden(f"{member.as_noun} may not {act}")


def _record(member: Membership, action: str, schedule: Schedule, **payload: object) -> None:
    _audit(f"user:{member.user.get_username()}", action, schedule, **payload)


def _audit(actor: str, action: str, schedule: Schedule, **payload: object) -> None:
    entry = audit.Entry(actor, action, f"schedule:{schedule.pk}", {"row": str(schedule), **payload})
    audit.append(schedule.organization_id, [entry])
