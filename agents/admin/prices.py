"""Prices of a provider's models, one per line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from django import forms

from agents.admin.fields import LinesField
from agents.employees.models import Employee, ModelProvider, ProviderKind
from agents.runs.budgets import ANY_MODEL, find_price

EXAMPLE = "gpt-5-mini: input 0.25, cached 0.025, output 2.00"
HELP = (
    f"Price per million tokens in the organization's currency, one model per line, e.g. “{EXAMPLE}”. "
    "“cached” is the price of input from the server's cache; without it, cached input costs as much as other input. "
    f"Use “{ANY_MODEL}” as the name for all other models. A model without a price counts as free."
)
LONGEST_MODEL = 120
MAX_PRICES = 200
HIGHEST_PRICE = Decimal(1_000_000)
MAX_DECIMALS = 6
_NAMES = ("input", "cached", "output")
_NUMBER = re.compile(r"[0-9]{1,7}(\.[0-9]+)?")


class PricesField(LinesField):
    """A field for prices, one per line. Its value is {model or "*": {"input": "0.25", "cached":
    "0.025", "output": "2.00"}}."""

    def __init__(self, **options: Any) -> None:
        super().__init__(longest=200, help_text=HELP, **options)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(format_prices(value)) if isinstance(value, dict) else value

    def clean(self, value: Any) -> dict[str, dict[str, str]]:
        lines = super().clean(value)
        if len(lines) > MAX_PRICES:
            raise forms.ValidationError(
                f"You entered {len(lines)} prices. Enter at most {MAX_PRICES}."
            )
        prices: dict[str, dict[str, str]] = {}
        for line in lines:
            try:
                model, price = _parse_line(line)
                if model in prices:
                    raise ValueError(f"{model!r} already has a price")
            except ValueError as error:
                raise forms.ValidationError(f"{line!r}: {error}.") from error
            prices[model] = price
        return prices


def format_prices(prices: dict[str, dict[str, str]]) -> Iterator[str]:
    """Yield one line per model for `PricesField`, sorted by name, with `*` last."""
    for model, price in sorted(prices.items(), key=lambda item: (item[0] == ANY_MODEL, item[0])):
        yield f"{model}: {', '.join(f'{name} {price[name]}' for name in _NAMES if name in price)}"


def list_unpriced(provider: ModelProvider, employees: list[Employee]) -> list[Employee]:
    """List the employees whose model has no price; models of a scripted provider do not need a
    price."""
    if provider.kind == ProviderKind.SCRIPTED:
        return []
    return [employee for employee in employees if find_price(provider, employee.model) is None]


def _parse_line(line: str) -> tuple[str, dict[str, str]]:
    """Return the model and the prices of a line. The line is split at its last colon, because a
    model's name may contain colons."""
    model, colon, rest = line.rpartition(":")
    model, words = model.strip(), rest.replace(",", " ").split()
    if not colon or not model:
        raise ValueError(f"expected a model, a colon and its prices, such as {EXAMPLE!r}")
    if len(model) > LONGEST_MODEL:
        raise ValueError(
            f"the model's name has {len(model)} characters; use at most {LONGEST_MODEL}"
        )
    if len(words) == 2:
        words = ["input", words[0], "output", words[1]]
    prices = dict(zip(words[::2], words[1::2], strict=False))
    is_complete = {"input", "output"} <= prices.keys() <= set(_NAMES)
    if not is_complete or len(words) != 2 * len(prices):
        raise ValueError(
            f"expected input and output prices after the colon, such as {EXAMPLE!r}; write decimals with a point"
        )
    return model, {name: _parse_price(prices[name]) for name in _NAMES if name in prices}


def _parse_price(word: str) -> str:
    if not _NUMBER.fullmatch(word):
        raise ValueError(f"{word!r} is not a price; enter a number such as 0.25")
    number = Decimal(word)
    if number > HIGHEST_PRICE:
        raise ValueError(f"{word} is more than {HIGHEST_PRICE:,}, the highest price")
    if len(word.partition(".")[2]) > MAX_DECIMALS:
        raise ValueError(f"{word} has more than {MAX_DECIMALS} decimals")
    return word
