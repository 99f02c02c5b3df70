"""The tools that look up records: filters, figures and details, but never records of another
organization."""

from typing import Any

import pytest

from agents.accounts.models import Organization
from tests.features import feature
from tests.tools.office.records.tenants import make_organization, make_record
from tools.office.records.models import Record
from tools.office.tools.data_read import GetRecordDetail, GetStats, SearchRecords
from tools.office.tools.data_write import AddToList, UpdateRecord
from tools.testing import run_tool

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Organization:
    organization = make_organization()
    make_record(
        organization, "Acme Corp", region="EU", category="Metal", score=80, email="a@acme.example"
    )
    make_record(organization, "Globex", region="EU", status="inactive", score=20, notes="100% lost")
    make_record(organization, "Initech | Ltd", region="US", qualification="qualified")
    make_record(make_organization("stranger"), "Hidden", region="EU", score=80)
    return organization


@feature(
    "Built-in tools",
    "`data.searchRecords`, `getRecordDetail`, `getStats`",
    "tools/office/tools/data_read.py",
    whole_file=True,
)
@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({}, ["Acme Corp", "Globex", "Initech | Ltd"]),
        ({"region": "eu"}, ["Acme Corp", "Globex"]),
        ({"category": "METAL"}, ["Acme Corp"]),
        ({"region": "EU", "status": "inactive"}, ["Globex"]),
        ({"qualification": "qualified"}, ["Initech | Ltd"]),
        ({"min_score": 20, "max_score": 79}, ["Globex"]),
        ({"text": "corp acme"}, ["Acme Corp"]),
        ({"text": "100%"}, ["Globex"]),
        ({"text": "%"}, ["Globex"]),
        ({"text": "Hidden"}, []),
    ],
)
def test_conditions_are_combined_and_limited_to_the_organization(
    params: dict[str, Any], names: list[str], acme: Organization
) -> None:
    result = run_tool(SearchRecords, params, organization_id=acme.pk)
    assert result.success
    assert [row["name"] for row in result.data["records"]] == names
    assert result.data["total"] == len(names)
    assert result.data["filters_applied"] == params


def test_the_summary_counts_all_matches_even_beyond_the_limit(acme: Organization) -> None:
    result = run_tool(SearchRecords, {"region": "EU", "limit": 1}, organization_id=acme.pk)
    assert result.summary == "Found 2 records in “EU”"
    assert result.data["total"] == 2
    assert len(result.data["records"]) == 1
    assert "the first 1 of them" in result.markdown


def test_the_table_for_the_model_has_ids_that_a_name_cannot_break(acme: Organization) -> None:
    result = run_tool(SearchRecords, {"region": "US"}, organization_id=acme.pk)
    (row,) = result.data["records"]
    assert row["id"] == str(Record.objects.get(name="Initech | Ltd").pk)
    assert f"| {row['id']} | Initech \\| Ltd | US |" in result.for_model()


def test_an_empty_result_lists_the_existing_values(acme: Organization) -> None:
    result = run_tool(SearchRecords, {"region": "Mars"}, organization_id=acme.pk)
    assert result.summary == "Found no records in “Mars”"
    assert result.data["records"] == []
    assert "Values of region in use: EU, US." in result.for_model()


def test_figures_count_the_records_with_each_value(acme: Organization) -> None:
    data = run_tool(GetStats, organization_id=acme.pk).data
    assert data["total"] == 3
    assert data["by_region"] == {"EU": 2, "US": 1}
    assert data["by_status"] == {"active": 2, "inactive": 1}
    assert data["by_category"] == {"(none)": 2, "Metal": 1}
    assert data["by_score"] == {
        "0-19": 0,
        "20-39": 1,
        "40-59": 0,
        "60-79": 0,
        "80-100": 1,
        "none": 1,
    }
    assert run_tool(GetStats, {"region": "US"}, organization_id=acme.pk).data["total"] == 1


def test_a_detail_contains_the_history_and_the_lists(acme: Organization) -> None:
    record_id = str(Record.objects.get(name="Globex").pk)
    asked = {"organization_id": acme.pk, "employee_name": "Dana"}
    assert run_tool(
        UpdateRecord, {"record_id": record_id, "changes": {"score": 30}}, **asked
    ).success
    assert run_tool(AddToList, {"record_ids": [record_id], "list_name": "Spring"}, **asked).success
    record = run_tool(GetRecordDetail, {"record_id": record_id}, **asked).data["record"]
    assert (record["name"], record["score"], record["version"], record["lists"]) == (
        "Globex",
        30,
        2,
        ["Spring"],
    )
    (step,) = record["history"]
    assert (step["actor"], step["before"], step["after"]) == ("Dana", {"score": 20}, {"score": 30})


def test_a_record_of_another_organization_is_not_found(acme: Organization) -> None:
    hidden = str(Record.objects.get(name="Hidden").pk)
    result = run_tool(GetRecordDetail, {"record_id": hidden}, organization_id=acme.pk)
    assert result.error is not None
    assert result.error.text.startswith(
        f"TOOL ERROR: NOT_FOUND\nThere is no record with the id {hidden}."
    )
