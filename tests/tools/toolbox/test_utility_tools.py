"""utility.calculate is exact and explains a division by zero; utility.now knows time zones."""

from datetime import datetime, timedelta

import pytest

from tests.features import feature
from tools.contract import ErrorCode, Person
from tools.office.tools.utility import Calculate, Now
from tools.testing import run_tool


@feature(
    "Built-in tools", "`utility.calculate`, `now`", "tools/office/tools/utility.py", whole_file=True
)
@pytest.mark.parametrize(
    ("operation", "a", "b", "value"),
    [
        ("add", 0.1, 0.2, 0.3),
        ("subtract", 1, 0.9, 0.1),
        ("multiply", 9007199254740993, 3, 27021597764222979),
        ("divide", 84, 2, 42),
        ("divide", 1, 8, 0.125),
        ("multiply", 1e30, 1e30, 10**60),
    ],
)
def test_results_are_exact(operation: str, a: float, b: float, value: float) -> None:
    assert run_tool(Calculate, {"operation": operation, "a": a, "b": b}).data == {"value": value}


def test_the_summary_shows_the_calculation() -> None:
    assert run_tool(Calculate, {"operation": "divide", "a": 84, "b": 2}).summary == "84 / 2 = 42"


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_a_division_by_zero_is_explained(zero: float) -> None:
    error = run_tool(Calculate, {"operation": "divide", "a": 84, "b": zero}).error
    assert error is not None
    assert error.code is ErrorCode.INVALID_OPERATION
    assert error.text == (
        "TOOL ERROR: INVALID_OPERATION\n84 cannot be divided by zero.\nPARAMETER: b\nEXPECTED: a divisor other than 0\n"
        "RECOVERY HINT: Check the source of the zero, or use another operation."
    )


@feature(
    "Built-in tools",
    "The calculator adds, subtracts, multiplies and divides by these names, and explains a zero",
    "tools/office/tools/utility.py",
)
def test_the_operations_have_the_documented_names() -> None:
    operations = Calculate().parameters[0].schema["enum"]
    assert operations == ["add", "subtract", "multiply", "divide"]
    results = [
        run_tool(Calculate, {"operation": name, "a": 84, "b": 2}).data["value"]
        for name in operations
    ]
    assert results == [86, 82, 168, 42]


@pytest.mark.parametrize(
    ("params", "parameter"),
    [
        ({"operation": "power", "a": 1, "b": 2}, "operation"),
        ({"operation": "add", "a": "many", "b": 2}, "a"),
        ({"operation": "add", "a": 1, "b": 1e31}, "b"),
        ({"operation": "add", "a": "nan", "b": 1}, "a"),
    ],
)
def test_invalid_params_name_the_parameter(params: dict[str, object], parameter: str) -> None:
    error = run_tool(Calculate, params).error
    assert error is not None
    assert error.code is ErrorCode.INVALID_PARAMETER
    assert f"PARAMETER: {parameter}" in error.text


def test_a_result_too_large_for_a_number_is_refused() -> None:
    error = run_tool(Calculate, {"operation": "divide", "a": 1.1e30, "b": 3e-300}).error
    assert error is None or error.code is ErrorCode.INVALID_PARAMETER
    error = run_tool(Calculate, {"operation": "divide", "a": 1e29, "b": 3e-300}).error
    assert error is not None
    assert error.code is ErrorCode.LIMIT_EXCEEDED


def test_now_returns_the_same_moment_in_every_time_zone() -> None:
    utc = datetime.fromisoformat(run_tool(Now).data["iso"])
    tokyo = datetime.fromisoformat(run_tool(Now, {"timezone": "Asia/Tokyo"}).data["iso"])
    assert tokyo.utcoffset() == timedelta(hours=9)
    assert abs(tokyo - utc) < timedelta(seconds=5)


@pytest.mark.parametrize(
    ("chosen", "named", "used"),
    [
        ({}, {}, "UTC"),
        ({"time_zone": "Asia/Tokyo"}, {}, "Asia/Tokyo"),
        ({"time_zone": "Asia/Tokyo"}, {"timezone": "UTC"}, "UTC"),
    ],
)
def test_now_uses_the_persons_time_zone_if_none_is_given(
    chosen: dict[str, str], named: dict[str, str], used: str
) -> None:
    result = run_tool(Now, named, user=Person("1", "Ada", chosen))
    assert result.data["timezone"] == used
    assert datetime.fromisoformat(result.data["iso"]).utcoffset() == timedelta(
        hours=9 if used == "Asia/Tokyo" else 0
    )


@pytest.mark.parametrize(
    "timezone", ["Mars/Base", " ", "../../etc/passwd", "/etc/passwd", "America", "x" * 500]
)
def test_an_unknown_time_zone_is_an_invalid_parameter(timezone: str) -> None:
    error = run_tool(Now, {"timezone": timezone}).error
    assert error is not None
    assert error.code is ErrorCode.INVALID_PARAMETER
    assert Now.volatile
