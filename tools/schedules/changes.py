"""Changes to schedules: create, pause, resume and cancel them, always within one organization."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from tools.contract import ErrorCode, ToolError
from tools.schedules.cron_times import CronTimes
from tools.schedules.models import Schedule

LONGEST_TASK = 20_000
MAX_SCHEDULES = 100
"""The maximum number of schedules of an organization, not counting cancelled ones."""


@dataclass(frozen=True)
class NewSchedule:
    """A schedule to create.

    Attributes:
        user_id: the person on whose behalf the schedule works.
        run_id: the run in which an employee creates the schedule; empty if a person does.
    """

    employee_id: int
    task: str
    times: CronTimes
    user_id: int
    run_id: str = ""


def get_schedules(organization_id: int) -> QuerySet[Schedule]:
    return Schedule.objects.filter(organization_id=organization_id)


def load_schedule(organization_id: int, schedule_id: int) -> Schedule:
    """Load a schedule with its employee, locked if a transaction is open.

    Raises:
        ToolError: NOT_FOUND, also for a schedule of another organization.
    """
    rows = get_schedules(organization_id).select_related("employee")
    if transaction.get_connection().in_atomic_block:
        rows = rows.select_for_update(no_key=True, of=("self",))
    found = rows.filter(pk=schedule_id).first()
    if found is None:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"There is no schedule {schedule_id}.",
            parameter="schedule_id",
            expected="the id of a schedule, from schedule.list",
            attempted=False,
        )
    return found


def check_new_schedule(organization_id: int, new: NewSchedule) -> None:
    """Refuse a duplicate, or a schedule beyond the organization's limit.

    Raises:
        ToolError: NOTHING_TO_DO, LIMIT_EXCEEDED
    """
    existing = get_schedules(organization_id).filter(cancelled_at=None)
    same = existing.filter(
        employee_id=new.employee_id, cron=new.times.cron, time_zone=new.times.time_zone
    )
    if (duplicate := same.filter(task=new.task).values_list("pk", flat=True).first()) is not None:
        raise ToolError(
            ErrorCode.NOTHING_TO_DO,
            f"Schedule {duplicate} already does this.",
            recovery_hint="Nothing needs to be done; continue with the task.",
            attempted=False,
        )
    if existing.count() >= MAX_SCHEDULES:
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            f"There are already {MAX_SCHEDULES} schedules; that is the limit.",
            recovery_hint="Cancel a schedule that is no longer needed.",
            attempted=False,
        )


def create_schedule(organization_id: int, new: NewSchedule) -> Schedule:
    """Create a schedule, which fires first at its next time.

    Raises:
        ToolError: NOTHING_TO_DO or LIMIT_EXCEEDED; INVALID_CRON_SPEC if the schedule has no
            next time.
    """
    with transaction.atomic():
        check_new_schedule(organization_id, new)
        return Schedule.objects.create(
            organization_id=organization_id,
            employee_id=new.employee_id,
            task=new.task,
            cron=new.times.cron,
            time_zone=new.times.time_zone,
            next_at=_compute_first_time(new.times, read_database_time(organization_id)),
            created_by_id=new.user_id,
            made_by_id=new.user_id,
            made_in_run=new.run_id,
        )


def cancel_schedule(schedule: Schedule, by: str) -> None:
    """Cancel a schedule permanently, unless it is already cancelled; `by` is a name."""
    Schedule.objects.filter(pk=schedule.pk, cancelled_at=None).update(
        is_active=False, next_at=None, cancelled_at=Now(), cancelled_by=by[:200]
    )


def pause_schedule(schedule: Schedule, problem: str = "") -> None:
    """Pause a schedule until it is resumed; `problem` is the reason if no person paused it."""
    schedule.is_active, schedule.next_at, schedule.problem = False, None, problem[:300]
    schedule.save(update_fields=["is_active", "next_at", "problem"])


def resume_schedule(schedule: Schedule, user_id: int) -> None:
    """Resume a schedule at its next time, on behalf of this person; skip missed times.

    Raises:
        ToolError: INVALID_CRON_SPEC, the schedule has no next time.
    """
    schedule.next_at = _compute_first_time(
        schedule.times, read_database_time(schedule.organization_id)
    )
    schedule.is_active, schedule.problem, schedule.created_by_id = True, "", user_id
    schedule.save(update_fields=["is_active", "next_at", "problem", "created_by"])


def read_database_time(organization_id: int) -> datetime:
    """Read the database's clock."""
    organizations = Schedule.organization.field.related_model._default_manager
    now: datetime = organizations.filter(pk=organization_id).values_list(Now(), flat=True).get()
    return now


def _compute_first_time(times: CronTimes, now: datetime) -> datetime:
    if (time := times.next_after(now)) is None:
        raise ToolError(
            ErrorCode.INVALID_CRON_SPEC,
            f"{times.cron!r} never occurs.",
            parameter="cron",
            attempted=False,
        )
    return time
