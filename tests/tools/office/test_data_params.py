"""The params of the data tools: their canonical form, and the refusal of invalid params."""

from typing import Any

import pytest

from tools.contract import ErrorCode, Tool, ToolError, canonical_json
from tools.office.tools.data_bulk import BulkUpdate
from tools.office.tools.data_read import GetRecordDetail, SearchRecords
from tools.office.tools.data_write import CreateRecord, UpdateRecord

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("tool", "given", "canonical"),
    [
        (SearchRecords, {}, {"limit": 100}),
        (SearchRecords, {"region": "EU", "category": None}, {"region": "EU", "limit": 100}),
        (GetRecordDetail, {"record_id": 42}, {"record_id": "42"}),
        (GetRecordDetail, {"record_id": "007"}, {"record_id": "7"}),
        (
            UpdateRecord,
            {"record_id": "1", "changes": {"score": 0, "status": None, "email": ""}},
            {"record_id": "1", "changes": {"score": 0, "email": ""}},
        ),
        (
            UpdateRecord,
            {"record_id": "1", "changes": {"attributes": {"a": None}}},
            {"record_id": "1", "changes": {"attributes": {"a": None}}},
        ),
        (
            BulkUpdate,
            {"record_ids": ["2", 1, "2"], "changes": {"status": "pending"}},
            {"record_ids": ["2", "1"], "changes": {"status": "pending"}},
        ),
        (CreateRecord, {"name": " A\nB "}, {"name": "A B", "status": "active"}),
    ],
)
def test_canonical_params_keep_the_given_values_and_survive_a_second_check(
    tool: type[Tool], given: dict[str, Any], canonical: dict[str, Any]
) -> None:
    checked = tool().check_params(given)
    assert checked == canonical
    assert canonical_json(tool().check_params(checked)) == canonical_json(checked)
    assert tool().load_params(checked).model_dump(mode="json") == checked


@pytest.mark.parametrize(
    ("tool", "given", "parameter"),
    [
        (SearchRecords, {"limit": 1001}, "limit"),
        (SearchRecords, {"status": "dead"}, "status"),
        (SearchRecords, {"regoin": "EU"}, "regoin"),
        (GetRecordDetail, {"record_id": "x"}, "record_id"),
        (GetRecordDetail, {"record_id": True}, "record_id"),
        (GetRecordDetail, {"record_id": "9" * 19}, "record_id"),
        (UpdateRecord, {"record_id": "1", "changes": {"score": 101}}, "changes.score"),
        (UpdateRecord, {"record_id": "1", "changes": {"staus": "inactive"}}, "changes.staus"),
        (UpdateRecord, {"record_id": "1", "changes": {"email": "nobody"}}, "changes.email"),
        (
            UpdateRecord,
            {"record_id": "1", "changes": {"domain": "https://x.example"}},
            "changes.domain",
        ),
        (UpdateRecord, {"record_id": "1", "changes": {"archived": True}}, "changes.archived"),
        (
            UpdateRecord,
            {"record_id": "1", "changes": {"attributes": {"": 1}}},
            "changes.attributes",
        ),
        (BulkUpdate, {"record_ids": ["1"], "changes": {"notes": "x"}}, "changes.notes"),
        (CreateRecord, {"name": "  "}, "name"),
        (CreateRecord, {"name": "x" * 201}, "name"),
    ],
)
def test_invalid_params_are_refused_and_named_in_the_refusal(
    tool: type[Tool], given: dict[str, Any], parameter: str
) -> None:
    with pytest.raises(ToolError) as caught:
        tool().check_params(given)
    assert caught.value.code is ErrorCode.INVALID_PARAMETER
    assert caught.value.parameter == parameter
    assert not caught.value.attempted


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        (SearchRecords, {"text": "a\x00b"}),
        (UpdateRecord, {"record_id": "1", "changes": {"attributes": {"a": ["\x00"]}}}),
        (CreateRecord, {"name": "a\x00b"}),
    ],
)
def test_unstorable_text_is_refused(tool: type[Tool], given: dict[str, Any]) -> None:
    with pytest.raises(ToolError) as caught:
        tool().check_params(given)
    assert caught.value.code is ErrorCode.INVALID_PARAMETER


@pytest.mark.parametrize("tool", [SearchRecords, UpdateRecord, BulkUpdate, CreateRecord])
def test_schemas_do_not_offer_null_for_optional_fields(tool: type[Tool]) -> None:
    assert "null" not in canonical_json(tool().schema).replace("null removes", "")


def test_a_null_is_treated_as_omitted() -> None:
    given = {"record_ids": ["1"], "filters": None, "changes": {"score": 1, "status": None}}
    assert BulkUpdate().check_params(given) == {"record_ids": ["1"], "changes": {"score": 1}}


def test_an_update_without_a_change_is_refused() -> None:
    with pytest.raises(ToolError) as caught:
        UpdateRecord().check_params({"record_id": "1", "changes": {}})
    assert caught.value.code is ErrorCode.MISSING_PARAMETER


def test_every_parameter_is_described_for_the_model() -> None:
    for tool in (SearchRecords, GetRecordDetail, UpdateRecord, BulkUpdate, CreateRecord):
        assert all(parameter.description for parameter in tool().parameters)
