"""A run that nobody drives: it waits for people or time, or for its turn in the queue."""

from django.db.models import QuerySet

from agents.engine import lease
from agents.events import Recording
from agents.models import Approval, ApprovalKind, ApprovalStatus, CallStatus, EventType, Run, RunStatus

MACHINE = "gadget"
"""Who does what no person does, as the panel tells it."""


def park(record: Recording, needs_attention: bool) -> None:
    """The run waits for people or for time and holds no worker meanwhile."""
    run = record.run
    lease.drop(run)
    run.status = RunStatus.NEEDS_ATTENTION if needs_attention else RunStatus.WAITING
    pending = Approval.objects.filter(run_id=run.pk, status=ApprovalStatus.PENDING).order_by("pk")
    cards = list(pending.values_list("pk", "kind"))
    kinds = [kind for _, kind in cards]
    record.publish(
        EventType.RUN_NEEDS_ATTENTION if needs_attention else EventType.RUN_WAITING,
        approval_ids=[str(pk) for pk, _ in cards],
        decisions=kinds.count(ApprovalKind.APPROVAL),
        answers=kinds.count(ApprovalKind.QUESTION),
        colleagues=list(_colleagues(run)),
        pass_number=run.pass_number,
    )


def _colleagues(run: Run) -> QuerySet[Run, str]:
    """The names of those who work on what the run has handed over."""
    children = Run.objects.filter(parent_id=run.pk, parent_call__status=CallStatus.SUSPENDED)
    return children.order_by("pk").values_list("employee__name", flat=True)


def requeue(record: Recording) -> None:
    """Put the run into the queue, due at once."""
    run = record.run
    lease.drop(run)
    run.status = RunStatus.QUEUED
    run.next_wake_at = None
    run.hinted_at = None
