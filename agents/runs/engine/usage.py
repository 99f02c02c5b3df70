"""Count the usage of responses, including those that could not be used (step 6 of a run)."""

from dataclasses import dataclass

from agents.providers.base import Usage
from agents.runs.budgets import compute_cost, find_price, to_currency
from agents.runs.engine.transaction import Transaction
from agents.runs.model_events import AnswerUnusable
from agents.runs.models import Run

STOPPED = "stopped"
"""The code of a response that was abandoned because its run was cancelled or its worker stopped."""


@dataclass(frozen=True)
class UnusableResponse:
    """A complete or partial response that does not become a pass.

    Attributes:
        reason: the provider's message.
        text: the received text, if the response was cut off.
    """

    used: Usage
    duration_ms: int
    code: str = STOPPED
    reason: str = ""
    text: str = ""


def count_usage(run: Run, used: Usage) -> int:
    """Add a response's usage to the run, and return its cost in micros; the run has its employee
    and provider loaded."""
    cost = compute_usage_cost(run, used)
    run.input_tokens += used.input_tokens
    run.output_tokens += used.output_tokens
    run.cost_micros += cost
    if used.is_estimated:
        run.estimated_tokens += used.total
    return cost


def compute_usage_cost(run: Run, used: Usage) -> int:
    """Return the cost of a response in micros; the run has its employee and provider loaded."""
    return compute_cost(run.employee.provider, run.employee.model, used)


def count_unusable(tx: Transaction, received: UnusableResponse, is_counted: bool = False) -> None:
    """Add a response without a pass to the run's usage and time, and publish it.

    Args:
        is_counted: True if the usage was already added to the run.
    """
    run, used = tx.run, received.used
    price = find_price(run.employee.provider, run.employee.model)
    cost = compute_usage_cost(run, used) if is_counted else count_usage(run, used)
    run.unusable_ms += received.duration_ms
    tx.publish(
        AnswerUnusable(
            pass_number=run.pass_number + 1,
            code=received.code,
            reason=received.reason,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            usage_estimated=used.is_estimated,
            cost=to_currency(cost if price else None),
            text=received.text or None,
            duration_ms=received.duration_ms,
        )
    )
