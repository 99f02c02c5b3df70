"""What makes, pauses, resumes and ends schedules, always within one organisation."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from tools.contract import ErrorCode, ToolError

from .models import Schedule
from .times import Times

LONGEST_TASK = 20_000
MOST_SCHEDULES = 100
"""Of one organisation, the cancelled ones not counted."""


@dataclass(frozen=True)
class Wanted:
    """A schedule that is to be: who does what, when, and on whose behalf.

    Attributes:
        run_id: of the run in which an employee asks for it; empty when a person does.
    """

    employee_id: int
    task: str
    times: Times
    user_id: int
    run_id: str = ""


def schedules_of(organization_id: int) -> QuerySet[Schedule]:
    return Schedule.objects.filter(organization_id=organization_id)


def one_schedule(organization_id: int, schedule_id: int) -> Schedule:
    """The schedule with its employee, locked when a transaction is open.

    Raises:
        ToolError: NOT_FOUND, also for another organisation's.
    """
    rows = schedules_of(organization_id).select_related("employee")
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


def check_new(organization_id: int, wanted: Wanted) -> None:
    """Refuse what is there already, and one more than an organisation may have.

    Raises:
        ToolError: INVALID_OPERATION, LIMIT_EXCEEDED
    """
    kept = schedules_of(organization_id).filter(cancelled_at=None)
    same = kept.filter(employee_id=wanted.employee_id, cron=wanted.times.cron, time_zone=wanted.times.time_zone)
    if (twin := same.filter(task=wanted.task).values_list("pk", flat=True).first()) is not None:
        raise ToolError(
            ErrorCode.INVALID_OPERATION,
            f"This is schedule {twin} already.",
            recovery_hint="Nothing needs to be done; go on with the task.",
            attempted=False,
        )
    if kept.count() >= MOST_SCHEDULES:
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            f"There are {MOST_SCHEDULES} schedules already; that is the most.",
            recovery_hint="Cancel one that is not needed any more.",
            attempted=False,
        )


def create(organization_id: int, wanted: Wanted) -> Schedule:
    """Make a schedule; it fires first at its next time.

    Raises:
        ToolError: INVALID_OPERATION, LIMIT_EXCEEDED, INVALID_CRON_SPEC: it has no next time.
    """
    with transaction.atomic():
        check_new(organization_id, wanted)
        return Schedule.objects.create(
            organization_id=organization_id,
            employee_id=wanted.employee_id,
            task=wanted.task,
            cron=wanted.times.cron,
            time_zone=wanted.times.time_zone,
            next_at=_first(wanted.times, now_for(organization_id)),
            created_by_id=wanted.user_id,
            made_by_id=wanted.user_id,
            made_in_run=wanted.run_id,
        )


def cancel(schedule: Schedule, by: str) -> None:
    """End it for good; it is not to be cancelled yet. `by` is a name."""
    Schedule.objects.filter(pk=schedule.pk, cancelled_at=None).update(
        is_active=False, next_at=None, cancelled_at=Now(), cancelled_by=by[:200]
    )


def pause(schedule: Schedule, problem: str = "") -> None:
    """It fires no more until it is resumed. `problem` says why, if it is not a person's wish."""
    schedule.is_active, schedule.next_at, schedule.problem = False, None, problem[:300]
    schedule.save(update_fields=["is_active", "next_at", "problem"])


def resume(schedule: Schedule, user_id: int) -> None:
    """It fires again from its next time on, on behalf of this person; what it missed is not made up for.

    Raises:
        ToolError: INVALID_CRON_SPEC: it has no next time any more.
    """
    schedule.next_at = _first(schedule.times, now_for(schedule.organization_id))
    schedule.is_active, schedule.problem, schedule.created_by_id = True, "", user_id
    schedule.save(update_fields=["is_active", "next_at", "problem", "created_by"])


def now_for(organization_id: int) -> datetime:
    """The database's time."""
    organizations = Schedule.organization.field.related_model._default_manager
    now: datetime = organizations.filter(pk=organization_id).values_list(Now(), flat=True).get()
    return now


def _first(times: Times, now: datetime) -> datetime:
    if (time := times.next_after(now)) is None:
        raise ToolError(ErrorCode.INVALID_CRON_SPEC, f"{times.cron!r} never comes.", parameter="cron", attempted=False)
    return time
