"""Calls of the assistant's own tools and of Gadget's tools, and the end of a session: an ask stays
open only while an assistant waits for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.awaiting import await_that
from tests.clients.conftest import SECRET, ConfigFile
from tests.clients.gadget import HOOK, AskServer
from tests.clients.test_reading import CLAUDE, CODEX, COPILOT, CURSOR, GEMINI, read
from tests.features import feature

ADDRESS = "https://gadget.example.com"
CONFIG = {"url": ADDRESS, "key": SECRET}


def decide(hook: ModuleType, given: dict[str, Any], **config: Any) -> str:
    return str(hook.find_rule({**CONFIG, **config}, read(hook, given))["do"])


def name_tool(given: dict[str, Any], tool: str) -> dict[str, Any]:
    return {**given, "toolName" if "toolName" in given else "tool_name": tool}


@pytest.mark.parametrize(
    ("given", "tools", "other"),
    [
        (CLAUDE, ["TaskCreate", "Agent", "ExitPlanMode", "ToolSearch"], "Skill"),
        (CODEX, ["update_plan", "update_goal"], "TaskCreate"),
        (GEMINI, ["write_todos", "enter_plan_mode"], "save_memory"),
        (COPILOT, ["update_todo", "task"], "sql"),
    ],
)
class TestToolsOfTheAssistant:
    @feature(
        "Agents elsewhere",
        "Planning tools of assistants and Gadget's own MCP tools need no approval at the hook",
        "static/clients/gadget_hook.py",
    )
    def test_are_not_asked_about_if_they_only_plan(
        self, hook: ModuleType, given: dict[str, Any], tools: list[str], other: str
    ) -> None:
        assert {decide(hook, name_tool(given, tool)) for tool in tools} == {"allow"}
        assert decide(hook, name_tool(given, other)) == "ask"
        assert decide(hook, name_tool(given, f"{tools[0]}2")) == "ask"

    def test_follow_configured_rules_before_the_built_in_exemption(
        self, hook: ModuleType, given: dict[str, Any], tools: list[str], other: str
    ) -> None:
        assert (
            decide(hook, name_tool(given, tools[0]), rules=[{"tool": tools[0], "do": "ask"}])
            == "ask"
        )
        assert (
            decide(hook, name_tool(given, other), rules=[{"tool": other, "do": "allow"}]) == "allow"
        )

    def test_are_listed_for_a_version_of_the_assistant(
        self, hook: ModuleType, given: dict[str, Any], tools: list[str], other: str
    ) -> None:
        assert hook.OWN_TOOLS[read(hook, given).form][0].isdigit()


@pytest.mark.parametrize(
    ("given", "tool"),
    [
        ({**CURSOR, "hook_event_name": "beforeMCPExecution", "tool_input": "{}"}, "Task"),
        ({**GEMINI, "mcp_context": {"server_name": "other"}}, "write_todos"),
    ],
    ids=["cursor", "gemini"],
)
def test_a_call_of_a_servers_tool_must_be_asked_about_even_if_named_like_a_planning_tool(
    hook: ModuleType, given: dict[str, Any], tool: str
) -> None:
    assert decide(hook, name_tool(given, tool)) == "ask"


class TestToolsOfGadget:
    @pytest.mark.parametrize(
        ("given", "prefix"),
        [
            (CLAUDE, "mcp__gadget__"),
            (CODEX, "mcp__gadget__"),
            (GEMINI, "mcp_gadget_"),
            (COPILOT, "gadget-"),
        ],
    )
    @pytest.mark.parametrize(
        "tool", ["data.searchRecords", "data__searchRecords", "gadget.ticket", "gadget__ticket"]
    )
    def test_are_not_asked_about_in_both_spellings(
        self, hook: ModuleType, given: dict[str, Any], prefix: str, tool: str
    ) -> None:
        assert decide(hook, name_tool(given, prefix + tool)) == "allow"
        assert decide(hook, name_tool(given, prefix.replace("gadget", "other") + tool)) == "ask"
        assert decide(hook, name_tool(given, prefix + tool), mcp_server="") == "ask"
        assert (
            decide(
                hook, name_tool(given, prefix.replace("gadget", "work") + tool), mcp_server="work"
            )
            == "allow"
        )
        assert decide(hook, name_tool(given, tool)) == "ask"

    def test_are_recognized_by_their_address_in_cursor(self, hook: ModuleType) -> None:
        given = name_tool(CURSOR, "data__searchRecords")
        assert decide(hook, {**given, "url": f"{ADDRESS}/mcp"}) == "allow"
        assert decide(hook, {**given, "url": "https://other.example.com/mcp"}) == "ask"
        assert decide(hook, given) == "ask"

    @pytest.mark.parametrize(
        ("servers", "verdict"),
        [
            ({"gadget": {"type": "http", "url": f"{ADDRESS}/mcp"}}, "allow"),
            (
                {"gadget": {"type": "http", "url": f"{ADDRESS}/mcp/"}, "other": {"command": "x"}},
                "allow",
            ),
            ({"gadget": {"type": "http", "url": "https://other.example.com/mcp"}}, "ask"),
            ({"gadget": {"command": "sh"}}, "ask"),
            ({"gadget": "x"}, "ask"),
            ({"gadget__data": {"command": "sh"}}, "ask"),
        ],
    )
    def test_must_be_asked_about_if_another_server_uses_gadgets_name(
        self, hook: ModuleType, tmp_path: Path, servers: Any, verdict: str
    ) -> None:
        (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
        inner = tmp_path / "inner"
        inner.mkdir()
        for folder in (tmp_path, inner):
            given = {**name_tool(CLAUDE, "mcp__gadget__data__searchRecords"), "cwd": str(folder)}
            assert decide(hook, given) == verdict


ENDS: list[dict[str, Any]] = [
    {"hook_event_name": "SessionEnd", "session_id": "s", "cwd": "/shop", "reason": "other"},
    {"hook_event_name": "sessionEnd", "conversation_id": "s", "reason": "completed"},
    {"sessionId": "s", "cwd": "/shop", "timestamp": 1, "reason": "complete"},
]


def start(config_file: ConfigFile) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {"AGENT_HOOK_CONFIG": str(config_file.path)}
    return subprocess.Popen([sys.executable, "-I", str(HOOK)], env=environment, text=True, **pipes)


@feature(
    "Agents elsewhere",
    "The end of an assistant's session, or of the hook by a signal, cancels its asks",
    "static/clients/gadget_hook.py",
)
@pytest.mark.parametrize("given", ENDS)
def test_the_end_of_a_session_withdraws_its_asks(
    hook: ModuleType, gadget: AskServer, config_file: ConfigFile, given: dict[str, Any]
) -> None:
    config_file.change(url=gadget.address)
    process = start(config_file)
    assert process.communicate(json.dumps(given), timeout=60) == ("", "")
    assert process.returncode == 0
    (method, path, body) = gadget.sent[0]
    assert (method, path) == ("POST", "/api/asks/cancel")
    for call in (CLAUDE, CODEX, GEMINI, COPILOT, CURSOR):
        assert read(hook, call).effect_key.startswith(body["effect_key_prefix"])
    assert not read(hook, {**CLAUDE, "session_id": "other"}).effect_key.startswith(
        body["effect_key_prefix"]
    )


def test_the_end_of_an_unnamed_session_does_not_withdraw_any_ask(
    gadget: AskServer, config_file: ConfigFile
) -> None:
    config_file.change(url=gadget.address)
    start(config_file).communicate(json.dumps({**ENDS[0], "session_id": ""}), timeout=60)
    assert gadget.sent == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_withdraws_the_ask_and_blocks_the_call(
    hook: ModuleType, gadget: AskServer, config_file: ConfigFile, number: signal.Signals
) -> None:
    config_file.change(url=gadget.address)
    process = start(config_file)
    assert process.stdin is not None
    process.stdin.write(json.dumps(CLAUDE))
    process.stdin.close()
    await_that(lambda: "GET /api/asks/7" in gadget.paths, "the hook waits")
    os.kill(process.pid, number)
    assert process.wait(30) == 2
    assert gadget.sent[-1] == (
        "POST",
        "/api/asks/cancel",
        {"effect_key_prefix": read(hook, CLAUDE).effect_key},
    )
