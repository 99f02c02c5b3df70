"""The loop: drives one run as far as it can go now."""

import logging

from agents.engine import endings, lease, parking, passes, turns, usage
from agents.engine.budgets import BudgetExhausted
from agents.engine.endings import Ending
from agents.engine.execution import run_ready
from agents.engine.recipes import expand
from agents.engine.recovery import recover
from agents.engine.suspended import collect
from agents.engine.timing import PATIENCE_TRIES, timing
from agents.engine.turns import LEAVE, Move, Turn
from agents.engine.writes import run_approved
from agents.models import EventType, ExitReason
from agents.providers.base import ProviderError, ProviderStopped

logger = logging.getLogger(__name__)

_USELESS_ANSWERS = {"answer_cut": ExitReason.ANSWER_CUT, "answer_filtered": ExitReason.ANSWER_FILTERED}
"""Error codes for which an answer came, but was unusable."""


def advance(run_id: int) -> None:
    """Drive the run until it waits, ends, or other runs get their turn; does nothing if it is not due or not free."""
    held = lease.claim(run_id)
    if held is None and collect(run_id):
        held = lease.claim(run_id)
    if held is None:
        return
    try:
        with lease.kept(held):
            turn = recover(held)
            while turn.move != Move.LEAVE:
                turn = _make(held, turn)
    except lease.LeaseLost:
        logger.info("run %s: the lease was lost", run_id)


def _make(held: lease.Claim, turn: Turn) -> Turn:
    """Make one move and return the next."""
    if turn.move == Move.EXECUTE_APPROVED:
        return run_approved(held)
    if turn.move == Move.EXECUTE_READY:
        return run_ready(held)
    if turn.move == Move.EXPAND:
        return expand(held)
    return _pass(held, turn)


def _pass(held: lease.Claim, turn: Turn) -> Turn:
    """Ask the model, record what it answers, and run at once what needs nobody's approval."""
    try:
        answer = passes.ask(held, turn)
    except ProviderStopped:
        return _stopped(held)
    except BudgetExhausted as error:
        return _exhausted(held, error)
    except ProviderError as error:
        return _unanswered(held, turn, error)
    recorded = passes.record(held, turn, answer)
    return run_ready(held, recorded.place, recorded.started) if recorded.started else recorded.turn


def _stopped(held: lease.Claim) -> Turn:
    """The driver was told to stop while the model was writing: cancelled, going down, or the lease is lost."""
    with held.recording() as record:
        if record.run.cancel_requested_at is None:
            parking.requeue(record)
            return LEAVE
        return turns.settle(record, held)


def _exhausted(held: lease.Claim, error: BudgetExhausted) -> Turn:
    """Nothing more may be spent: the run ends, and says on what."""
    with held.recording() as record:
        if record.run.cancel_requested_at is not None:
            return turns.settle(record, held)
        endings.end(record, Ending(ExitReason.BUDGET_EXHAUSTED, problem=error.detail))
        return LEAVE


def _unanswered(held: lease.Claim, turn: Turn, error: ProviderError) -> Turn:
    """The provider failed: wait and try again later, or end the run with a reason that a person understands."""
    logger.warning("run %s: the provider failed: %s", held.run_id, error)
    with held.recording() as record:
        run = record.run
        if error.usage is not None:
            usage.count(run, error.usage)
        if run.cancel_requested_at is not None:
            return turns.settle(record, held)
        if turn.move == Move.CLOSE and run.message_count == run.messages_heard:
            endings.end(record, Ending(turn.reason, problem=str(error)))
            return LEAVE
        if turns.is_late(record):
            endings.end(record, Ending(ExitReason.DEADLINE))
            return LEAVE
        run.patience_tries += 1
        run.patience_since = run.patience_since or record.now
        most_tries = PATIENCE_TRIES if error.most_tries is None else error.most_tries
        patient = run.patience_tries < most_tries and record.now - run.patience_since < timing().patience
        pause = timing().backoff(run.patience_tries, error.retry_after)
        if not (error.transient and patient) or pause > timing().patience:
            reason = _USELESS_ANSWERS.get(error.code, ExitReason.PROVIDER_ERROR)
            endings.end(record, Ending(reason, problem=error.message if error.code in _USELESS_ANSWERS else str(error)))
            return LEAVE
        parking.requeue(record)
        run.problem = str(error)
        run.next_wake_at = record.now + pause
        record.publish(
            EventType.PROVIDER_DELAYED,
            code=error.code,
            reason=error.message,
            tries=run.patience_tries,
            retry_at=(record.now + pause).isoformat(),
        )
        return LEAVE
