"""The loop that drives a run: `advance` takes one step after another until the run waits, ends or yields.

The steps of a run, each with the file that takes it:

1. Claim the run, or leave it to its driver. If it waits for colleagues, collect their results first: `lease`,
   `suspension`.
2. Settle the calls that a lost worker left executing: `recovery`.
3. Run the approved calls one by one; judge and preview each again before it starts: `writes`.
4. Take a recipe one step further: `suspension`.
5. Ask the model, then judge and preview the calls that it requests: `context`, `history`, `passes`.
6. Record the pass with its calls and cards in one transaction: `passes`, `requested_calls`, `cards`.
7. Run the calls that need no approval side by side, and record their results: `execution`, `results`.
8. Decide the next step. Every `Lease.transaction` does this when it exits: `next_step`; `ending` parks or ends the run.

Every change of a run is one `Transaction` on its row: `transaction`. Its events are defined in `agents.runs.events`.
"""

import logging

from agents.employees.budgets import BudgetExhausted
from agents.providers.base import ProviderError, ProviderStopped
from agents.runs.engine.ending import Ending, end_run
from agents.runs.engine.execution import run_ready
from agents.runs.engine.lease import Lease, LeaseLost, claim, keep_renewing
from agents.runs.engine.passes import ask_model, count_usage, record_pass
from agents.runs.engine.recovery import settle_lost_calls
from agents.runs.engine.suspension import collect_delegate_results, expand_recipe
from agents.runs.engine.timing import MAX_PROVIDER_TRIES, timing
from agents.runs.engine.transaction import Action, NextStep, Transaction
from agents.runs.engine.writes import run_approved
from agents.runs.events import ProviderDelayed
from agents.runs.models import ExitReason

logger = logging.getLogger(__name__)

_UNUSABLE_ANSWERS = {"answer_cut": ExitReason.ANSWER_CUT, "answer_filtered": ExitReason.ANSWER_FILTERED}
"""The codes of provider errors that mean that an answer came and is unusable."""


def advance(run_id: int) -> None:
    """Drive the run until it waits, ends or yields to other runs; do nothing if it is not due or has a driver."""
    lease = claim(run_id)  # 1
    if lease is None and collect_delegate_results(run_id):
        lease = claim(run_id)
    if lease is None:
        return
    try:
        with keep_renewing(lease):
            step = find_first_step(lease)  # 2
            while step.action != Action.LEAVE:
                step = _take_step(lease, step)
    except LeaseLost:
        logger.info("run %s: the lease was lost", run_id)


def find_first_step(lease: Lease) -> NextStep:
    """Settle the calls that the last driver left executing, and find the first step; one transaction."""
    with lease.transaction() as tx:
        settle_lost_calls(tx)
    return tx.next_step  # 8


def _take_step(lease: Lease, step: NextStep) -> NextStep:
    """Take one step and return the next."""
    if step.action == Action.RUN_APPROVED:
        return run_approved(lease)  # 3
    if step.action == Action.EXPAND:
        return expand_recipe(lease)  # 4
    if step.action == Action.RUN_READY:
        return run_ready(lease)  # 7
    try:
        answer = ask_model(lease, step)  # 5
    except (ProviderStopped, BudgetExhausted, ProviderError) as failure:
        return _handle_missing_answer(lease, step, failure)
    recorded = record_pass(lease, step, answer)  # 6
    return run_ready(lease, recorded.context, recorded.started) if recorded.started else recorded.step  # 7


def _handle_missing_answer(
    lease: Lease, step: NextStep, failure: ProviderStopped | BudgetExhausted | ProviderError
) -> NextStep:
    """Requeue or end a run whose model gave no answer; a cancelled run ends as cancelled."""
    with lease.transaction() as tx:
        if isinstance(failure, ProviderError):
            logger.warning("run %s: the provider failed: %s", lease.run_id, failure)
            if failure.usage is not None:
                count_usage(tx.run, failure.usage)
        if tx.run.cancel_requested_at is None:
            if isinstance(failure, ProviderStopped):
                tx.requeue()
            elif isinstance(failure, BudgetExhausted):
                end_run(tx, Ending(ExitReason.BUDGET_EXHAUSTED, problem=failure.detail))
            else:
                _retry_or_end(tx, step, failure)
    return tx.next_step


def _retry_or_end(tx: Transaction, step: NextStep, error: ProviderError) -> None:
    """Schedule another try with a failed provider, or end the run with a reason for people."""
    run = tx.run
    if step.action == Action.ASK_FOR_ANSWER and run.message_count == run.messages_heard:
        # A closing pass is not retried: `end_run` writes an answer itself.
        end_run(tx, Ending(step.reason, problem=str(error)))
        return
    if tx.is_late:
        end_run(tx, Ending(ExitReason.DEADLINE))
        return
    run.patience_tries += 1
    run.patience_since = run.patience_since or tx.now
    max_tries = MAX_PROVIDER_TRIES if error.most_tries is None else error.most_tries
    may_retry = run.patience_tries < max_tries and tx.now - run.patience_since < timing().patience
    pause = timing().backoff(run.patience_tries, error.retry_after)
    if not (error.transient and may_retry) or pause > timing().patience:
        reason = _UNUSABLE_ANSWERS.get(error.code, ExitReason.PROVIDER_ERROR)
        end_run(tx, Ending(reason, problem=error.message if error.code in _UNUSABLE_ANSWERS else str(error)))
        return
    tx.requeue()
    run.problem = str(error)
    run.next_wake_at = tx.now + pause
    tx.publish(ProviderDelayed(error.code, error.message, run.patience_tries, (tx.now + pause).isoformat()))
