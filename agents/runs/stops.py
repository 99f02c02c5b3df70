"""The stop: whoever works here may stop everything, an employee or a tool at once; an admin lets it go on.

A stop is a fact in the row of what was stopped. From its commit on no run of it is claimed, and each run that lives is
then told under its own lock, which every start of a call holds too. What is left undone, because the process dies in
between or a lock is not to be had, the sweeper does: `apply`.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.accounts import audit
from agents.accounts.models import Membership, Organization, Role
from agents.employees.models import Employee, ToolRule
from agents.employees.toolboxes import toolbox_of
from agents.platform import notify
from agents.platform.refusals import Conflict, Forbidden, NotFound
from agents.runs.engine import ending, next_step
from agents.runs.engine.transaction import MACHINE, Transaction, run_transaction
from agents.runs.events import RunResumed, RunStopped
from agents.runs.models import ENDED, PARKED, Run, RunStatus


@dataclass(frozen=True)
class _Act:
    """What somebody does: `action` for the audit, `role` is the least that may do it."""

    action: str
    role: Role
    words: str


_STOP = _Act("stopped", Role.OPERATOR, "stop anything")
_RELEASE = _Act("released", Role.ADMIN, "let go on what was stopped")


def stop_everything(member: Membership) -> None:
    """No run of the organisation starts anything, until an admin says so.

    Raises:
        Forbidden, Conflict: it is stopped already.
    """
    _demand(member, _STOP)
    with transaction.atomic():
        running = Organization.objects.filter(pk=member.organization_id, stopped_at=None)
        if not running.update(stopped_at=Now(), stopped_by=_name(member)):
            raise Conflict("Everything is stopped already.")
        _record(member, _STOP, f"organization:{member.organization_id}")
        _ring(member)
    _tell(Run.objects.filter(organization_id=member.organization_id))


def release_everything(member: Membership) -> None:
    """Take `stop_everything` back; what was stopped by itself stays so.

    Raises:
        Forbidden, Conflict: it is not stopped.
    """
    _demand(member, _RELEASE)
    with transaction.atomic():
        stopped = Organization.objects.filter(pk=member.organization_id, stopped_at__isnull=False)
        if not stopped.update(stopped_at=None, stopped_by=""):
            raise Conflict("Nothing is stopped.")
        _record(member, _RELEASE, f"organization:{member.organization_id}")
        _ring(member)
    _tell(Run.objects.filter(organization_id=member.organization_id))


def stop_employee(member: Membership, employee_id: int) -> Employee:
    """No run of this employee starts anything, until an admin says so.

    Raises:
        Forbidden, NotFound, Conflict: it is stopped already.
    """
    _demand(member, _STOP)
    employee = _employee(member, employee_id)
    with transaction.atomic():
        running = Employee.objects.filter(pk=employee_id, stopped_at=None)
        if not running.update(stopped_at=Now(), stopped_by=_name(member)):
            raise Conflict(f"{employee.name} is stopped already.")
        _record(member, _STOP, f"employee:{employee_id}", name=employee.name)
    _tell(Run.objects.filter(employee_id=employee_id))
    return employee


def release_employee(member: Membership, employee_id: int) -> Employee:
    """Take `stop_employee` back.

    Raises:
        Forbidden, NotFound, Conflict: it is not stopped.
    """
    _demand(member, _RELEASE)
    employee = _employee(member, employee_id)
    with transaction.atomic():
        stopped = Employee.objects.filter(pk=employee_id, stopped_at__isnull=False)
        if not stopped.update(stopped_at=None, stopped_by=""):
            raise Conflict(f"{employee.name} is not stopped.")
        _record(member, _RELEASE, f"employee:{employee_id}", name=employee.name)
    _tell(Run.objects.filter(employee_id=employee_id))
    return employee


def stop_tool(member: Membership, tool: str) -> None:
    """No call of this tool starts in the organisation; what is asked for is refused, until an admin says otherwise.

    Raises:
        Forbidden, NotFound, Conflict: it is stopped already.
    """
    _demand(member, _STOP)
    found = toolbox_of(member.organization_id).get_tool(tool)
    if found is None:
        raise NotFound(f"There is no tool {tool}.")
    tool = found.name
    with transaction.atomic():
        ToolRule.objects.bulk_create(
            [ToolRule(organization_id=member.organization_id, tool=tool)], ignore_conflicts=True
        )
        running = ToolRule.objects.filter(organization_id=member.organization_id, tool=tool, stopped_at=None)
        if not running.update(stopped_at=Now(), stopped_by=_name(member)):
            raise Conflict(f"{tool} is stopped already.")
        _record(member, _STOP, f"tool:{tool}")


def release_tool(member: Membership, tool: str) -> None:
    """Take `stop_tool` back.

    Raises:
        Forbidden, Conflict: it is not stopped.
    """
    _demand(member, _RELEASE)
    with transaction.atomic():
        rules = ToolRule.objects.filter(organization_id=member.organization_id, tool=tool)
        if not rules.filter(stopped_at__isnull=False).update(stopped_at=None, stopped_by=""):
            raise Conflict(f"{tool} is not stopped.")
        rules.filter(level="").delete()
        _record(member, _RELEASE, f"tool:{tool}")


def refuse_stopped(employee: Employee) -> None:
    """Raise Conflict in words if this employee, which comes with its organisation, may not start anything now."""
    if why := _why(employee):
        raise Conflict(f"{why} Nothing can be started until an admin lifts the stop.", stopped=True)


def tell_all(organization_id: int) -> None:
    """Let every run of the organization know if it may continue, and have open pages refresh."""
    notify.ring_inbox(organization_id)
    _tell(Run.objects.filter(organization_id=organization_id))


def apply(run_id: int, wait: bool = False) -> bool:
    """Tell the run, under its lock, whether it may go on; False if it knows.

    Raises:
        Run.DoesNotExist: without `wait`, it is not free.
    """
    with run_transaction(run_id, wait=wait) as tx:
        run = tx.run
        why = "" if run.has_ended else _why(Employee.objects.select_related("organization").get(pk=run.employee_id))
        if why == run.stopped_because:
            return False
        run.stopped_because = why
        _publish(tx, why)
        return True


def _publish(tx: Transaction, why: str) -> None:
    run = tx.run
    if why:
        tx.publish(RunStopped(why))
        return
    if run.has_ended:
        return
    tx.publish(RunResumed(MACHINE, "It may continue."))
    if run.status == RunStatus.QUEUED:
        tx.requeue()
    elif run.status in PARKED and not next_step.wake_if_possible(tx):
        ending.park(tx, needs_attention=run.status == RunStatus.NEEDS_ATTENTION)


def _ring(member: Membership) -> None:
    """Open pages look again once this is committed."""
    transaction.on_commit(partial(notify.ring_inbox, member.organization_id))


def _tell(runs: QuerySet[Run]) -> None:
    """Those that execute come first; one that cannot be locked is left to the sweeper."""
    for pk in _running_first(runs.exclude(status__in=ENDED)):
        with suppress(Run.DoesNotExist, OperationalError):
            apply(pk, wait=True)


def _running_first(runs: QuerySet[Run]) -> Iterable[int]:
    rows = list(runs.order_by("pk").values_list("pk", "status"))
    return [pk for pk, _ in sorted(rows, key=lambda row: row[1] != RunStatus.RUNNING)]


def _why(employee: Employee) -> str:
    if employee.organization.stopped_at is not None:
        return f"{employee.organization.stopped_by} stopped everything."
    return f"{employee.stopped_by} stopped {employee.name}." if employee.stopped_at is not None else ""


def _employee(member: Membership, employee_id: int) -> Employee:
    employee = Employee.objects.filter(organization_id=member.organization_id, pk=employee_id).first()
    if employee is None:
        raise NotFound(f"There is no employee {employee_id}.")
    return employee


def _demand(member: Membership, act: _Act) -> None:
    if not member.may(act.role):
        raise Forbidden(f"{member.as_noun} may not {act.words}")


def _name(member: Membership) -> str:
    return member.user.get_username()


def _record(member: Membership, act: _Act, subject: str, **payload: str) -> None:
    audit.append(member.organization_id, [audit.Entry(f"user:{_name(member)}", act.action, subject, payload)])
