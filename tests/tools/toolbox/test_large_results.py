"""A result that is too large for a model is sent in portions. Each portion says that it is only a
part, and together they are complete."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import pytest

from tests.features import feature
from tests.tools.toolbox.sample_tools import Does
from tools.builtin.results import ReadResult
from tools.contract import ErrorCode, Level, ToolContext, ToolError, ToolResult
from tools.contract.excerpts import (
    MAX_CHARACTERS,
    format_for_model,
    format_handle,
    parse_handle,
    take_excerpt,
)
from tools.testing import run_tool
from tools.toolbox.outcome import LARGEST_PART

ROWS = [{"id": number, "name": f"Company {number}, Ltd. »ü«"} for number in range(5_000)]
LINES = "\n".join(f"| {number} | a row of a table |" for number in range(5_000))
LARGE = {
    "a list": ToolResult.ok(ROWS),
    "short lines": ToolResult.ok(markdown="\n".join("ab" for _ in range(40_000))),
    "an object with a list": ToolResult.ok({"records": ROWS, "total": 5_000, "first": ["a"]}),
    "markdown": ToolResult.ok(ROWS, markdown=LINES),
    "one long line": ToolResult.ok(markdown="x" * 100_000),
    "one long row": ToolResult.ok([{"body": "y" * 100_000}]),
    "a large object beside a list": ToolResult.ok({"list": [1, 2], "text": "z" * 100_000}),
    "a text": ToolResult.ok("w" * 100_000),
    "an error": ToolResult.failed(ToolError(ErrorCode.OPERATION_FAILED, "e" * 100_000)),
}
CONTINUE_REQUEST = "continue with results.read if available; otherwise request less"
GLUE = {"rows": ",\n", "lines": "\n", "characters": ""}


@pytest.mark.parametrize("result", LARGE.values(), ids=LARGE)
def test_all_portions_together_are_the_whole_result(result: ToolResult) -> None:
    texts, start = [], 0
    portion = take_excerpt(result)
    unit, total = portion.unit, portion.total
    while start < total:
        portion = take_excerpt(result, start)
        assert (portion.unit, portion.total, portion.start) == (unit, total, start)
        assert len(portion.text) <= MAX_CHARACTERS
        assert portion.end > start
        texts.append(portion.text)
        start = portion.end
    assert len(texts) > 1
    whole = GLUE[unit].join(texts)
    if unit == "rows":
        assert json.loads(f"[{whole}]") == ROWS
    else:
        assert whole == result.for_model()


@pytest.mark.parametrize("result", LARGE.values(), ids=LARGE)
def test_the_text_for_the_model_says_what_is_left_out(result: ToolResult) -> None:
    text, portion = format_for_model(result, "r-17"), take_excerpt(result)
    assert len(text) < MAX_CHARACTERS + 7_000
    assert text.endswith(
        f"\n[shortened: {portion.end:,} of {portion.total:,} {portion.unit}; handle r-17; {CONTINUE_REQUEST}]"
    )


def test_an_objects_other_values_are_in_the_first_portion_of_its_rows() -> None:
    first, second, *_ = format_for_model(LARGE["an object with a list"], "r-1").splitlines()
    assert json.loads(first) == {"total": 5_000, "first": ["a"]}
    assert second.startswith('records: [{"id":0,')


def test_a_small_result_is_shown_in_full() -> None:
    for result in (
        ToolResult.ok({"a": 1}),
        ToolResult.ok(markdown="x" * MAX_CHARACTERS),
        ToolResult.ok([]),
    ):
        assert format_for_model(result, "r-1") == result.for_model()


@pytest.mark.parametrize("start", [5_000, 10**18])
def test_a_portion_that_starts_beyond_the_end_is_empty(start: int) -> None:
    portion = take_excerpt(LARGE["a list"], start)
    assert (portion.text, portion.start, portion.end) == ("", 5_000, 5_000)


@pytest.mark.parametrize(
    "handle", ["", "17", "r-", "r-0", "r--1", "r-1x", "r-1234567890123456789012", "R-1", "r-१"]
)
def test_a_malformed_handle_is_not_parsed(handle: str) -> None:
    assert parse_handle(handle) is None


def test_a_handle_names_its_call() -> None:
    assert parse_handle(f" {format_handle(17)} ") == 17


def read_on(result: ToolResult, **params: Any) -> ToolResult:
    return run_tool(ReadResult, {"handle": "r-17", **params}, earlier_result={"r-17": result}.get)


@feature("Built-in tools", "`results.read`", "tools/builtin/results.py")
def test_a_portion_says_where_it_starts_and_how_to_continue() -> None:
    first = read_on(LARGE["markdown"])
    assert first.data["from"] == 0
    assert first.markdown.endswith(f"continue with offset {first.data['to']}]")
    last = read_on(LARGE["markdown"], offset=4_999)
    assert (
        last.markdown
        == "| 4999 | a row of a table |\n[Lines 4,999 to 5,000 of 5,000; this is the end]"
    )


@pytest.mark.parametrize("result", LARGE.values(), ids=LARGE)
def test_a_portion_is_never_shortened(result: ToolResult) -> None:
    start, total = 0, 1
    while start < total:
        part = read_on(result, offset=start)
        assert format_for_model(part, "r-18") == part.markdown
        start, total = part.data["to"], part.data["total"]


def test_a_handle_of_a_call_that_does_not_exist_is_refused() -> None:
    error = read_on(LARGE["a list"], handle="r-18").error
    assert error is not None
    assert (error.code, error.is_definite) == (ErrorCode.NOT_FOUND, True)


@feature(
    "Results and errors",
    "A read with a result beyond the size limit fails with a clear error",
    "tools/toolbox/outcome.py",
)
@pytest.mark.parametrize(
    "huge", [["x" * 100] * (LARGEST_PART // 100), {"a": "x" * LARGEST_PART}], ids=["list", "text"]
)
def test_a_read_result_over_the_limit_fails_with_an_explanation(huge: Any) -> None:
    error = run_tool(Does(lambda _: ToolResult.ok(huge))).error
    assert error is not None
    assert error.code is ErrorCode.LIMIT_EXCEEDED
    assert f"the limit is {LARGEST_PART:,}" in error.message


def test_a_write_succeeds_even_if_its_result_is_over_the_limit() -> None:
    result = run_tool(Does(lambda _: "x" * (LARGEST_PART + 1), level=Level.WRITE))
    assert result.success
    assert f"the limit is {LARGEST_PART:,}" in result.summary


def test_a_read_raised_to_a_write_succeeds_even_if_its_result_is_over_the_limit() -> None:
    result = run_tool(Does(lambda _: "x" * (LARGEST_PART + 1)), level=Level.WRITE)
    assert result.success
    assert len(result.for_model()) < 200


@pytest.mark.parametrize("level", [Level.READ, Level.WRITE])
@pytest.mark.parametrize("part", ["large", "no JSON"])
def test_a_refused_result_is_freed_without_garbage_collection(level: Level, part: str) -> None:
    class Rows(list[Any]):
        """A list that weak references can refer to."""

    kept: list[weakref.ref[Rows]] = []

    def answer(context: ToolContext) -> ToolResult:
        rows = Rows(["x" * LARGEST_PART, "y"] if part == "large" else [object()])
        kept.append(weakref.ref(rows))
        return ToolResult.ok(rows)

    gc.disable()
    try:
        run_tool(Does(answer, level=level))
        assert kept[0]() is None
    finally:
        gc.enable()
