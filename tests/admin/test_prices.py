"""Prices and budgets in the admin: prices are entered as lines of text, and a cost budget requires
a price for the employee's model."""

from decimal import Decimal

import pytest
from django.test import Client

from agents.accounts.models import AuditEntry, Organization
from agents.employees.models import Employee, ModelProvider, ProviderKind
from tests.admin.rows import address, faults, filled_form
from tests.features import feature
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def provider(world: World) -> ModelProvider:
    provider = ModelProvider.objects.create(
        organization=world.acme, name="Real", kind=ProviderKind.OPENAI
    )
    Employee.objects.filter(pk=world.employee.pk).update(provider=provider, model="gpt-5-mini")
    return provider


LINES = "gpt-5-mini: input 0.25, cached 0.025, output 2.00\n\nqwen3:8b: 0 0\n*: 1, 4.5"
PRICES = {
    "gpt-5-mini": {"input": "0.25", "cached": "0.025", "output": "2.00"},
    "qwen3:8b": {"input": "0", "output": "0"},
    "*": {"input": "1", "output": "4.5"},
}


@feature(
    "Costs, budgets, long runs",
    "Prices of models in the admin, one per line",
    "agents/admin/prices.py",
)
def test_lines_are_stored_as_prices_and_shown_as_lines_again(
    admin: Client, provider: ModelProvider
) -> None:
    path = address(provider, "change")
    assert admin.post(path, filled_form(admin, path, prices=LINES)).status_code == 302
    provider.refresh_from_db()
    assert provider.prices == PRICES
    entry = AuditEntry.objects.get(organization=provider.organization)
    assert entry.payload["fields"] == {"prices": {"before": {}, "after": PRICES}}
    assert filled_form(admin, path)["prices"].splitlines() == [
        "gpt-5-mini: input 0.25, cached 0.025, output 2.00",
        "qwen3:8b: input 0, output 0",
        "*: input 1, output 4.5",
    ]
    assert admin.post(path, filled_form(admin, path)).status_code == 302
    assert AuditEntry.objects.count() == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("gpt-5-mini", "expected a model, a colon and its prices"),
        (": 1 2", "expected a model"),
        ("gpt-5: 1", "expected input and output prices after the colon"),
        ("gpt-5: input 1, cached 2", "expected input and output prices"),
        ("gpt-5: input 1, input 2, output 3", "expected input and output prices"),
        ("gpt-5: input 1, output 2, thinking 3", "expected input and output prices"),
        ("gpt-5: 0,25 2,00", "write decimals with a point"),
        (
            "gpt-5: input free, output 2",
            "&#x27;free&#x27; is not a price; enter a number such as 0.25",
        ),
        ("gpt-5: -1 2", "&#x27;-1&#x27; is not a price"),
        ("gpt-5: NaN 2", "&#x27;NaN&#x27; is not a price"),
        ("gpt-5: ٣ 2", "is not a price"),
        ("gpt-5: 9000000 2", "the highest price"),
        ("gpt-5: 0.0000001 2", "more than 6 decimals"),
        ("*: 2 2", "already has a price"),
        ("<b>: 1", "&lt;b&gt;"),
    ],
)
def test_an_invalid_line_is_reported_in_plain_words(
    admin: Client, provider: ModelProvider, line: str, told: str
) -> None:
    path = address(provider, "change")
    response = admin.post(path, filled_form(admin, path, prices=f"*: 1 1\n{line}"))
    assert "prices" in faults(response)
    assert told in response.content.decode()
    provider.refresh_from_db()
    assert provider.prices == {}


def test_a_cost_budget_requires_a_price(
    world: World, admin: Client, provider: ModelProvider
) -> None:
    path = address(world.employee, "change")
    asked = filled_form(
        admin, path, month_cost="12.5", month_tokens="100000", context_tokens="20000"
    )
    assert "month_cost" in faults(admin.post(path, asked))
    ModelProvider.objects.filter(pk=provider.pk).update(prices=PRICES)
    assert admin.post(path, asked).status_code == 302
    world.employee.refresh_from_db()
    assert (world.employee.month_cost, world.employee.month_tokens) == (Decimal("12.5"), 100_000)
    assert world.employee.context_tokens == 20_000


def test_removing_a_price_that_a_budget_needs_requires_confirmation(
    world: World, admin: Client, provider: ModelProvider
) -> None:
    ModelProvider.objects.filter(pk=provider.pk).update(prices=PRICES)
    Employee.objects.filter(pk=world.employee.pk).update(month_cost=1)
    path = address(provider, "change")
    response = admin.post(path, filled_form(admin, path, prices="another: 1 1"))
    assert "The cost of Dana is no longer counted" in response.content.decode()
    assert admin.post(path, filled_form(admin, path, prices="*: 1 1")).status_code == 302


def test_the_currency_must_be_a_code_and_changing_it_needs_confirmation(
    world: World, admin: Client
) -> None:
    path = address(world.acme, "change")
    for wrong in ("", "EURO", "€", "12A"):
        assert "currency" in faults(admin.post(path, filled_form(admin, path, currency=wrong)))
    assert admin.post(path, filled_form(admin, path, month_tokens="5")).status_code == 302
    response = admin.post(path, filled_form(admin, path, currency="eur"))
    assert "all prices and budgets are in EUR. No amount is converted." in response.content.decode()
    organization = Organization.objects.get(pk=world.acme.pk)
    assert (organization.currency, organization.month_tokens) == ("USD", 5)


def test_employees_without_a_counted_cost_are_listed(
    world: World, admin: Client, provider: ModelProvider
) -> None:
    ModelProvider.objects.filter(organization=world.globex).update(kind=ProviderKind.OPENAI)
    path = address(world.acme, "change")
    response = admin.post(path, filled_form(admin, path, month_cost="10"))
    text = response.content.decode()
    assert "The cost of Dana is not counted: Real has no price for its model." in text
    assert "The cost of Hank is not counted" not in text
