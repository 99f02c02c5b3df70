"""Replace the estimated usage of a recorded pass once the model server reports the real usage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from django.db import transaction

from agents.platform.database_connections import release_connection
from agents.platform.error_boundary import log_and_continue
from agents.providers.base import LateUsage, Usage
from agents.runs.budgets import Price, find_price, to_currency
from agents.runs.engine.transaction import Transaction, run_transaction
from agents.runs.model_events import UsageReported
from agents.runs.models import Pass, Run


def correct_usage_later(run: Run, late_usage: LateUsage) -> None:
    """Correct the usage of the pass that this transaction records, once the server reports it, even
    if another worker drives the run by then."""
    estimate = _EstimatedPass(
        run.pk, run.pass_number, find_price(run.employee.provider, run.employee.model)
    )
    transaction.on_commit(partial(late_usage.then, estimate.replace), robust=True)


@dataclass(frozen=True)
class _EstimatedPass:
    """A recorded pass whose usage is estimated.

    Attributes:
        price: the price from which the pass's cost was computed.
    """

    run_id: int
    number: int
    price: Price | None

    def replace(self, used: Usage) -> None:
        """Replace the estimate with the reported usage; called in a separate thread."""
        with log_and_continue("recording a late usage"):
            try:
                with run_transaction(self.run_id) as tx:
                    self._correct(tx, used)
            finally:
                release_connection()

    def _correct(self, tx: Transaction, used: Usage) -> None:
        run, rows = (
            tx.run,
            Pass.objects.filter(run_id=self.run_id, number=self.number, usage_estimated=True),
        )
        cost = self.price.compute_cost(used) if self.price else 0
        estimated = rows.values_list("input_tokens", "output_tokens", "cost_micros").first()
        exact = {
            "input_tokens": used.input_tokens,
            "output_tokens": used.output_tokens,
            "cost_micros": cost,
        }
        if estimated is None or not rows.update(
            **exact, cached_tokens=used.cached_tokens, usage_estimated=False
        ):
            return
        for (name, value), before in zip(exact.items(), estimated, strict=True):
            setattr(run, name, max(0, getattr(run, name) + value - before))
        run.estimated_tokens = max(0, run.estimated_tokens - estimated[0] - estimated[1])
        tx.publish(
            UsageReported(
                pass_number=self.number,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cost=to_currency(cost if self.price else None),
            )
        )
