"""Create, pause, resume and cancel schedules for people, and fire due schedules for the sweeper.

A time fires at most once, however many sweepers run: the schedule's row is locked, checked again,
and moved to its next time in the commit that starts the run.
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
from agents.accounts.notice_facts import NoticeFact, NoticeKind, tell
from agents.employees.models import Employee
from agents.platform.refusals import Conflict, Invalid, NotFound, Refusal
from agents.platform.row_ids import get_row
from agents.runs import actions
from agents.runs.engine.transaction import MACHINE
from agents.runs.models import Origin, Run
from agents.runs.models.run import SCHEDULE_REQUEST_PREFIX
from tools.contract import ErrorCode, ToolError
from tools.schedules import changes
from tools.schedules.cron_times import parse_cron
from tools.schedules.descriptions import describe_times
from tools.schedules.models import Schedule

CLOCK_WAS_AHEAD = "The clock was ahead when the next time was set, so that time was computed again."
MAX_MISSED = 100
"""The number of missed times at which counting stops."""


def create(member: Membership, employee_id: int, task: str, when: tuple[str, str]) -> Schedule:
    """Create a schedule that starts runs on behalf of this member.

    Args:
        when: a cron expression of five fields, and the name of its time zone.

    Raises:
        Forbidden, NotFound
        Conflict: the employee is not active, an identical schedule exists, or there are too many
            schedules.
        Invalid: the task, the cron expression or the time zone is wrong.
    """
    member.require(Role.OPERATOR, "create a schedule")
    with _refusals_for_people():
        times = parse_cron(*when)
    checked = actions.check_text("task", task)
    employees = Employee.objects.filter(organization_id=member.organization_id)
    employee = get_row(employees, employee_id, "employee")
    if not employee.is_active:
        raise Conflict(f"{employee.name} is not active.")
    wanted = changes.NewSchedule(employee.pk, checked, times, member.user.pk)
    with transaction.atomic(), _refusals_for_people():
        schedule = changes.create_schedule(member.organization_id, wanted)
        about = {
            "task": schedule.task[:200],
            "when": describe_times(times),
            "employee": employee.name,
        }
        _record(member, "schedule_created", schedule, **about)
    return schedule


def pause(member: Membership, schedule_id: int) -> Schedule:
    """Pause a schedule until a person resumes it.

    Raises:
        Forbidden, NotFound
        Conflict: the schedule is not active.
    """
    with _locked_schedule(member, schedule_id, "pause a schedule") as schedule:
        if not schedule.is_active:
            raise Conflict(f"Schedule {schedule_id} is already {schedule.state}.")
        changes.pause_schedule(schedule)
        _record(member, "schedule_paused", schedule)
    return schedule


def resume(member: Membership, schedule_id: int) -> Schedule:
    """Resume a schedule from its next time; it then starts runs on behalf of this member.

    Raises:
        Forbidden, NotFound
        Conflict: the schedule is active or cancelled, or its employee was deleted or is not active.
    """
    with _locked_schedule(member, schedule_id, "resume a schedule") as schedule:
        if schedule.is_active or schedule.cancelled_at is not None:
            raise Conflict(f"Schedule {schedule_id} is {schedule.state}.")
        if schedule.employee is None or not schedule.employee.is_active:
            raise Conflict("Its employee was deleted or is not active.")
        changes.resume_schedule(schedule, member.user.pk)
        _record(member, "schedule_resumed", schedule)
    return schedule


def cancel(member: Membership, schedule_id: int) -> Schedule:
    """Cancel a schedule permanently; the runs that it started continue.

    Raises:
        Forbidden, NotFound
        Conflict: the schedule is already cancelled.
    """
    with _locked_schedule(member, schedule_id, "cancel a schedule") as schedule:
        if schedule.cancelled_at is not None:
            raise Conflict(f"Schedule {schedule_id} is already cancelled.")
        changes.cancel_schedule(schedule, member.user.get_username())
        _record(member, "schedule_cancelled", schedule)
    return schedule


def fire(schedule_id: int) -> bool:
    """Start the run for a due time and move the schedule to its next time, in one commit; return
    False if no time is due.

    One run makes up for all missed times.
    """
    with transaction.atomic():
        rows = Schedule.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        rows = rows.filter(pk=schedule_id, is_active=True, next_at__lte=Now()).select_related(
            "employee", "created_by"
        )
        schedule = rows.annotate(now=Now()).first()
        if schedule is None or schedule.next_at is None:
            return False
        return _fire_locked(schedule, schedule.next_at, schedule.now)


def correct_time(schedule_id: int) -> bool:
    """Recompute the schedule's next time if it is later than the expression allows, and notify the
    schedule's creator; return False otherwise.

    A time that has already fired does not fire again, because its run has that time's request id.
    """
    with transaction.atomic():
        rows = Schedule.objects.select_for_update(no_key=True).filter(
            pk=schedule_id, is_active=True, next_at__gt=Now()
        )
        schedule = rows.annotate(now=Now()).first()
        if schedule is None or schedule.next_at is None:
            return False
        expected, late = _find_next_time(schedule, schedule.now), schedule.next_at
        if expected is None or late <= expected:
            return False
        schedule.next_at, schedule.problem = expected, CLOCK_WAS_AHEAD
        schedule.save(update_fields=["next_at", "problem"])
        _audit(
            MACHINE,
            "schedule_corrected",
            schedule,
            time=expected.isoformat(),
            instead_of=late.isoformat(),
        )
        _tell(schedule, late.isoformat())
        return True


def pause_after_restore(why: str) -> int:
    """Pause all active schedules after a restore, because people may have cancelled them since the
    backup; return their number.

    The creators of the schedules are notified.
    """
    count = 0
    for pk in Schedule.objects.filter(is_active=True).order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            for schedule in Schedule.objects.select_for_update(no_key=True).filter(
                pk=pk, is_active=True
            ):
                _switch_off(schedule, why)
                count += 1
    return count


def _switch_off(schedule: Schedule, problem: str) -> None:
    """Pause the schedule until a person resumes it, and notify its creator."""
    time = schedule.next_at.isoformat() if schedule.next_at else ""
    changes.pause_schedule(schedule, problem)
    _audit(MACHINE, "schedule_switched_off", schedule, problem=problem)
    _tell(schedule, time)


def _skip_time(schedule: Schedule, why: str, next_at: datetime | None) -> None:
    """Move the schedule to its next time without starting a run; if there is no next time, switch
    it off."""
    time = schedule.next_at.isoformat() if schedule.next_at else ""
    schedule.next_at, schedule.is_active, schedule.problem = next_at, next_at is not None, why[:300]
    schedule.save(update_fields=["next_at", "is_active", "problem"])
    _audit(MACHINE, "schedule_skipped", schedule, time=time, problem=schedule.problem)
    _tell(schedule, time)


def _tell(schedule: Schedule, time: str) -> None:
    """Record in the organization's log that the schedule did not start at this time."""
    tell(
        NoticeFact(
            NoticeKind.SCHEDULE,
            schedule.organization_id,
            detail=f"schedule {schedule.pk}",
            user_id=schedule.made_by_id,
            reason=schedule.problem,
            ids={"schedule_id": str(schedule.pk), "scheduled_for": time},
        )
    )


def _fire_locked(schedule: Schedule, time: datetime, now: datetime) -> bool:
    next_at = _find_next_time(schedule, now)
    member = _find_member(schedule)
    if (end := _find_end(schedule, member, next_at)) is not None:
        _switch_off(schedule, end.detail)
        return True
    assert member is not None
    try:
        schedule.last_run, _ = _submit_run(
            schedule, member, time, _count_missed(schedule, time, now)
        )
    except Conflict as refusal:
        if refusal.extra.get("stopped"):
            return False  # stopped meanwhile: the schedule waits until the stop is lifted
        _skip_time(schedule, refusal.detail, next_at)
        return True
    schedule.next_at, schedule.problem, schedule.last_at, schedule.fired = (
        next_at,
        "",
        time,
        F("fired") + 1,
    )
    schedule.save(update_fields=["next_at", "last_at", "last_run", "fired", "problem"])
    return True


def _submit_run(
    schedule: Schedule, member: Membership, time: datetime, missed: int
) -> tuple[Run, bool]:
    """Submit the run for one scheduled time; its unique request id prevents a second run for the
    same time."""
    submission = actions.Submission(
        employee_id=schedule.employee_id or 0,
        task=schedule.task,
        client_request_id=f"{SCHEDULE_REQUEST_PREFIX}{schedule.pk}:{time.astimezone(UTC).isoformat()}",
        origin=Origin.SCHEDULE,
        schedule_id=str(schedule.pk),
        scheduled_for=time.isoformat(),
        missed=missed,
    )
    with transaction.atomic():
        return actions.submit(member, submission)


def _find_end(
    schedule: Schedule, member: Membership | None, next_at: datetime | None
) -> Conflict | None:
    """Return the reason why the schedule must be switched off until a person resumes it; None if it
    can continue."""
    employee, person = schedule.employee, schedule.created_by
    if employee is None:
        return Conflict("Its employee was deleted.")
    if not employee.is_active:
        return Conflict(f"{employee.name} is no longer active.")
    if person is None or member is None:
        name = person.get_username() if person else "Its owner"
        return Conflict(f"{name} is no longer a member.")
    if not member.may(Role.OPERATOR):
        return Conflict(f"{person.get_username()} is now {member.as_noun}, who cannot start runs.")
    if next_at is None:
        return Conflict(
            "It has no next time: its dates have passed, or its time zone no longer exists."
        )
    return None


def _find_member(schedule: Schedule) -> Membership | None:
    members = Membership.objects.filter(
        organization_id=schedule.organization_id, user__is_active=True
    )
    return (
        members.select_related("user", "organization").filter(user=schedule.created_by_id).first()
    )


def _find_next_time(schedule: Schedule, moment: datetime) -> datetime | None:
    try:
        return schedule.times.next_after(moment)
    except ZoneInfoNotFoundError:
        return None


def _count_missed(schedule: Schedule, time: datetime, now: datetime) -> int:
    """Count the times that have passed since the given time, up to MAX_MISSED."""
    count, following = 0, schedule.times.next_after(time)
    while following is not None and following <= now and count < MAX_MISSED:
        count, following = count + 1, schedule.times.next_after(following)
    return count


@contextmanager
def _locked_schedule(member: Membership, schedule_id: int, act: str) -> Iterator[Schedule]:
    """Lock a schedule of the member's organization during the block, and convert errors to
    refusals."""
    member.require(Role.OPERATOR, act)
    with transaction.atomic(), _refusals_for_people():
        yield changes.load_schedule(member.organization_id, schedule_id)


@contextmanager
def _refusals_for_people() -> Iterator[None]:
    """Convert ToolErrors in the block, which are written for models, to refusals for people."""
    try:
        yield
    except ToolError as error:
        raise _convert_error(error) from error


def _convert_error(error: ToolError) -> Refusal:
    if error.code == ErrorCode.NOT_FOUND:
        return NotFound(error.message)
    if error.code in (ErrorCode.INVALID_CRON_SPEC, ErrorCode.INVALID_PARAMETER):
        return Invalid(error.parameter, error.message)
    return Conflict(error.message)


def _record(member: Membership, action: str, schedule: Schedule, **payload: object) -> None:
    _audit(member.actor, action, schedule, **payload)


def _audit(actor: str, action: str, schedule: Schedule, **payload: object) -> None:
    entry = audit.NewEntry(
        actor, action, f"schedule:{schedule.pk}", {"row": str(schedule), **payload}
    )
    audit.append(schedule.organization_id, [entry])
