"""Reading the hook's input: each assistant's format of a call is parsed; any other input blocks the
call."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

INPUT = {"command": "make deploy"}
CLAUDE = {
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": INPUT,
    "session_id": "s",
    "cwd": "/shop",
}
CODEX = {**CLAUDE, "turn_id": "t"}
GEMINI = {**CLAUDE, "hook_event_name": "BeforeTool", "tool_name": "run_shell_command"}
SHELL = {
    "hook_event_name": "beforeShellExecution",
    "command": "make deploy",
    "conversation_id": "s",
    "cwd": "/shop",
}
CURSOR = {
    **SHELL,
    "hook_event_name": "beforeMCPExecution",
    "tool_name": "deploy",
    "tool_input": json.dumps(INPUT),
}
COPILOT = {"toolName": "bash", "toolArgs": json.dumps(INPUT), "sessionId": "s", "cwd": "/shop"}


def read(hook: ModuleType, given: Any) -> Any:
    return hook.read_call(json.dumps(given))


@pytest.mark.parametrize(
    ("given", "form", "event", "tool"),
    [
        (CLAUDE, "claude", "PreToolUse", "Bash"),
        (CODEX, "codex", "PreToolUse", "Bash"),
        (GEMINI, "gemini", "BeforeTool", "run_shell_command"),
        (SHELL, "cursor", "beforeShellExecution", "shell"),
        (CURSOR, "cursor", "beforeMCPExecution", "deploy"),
        (COPILOT, "copilot", "preToolUse", "bash"),
    ],
)
def test_the_call_of_each_assistant_is_understood(
    hook: ModuleType, given: dict[str, Any], form: str, event: str, tool: str
) -> None:
    call = read(hook, given)
    assert (call.form, call.event, call.tool, call.given) == (form, event, tool, INPUT)
    assert (call.session, call.folder, call.is_over) == ("s", "/shop", False)


def test_an_omitted_folder_or_session_is_read_as_empty_and_an_omitted_tool_as_mcp(
    hook: ModuleType,
) -> None:
    call = read(hook, {"hook_event_name": "preToolUse", "tool_input": INPUT})
    assert (call.tool, call.folder, call.session) == ("mcp", "", "")


@pytest.mark.parametrize(
    ("sent", "given"),
    [('{"a": 1}', {"a": 1}), ("rm -rf /", {"text": "rm -rf /"}), ("[1]", {"value": [1]})],
)
def test_an_input_encoded_as_text_is_parsed(hook: ModuleType, sent: str, given: Any) -> None:
    assert read(hook, {**COPILOT, "toolArgs": sent}).given == given


def changed(given: dict[str, Any], *left_out: str, **more: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in left_out} | more


@pytest.mark.parametrize(
    "given",
    [
        [],
        {},
        changed(CLAUDE, hook_event_name="Stop"),
        changed(CLAUDE, "tool_input"),
        changed(CLAUDE, tool_name=5),
        changed(CLAUDE, "tool_name"),
        changed(GEMINI, hook_event_name="AfterModel"),
        changed(GEMINI, "tool_input"),
        changed(GEMINI, tool_name=5),
        changed(SHELL, "command"),
        changed(SHELL, command=["make"]),
        changed(SHELL, hook_event_name="afterFileEdit"),
        changed(CURSOR, "tool_input"),
        changed(CURSOR, "tool_input", hook_event_name="preToolUse"),
        changed(CURSOR, hook_event_name="afterFileEdit"),
        changed(COPILOT, "toolArgs"),
        changed(COPILOT, toolName=5),
        changed(COPILOT, hook_event_name="Stop"),
    ],
)
def test_input_in_an_unknown_format_blocks_the_call(hook: ModuleType, given: Any) -> None:
    with pytest.raises(hook.Blocked, match="unknown format"):
        read(hook, given)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_input_that_is_not_json_blocks_the_call(hook: ModuleType, text: str) -> None:
    with pytest.raises(hook.Blocked, match="not JSON"):
        hook.read_call(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CLAUDE, changed(CLAUDE, hook_event_name="PostToolUse")),
        (GEMINI, changed(GEMINI, hook_event_name="AfterTool")),
        (SHELL, changed(SHELL, "cwd", hook_event_name="afterShellExecution")),
        (CURSOR, changed(CURSOR, hook_event_name="afterMCPExecution")),
        (COPILOT, changed(COPILOT, toolResult={})),
        (COPILOT, changed(COPILOT, error="away")),
    ],
)
def test_a_report_refers_to_the_preceding_call(
    hook: ModuleType, before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert read(hook, after).is_over
    assert read(hook, after).effect_key == read(hook, before).effect_key


@pytest.mark.parametrize(
    "other",
    [
        changed(CLAUDE, cwd="/other"),
        changed(CLAUDE, session_id="other"),
        changed(CLAUDE, tool_name="Bash2"),
        changed(CLAUDE, tool_input={"command": "make deploy-all"}),
    ],
)
def test_a_different_call_has_a_different_key(hook: ModuleType, other: dict[str, Any]) -> None:
    assert read(hook, other).effect_key != read(hook, CLAUDE).effect_key


OVER = changed(CLAUDE, hook_event_name="PostToolUse")


@pytest.mark.parametrize(
    ("after", "has_failed"),
    [
        (changed(OVER, tool_response={"stdout": "done"}), False),
        (changed(OVER, tool_response="done"), False),
        (OVER, False),
        (changed(OVER, tool_response={"error": "away"}), True),
        (changed(OVER, tool_response={"is_error": True}), True),
        (changed(OVER, hook_event_name="PostToolUseFailure"), True),
        (changed(CURSOR, hook_event_name="postToolUseFailure"), True),
        (changed(COPILOT, toolResult={"resultType": "success"}), False),
        (changed(COPILOT, toolResult={"resultType": "failure"}), True),
        (changed(COPILOT, error="away"), True),
    ],
)
def test_a_report_says_whether_the_call_failed(
    hook: ModuleType, after: dict[str, Any], has_failed: bool
) -> None:
    assert read(hook, after).has_failed is has_failed


def test_each_assistant_gets_the_response_in_its_own_format(
    hook: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def respond(given: dict[str, Any], *, goes_on: bool) -> Any:
        hook.respond(read(hook, given), goes_on, "Why")
        written = capsys.readouterr().out
        return json.loads(written) if written else None

    for goes_on, word in ((True, "allow"), (False, "deny")):
        specific = {
            "hookEventName": "PreToolUse",
            "permissionDecision": word,
            "permissionDecisionReason": "Why",
        }
        assert respond(CLAUDE, goes_on=goes_on) == {"hookSpecificOutput": specific}
        assert respond(CODEX, goes_on=goes_on) == (
            None if goes_on else {"hookSpecificOutput": specific}
        )
        assert respond(GEMINI, goes_on=goes_on) == {"decision": word, "reason": "Why"}
        assert respond(SHELL, goes_on=goes_on) == {
            "permission": word,
            "user_message": "Why",
            "agent_message": "Why",
        }
        assert respond(COPILOT, goes_on=goes_on) == {
            "permissionDecision": word,
            "permissionDecisionReason": "Why",
        }
