"""The result of a single call: whatever the tool does, it is a ToolResult that can be stored and
shown."""

import asyncio
import json
import logging
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from tests.features import feature
from tests.tools.toolbox.sample_tools import Does, Echo
from tools.contract import ErrorCode, Level, ResultError, ToolContext, ToolError, ToolResult
from tools.testing import run_tool
from tools.toolbox import PreparedCall, run_call
from tools.toolbox.outcome import LARGEST_PART


def result_of(returned: Any, **attributes: Any) -> ToolResult:
    return run_tool(Does(lambda _: returned, **attributes))


def error_of(result: ToolResult) -> ResultError:
    assert not result.success
    assert result.error is not None
    return result.error


def raising(error: BaseException) -> Does:
    def work(context: ToolContext) -> ToolResult:
        raise error

    return Does(work)


@feature(
    "Results and errors",
    "Any other exception is logged in full and hidden from the model",
    "tools/toolbox/isolation.py",
)
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("key=s3cret"),
        SystemExit("s3cret"),
        KeyboardInterrupt(),
        MemoryError(),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_is_logged_in_full_but_not_shown_in_the_result(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    told = error_of(run_tool(raising(error)))
    assert told.code is ErrorCode.TOOL_EXECUTION_FAILED
    assert not told.is_definite
    assert "s3cret" not in told.text
    assert str(error) in caplog.text
    assert caplog.records[0].levelno == logging.ERROR
    assert caplog.records[0].exc_info is not None


def test_a_tool_error_is_reported_verbatim() -> None:
    error = ToolError(ErrorCode.NOT_FOUND, "There is no record 7.", parameter="record_id")
    told = error_of(run_tool(raising(error)))
    assert told.text == "TOOL ERROR: NOT_FOUND\nThere is no record 7.\nPARAMETER: record_id"
    assert told.is_definite


def test_exceptions_that_the_caller_lets_through_are_raised() -> None:
    call = PreparedCall(0, raising(ConnectionError("deadlock")), {}, ToolContext(1), 1.0)
    assert not run_call(call).success
    with pytest.raises(ConnectionError):
        run_call(call, let_through=(ConnectionError,))


def test_the_duration_is_measured_in_success_and_failure() -> None:
    assert run_tool(Echo(), {"text": "hi"}).metadata["duration_ms"] >= 0
    assert run_tool(raising(ValueError())).metadata["duration_ms"] >= 0


def test_a_text_becomes_a_result() -> None:
    result = result_of("Found 3 records\n\n- a\n- b")
    assert (result.success, result.summary, result.markdown) == (
        True,
        "Found 3 records",
        "Found 3 records\n\n- a\n- b",
    )


@feature(
    "Results and errors",
    "A text becomes a result; a text that starts with `TOOL ERROR:` is a failure",
    "tools/toolbox/outcome.py",
)
@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (
            "TOOL ERROR: NOT_FOUND\nNo such page.\nPARAMETER: url",
            ErrorCode.NOT_FOUND,
            "No such page.",
        ),
        ("TOOL ERROR: it broke", ErrorCode.OPERATION_FAILED, "it broke"),
        ("TOOL ERROR:", ErrorCode.OPERATION_FAILED, "The tool reported a failure."),
        ("TOOL ERROR: TIMEOUT", ErrorCode.TIMEOUT, "The tool reported a failure."),
    ],
)
def test_a_text_that_starts_with_tool_error_is_a_failure(
    text: str, code: ErrorCode, message: str
) -> None:
    error = error_of(result_of(text))
    assert (error.code, error.message, error.text) == (code, message, text)
    assert error.is_definite is (code is not ErrorCode.TIMEOUT)


def test_an_async_tool_is_awaited() -> None:
    async def work(context: ToolContext) -> ToolResult:
        await asyncio.sleep(0)
        return ToolResult.ok(context.organization_id)

    assert run_tool(Does(work), organization_id=7).data == 7


@feature(
    "Tool contract",
    "`async def` is supported, and cancelled at the timeout",
    "tools/toolbox/executor.py",
)
def test_an_async_tool_is_cancelled_at_its_timeout() -> None:
    ended: list[str] = []

    async def work(context: ToolContext) -> ToolResult:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")
        return ToolResult.ok()

    error = error_of(run_tool(Does(work, timeout_s=0.02)))
    assert (error.code, ended) == (ErrorCode.TIMEOUT, ["cancelled"])


def test_a_timeout_error_raised_by_the_tool_is_not_reported_as_the_calls_timeout() -> None:
    async def work(context: ToolContext) -> ToolResult:
        raise TimeoutError

    assert error_of(run_tool(Does(work))).code is ErrorCode.TOOL_EXECUTION_FAILED


class Found(BaseModel):
    total: int
    names: list[str]


def holding_itself() -> list[Any]:
    knot: list[Any] = []
    knot.append(knot)
    return knot


@pytest.mark.parametrize(
    ("data", "written"),
    [
        (
            {"records": [{"when": datetime(2026, 1, 1, tzinfo=UTC)}]},
            {"records": [{"when": "2026-01-01T00:00:00Z"}]},
        ),
        ({"ids": {8, 1}, "sum": Decimal("1.50")}, {"ids": [1, 8], "sum": "1.50"}),
        ([1.0, float("nan")], [1.0, None]),
        ({(1, 2): UUID(int=3)}, {"[1,2]": "00000000-0000-0000-0000-000000000003"}),
        (Found(total=1, names=["a"]), {"total": 1, "names": ["a"]}),
    ],
)
def test_values_are_serialized_as_by_pydantic(data: Any, written: Any) -> None:
    for result in (
        result_of(ToolResult.ok(data)),
        result_of(data) if isinstance(data, dict | Found) else None,
    ):
        assert result is None or (result.success, result.data) == (True, written)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"it": [object()]}, "data.it.0 is object, which is not JSON"),
        (holding_itself(), "nested too deeply, or contains itself"),
        ({"all": range(3)}, "data.all is range, which is not JSON"),
        (b"\xff", "data is bytes, which is not JSON"),
    ],
)
def test_a_read_with_an_unserializable_result_fails_and_names_the_place(
    data: Any, told: str
) -> None:
    error = error_of(result_of(ToolResult.ok(data)))
    assert told in error.message
    assert not error.is_definite


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"it": [object()], "id": 5}, "data.it.0 is object, which is not JSON"),
        (holding_itself(), "nested too deeply, or contains itself"),
        ("x" * (LARGEST_PART + 1), "the limit is 8,000,000"),
    ],
)
def test_a_write_succeeds_even_if_its_result_is_unserializable(data: Any, told: str) -> None:
    result = result_of(ToolResult.ok(data, "Sent it."), level=Level.WRITE)
    assert result.success
    assert result.summary.startswith("Sent it. It succeeded, but its result cannot be read: ")
    assert told in result.summary
    assert told in result.for_model()
    assert told in result.metadata["unreadable"]


class Locked(dict[str, int]):
    """Data that cannot be read."""

    def items(self) -> Any:
        raise RuntimeError("s3cret")


def test_a_write_succeeds_even_if_reading_its_result_fails() -> None:
    result = result_of(ToolResult.ok(Locked(a=1)), level=Level.WRITE)
    assert (result.success, result.data) == (True, None)
    assert "It succeeded, but its result cannot be read: its own code fails" in result.for_model()
    assert "s3cret" not in result.for_model()
    assert error_of(result_of(ToolResult.ok(Locked(a=1)))).code is ErrorCode.TOOL_EXECUTION_FAILED


def test_a_transactional_write_with_an_unreadable_result_fails_and_changes_nothing() -> None:
    error = error_of(result_of(ToolResult.ok(object()), level=Level.WRITE, transactional=True))
    assert (error.code, error.is_definite) == (ErrorCode.OPERATION_FAILED, True)
    assert "Nothing was changed." in error.message


def test_a_write_succeeds_even_if_its_result_violates_the_output_model() -> None:
    result = result_of(ToolResult.ok({"total": 1, "names": [7]}), Output=Found, level=Level.WRITE)
    assert (result.success, result.data) == (True, {"total": 1, "names": [7]})
    assert "data.names.0: Input should be a valid string" in result.summary


def test_a_decimal_cost_becomes_a_number() -> None:
    assert result_of(ToolResult.ok({}, cost=Decimal("0.25"))).metadata["cost"] == 0.25


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (None, "NoneType, not a ToolResult"),
        (ToolResult(success=False), "contradict"),
        (ToolResult(success=1), "contradict"),  # type: ignore[arg-type]
        (iter([1]), "list_iterator that was never run or awaited"),
        (ToolResult(success=True, summary=None), "must be text"),  # type: ignore[arg-type]
        (ToolResult(success=False, error=5), "error is 5"),  # type: ignore[arg-type]
    ],
)
def test_a_return_value_that_is_not_a_result_is_a_failure(returned: Any, told: str) -> None:
    assert told in error_of(result_of(returned)).message


@pytest.mark.parametrize("error", [ToolError(ErrorCode.NOT_FOUND, "No."), "No."])
def test_the_error_of_a_result_can_be_a_tool_error_or_a_text(error: Any) -> None:
    assert error_of(result_of(ToolResult(success=False, error=error))).message == "No."


def test_later_changes_to_a_tools_objects_do_not_change_its_result() -> None:
    own = {"names": ("a", "b"), 7: [1]}
    result = result_of(ToolResult.ok(own))
    own["names"] = ()
    assert result.data == {"names": ["a", "b"], "7": [1]}


def test_unstorable_text_is_replaced() -> None:
    result = result_of(
        ToolResult.ok({"a\0": ["x\0y", "\ud800", "\\u0000"]}, "one\0\n two", "# \udfff")
    )
    assert result.data == {"a\ufffd": ["x\ufffdy", "\ufffd", "\\u0000"]}
    assert (result.summary, result.markdown) == ("one\ufffd two", "# \ufffd")
    json.dumps(result.as_json(), ensure_ascii=False).encode("utf-8")


@feature(
    "Tool contract",
    "A read whose result does not match the declared output fails and names the place",
    "tools/toolbox/outcome.py",
)
def test_a_result_that_violates_the_output_model_fails_and_names_the_place() -> None:
    error = error_of(result_of(ToolResult.ok({"total": 1, "names": [7]}), Output=Found))
    assert "data.names.0: Input should be a valid string" in error.message


def test_an_output_model_is_accepted_as_data() -> None:
    result = result_of(ToolResult.ok(Found(total=1, names=["a"])), Output=Found)
    assert result.data == {"total": 1, "names": ["a"]}


def test_a_failure_need_not_match_the_output_model() -> None:
    failed = ToolResult.failed(ToolError(ErrorCode.NOT_FOUND, "No."))
    assert error_of(result_of(failed, Output=Found)).code is ErrorCode.NOT_FOUND


def test_invalid_params_are_reported_in_the_error_text_for_the_model() -> None:
    assert error_of(run_tool(Echo, {})).text.startswith("TOOL ERROR: MISSING_PARAMETER\n")
