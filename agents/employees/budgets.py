"""Prices, usage and budgets: what models cost, what was used, and what may be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Any

from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from agents.accounts.models import Organization
from agents.employees.models import Employee, ModelProvider
from agents.platform.refusals import Conflict
from agents.providers.base import Usage
from agents.runs.models import Pass, Run

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


NEARLY_PERCENT = 80
MS_PER_MINUTE = 60_000


class BudgetExhausted(Conflict):
    """Nothing more may be asked of the model; `detail` says in words which budget is used up."""

    code = "budget_exhausted"


@dataclass(frozen=True)
class Month:
    """A month of UTC, from its first moment to before that of the next."""

    start: datetime
    end: datetime

    @classmethod
    def of(cls, at: datetime) -> Month:
        start = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return cls(start, (start + timedelta(days=32)).replace(day=1))

    def __str__(self) -> str:
        return self.start.strftime("%B %Y")


@dataclass(frozen=True)
class Budget:
    """One limit, and what was used of it.

    Attributes:
        whose: "This run", or the name of the employee or the organisation.
        used, limit: tokens, micros, or milliseconds of the model's answering.
        unit: "tokens", "minutes", or the currency.
        month: None for the budget of one run.
    """

    whose: str
    used: int
    limit: int
    unit: str
    month: Month | None = None

    @property
    def is_exhausted(self) -> bool:
        return self.used >= self.limit

    @property
    def is_nearly(self) -> bool:
        return self.percent >= NEARLY_PERCENT

    @property
    def percent(self) -> int:
        return 100 * self.used // self.limit if self.limit else 100

    @property
    def bar(self) -> int:
        """The percent as far as a bar can show them."""
        return min(self.percent, 100)

    @property
    def words(self) -> str:
        """`80,000 of 100,000 tokens`."""
        return f"{self._number(self.used)} of {self._number(self.limit)} {self.unit}"

    @property
    def sentence(self) -> str:
        """`Dana has used 100,000 of its 100,000 tokens of November 2026.`"""
        of_month = f" of {self.month}" if self.month else ""
        used = f"{self._number(self.used)} of its {self._number(self.limit)} {self.unit}"
        return f"{self.whose} has used {used}{of_month}."

    def _number(self, value: int) -> str:
        if self.unit == "tokens":
            return f"{value:,}"
        return f"{value / MS_PER_MINUTE:,.1f}" if self.unit == "minutes" else in_words(value, "")


def check_budgets(run: Run) -> None:
    """See before a model call whether the run may have one more; `run` comes with its employee and organisation.

    Costs nothing if no month has a budget, else one query, and one more where minutes are limited.

    Raises:
        BudgetExhausted
    """
    _refuse_exhausted(budgets_of_run(run))
    _refuse_exhausted(budgets_of_employee(run.employee, run.organization, Month.of(run.created_at)))


def refuse_new_run(employee: Employee) -> None:
    """See whether a run of the employee may be started now; it comes with its organisation.

    Raises:
        BudgetExhausted
    """
    _refuse_exhausted(budgets_of_employee(employee, employee.organization, this_month()))


def this_month() -> Month:
    """The month that it is now."""
    return Month.of(timezone.now())


def budgets_of_run(run: Run) -> list[Budget]:
    """The budgets of one run, which its employee has for each; `run` comes with its employee and organisation."""
    employee, found = run.employee, []
    if employee.run_tokens is not None:
        found.append(Budget("This run", run.input_tokens + run.output_tokens, employee.run_tokens, "tokens"))
    if employee.run_cost is not None:
        limit = in_micros(employee.run_cost)
        found.append(Budget("This run", run.cost_micros, limit, run.organization.currency))
    return found


def budgets_of_employee(employee: Employee, organization: Organization, month: Month) -> list[Budget]:
    """The month's budgets that the employee's runs have to keep: its own, then the organisation's."""
    sums = _sums_of(employee, organization, month)
    found = [*_monthly(employee, _Used.read(sums, "own"), organization.currency, month)]
    if employee.month_minutes is not None:
        spent = _answering_ms(employee, organization, month)
        found.append(Budget(employee.name, spent, employee.month_minutes * MS_PER_MINUTE, "minutes", month))
    return [*found, *_monthly(organization, _Used.read(sums, "all"), organization.currency, month)]


def budgets_of_organization(organization: Organization, month: Month) -> list[Budget]:
    """The month's budgets of all employees together."""
    if not _Used.needed_by(organization):
        return []
    sums = _runs_of(organization, month).aggregate(**_sums("all"))
    return list(_monthly(organization, _Used.read(sums, "all"), organization.currency, month))


def _refuse_exhausted(budgets: list[Budget]) -> None:
    for budget in budgets:
        if budget.is_exhausted:
            raise BudgetExhausted(f"{budget.sentence} An admin can raise this budget.")


@dataclass(frozen=True)
class _Used:
    """What runs have used."""

    tokens: int
    micros: int

    @staticmethod
    def needed_by(row: Employee | Organization) -> bool:
        return row.month_tokens is not None or row.month_cost is not None

    @classmethod
    def read(cls, sums: dict[str, Any], name: str) -> _Used:
        tokens = (sums.get(f"{name}_input") or 0) + (sums.get(f"{name}_output") or 0)
        return cls(int(tokens), int(sums.get(f"{name}_micros") or 0))


def _sums_of(employee: Employee, organization: Organization, month: Month) -> dict[str, Any]:
    """What the month's budgets of both are counted by, in one query, and without one if they have none."""
    own, everyone = _Used.needed_by(employee), _Used.needed_by(organization)
    runs = _runs_of(organization, month)
    if not everyone:
        runs = runs.filter(employee=employee)
    sums = {**(_sums("own", Q(employee=employee)) if own else {}), **(_sums("all") if everyone else {})}
    return runs.aggregate(**sums)


def _runs_of(organization: Organization, month: Month) -> QuerySet[Run]:
    """The organisation's runs that count for the month, by the index over their times."""
    runs = Run.objects.filter(organization=organization, created_at__gte=month.start, created_at__lt=month.end)
    return runs.order_by()


def _sums(name: str, whose: Q | None = None) -> dict[str, Sum]:
    return {
        f"{name}_input": Sum("input_tokens", filter=whose),
        f"{name}_output": Sum("output_tokens", filter=whose),
        f"{name}_micros": Sum("cost_micros", filter=whose),
    }


def _monthly(row: Employee | Organization, used: _Used, currency: str, month: Month) -> Iterator[Budget]:
    if row.month_tokens is not None:
        yield Budget(row.name, used.tokens, row.month_tokens, "tokens", month)
    if row.month_cost is not None:
        yield Budget(row.name, used.micros, in_micros(row.month_cost), currency, month)


def _answering_ms(employee: Employee, organization: Organization, month: Month) -> int:
    """How long the employee's model took to answer in the month's runs."""
    runs = _runs_of(organization, month).filter(employee=employee)
    spent = Pass.objects.filter(run__in=runs).order_by().aggregate(spent=Sum("duration_ms"))["spent"]
    return int(spent or 0)
