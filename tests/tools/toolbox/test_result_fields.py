"""The content type and the details of a result: they are stored with it, cleaned of secrets, and
hidden from the model."""

from typing import Any

import pytest

from tests.features import feature
from tests.tools.toolbox.sample_tools import Does
from tools.contract import ErrorCode, Level, ToolError, ToolResult, list_result_parts
from tools.testing import run_tool

SECRET = "token-of-github"


def run(returned: Any, **attributes: Any) -> ToolResult:
    return run_tool(
        Does(lambda _: returned, **attributes), credentials={"github": {"token": SECRET}}
    )


@feature(
    "Results and errors",
    "A result has a content type, `application/json` by default, and details that the model does not read",
    "tools/contract/result.py",
)
def test_a_result_keeps_type_and_details_and_the_model_reads_only_the_data() -> None:
    result = run(
        ToolResult.ok("a,b", "One row", content_type="text/csv; charset=utf-8", details={"rows": 1})
    )
    assert (result.content_type, result.details) == ("text/csv", {"rows": 1})
    assert result.for_model() == '"a,b"'
    loaded = ToolResult.from_json(result.as_json())
    assert (loaded.content_type, loaded.details, loaded.data) == ("text/csv", {"rows": 1}, "a,b")


def test_the_default_type_is_markdown_for_a_text_and_json_for_any_other_value() -> None:
    result = run(ToolResult.ok({"a": 1}))
    assert (result.content_type, result.details) == ("application/json", None)
    assert result.as_json()["metadata"].keys() == {"duration_ms"}
    assert run("# Title").content_type == "text/markdown"


def test_a_failure_keeps_its_details() -> None:
    result = run(
        ToolResult.failed(
            ToolError(ErrorCode.NOT_FOUND, "It is gone."), details={"tried": ["a", "b"]}
        )
    )
    assert result.details == {"tried": ["a", "b"]}
    assert ToolResult.from_json(result.as_json()).details == {"tried": ["a", "b"]}


@pytest.mark.parametrize("fails", [False, True])
def test_type_and_details_survive_storage_and_are_among_the_listed_parts(fails: bool) -> None:
    fields: dict[str, Any] = {"content_type": "text/csv", "details": {"rows": 1}}
    built = (
        ToolResult.failed(ToolError(ErrorCode.NOT_FOUND, "It is gone."), page=2, **fields)
        if fails
        else ToolResult.ok("a,b", page=2, **fields)
    )
    assert built.metadata == {"page": 2}
    for result in (built, run(built), ToolResult.from_json(built.as_json())):
        assert {"content_type": result.content_type, "details": result.details} == fields
        stored = list_result_parts(result.as_json())
        assert {name: stored[name] for name in fields} == fields


def test_type_and_details_contain_no_secret() -> None:
    result = run(
        ToolResult.ok(
            None, "Done", content_type=f"text/{SECRET}", details={SECRET: [f"with {SECRET}"]}
        )
    )
    assert (result.content_type, result.details) == (
        "text/[hidden]",
        {"[hidden]": ["with [hidden]"]},
    )


@pytest.mark.parametrize("wrong", ["json", "", "text/<script>", 7, None, ["text/csv"]])
def test_a_read_fails_if_its_media_type_is_invalid_but_a_write_does_not(wrong: Any) -> None:
    returned = ToolResult.ok({}, content_type=wrong)
    error = run(returned).error
    assert error is not None
    assert "not a media type such as 'text/csv'" in error.message
    write = run(returned, level=Level.WRITE)
    assert (write.success, write.content_type) == (True, "application/json")


def test_details_that_are_not_json_are_reported_with_their_place() -> None:
    error = run(ToolResult.ok({}, details={"when": object()})).error
    assert error is not None
    assert "details.when" in error.message


def test_older_and_hostile_stored_results_get_the_default_content_type() -> None:
    for metadata in (
        {},
        None,
        {"content_type": ["text", "image"]},
        {"content_type": "<b>"},
        {"content_type": ""},
    ):
        parts = list_result_parts({"success": True, "metadata": metadata})
        assert (parts["content_type"], parts["details"]) == ("application/json", None)
    assert (
        list_result_parts({"metadata": {"content_type": "text/html"}})["content_type"]
        == "text/html"
    )
