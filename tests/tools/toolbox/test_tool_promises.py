"""A tool's own properties: its level, identity, definition and hash, error text and preview
seal."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from tests.features import feature
from tests.tools.toolbox.sample_tools import Echo
from tools.contract import (
    ErrorCode,
    Level,
    Preview,
    Target,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    format_error,
)


@feature("Tool contract", "A missing level means destructive", "tools/contract/tool.py")
def test_a_missing_level_means_destructive() -> None:
    class Bare(Tool):
        name = "sample.bare"
        description = "Says nothing of its level."

        def execute(self, params: Any, context: ToolContext) -> ToolResult:
            return ToolResult.ok()

    assert Bare().level is Level.DESTRUCTIVE


def test_only_levels_above_draft_have_side_effects() -> None:
    assert [level for level in Level if level.has_side_effects] == [Level.WRITE, Level.DESTRUCTIVE]


@feature(
    "Tool contract",
    "A name and a version identify a tool; the category is the part before the dot",
    "tools/contract/tool.py",
)
def test_the_identity_consists_of_name_and_version() -> None:
    tool = Echo(version="2.1")
    assert (tool.id, tool.category, tool.title) == ("sample.echo@2.1", "sample", "sample.echo")
    assert tool.definition["function"]["name"] == "sample.echo"


def test_the_definition_hash_ignores_formatting_and_covers_description_level_and_version() -> None:
    original = Echo().definition_hash
    assert (
        Echo(description="Says  the same\n again.", display_name="Echo!").definition_hash
        == original
    )
    changed = [Echo(description="Deletes all."), Echo(level=Level.WRITE), Echo(version="2.0")]
    assert len({original, *(tool.definition_hash for tool in changed)}) == 4


def test_lines_without_a_value_are_omitted_from_an_error() -> None:
    assert (
        format_error(ToolError(ErrorCode.NOT_FOUND, "No record 7."))
        == "TOOL ERROR: NOT_FOUND\nNo record 7."
    )


@pytest.mark.parametrize(
    ("code", "attempted", "definite"),
    [
        (ErrorCode.TIMEOUT, True, False),
        (ErrorCode.NETWORK_ERROR, True, False),
        (ErrorCode.TOOL_EXECUTION_FAILED, True, False),
        (ErrorCode.OUTCOME_UNKNOWN, True, False),
        (ErrorCode.NETWORK_ERROR, False, True),
        (ErrorCode.NOT_FOUND, True, True),
    ],
)
def test_whether_a_failure_is_definite_depends_on_its_code_and_on_the_attempt(
    code: ErrorCode, attempted: bool, definite: bool
) -> None:
    error = ToolError(code, "x", attempted=attempted)
    assert error.is_definite is definite
    told = ToolResult.failed(error).error
    assert told is not None
    assert told.is_definite is definite


@feature(
    "Tool contract",
    "Preview of a call's effect, shown on the card and sealed by it",
    "tools/contract/preview.py",
)
def test_a_seal_changes_with_every_value_it_covers() -> None:
    target = Target("7", "Acme", 3, {"status": "active"}, {"status": "inactive"})
    seal = Preview("update", (target,)).seal
    others = [
        Preview("delete", (target,)),
        Preview("update", (target, target)),
        Preview("update", (Target("7", "Acme", 4, target.before, target.after),)),
        Preview("update", (Target("7", "Acme", 3, target.before, {"status": "gone"}),)),
        Preview("update", (target,), reversible=False),
        Preview.impossible("no preview"),
    ]
    assert len({seal, *(other.seal for other in others)}) == 7
    assert Preview.from_json(Preview("update", (target,)).as_json()).seal == seal


@feature(
    "Results and errors",
    "The model reads the error, else the markdown, else the data",
    "tools/contract/result.py",
)
def test_the_model_is_shown_the_error_or_the_markdown_or_the_data() -> None:
    assert (
        ToolResult.failed(ToolError(ErrorCode.NOT_FOUND, "No.")).for_model()
        == "TOOL ERROR: NOT_FOUND\nNo."
    )
    assert ToolResult.ok({"n": 1}, "One", "# One").for_model() == "# One"
    assert ToolResult.ok({"n": 1}, "One").for_model() == '{"n":1}'
    assert ToolResult.ok(None, "One").for_model() == "One"


class Inner(BaseModel):
    depth: int | None = Field(None, description="How deep")


class Nested(Echo):
    class Params(BaseModel):
        inner: Inner = Field(description="Holds more")
        many: list[Inner] = []
        maybe: Inner | None = None
        kind: Literal["a", 1] = "a"
        anything: Any = None


def test_the_list_form_names_nested_types_and_follows_references() -> None:
    by_name = {each.name: each for each in Nested().parameters}
    types = {name: each.type for name, each in by_name.items()}
    assert types == {
        "inner": "object",
        "many": "array",
        "maybe": "object or null",
        "kind": "string or integer",
        "anything": "any",
    }
    assert by_name["inner"].description == "Holds more"
    assert by_name["inner"].schema["properties"]["depth"]["description"] == "How deep"
    assert by_name["many"].schema["items"]["properties"].keys() == {"depth"}
    assert "$ref" not in str([each.schema for each in by_name.values()])


class Tree(BaseModel):
    below: list[Tree] = []


def test_a_recursive_schema_is_followed_once() -> None:
    class Planting(Echo):
        class Params(BaseModel):
            tree: Tree

    (tree,) = Planting().parameters
    assert tree.type == "object"
    assert tree.schema["properties"]["below"]["items"] == {"$ref": "#/$defs/Tree"}
