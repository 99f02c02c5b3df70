"""What people who write tools test them with does as the engine does."""

from __future__ import annotations

from typing import Any

import pytest

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
from tools.testing import Memory, card_of, run_tool, verdict_of
from tools.toolbox import Grants, Permission, Policy


class Wipe(Tool):
    """Shows what it is told to show."""

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


def test_a_card_shows_what_people_would_decide_about() -> None:
    shown = Preview("delete", (Target("7", "Acme", 1, {"name": "Acme"}),))
    card = card_of(Wipe(shown))
    assert (card.sentence, card.preview) == ("Use sample.wipe", shown)
    assert card_of(Echo, {"text": "hi"}).sentence == 'Use sample.echo: {"style":"plain","text":"hi","times":1}'


def test_without_a_preview_the_card_says_so() -> None:
    assert card_of(Wipe(None)).preview == Preview.impossible("This tool has no preview.")


@pytest.mark.parametrize(
    "error", [ToolError(ErrorCode.NOT_FOUND, "No record 7."), RuntimeError("a mistake of its own")]
)
def test_a_preview_that_fails_is_raised_to_the_test(error: Exception) -> None:
    with pytest.raises(type(error), match=r"record 7|of its own"):
        card_of(Wipe(error))


def test_no_card_is_made_of_wrong_params() -> None:
    with pytest.raises(ToolError, match="'text' parameter is required"):
        card_of(Echo, {})


def test_a_verdict_grants_the_tool_alone_unless_told_otherwise() -> None:
    assert verdict_of(Echo, {"text": "a"}).permission is Permission.AUTO
    assert verdict_of(Echo(level=Level.WRITE), {"text": "a"}).permission is Permission.ASK
    assert verdict_of(Echo(capabilities=frozenset({"a"})), {"text": "a"}).permission is Permission.FORBIDDEN
    assert verdict_of(Echo, {"text": "a"}, Grants()).permission is Permission.FORBIDDEN
    assert verdict_of(Echo, {"text": "a"}, policy=Policy(frozenset({Echo.name}))).permission is Permission.FORBIDDEN
    assert verdict_of(Echo, {}).permission is Permission.FORBIDDEN


def test_a_memory_keeps_results_as_long_as_the_tool_says() -> None:
    said = iter(range(9))
    tool, memory = Does(lambda _: ToolResult.ok(next(said)), cacheable_s=10), Memory()
    assert [memory.run_tool(tool).data for _ in range(2)] == [0, 0]
    assert memory.run_tool(tool, organization_id=2).data == 1
    assert run_tool(tool).data == 2
    memory.now = 10
    assert memory.run_tool(tool).data == 3


def test_a_memory_counts_calls_for_each_organisation() -> None:
    tool, memory = Does(lambda _: ToolResult.ok(), rate_limit=RateLimit(2, 60)), Memory()

    def code(organization_id: int = 1) -> str:
        error = memory.run_tool(tool, organization_id=organization_id).error
        return error.code.value if error else ""

    assert [code(), code(), code(), code(2)] == ["", "", "RATE_LIMITED", ""]
    memory.now = 60
    assert [code(), code(), code()] == ["", "", "RATE_LIMITED"]
