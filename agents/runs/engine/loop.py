"""The loop that drives a run: `advance` takes one step after another until the run waits, ends or
yields.

The steps of a run, each with the file that takes it:

1. Acquire the run's lease, or leave the run to its driver. If the run waits for colleagues, collect
   their results first: `lease`, `suspension`.
2. Settle the calls that a lost worker left executing: `recovery`.
3. Run the approved calls one by one; judge and preview each again before it starts:
   `approved_calls`, `writes`.
4. Take a recipe one step further: `suspension`.
5. Ask the model, then judge and preview the calls that it requests: `context`, `history`, `passes`.
   Without a usable response, ask again later or end the run: `missing_responses`.
6. Record the pass with its calls and cards in one transaction: `passes`, `requested_calls`,
   `cards`. If that fails, the run keeps the response for its next driver: `kept_responses`.
7. Run the calls that need no approval side by side, and record their results: `execution`,
   `results`.
8. Decide the next step. Every `Lease.transaction` does this when it exits: `next_step`; `ending`
   parks or ends the run.

Calls are judged before the run's lock and again under it: `judgment`. Every change of a run is one
`Transaction` on its row: `transaction`. Its events are defined in `agents.runs.events`.
"""

import logging

from agents.platform.log_context import correlate, log_for_organization, restoring_correlation
from agents.providers.base import ProviderError, ProviderStopped
from agents.runs.budgets import BudgetExhausted
from agents.runs.engine.execution import run_ready
from agents.runs.engine.lease import Lease, LeaseLost, acquire, keep_renewing
from agents.runs.engine.missing_responses import handle_missing_response
from agents.runs.engine.passes import ask_model, record_pass
from agents.runs.engine.recovery import settle_lost_calls
from agents.runs.engine.suspension import collect_delegate_results, expand_recipe
from agents.runs.engine.transaction import Action, NextStep
from agents.runs.engine.writes import run_approved

logger = logging.getLogger(__name__)


def advance(run_id: int) -> None:
    """Drive the run until it waits, ends or yields to other runs; do nothing if it is not due or
    has a driver."""
    lease = acquire(run_id)  # 1
    if lease is None and collect_delegate_results(run_id):
        lease = acquire(run_id)
    if lease is None:
        return
    try:
        with keep_renewing(lease), restoring_correlation():
            step = start_driving(lease)  # 2
            while step.action != Action.LEAVE:
                step = _take_step(lease, step)
    except LeaseLost:
        logger.info("run %s: the lease was lost", run_id)


def start_driving(lease: Lease) -> NextStep:
    """Settle the calls that the last driver left executing, and return the first step, in one
    transaction."""
    with lease.transaction() as tx:
        log_for_organization(tx.run.organization_id)
        correlate(tx.run.correlation)
        settle_lost_calls(tx)
    return tx.next_step  # 8


def _take_step(lease: Lease, step: NextStep) -> NextStep:
    """Take one step, and return the next one."""
    if step.action == Action.RUN_APPROVED:
        return run_approved(lease)  # 3
    if step.action == Action.EXPAND:
        return expand_recipe(lease)  # 4
    if step.action == Action.RUN_READY:
        return run_ready(lease)  # 7
    try:
        received = ask_model(lease, step)  # 5
    except (ProviderStopped, BudgetExhausted, ProviderError) as failure:
        return handle_missing_response(lease, step, failure)
    recorded = record_pass(lease, step, received)  # 6
    return (
        run_ready(lease, recorded.context, recorded.started) if recorded.started else recorded.step
    )  # 7
