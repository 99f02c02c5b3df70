"""Error codes, mode sets and available tools are exactly as documented."""

import pytest

from tests.features import feature
from tests.tools.toolbox.sample_tools import Echo
from tools.contract import ErrorCode, Level, ToolContext, ToolError, format_error
from tools.toolbox import Grants, Toolbox

DOCUMENTED = [
    "MISSING_PARAMETER", "INVALID_PARAMETER", "NOT_FOUND", "PERMISSION_DENIED", "OPERATION_FAILED",
    "OPERATION_NOT_ALLOWED", "VALIDATION_ERROR", "RATE_LIMITED", "LIMIT_EXCEEDED", "INVALID_CRON_SPEC",
    "INVALID_OPERATION", "NOTHING_TO_DO", "TIMEOUT", "INVALID_TOOL_ARGUMENTS", "SUBAGENT_FAILED",
    "TOOL_EXECUTION_FAILED", "UNAUTHORIZED", "FORBIDDEN", "RATE_LIMIT_EXCEEDED", "NETWORK_ERROR", "SECURITY_VIOLATION",
    "TOOL_NOT_FOUND", "NOT_PERMITTED", "MISSING_PARAM", "TOOL_DISABLED", "APPROVAL_DENIED", "APPROVAL_EXPIRED",
    "OUTCOME_UNKNOWN", "WORKER_LOST",
]  # fmt: skip


def test_the_error_codes_are_exactly_the_documented_codes() -> None:
    assert [code.value for code in ErrorCode] == DOCUMENTED


@feature(
    "Results and errors",
    "Error codes shared by tools, the executor and the gate",
    "tools/contract/errors.py",
)
@pytest.mark.parametrize("code", DOCUMENTED)
def test_each_code_is_formatted_as_documented(code: str) -> None:
    whole = ToolError(
        ErrorCode(code),
        "It is so.",
        parameter="query",
        expected="A text.",
        example='f(query: "a")',
        recovery_hint="Do.",
    )
    head = "MISSING_PARAMETER" if code == "MISSING_PARAM" else code
    assert format_error(whole).splitlines() == [
        f"TOOL ERROR: {head}",
        "It is so.",
        "PARAMETER: query",
        "EXPECTED: A text.",
        'EXAMPLE: f(query: "a")',
        "RECOVERY HINT: Do.",
    ]


@feature(
    "The toolbox and its settings",
    "The tools of a mode, and the tools that an employee may use",
    "tools/toolbox/toolbox.py",
)
def test_mode_sets_limit_the_available_tools() -> None:
    toolbox = Toolbox()
    everywhere, coding = Echo(level=Level.READ), Echo(name="sample.code", modes=frozenset({"code"}))
    system = Echo(name="sample.system", modes=frozenset())
    for tool in (everywhere, coding, system):
        toolbox.register(tool)
    assert toolbox.get_mode_set("general") == [everywhere]
    assert toolbox.get_mode_set("code") == [coding, everywhere]
    granted = frozenset({everywhere.name, coding.name, system.name})
    assert toolbox.available_tools(Grants(granted)) == [everywhere]
    assert toolbox.available_tools(Grants(granted, mode="code")) == [coding, everywhere]
    assert toolbox.available_tools(Grants()) == []


def test_an_unknown_mode_is_an_error_and_has_no_tools() -> None:
    toolbox, everywhere = Toolbox(), Echo(level=Level.READ)
    toolbox.register(everywhere)
    for mode in ("party", "", "GENERAL"):
        with pytest.raises(
            ValueError, match=f"no mode '{mode}'; the modes are general, code, research, debug"
        ):
            toolbox.get_mode_set(mode)
        grants = Grants(frozenset({everywhere.name}), mode=mode)
        assert toolbox.available_tools(grants) == []
        context = ToolContext(1, mode=mode)
        result = toolbox.execute_tool_by_name(everywhere.name, {"text": "Hi"}, context, grants)
        assert result.error is not None
        assert result.error.code is ErrorCode.NOT_PERMITTED
    toolbox.register(Echo(name="sample.sell"), modes={"party"})
    assert everywhere in toolbox.get_mode_set("party")
