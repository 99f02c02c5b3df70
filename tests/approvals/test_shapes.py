"""Calls that differ only in their values have the same shape, so that their cards form one
group."""

from __future__ import annotations

from typing import Any

import pytest

from agents.runs.engine.cards import compute_shape
from agents.runs.models import ToolCall

PARAMS = {"record_id": "1", "changes": {"phone": "+1"}}


def make_call(**changes: Any) -> ToolCall:
    values = {
        "tool": "data.updateRecord",
        "version": "1",
        "definition_hash": "a",
        "level": "write",
        "params": PARAMS,
    }
    return ToolCall(**{**values, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"tool": "data.createRecord"},
        {"version": "2"},
        {"definition_hash": "b"},
        {"level": "destructive"},
        {"params": {"record_id": "1"}},
        {"params": {"record_id": "1", "changes": {}}},
        {"params": {"record_id": "1", "changes": {"status": "+1"}}},
        {"params": {"record_id": "1", "changes": {"phone": "+1"}, "force": None}},
        {"params": {"record_id": "1", "changes": {"phone": {"home": "+1"}}}},
    ],
)
def test_the_shape_depends_on_tool_version_definition_level_and_set_of_params(
    changes: dict[str, Any],
) -> None:
    assert compute_shape(make_call(**changes)) != compute_shape(make_call())


@pytest.mark.parametrize(
    "changes",
    [
        {"params": {"record_id": "2", "changes": {"phone": "+2"}}},
        {"params": {"record_id": 7, "changes": {"phone": ["+1", "+2"]}}},
        {"params": {"changes": {"phone": "+1"}, "record_id": "1"}},
        {
            "organization_id": 2,
            "run_id": 2,
            "pass_number": 2,
            "index": 2,
            "params_hash": "b",
            "signature": "b",
        },
    ],
)
def test_a_call_with_other_values_in_another_run_has_the_same_shape(
    changes: dict[str, Any],
) -> None:
    assert compute_shape(make_call(**changes)) == compute_shape(make_call())
