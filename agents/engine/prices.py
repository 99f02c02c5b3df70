"""What models cost: prices of a million tokens, costs in whole millionths of the organisation's currency ("micros")."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from agents.models import ModelProvider, Run
from agents.providers.base import Usage

EVERY_OTHER = "*"
"""In the place of a model's name: the price of every model that has none of its own."""
MICROS = 1_000_000


@dataclass(frozen=True)
class Price:
    """Of a million tokens, in the organisation's currency."""

    input: Decimal
    output: Decimal

    @property
    def is_free(self) -> bool:
        return not self.input and not self.output

    def of(self, usage: Usage) -> int:
        """The cost in micros, rounded up: what has a price and was used is never free."""
        micros = self.input * usage.input_tokens + self.output * usage.output_tokens
        return int(micros.to_integral_value(ROUND_CEILING))


def price_of(provider: ModelProvider, model: str) -> Price | None:
    """What the provider takes for this model; None if nobody has said so."""
    kept = provider.prices.get(model) or provider.prices.get(EVERY_OTHER)
    return Price(Decimal(kept["input"]), Decimal(kept["output"])) if kept else None


def cost_of(provider: ModelProvider, model: str, usage: Usage) -> int:
    """The cost of one answer in micros; 0 where no price is known."""
    price = price_of(provider, model)
    return price.of(usage) if price else 0


def known_cost(run: Run) -> int | None:
    """What the run has cost in micros; None if it cannot be told, because no price is known, or none was then.

    Needs the run's employee and provider where nothing was counted.
    """
    if run.cost_micros:
        return run.cost_micros
    price = price_of(run.employee.provider, run.employee.model)
    if price is None:
        return None
    used = run.input_tokens or run.output_tokens
    return None if used and not price.is_free else 0


def in_units(micros: int | None) -> float | None:
    """Micros as an amount of the currency, as it goes out to other software."""
    return None if micros is None else micros / MICROS


def in_micros(amount: Decimal) -> int:
    return int(amount * MICROS)


def in_words(micros: int, currency: str) -> str:
    """`12.40 USD`, `0.0312 USD`, `0.000250 USD`: the smaller, the more exact."""
    amount = Decimal(micros) / MICROS
    places = 2 if not micros or amount >= 1 else 4 if amount >= Decimal("0.01") else 6
    return f"{amount:,.{places}f} {currency}".rstrip()
