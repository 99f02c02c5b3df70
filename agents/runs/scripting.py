"""Run a task from a Python script or a test, and wait for the result. A worker drives the run, like
any other run."""

import time
from dataclasses import dataclass

from django.db import connection

from agents.accounts.models import Membership
from agents.employees.models import Employee
from agents.platform.refusals import NotFound
from agents.runs.actions import Submission, submit
from agents.runs.models import (
    ENDED,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    ExitReason,
    Run,
    RunStatus,
)

POLL_S = 0.2


@dataclass(frozen=True)
class TaskCard:
    """A card that waits for a person, in the run itself or in a colleague's run to which the run
    delegated."""

    id: int
    run_id: int
    kind: ApprovalKind
    tool: str
    sentence: str


@dataclass(frozen=True)
class TaskResult:
    """The state of a run when it ended, when it waits for a person, or at the timeout.

    Attributes:
        answer: the employee's answer; empty if there is none.
        problem: a sentence about what went wrong; empty if nothing went wrong.
        cards: the cards that wait, in the order in which they were requested.
    """

    run_id: int
    status: RunStatus
    exit_reason: ExitReason | None
    answer: str
    problem: str
    cards: tuple[TaskCard, ...] = ()

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED


def run_task(member: Membership, employee: str, task: str, timeout_s: float = 600.0) -> TaskResult:
    """Assign the task to the employee with this name, and wait until the run ends or waits for
    people.

    After the timeout, return the run's current state; the run continues. A worker must run in
    another thread or process.

    Raises:
        Forbidden, NotFound, Invalid, Conflict: as for `submit`.
        RuntimeError: a transaction is open, so no worker would see the run.
    """
    if connection.in_atomic_block:
        raise RuntimeError(
            "run_task() cannot wait inside a transaction: no worker sees the run before its end"
        )
    found = Employee.objects.filter(organization_id=member.organization_id, name=employee)
    employee_id = found.values_list("pk", flat=True).first()
    if employee_id is None:
        raise NotFound(f"there is no employee {employee!r}")
    until = time.monotonic() + timeout_s
    run, _ = submit(member, Submission(employee_id, task))
    while True:
        result = _load_result(run.pk)
        if result.has_ended or result.cards or (left := until - time.monotonic()) <= 0:
            return result
        time.sleep(min(POLL_S, left))


def _load_result(run_id: int) -> TaskResult:
    run = Run.objects.get(pk=run_id)
    return TaskResult(
        run_id=run.pk,
        status=RunStatus(run.status),
        exit_reason=ExitReason(run.exit_reason) if run.exit_reason else None,
        answer=run.answer,
        problem=run.problem,
        cards=_list_cards(run) if run.is_parked else (),
    )


def _list_cards(run: Run) -> tuple[TaskCard, ...]:
    """List the pending cards of the run and of the colleagues' runs that it waits for."""
    ids = parents = [run.pk]
    while parents:
        parents = list(Run.objects.filter(parent_id__in=parents).values_list("pk", flat=True))
        ids = [*ids, *parents]
    cards = Approval.objects.filter(run_id__in=ids, status=ApprovalStatus.PENDING).order_by("pk")
    return tuple(
        TaskCard(card.pk, card.run_id, ApprovalKind(card.kind), card.tool_call.tool, card.sentence)
        for card in cards.select_related("tool_call")
    )
