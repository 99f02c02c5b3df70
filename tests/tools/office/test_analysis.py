"""The analysis tools: scores are explained but not stored, and cross-references compare names and
sets."""

from typing import Any

import pytest

from agents.accounts.models import Organization
from tests.features import feature
from tests.tools.office.records.tenants import everything, make_organization, make_record
from tools.contract import ErrorCode
from tools.office.records.models import Record
from tools.office.tools.analysis import BatchScore, CrossReference, ScoreRecord, normalize_name
from tools.office.tools.scoring import score_record
from tools.testing import run_tool

pytestmark = pytest.mark.django_db

BEST: dict[str, Any] = {
    "status": "active",
    "email": "info@best.example",
    "domain": "best.example",
    "phone": "1",
    "qualification": "qualified",
    "attributes": {"employees": 250, "annual_revenue": 10_000_000},
}
WORST: dict[str, Any] = {
    "status": "inactive",
    "qualification": "disqualified",
    "attributes": {"employees": "many"},
}


@pytest.fixture
def acme() -> Organization:
    organization = make_organization()
    make_record(organization, "Best Corp", region="EU", **BEST)
    make_record(organization, "Worst GmbH", region="US", **WORST)
    make_record(make_organization("stranger"), "Hidden")
    return organization


def record_id(name: str) -> str:
    return str(Record.objects.get(name=name).pk)


@feature(
    "Built-in tools",
    "`analysis.scoreRecord`, `batchScore`, `crossReference`",
    "tools/office/tools/analysis.py",
    whole_file=True,
)
@pytest.mark.parametrize(("name", "score"), [("Best Corp", 100), ("Worst GmbH", 0)])
def test_the_reasons_add_up_to_the_score_which_is_not_stored(
    name: str, score: int, acme: Organization
) -> None:
    before = everything()
    data = run_tool(ScoreRecord, {"record_id": record_id(name)}, organization_id=acme.pk).data
    assert data["score"] == score == sum(reason["points"] for reason in data["reasons"])
    assert sum(reason["of"] for reason in data["reasons"]) == 100
    assert everything() == before


@pytest.mark.parametrize("value", [None, True, "250", [250], {"a": 1}, -5])
def test_odd_attributes_do_not_add_points_to_the_score(value: object, acme: Organization) -> None:
    record = Record(name="x", attributes={"employees": value})
    assert score_record(record)["score"] == 25 + 5


def test_a_batch_is_scored_highest_first(acme: Organization) -> None:
    data = run_tool(BatchScore, {"filters": {"text": "r"}}, organization_id=acme.pk).data
    assert [score["name"] for score in data["scores"]] == ["Best Corp", "Worst GmbH"]
    assert (data["total"], data["scored"], data["average"]) == (2, 2, 50.0)
    one = run_tool(
        BatchScore, {"record_ids": [record_id("Worst GmbH")]}, organization_id=acme.pk
    ).data
    assert [score["score"] for score in one["scores"]] == [0]


def test_a_batch_reports_how_many_were_left_out(acme: Organization) -> None:
    result = run_tool(BatchScore, {"filters": {"text": "r"}, "limit": 1}, organization_id=acme.pk)
    assert result.summary == "Scored 1 of 2 records, 100.0 on average"


@pytest.mark.parametrize("tool", [BatchScore, ScoreRecord])
def test_a_record_of_another_organization_cannot_be_scored(tool: Any, acme: Organization) -> None:
    hidden = record_id("Hidden")
    params = {"record_ids": [hidden]} if tool is BatchScore else {"record_id": hidden}
    result = run_tool(tool, params, organization_id=acme.pk)
    assert result.error is not None
    assert result.error.code is ErrorCode.NOT_FOUND


def test_more_than_200_ids_are_refused(acme: Organization) -> None:
    result = run_tool(
        BatchScore, {"record_ids": [str(n) for n in range(201)]}, organization_id=acme.pk
    )
    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMETER


def test_names_match_regardless_of_case_and_legal_form(acme: Organization) -> None:
    params = {"names": ["BEST", "worst, Ltd.", "Hidden", "Nobody"]}
    data = run_tool(CrossReference, params, organization_id=acme.pk).data
    assert [(found["name"], found["records"][0]["name"]) for found in data["found"]] == [
        ("BEST", "Best Corp"),
        ("worst, Ltd.", "Worst GmbH"),
    ]
    assert data["missing"] == ["Hidden", "Nobody"]


@pytest.mark.parametrize(
    ("match_on", "both"), [("record", []), ("domain", ["Best Corp"]), ("name", ["Best Corp"])]
)
def test_two_sets_are_compared_by_record_name_or_domain(
    match_on: str, both: list[str], acme: Organization
) -> None:
    make_record(acme, "BEST Inc", region="US", domain="best.example")
    params = {"filters": {"region": "EU"}, "other_filters": {"region": "US"}, "match_on": match_on}
    result = run_tool(CrossReference, params, organization_id=acme.pk)
    assert [record["name"] for record in result.data["both"]] == both
    assert result.data["counts"]["only_first"] == 1 - len(both)
    assert result.data["counts"]["only_second"] == 2 - len(both)


@pytest.mark.parametrize("params", [{}, {"names": []}, {"names": ["a"], "other_filters": {}}])
def test_cross_referencing_needs_exactly_one_set_to_compare_with(
    params: dict[str, Any], acme: Organization
) -> None:
    result = run_tool(CrossReference, params, organization_id=acme.pk)
    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMETER


def test_a_name_that_is_only_a_legal_form_stays_unchanged() -> None:
    assert normalize_name("Co.") == "co"
