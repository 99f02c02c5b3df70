"""Stops: an operator can immediately stop everything, an employee or a tool. An admin can lift the
stop, and so can the operator within UNDO_TIME.

A stop is stored in the row of the organization, employee or tool. Once the stop is committed,
stopped runs no longer get a driver. Then `apply` records the stop on each open run, under the lock
without which none of the run's calls can start. If the process dies in between, or a lock is not
available, the sweeper does the rest.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts import audit
from agents.accounts.models import Membership, Organization, Role
from agents.accounts.notice_facts import NoticeFact, NoticeKind, clean_name, tell
from agents.employees.models import Employee, ToolRule
from agents.employees.toolboxes import load_toolbox
from agents.platform import notify
from agents.platform.refusals import Conflict, NotFound
from agents.platform.row_ids import get_row
from agents.runs.engine import ending, next_step
from agents.runs.engine.transaction import MACHINE, Transaction, run_transaction
from agents.runs.events import RunResumed, RunStopped
from agents.runs.models import ENDED, PARKED, Run, RunStatus
from tools.toolbox.objections import Objection

RELEASE_GUARDS: list[Callable[[int], Conflict | None]] = []
"""Functions that return the reason why the stop of the organization with this id cannot be lifted
yet; None if it can."""


@dataclass(frozen=True)
class _StopAction:
    """An action, either stop or resume: its name in the audit, the lowest role that may perform it,
    and the words for a refusal."""

    action: str
    role: Role
    words: str


UNDO_TIME = timedelta(minutes=2)
"""The time in which people can resume what they have stopped themselves, even if they are not
admins."""
_STOP = _StopAction("stopped", Role.OPERATOR, "stop anything")
_RELEASE = _StopAction("released", Role.ADMIN, "resume what was stopped")


def stop_everything(member: Membership) -> None:
    """Stop all runs of the organization: they do not start any call until they are resumed.

    Raises:
        Forbidden
        Conflict: everything is already stopped.
    """
    member.require(_STOP.role, _STOP.words)
    with transaction.atomic():
        running = Organization.objects.filter(pk=member.organization_id, stopped_at=None)
        if not running.update(stopped_at=Now(), stopped_by=_name(member)):
            raise Conflict("Everything is already stopped.")
        _audit(member, _STOP, f"organization:{member.organization_id}")
        _tell(member, "everything", {"stopped": "organization"})
        _ring_inbox(member)
    _apply_to_runs(Run.objects.filter(organization_id=member.organization_id))


def release_everything(member: Membership) -> None:
    """Undo `stop_everything`; employees and tools that were stopped separately stay stopped.

    Raises:
        Forbidden
        Conflict: nothing is stopped, or restored limits are not confirmed yet.
    """
    _require_release(member, Organization.objects.get(pk=member.organization_id))
    with transaction.atomic():
        for find_refusal in RELEASE_GUARDS:
            if (refusal := find_refusal(member.organization_id)) is not None:
                raise refusal
        stopped = Organization.objects.filter(pk=member.organization_id, stopped_at__isnull=False)
        if not stopped.update(stopped_at=None, stopped_by=""):
            raise Conflict("Nothing is stopped.")
        _audit(member, _RELEASE, f"organization:{member.organization_id}")
        _ring_inbox(member)
    _apply_to_runs(Run.objects.filter(organization_id=member.organization_id))


def stop_employee(member: Membership, employee_id: int) -> Employee:
    """Stop an employee: its runs do not start any call until it is resumed.

    Raises:
        Forbidden, NotFound
        Conflict: the employee is already stopped.
    """
    member.require(_STOP.role, _STOP.words)
    employee = _find_employee(member, employee_id)
    with transaction.atomic():
        running = Employee.objects.filter(pk=employee_id, stopped_at=None)
        if not running.update(stopped_at=Now(), stopped_by=_name(member)):
            raise Conflict(f"{employee.name} is already stopped.")
        _audit(member, _STOP, f"employee:{employee_id}", name=employee.name)
        about = {"stopped": "employee", "employee_id": str(employee_id)}
        _tell(member, employee.name, about)
    _apply_to_runs(Run.objects.filter(employee_id=employee_id))
    return employee


def release_employee(member: Membership, employee_id: int) -> Employee:
    """Undo `stop_employee`.

    Raises:
        Forbidden, NotFound
        Conflict: the employee is not stopped.
    """
    employee = _find_employee(member, employee_id)
    _require_release(member, employee)
    with transaction.atomic():
        stopped = Employee.objects.filter(pk=employee_id, stopped_at__isnull=False)
        if not stopped.update(stopped_at=None, stopped_by=""):
            raise Conflict(f"{employee.name} is not stopped.")
        _audit(member, _RELEASE, f"employee:{employee_id}", name=employee.name)
    _apply_to_runs(Run.objects.filter(employee_id=employee_id))
    return employee


def stop_tool(member: Membership, tool: str) -> None:
    """Stop a tool in the organization: its calls are refused until it is resumed.

    Raises:
        Forbidden, NotFound
        Conflict: the tool is already stopped.
    """
    member.require(_STOP.role, _STOP.words)
    found = load_toolbox(member.organization_id).get_tool(tool)
    if found is None:
        raise NotFound(f"There is no tool {tool}.")
    tool = found.name
    with transaction.atomic():
        ToolRule.objects.bulk_create(
            [ToolRule(organization_id=member.organization_id, tool=tool)], ignore_conflicts=True
        )
        running = ToolRule.objects.filter(
            organization_id=member.organization_id, tool=tool, stopped_at=None
        )
        if not running.update(stopped_at=Now(), stopped_by=_name(member)):
            raise Conflict(f"{tool} is already stopped.")
        _audit(member, _STOP, f"tool:{tool}")
        _tell(member, f"{found.title}", {"stopped": "tool"})


def release_tool(member: Membership, tool: str) -> None:
    """Undo `stop_tool`.

    Raises:
        Forbidden
        Conflict: the tool is not stopped.
    """
    _require_release(
        member, ToolRule.objects.filter(organization_id=member.organization_id, tool=tool).first()
    )
    with transaction.atomic():
        rules = ToolRule.objects.filter(organization_id=member.organization_id, tool=tool)
        if not rules.filter(stopped_at__isnull=False).update(stopped_at=None, stopped_by=""):
            raise Conflict(f"{tool} is not stopped.")
        rules.filter(level="").delete()
        _audit(member, _RELEASE, f"tool:{tool}")


def refuse_stopped(employee: Employee) -> None:
    """Raise Conflict with the reason if this employee is stopped; its organization must be
    loaded."""
    if (stop := _find_stop(employee)) is not None:
        raise Conflict(
            f"{stop.why} Nothing can be started until an admin lifts the stop.", stopped=True
        )


def apply_to_all(organization_id: int) -> None:
    """Apply the current stops to every run of the organization, and refresh open pages."""
    notify.ring_inbox(organization_id)
    _apply_to_runs(Run.objects.filter(organization_id=organization_id))


def apply(run_id: int, wait: bool = False) -> bool:
    """Record on the run, under its lock, whether it is stopped or may continue; return False if
    nothing changed.

    Raises:
        Run.DoesNotExist: without `wait`, the run is locked.
    """
    with run_transaction(run_id, wait=wait) as tx:
        run = tx.run
        stop = None if run.has_ended else _find_stop(_load_employee(run.employee_id))
        why = "" if stop is None else stop.why
        if why == run.stopped_because:
            return False
        run.stopped_because = why
        _publish(tx, stop)
        return True


def _tell(member: Membership, what: str, ids: Mapping[str, str]) -> None:
    """Write this stop to the log of the organization."""
    detail = f"{clean_name(what)}, by {_name(member)}"
    tell(NoticeFact(NoticeKind.STOPPED, member.organization_id, detail=detail, ids=ids))


def _publish(tx: Transaction, stop: Objection | None) -> None:
    run = tx.run
    if stop is not None:
        tx.publish(RunStopped(stop.why))
        return
    if run.has_ended:
        return
    tx.publish(RunResumed(MACHINE, "The stop was lifted."))
    if run.status == RunStatus.QUEUED and (run.next_wake_at is None or run.next_wake_at <= tx.now):
        tx.requeue()  # a run that pauses for its provider waits until the pause ends
    elif run.status in PARKED and not next_step.wake_if_possible(tx, is_announced=True):
        ending.park(tx, needs_attention=run.status == RunStatus.NEEDS_ATTENTION)


def _ring_inbox(member: Membership) -> None:
    """Refresh open pages after the commit."""
    transaction.on_commit(partial(notify.ring_inbox, member.organization_id))


def _apply_to_runs(runs: QuerySet[Run]) -> None:
    """Apply the stops to these runs, executing runs first; if a run cannot be locked, leave the run
    to the sweeper."""
    for pk in _running_first(runs.exclude(status__in=ENDED)):
        with suppress(Run.DoesNotExist, OperationalError):
            apply(pk, wait=True)


def _running_first(runs: QuerySet[Run]) -> Iterable[int]:
    rows = list(runs.order_by("pk").values_list("pk", "status"))
    return [pk for pk, _ in sorted(rows, key=lambda row: row[1] != RunStatus.RUNNING)]


def _find_stop(employee: Employee) -> Objection | None:
    if employee.organization.stopped_at is not None:
        return Objection(f"{employee.organization.stopped_by} stopped everything.")
    if employee.stopped_at is not None:
        return Objection(f"{employee.stopped_by} stopped {employee.name}.")
    return None


def _load_employee(employee_id: int) -> Employee:
    return Employee.objects.select_related("organization").get(pk=employee_id)


def _find_employee(member: Membership, employee_id: int) -> Employee:
    employees = Employee.objects.filter(organization_id=member.organization_id)
    return get_row(employees, employee_id, "employee")


def may_release(member: Membership, stopped: Organization | Employee | ToolRule | None) -> bool:
    """Return True if the member may lift this stop: as an admin, or as the person who stopped it,
    within UNDO_TIME."""
    if member.may(_RELEASE.role):
        return True
    if stopped is None or stopped.stopped_at is None or stopped.stopped_by != _name(member):
        return False
    return member.may(_STOP.role) and timezone.now() - stopped.stopped_at < UNDO_TIME


def _require_release(
    member: Membership, stopped: Organization | Employee | ToolRule | None
) -> None:
    if not may_release(member, stopped):
        member.require(_RELEASE.role, _RELEASE.words)


def _name(member: Membership) -> str:
    return member.user.get_username()


def _audit(member: Membership, act: _StopAction, subject: str, **payload: str) -> None:
    audit.record(member, act.action, subject, **payload)
