"""The test helpers for tool authors behave like the engine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.features import feature
from tests.tools.toolbox.sample_tools import Does, Echo
from tools.contract import (
    ErrorCode,
    Level,
    NoParams,
    Preview,
    RateLimit,
    Target,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
)
from tools.testing import Memory, build_card, judge_tool, run_tool
from tools.toolbox import Grants, Permission, Policy


class Wipe(Tool):
    """A tool that shows a given preview, or raises a given exception instead."""

    name = "sample.wipe"
    description = "Wipes."
    Params = NoParams

    def __init__(self, shown: Preview | BaseException | None) -> None:
        self.shown = shown

    def preview(self, params: Any, context: ToolContext) -> Preview | None:
        if isinstance(self.shown, BaseException):
            raise self.shown
        return self.shown

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok()


@feature(
    "Tool contract",
    "Tests run a tool, judge a call and build its card without a database",
    "tools/testing.py",
)
def test_a_built_card_has_the_sentence_and_the_preview_that_people_would_see() -> None:
    shown = Preview("delete", (Target("7", "Acme", 1, {"name": "Acme"}),))
    card = build_card(Wipe(shown))
    assert (card.sentence, card.preview) == ("Use sample.wipe", shown)
    assert (
        build_card(Echo, {"text": "hi"}).sentence
        == 'Use sample.echo: “{"style":"plain","text":"hi","times":1}”'
    )


def test_a_card_without_a_preview_says_so() -> None:
    assert build_card(Wipe(None)).preview == Preview.impossible("This tool has no preview.")


@pytest.mark.parametrize(
    "error", [ToolError(ErrorCode.NOT_FOUND, "No record 7."), RuntimeError("a mistake of its own")]
)
def test_building_a_card_raises_the_error_of_its_preview(error: Exception) -> None:
    with pytest.raises(type(error), match=r"record 7|of its own"):
        build_card(Wipe(error))


def test_building_a_card_with_invalid_params_raises_their_error() -> None:
    with pytest.raises(ToolError, match="'text' parameter is required"):
        build_card(Echo, {})


def test_judge_tool_grants_only_the_tool_by_default() -> None:
    assert judge_tool(Echo, {"text": "a"}).permission is Permission.AUTO
    assert judge_tool(Echo(level=Level.WRITE), {"text": "a"}).permission is Permission.ASK
    assert (
        judge_tool(Echo(capabilities=frozenset({"a"})), {"text": "a"}).permission
        is Permission.FORBIDDEN
    )
    assert judge_tool(Echo, {"text": "a"}, Grants()).permission is Permission.FORBIDDEN
    assert (
        judge_tool(Echo, {"text": "a"}, policy=Policy(frozenset({Echo.name}))).permission
        is Permission.FORBIDDEN
    )
    assert judge_tool(Echo, {}).permission is Permission.FORBIDDEN


def test_a_result_is_cached_for_as_long_as_the_tool_declares() -> None:
    said = iter(range(9))
    tool, memory = Does(lambda _: ToolResult.ok(next(said)), cacheable_s=10), Memory()
    assert [memory.run_tool(tool).data for _ in range(2)] == [0, 0]
    assert memory.run_tool(tool, organization_id=2).data == 1
    assert run_tool(tool).data == 2
    memory.now = 10
    assert memory.run_tool(tool).data == 3


def test_the_rate_limit_counts_each_organizations_calls_separately() -> None:
    tool, memory = Does(lambda _: ToolResult.ok(), rate_limit=RateLimit(2, 60)), Memory()

    def code(organization_id: int = 1) -> str:
        error = memory.run_tool(tool, organization_id=organization_id).error
        return error.code.value if error else ""

    assert [code(), code(), code(), code(2)] == ["", "", "RATE_LIMITED", ""]
    memory.now = 60
    assert [code(), code(), code()] == ["", "", "RATE_LIMITED"]
