"""Tools that wait for their result: in a run, the call waits; everywhere else, it fails with a
clear error."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pydantic import BaseModel

from tests.features import feature
from tools.builtin.employee import AskHuman, Delegate
from tools.contract import Delegation, ErrorCode, Level, Question, Tool, ToolContext
from tools.testing import run_tool
from tools.toolbox import Batch, FinishedCall, Grants, PreparedCall, Toolbox

CONTEXT = ToolContext(organization_id=1)


class Ask(Tool):
    name = "probe.ask"
    description = "Asks."
    level = Level.READ
    suspends = True

    class Params(BaseModel):
        text: str = "Which?"

    def execute(self, params: Params, context: ToolContext) -> Any:
        return Question(params.text)


class Undeclared(Ask):
    name = "probe.undeclared"
    suspends = False


class AskLater(Ask):
    name = "probe.askLater"

    async def execute(self, params: Ask.Params, context: ToolContext) -> Any:
        return Delegation("Kim", params.text)


def finished(tool: Tool, *, may_suspend: bool) -> FinishedCall:
    batch = Batch()
    batch.start(PreparedCall(1, tool, {"text": "Which?"}, CONTEXT, 5.0, may_suspend=may_suspend))
    (report,) = batch.wait(time.monotonic() + 5)
    assert isinstance(report, FinishedCall)
    return report


class TestSuspensionInARun:
    def test_names_what_the_tool_waits_for(self) -> None:
        report = finished(Ask(), may_suspend=True)
        assert report.suspend == Question("Which?")
        assert not report.result.success

    def test_async_tools_can_suspend_their_call(self) -> None:
        assert finished(AskLater(), may_suspend=True).suspend == Delegation("Kim", "Which?")

    def test_is_possible_only_for_a_tool_with_the_attribute_suspends(self) -> None:
        report = finished(Undeclared(), may_suspend=True)
        assert report.suspend is None
        assert report.result.error is not None
        assert "its attribute `suspends` is False" in report.result.error.message


@feature(
    "Questions and delegation",
    "Outside a run, a tool that has to wait fails with a clear error",
    "tools/toolbox/executor.py",
)
@pytest.mark.parametrize(
    ("tool", "params"),
    [
        (AskHuman, {"question": "Which?"}),
        (Delegate, {"employee": "Kim", "task": "Look"}),
        (Ask, {}),
    ],
)
def test_a_call_of_a_suspending_tool_outside_a_run_fails_clearly(
    tool: type[Tool], params: dict[str, str]
) -> None:
    toolbox = Toolbox()
    toolbox.register(tool())
    grants = Grants(frozenset({tool.name}))
    for result in (
        run_tool(tool, params),
        toolbox.execute_tool_by_name(tool.name, params, CONTEXT, grants),
    ):
        assert result.error is not None
        assert result.error.code == ErrorCode.OPERATION_NOT_ALLOWED
        assert "is only possible in a run" in result.error.message
        assert result.error.is_definite


@pytest.mark.parametrize(
    "params", [{"question": ""}, {"question": "x" * 2_001}, {"question": "x", "choices": ["a"] * 9}]
)
def test_a_question_beyond_its_limits_is_refused(params: dict[str, object]) -> None:
    result = run_tool(AskHuman, params)
    assert result.error is not None
    assert result.error.code == ErrorCode.INVALID_PARAMETER
