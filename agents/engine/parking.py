"""A run that nobody drives: it waits for people or time, or for its turn in the queue."""

from agents.engine import lease
from agents.events import Recording
from agents.models import Approval, ApprovalStatus, EventType, RunStatus

MACHINE = "gadget"
"""Who does what no person does, as the panel tells it."""


def park(record: Recording, needs_attention: bool) -> None:
    """The run waits for people or for time and holds no worker meanwhile."""
    run = record.run
    lease.drop(run)
    run.status = RunStatus.NEEDS_ATTENTION if needs_attention else RunStatus.WAITING
    cards = Approval.objects.filter(run_id=run.pk, status=ApprovalStatus.PENDING).values_list("pk", flat=True)
    event = EventType.RUN_NEEDS_ATTENTION if needs_attention else EventType.RUN_WAITING
    record.publish(event, approval_ids=[str(pk) for pk in cards.order_by("pk")])


def requeue(record: Recording) -> None:
    """Put the run into the queue, due at once."""
    run = record.run
    lease.drop(run)
    run.status = RunStatus.QUEUED
    run.next_wake_at = None
    run.hinted_at = None
