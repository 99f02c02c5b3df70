"""The usage of answers: counted with their pass, or estimated until the model's server reports it."""

from dataclasses import dataclass
from functools import partial

from django.db import transaction

from agents.boundaries import surviving
from agents.engine import prices
from agents.engine.connections import let_go
from agents.engine.prices import Price
from agents.events import Recording, recording
from agents.models import EventType, Pass, Run
from agents.providers.base import LateUsage, Usage


def count(run: Run, used: Usage) -> int:
    """Add an answer's usage to the run, and return its cost in micros; needs the run's employee and provider."""
    cost = prices.cost_of(run.employee.provider, run.employee.model, used)
    run.input_tokens += used.input_tokens
    run.output_tokens += used.output_tokens
    run.cost_micros += cost
    if used.is_estimated:
        run.estimated_tokens += used.total
    return cost


def correct_later(run: Run, late_usage: LateUsage) -> None:
    """Once the usage comes, correct the pass recorded in this transaction, whoever drives the run by then."""
    late = _Late(run.pk, run.pass_number, prices.price_of(run.employee.provider, run.employee.model))
    transaction.on_commit(partial(late_usage.then, late.replace_estimate), robust=True)


@dataclass(frozen=True)
class _Late:
    """A recorded pass whose usage is an estimate.

    Attributes:
        price: the price at which it was counted.
    """

    run_id: int
    number: int
    price: Price | None

    def replace_estimate(self, used: Usage) -> None:
        """Replace the estimate with the usage, in a thread without a run."""
        with surviving("recording a late usage"):
            try:
                with recording(self.run_id) as record:
                    self._correct(record, used)
            finally:
                let_go()

    def _correct(self, record: Recording, used: Usage) -> None:
        run, rows = record.run, Pass.objects.filter(run_id=self.run_id, number=self.number, usage_estimated=True)
        cost = self.price.of(used) if self.price else 0
        estimated = rows.values_list("input_tokens", "output_tokens", "cost_micros").first()
        exact = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens, "cost_micros": cost}
        if estimated is None or not rows.update(**exact, usage_estimated=False):
            return
        for (name, value), before in zip(exact.items(), estimated, strict=True):
            setattr(run, name, max(0, getattr(run, name) + value - before))
        run.estimated_tokens = max(0, run.estimated_tokens - estimated[0] - estimated[1])
        record.publish(
            EventType.USAGE_REPORTED,
            pass_number=self.number,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost=prices.in_units(cost if self.price else None),
        )
