"""Compiled queries return rows with named columns, whose values are converted as the ORM does."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from agents.accounts.models import Organization
from agents.platform.queries.compiled import CompiledQuery, ModelColumns

pytestmark = pytest.mark.django_db


class Found(NamedTuple):
    """An organization, found by its slug."""

    title: str
    plan_features: list[str]
    organization: Organization


BY_SLUG = CompiledQuery(
    Found,
    lambda slug: Organization.objects.filter(slug=slug).order_by(),
    placeholders=("the slug",),
    title="name",
    organization=ModelColumns(Organization, only=("slug",)),
)


@pytest.fixture
def organization() -> Organization:
    return Organization.objects.create(name="Hill Bakery", slug="hill", plan_features=["sql"])


def test_a_row_has_the_names_of_its_class_and_converted_values(organization: Organization) -> None:
    (row,) = BY_SLUG.fetch_all("hill")
    assert (row.title, row.plan_features) == ("Hill Bakery", ["sql"])
    assert row.organization == organization


def test_an_omitted_column_is_loaded_on_first_use(organization: Organization) -> None:
    row = BY_SLUG.fetch_one("hill")
    assert row is not None
    assert row.organization.get_deferred_fields() >= {"name"}
    assert row.organization.name == organization.name


def test_each_execution_uses_its_own_values(organization: Organization) -> None:
    other = Organization.objects.create(name="Mill", slug="mill")
    assert [row.organization for row in BY_SLUG.fetch_all("mill")] == [other]
    assert [row.organization for row in BY_SLUG.fetch_all("hill")] == [organization]
    assert BY_SLUG.fetch_one("nobody") is None


def test_a_wrong_number_of_values_is_refused() -> None:
    with pytest.raises(ValueError, match="2 values for 1"):
        BY_SLUG.fetch_all("hill", "mill")


def test_an_unused_value_is_refused() -> None:
    query = CompiledQuery(
        Found, lambda unused: Organization.objects.order_by(), title="name", organization="id"
    )
    with pytest.raises(ValueError, match="do not all reach the query"):
        query.fetch_all(1)
