"""Continue runs that lost their worker, or end them if that happens too often."""

import random

from agents.runs.engine.ending import Ending, end_run
from agents.runs.engine.recovery import requeue_after_loss
from agents.runs.engine.timing import MAX_CRASHES, timing
from agents.runs.engine.transaction import Transaction
from agents.runs.models import ExitReason


def requeue_or_end(tx: Transaction) -> None:
    """Requeue a run that lost its worker; end the run if it was cancelled or has lost too many
    workers."""
    run = tx.run
    if run.cancel_requested_at is not None:
        end_run(tx, Ending(ExitReason.CANCELLED))
        return
    run.crash_count += 1
    if run.crash_count >= MAX_CRASHES:
        end_run(tx, Ending(ExitReason.CRASH_LOOP))
        return
    requeue_after_loss(tx)
    # One of the worker's runs may have killed it, so spread their restarts.
    if run.crash_count > 1:
        run.next_wake_at = tx.now + timing().restart_spread * random.random()
