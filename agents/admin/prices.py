"""Prices of a provider's models, one per line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from django import forms

from agents.employees.budgets import EVERY_OTHER, price_of
from agents.employees.models import Employee, ModelProvider, ProviderKind

from .fields import LinesField

EXAMPLE = "gpt-5-mini: input 0.25, output 2.00"
HELP = (
    "Of a million tokens, in the organisation's currency, one model per line, such as "
    f"“{EXAMPLE}”. “{EVERY_OTHER}” in the place of the name is for every other model. A model without a price costs "
    "nothing in all figures and budgets."
)
LONGEST_MODEL = 120
MOST_PRICES = 200
MOST = Decimal(1_000_000)
PLACES = 6
_NUMBER = re.compile(r"[0-9]{1,7}(\.[0-9]+)?")


class PricesField(LinesField):
    """The lines as {model or "*": {"input": "0.25", "output": "2.00"}}."""

    def __init__(self, **options: Any) -> None:
        super().__init__(longest=200, help_text=HELP, **options)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(lines_of(value)) if isinstance(value, dict) else value

    def clean(self, value: Any) -> dict[str, dict[str, str]]:
        lines = super().clean(value)
        if len(lines) > MOST_PRICES:
            raise forms.ValidationError(f"There are {len(lines)} prices; at most {MOST_PRICES} are allowed.")
        prices: dict[str, dict[str, str]] = {}
        for line in lines:
            try:
                model, price = _read(line)
                if model in prices:
                    raise ValueError(f"{model!r} has a price already")
            except ValueError as error:
                raise forms.ValidationError(f"{line!r}: {error}.") from error
            prices[model] = price
        return prices


def lines_of(prices: dict[str, dict[str, str]]) -> Iterator[str]:
    """The prices as the field takes them, by name."""
    for model, price in sorted(prices.items(), key=lambda item: (item[0] == EVERY_OTHER, item[0])):
        yield f"{model}: input {price['input']}, output {price['output']}"


def without_price(provider: ModelProvider, employees: list[Employee]) -> list[Employee]:
    """Those of them whose model has no price; a script needs none."""
    if provider.kind == ProviderKind.SCRIPTED:
        return []
    return [employee for employee in employees if price_of(provider, employee.model) is None]


def _read(line: str) -> tuple[str, dict[str, str]]:
    """A model's name may hold colons: the last one ends it."""
    model, colon, rest = line.rpartition(":")
    model, words = model.strip(), rest.replace(",", " ").split()
    if not colon or not model:
        raise ValueError(f"expected a model, a colon and two prices, such as {EXAMPLE!r}")
    if len(model) > LONGEST_MODEL:
        raise ValueError(f"the model's name has {len(model)} characters; at most {LONGEST_MODEL} are allowed")
    if len(words) == 4 and words[::2] == ["input", "output"]:
        words = words[1::2]
    if len(words) != 2:
        raise ValueError(f"expected two prices after the colon, such as {EXAMPLE!r}; decimals come after a full stop")
    return model, {"input": _price(words[0]), "output": _price(words[1])}


def _price(word: str) -> str:
    if not _NUMBER.fullmatch(word):
        raise ValueError(f"{word!r} is not a price; write a number such as 0.25")
    number = Decimal(word)
    if number > MOST:
        raise ValueError(f"{word} is more than {MOST:,}, the highest price")
    if len(word.partition(".")[2]) > PLACES:
        raise ValueError(f"{word} has more than {PLACES} decimals")
    return word
