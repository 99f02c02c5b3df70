"""The demo's companies: always the same, valid, fictional, and without duplicates."""

import pytest

from tests.tools.office.records.tenants import make_organization
from tools.office.demo_companies import COUNT, add_demo_companies, generate_demo_companies
from tools.office.records.fields import RecordFields, RecordFilters
from tools.office.records.models import Record
from tools.office.records.queries import find_records
from tools.office.tools.scoring import score_record


@pytest.mark.once
def test_the_companies_are_always_the_same_and_all_different() -> None:
    companies = generate_demo_companies()
    assert companies == generate_demo_companies()
    assert len(companies) == COUNT
    for field in ("name", "domain"):
        assert len({company[field] for company in companies}) == COUNT


@pytest.mark.once
def test_each_company_is_a_valid_record_on_a_fictional_domain() -> None:
    for company in generate_demo_companies():
        RecordFields.model_validate(company)
        assert company["domain"].endswith(".example")
        assert company["email"] == "" or company["email"].endswith(f"@{company['domain']}")


@pytest.mark.once
def test_every_stored_score_equals_the_score_that_the_tools_compute() -> None:
    scored = [company for company in generate_demo_companies() if company.get("score") is not None]
    assert 400 < len(scored) < COUNT
    for company in scored:
        assert company["score"] == score_record(Record(**company))["score"], company["name"]


@pytest.mark.django_db
def test_the_records_required_by_the_demo_scripts_exist() -> None:
    acme = make_organization()
    assert add_demo_companies(acme.pk) == COUNT
    assert add_demo_companies(acme.pk) == 0
    found = {
        "candidates": find_records(
            acme.pk, RecordFilters(text="inactive candidate", status="active", region="EU")
        ),
        "leads": find_records(acme.pk, RecordFilters(category="Event lead", status="inactive")),
        "largest": find_records(acme.pk, RecordFilters(text="Acme Corp")),
    }
    assert {name: records.count() for name, records in found.items()} == {
        "candidates": 3,
        "leads": 12,
        "largest": 1,
    }
