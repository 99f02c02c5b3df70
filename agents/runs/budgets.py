"""The prices of models, the usage of runs and months, and the budgets that limit this usage."""

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

ANY_MODEL = "*"
"""The key in a provider's prices that stands for every model without a price of its own."""
MICROS = 1_000_000


@dataclass(frozen=True)
class Price:
    """The prices of a million tokens, in the organization's currency; `cached` is for input from
    the server's cache."""

    input: Decimal
    output: Decimal
    cached: Decimal

    @property
    def is_free(self) -> bool:
        return not self.input and not self.output and not self.cached

    def compute_cost(self, usage: Usage) -> int:
        """Return the cost in micros (millionths of the currency), rounded up, so that usage with a
        price is never free."""
        micros = self.input * (usage.input_tokens - usage.cached_tokens)
        micros += self.cached * usage.cached_tokens + self.output * usage.output_tokens
        return int(micros.to_integral_value(ROUND_CEILING))


def find_price(provider: ModelProvider, model: str) -> Price | None:
    """Return the provider's price for this model; None if nobody has set one."""
    prices = provider.prices.get(model) or provider.prices.get(ANY_MODEL)
    if not prices:
        return None
    return Price(
        Decimal(prices["input"]),
        Decimal(prices["output"]),
        Decimal(prices.get("cached", prices["input"])),
    )


def compute_cost(provider: ModelProvider, model: str, usage: Usage) -> int:
    """Return the cost of one response in micros; 0 if the model has no price."""
    price = find_price(provider, model)
    return price.compute_cost(usage) if price else 0


def compute_run_cost(run: Run) -> int | None:
    """Return the cost of the run in micros; None if the model has no price, or had none when it was
    used.

    If no cost was counted, this loads the run's employee and provider.
    """
    if run.cost_micros:
        return run.cost_micros
    price = find_price(run.employee.provider, run.employee.model)
    if price is None:
        return None
    used = run.input_tokens or run.output_tokens
    return None if used and not price.is_free else 0


def to_currency(micros: int | None) -> float | None:
    """Convert micros to an amount in the currency; None stays None."""
    return None if micros is None else micros / MICROS


def to_micros(amount: Decimal) -> int:
    """Convert an amount in the currency to micros."""
    return int(amount * MICROS)


def format_money(micros: int, currency: str) -> str:
    """Format an amount with its currency, with more decimals if it is small: `12.40 USD`, `0.000250
    USD`."""
    amount = Decimal(micros) / MICROS
    places = 2 if not micros or amount >= 1 else 4 if amount >= Decimal("0.01") else 6
    return f"{amount:,.{places}f} {currency}".rstrip()


NEARLY_PERCENT = 80
MS_PER_MINUTE = 60_000


class BudgetExhausted(Conflict):
    """A budget is used up, so the model may not be called; `detail` names the budget in a
    sentence."""

    code = "budget_exhausted"


@dataclass(frozen=True)
class Month:
    """A month in UTC: from `start` to before `end`, the start of the next month."""

    start: datetime
    end: datetime

    @classmethod
    def containing(cls, at: datetime) -> Month:
        """Return the month that contains this moment."""
        start = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return cls(start, (start + timedelta(days=32)).replace(day=1))

    def __str__(self) -> str:
        return self.start.strftime("%B %Y")


@dataclass(frozen=True)
class Budget:
    """A limit, and the usage that counts toward it.

    Attributes:
        owner: "This run", or the name of the employee or the organization.
        used, limit: in tokens, in micros, or in milliseconds of the model's responses.
        unit: "tokens", "minutes", or the currency.
        month: None for the budget of one run.
    """

    owner: str
    used: int
    limit: int
    unit: str
    month: Month | None = None

    @property
    def is_exhausted(self) -> bool:
        return self.used >= self.limit

    @property
    def is_nearly_exhausted(self) -> bool:
        return self.percent >= NEARLY_PERCENT

    @property
    def percent(self) -> int:
        return 100 * self.used // self.limit if self.limit else 100

    @property
    def bar(self) -> int:
        """The percentage that a bar shows: at most 100."""
        return min(self.percent, 100)

    @property
    def amounts(self) -> str:
        """The usage and the limit, as in `80,000 of 100,000 tokens`."""
        return f"{self._format_number(self.used)} of {self._format_number(self.limit)} {self.unit}"

    @property
    def sentence(self) -> str:
        """The budget as a sentence: `Dana has used 100,000 of its 100,000 tokens for November
        2026.`"""
        for_month = f" for {self.month}" if self.month else ""
        used = (
            f"{self._format_number(self.used)} of its {self._format_number(self.limit)} {self.unit}"
        )
        return f"{self.owner} has used {used}{for_month}."

    def _format_number(self, value: int) -> str:
        if self.unit == "tokens":
            return f"{value:,}"
        return (
            f"{value / MS_PER_MINUTE:,.1f}" if self.unit == "minutes" else format_money(value, "")
        )


def check_budgets(run: Run) -> None:
    """Check before a model call that no budget for the run is used up, whether it is the run's, the
    employee's or the organization's. `run` has its employee and organization loaded.

    Makes one query if a month's tokens or costs are limited, two more if its minutes are limited,
    and otherwise none.

    Raises:
        BudgetExhausted
    """
    _refuse_exhausted(list_run_budgets(run))
    _refuse_exhausted(
        list_employee_budgets(run.employee, run.organization, Month.containing(run.created_at))
    )


def check_new_run(employee: Employee) -> None:
    """Check that no budget prevents a new run of the employee, which has its organization loaded.

    Raises:
        BudgetExhausted
    """
    _refuse_exhausted(list_employee_budgets(employee, employee.organization, get_current_month()))


def get_current_month() -> Month:
    """Return the current month."""
    return Month.containing(timezone.now())


def list_run_budgets(run: Run) -> list[Budget]:
    """Return the budgets of this run; `run` has its employee and organization loaded."""
    employee, found = run.employee, []
    if employee.run_tokens is not None:
        found.append(
            Budget("This run", run.input_tokens + run.output_tokens, employee.run_tokens, "tokens")
        )
    if employee.run_cost is not None:
        limit = to_micros(employee.run_cost)
        found.append(Budget("This run", run.cost_micros, limit, run.organization.currency))
    return found


def list_employee_budgets(
    employee: Employee, organization: Organization, month: Month
) -> list[Budget]:
    """Return the month's budgets that limit the employee's runs: the employee's own, then the
    organization's."""
    sums = _sum_usage(employee, organization, month)
    found = [
        *_list_month_budgets(employee, _MonthUsage.read(sums, "own"), organization.currency, month)
    ]
    if employee.month_minutes is not None:
        spent_ms = _sum_model_ms(employee, organization, month)
        found.append(
            Budget(
                employee.name, spent_ms, employee.month_minutes * MS_PER_MINUTE, "minutes", month
            )
        )
    return [
        *found,
        *_list_month_budgets(
            organization, _MonthUsage.read(sums, "all"), organization.currency, month
        ),
    ]


def list_organization_budgets(organization: Organization, month: Month) -> list[Budget]:
    """Return the organization's budgets of the month, which all employees share."""
    if not _MonthUsage.is_limited_for(organization):
        return []
    sums = _select_runs(organization, month).aggregate(**_build_sums("all"))
    return list(
        _list_month_budgets(
            organization, _MonthUsage.read(sums, "all"), organization.currency, month
        )
    )


def _refuse_exhausted(budgets: list[Budget]) -> None:
    for budget in budgets:
        if budget.is_exhausted:
            raise BudgetExhausted(f"{budget.sentence} An admin can raise this budget.")


@dataclass(frozen=True)
class _MonthUsage:
    """The usage of the runs of a month."""

    tokens: int
    micros: int

    @staticmethod
    def is_limited_for(row: Employee | Organization) -> bool:
        return row.month_tokens is not None or row.month_cost is not None

    @classmethod
    def read(cls, sums: dict[str, Any], name: str) -> _MonthUsage:
        tokens = (sums.get(f"{name}_input") or 0) + (sums.get(f"{name}_output") or 0)
        return cls(int(tokens), int(sums.get(f"{name}_micros") or 0))


def _sum_usage(employee: Employee, organization: Organization, month: Month) -> dict[str, Any]:
    """Sum the usage of the employee and of the organization in one query; no query if neither has a
    monthly budget of tokens or costs."""
    own, all_employees = (
        _MonthUsage.is_limited_for(employee),
        _MonthUsage.is_limited_for(organization),
    )
    runs = _select_runs(organization, month)
    if not all_employees:
        runs = runs.filter(employee=employee)
    sums = {
        **(_build_sums("own", Q(employee=employee)) if own else {}),
        **(_build_sums("all") if all_employees else {}),
    }
    return runs.aggregate(**sums)


def _select_runs(organization: Organization, month: Month) -> QuerySet[Run]:
    """Select the organization's runs that were created in the month."""
    runs = Run.objects.filter(
        organization=organization, created_at__gte=month.start, created_at__lt=month.end
    )
    return runs.order_by()


def _build_sums(name: str, condition: Q | None = None) -> dict[str, Sum]:
    return {
        f"{name}_input": Sum("input_tokens", filter=condition),
        f"{name}_output": Sum("output_tokens", filter=condition),
        f"{name}_micros": Sum("cost_micros", filter=condition),
    }


def _list_month_budgets(
    row: Employee | Organization, used: _MonthUsage, currency: str, month: Month
) -> Iterator[Budget]:
    if row.month_tokens is not None:
        yield Budget(row.name, used.tokens, row.month_tokens, "tokens", month)
    if row.month_cost is not None:
        yield Budget(row.name, used.micros, to_micros(row.month_cost), currency, month)


def _sum_model_ms(employee: Employee, organization: Organization, month: Month) -> int:
    """Return the response time of the employee's model in the month's runs, in ms, including
    unusable responses."""
    runs = _select_runs(organization, month).filter(employee=employee)
    passes_ms = Pass.objects.filter(run__in=runs).order_by().aggregate(ms=Sum("duration_ms"))["ms"]
    unusable_ms = runs.aggregate(ms=Sum("unusable_ms"))["ms"]
    return int(passes_ms or 0) + int(unusable_ms or 0)
