"""The hook's configuration must be complete and unreadable to others; the first matching rule
decides."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.clients.conftest import SECRET, ConfigFile
from tests.clients.test_reading import CLAUDE

NOBODY = 65_534


class TestConfigurationFile:
    @pytest.mark.parametrize(
        "right",
        [
            {},
            {"url": "http://localhost:8000"},
            {"url": "http://127.0.0.1"},
            {"url": "http://[::1]:8000"},
            {"default": "deny", "timeout_s": 15.5},
            {"timeout_s": 86_400},
            {
                "rules": [
                    {"tool": "Bash", "input": "ls", "do": "ask", "level": "write"},
                    {"do": "deny"},
                ]
            },
        ],
    )
    def test_is_accepted_when_complete(
        self, hook: ModuleType, config_file: ConfigFile, right: dict[str, Any]
    ) -> None:
        config_file.change(**right)
        assert hook.load_config().items() >= right.items()

    @pytest.mark.parametrize(
        ("wrong", "problem"),
        [
            ({"url": "http://gadget.example.com"}, "https"),
            ({"url": "ftp://localhost"}, "https"),
            ({"url": None}, "https"),
            ({"key": None}, "agent key"),
            ({"key": "gadget_x"}, "agent key"),
            ({"key": 5}, "agent key"),
            ({"default": "maybe"}, "default"),
            ({"timeout_s": 15}, "timeout_s"),
            ({"timeout_s": 86_401}, "timeout_s"),
            ({"timeout_s": "60"}, "timeout_s"),
            ({"timeout_s": float("inf")}, "timeout_s"),
            ({"rules": {}}, "rules must be a list"),
            ({"rules": ["Bash"]}, "a rule has only"),
            ({"rules": [{"tool": "Bash", "do": "maybe"}]}, "a rule has only"),
            ({"rules": [{"tool": "Bash"}]}, "a rule has only"),
            ({"rules": [{"tol": "Bash", "do": "allow"}]}, "a rule has only"),
            ({"rules": [{"tool": "(", "do": "allow"}]}, "invalid regular expression"),
            (
                {"rules": [{"tool": "Bash", "input": 5, "do": "allow"}]},
                "invalid regular expression",
            ),
            ({"rules": [{"tool": "a{99999999999}", "do": "allow"}]}, "invalid regular expression"),
        ],
    )
    def test_with_a_fault_is_refused(
        self, hook: ModuleType, config_file: ConfigFile, wrong: dict[str, Any], problem: str
    ) -> None:
        config_file.change(**wrong)
        with pytest.raises(hook.Blocked, match=problem):
            hook.load_config()

    @pytest.mark.parametrize("text", ["{", "[]", "5", "null"])
    def test_that_is_not_an_object_is_refused(
        self, hook: ModuleType, config_file: ConfigFile, text: str
    ) -> None:
        config_file.write(text)
        with pytest.raises(hook.Blocked, match=r"cannot be read|must be a JSON object"):
            hook.load_config()

    def test_with_true_as_a_number_of_seconds_is_refused(
        self, hook: ModuleType, config_file: ConfigFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hook, "MARGIN_S", 0)
        config_file.change(timeout_s=True)
        with pytest.raises(hook.Blocked, match="must be a number"):
            hook.load_config()

    def test_that_others_can_read_or_change_is_refused(
        self, hook: ModuleType, config_file: ConfigFile
    ) -> None:
        os.chown(config_file.path, NOBODY if os.geteuid() == 0 else os.geteuid(), -1)
        for mode in (0o644, 0o640, 0o604, 0o620):
            config_file.path.chmod(mode)
            with pytest.raises(hook.Blocked, match="can be read by others"):
                hook.load_config()

    @pytest.mark.skipif(
        os.geteuid() != 0, reason="only root can own a file that the others cannot change"
    )
    def test_may_be_readable_by_the_group_if_only_root_can_change_it(
        self, hook: ModuleType, config_file: ConfigFile
    ) -> None:
        config_file.path.chmod(0o640)
        assert hook.load_config()["key"] == SECRET

    def test_is_accepted_on_systems_without_file_modes(
        self, hook: ModuleType, config_file: ConfigFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config_file.path.chmod(0o644)
        monkeypatch.setattr(hook.os, "name", "other")
        assert hook.load_config()["key"] == SECRET

    def test_is_overridden_by_variables_for_address_and_key(
        self, hook: ModuleType, config_file: ConfigFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AGENT_HOOK_URL", "https://other.example.com")
        monkeypatch.setenv("AGENT_HOOK_KEY", "gadget_agent_other")
        config = hook.load_config()
        assert (config["url"], config["key"]) == ("https://other.example.com", "gadget_agent_other")

    def test_is_in_the_home_folder_by_default(
        self, hook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("AGENT_HOOK_CONFIG", raising=False)
        assert hook.find_config() == tmp_path / ".config" / "gadget" / "hook.json"


def find(hook: ModuleType, rules: list[dict[str, Any]], tool: str, given: Any) -> str:
    """Return the verdict of the first rule that matches this call, or `ask` if no rule matches."""
    call = hook.read_call(json.dumps({**CLAUDE, "tool_name": tool, "tool_input": given}))
    return str(hook.find_rule({"rules": rules, "mcp_server": ""}, call)["do"])


class TestRules:
    @pytest.mark.parametrize(
        ("rule", "tool", "given", "matches"),
        [
            ({"tool": "Read"}, "Read", {}, True),
            ({"tool": "Read"}, "ReadAll", {}, False),
            ({"tool": "Read"}, "Write", {}, False),
            ({}, "Write", {}, True),
            ({"input": "ls"}, "Bash", {"command": "ls"}, True),
            ({"input": "ls"}, "Bash", {"command": "ls; rm x"}, False),
            ({"tool": "Bash", "input": "ls"}, "Bash", {"command": "ls"}, True),
            ({"tool": "Bash", "input": "ls"}, "Shell", {"command": "ls"}, False),
            ({"tool": "Bash", "input": "ls"}, "Bash", {"command": "rm"}, False),
            ({"input": "ls"}, "Bash", {}, False),
            ({"input": "ls"}, "Bash", {"command": "ls", "description": "List"}, True),
            ({"input": "ls"}, "Bash", {"description": "ls"}, True),
            ({"input": "ls"}, "Task", {"prompt": "rm", "description": "ls"}, False),
            ({"input": "ls"}, "Bash", {"command": "ls", "more": ["rm"]}, False),
            ({"input": "ls"}, "Bash", {"command": "rm", "description": "ls"}, False),
            ({"input": "ls"}, "Bash", {"command": ["rm", "ls"], "description": "ls"}, False),
            ({"input": "ls"}, "Bash", {"path": "ls", "description": "rm"}, False),
            ({"input": "ls"}, "Bash", {"command": ["ls"], "description": "rm"}, False),
            ({"input": "ls"}, "Bash", "ls", True),
        ],
    )
    def test_match_the_whole_call_if_they_allow(
        self, hook: ModuleType, rule: dict[str, Any], tool: str, given: Any, matches: bool
    ) -> None:
        assert find(hook, [{**rule, "do": "allow"}], tool, given) == ("allow" if matches else "ask")

    @pytest.mark.parametrize(
        ("given", "matches"),
        [
            ({"command": "rm", "description": "List"}, True),
            ({"command": "ls", "more": ["rm"]}, True),
            ({}, False),
        ],
    )
    def test_match_a_part_of_the_call_if_they_deny(
        self, hook: ModuleType, given: Any, matches: bool
    ) -> None:
        assert find(hook, [{"input": "rm", "do": "deny"}], "Bash", given) == (
            "deny" if matches else "ask"
        )

    @pytest.mark.parametrize(
        ("rule", "tool", "matches"),
        [
            (r"mcp__gadget__data\.createRecord", "mcp__gadget__data__createRecord", True),
            ("mcp__gadget__data__createRecord", "mcp__gadget__data.createRecord", True),
            ("mcp__gadget__data__createRecord", "mcp__gadget__data__createRecord", True),
            (r"data\.createRecord", "data__createRecord", True),
            (r"mcp__gadget__data\.createRecord", "mcp__other__data__createRecord", False),
            (r"mcp__gadget__data\.createRecord", "mcp__gadget__data__createRecords", False),
            (r"mcp__gadget__data\.createRecord", "mcp__gadget__data_createRecord", False),
            (r"mcp\.gadget\.data\.createRecord", "mcp__gadget__data__createRecord", False),
        ],
    )
    @pytest.mark.parametrize("verdict", ["allow", "deny"])
    def test_accept_the_dotted_and_the_served_name_of_a_tool(
        self, hook: ModuleType, rule: str, tool: str, matches: bool, verdict: str
    ) -> None:
        assert find(hook, [{"tool": rule, "do": verdict}], tool, {}) == (
            verdict if matches else "ask"
        )

    def test_are_tried_in_order_until_one_matches(self, hook: ModuleType) -> None:
        rules = [{"tool": "Bash", "do": "deny"}, {"do": "allow"}]
        assert [find(hook, rules, tool, {}) for tool in ("Bash", "Read")] == ["deny", "allow"]

    def test_fall_back_to_the_default(self, hook: ModuleType) -> None:
        call = hook.read_call(json.dumps(CLAUDE))
        assert hook.find_rule({"default": "deny"}, call) == {"do": "deny"}
        assert hook.find_rule({}, call) == {"do": "ask"}


class TestPathsInRules:
    @pytest.mark.parametrize(
        ("path", "found"),
        [
            ("/project/a.py", "allow"),
            ("/project/a..py", "allow"),
            ("/project/../etc/passwd", "ask"),
            ("/project/..", "ask"),
            ("/work\\..\\etc", "ask"),
        ],
    )
    def test_are_not_allowed_if_they_leave_their_folder(
        self, hook: ModuleType, path: str, found: str
    ) -> None:
        rules = [
            {"tool": "Edit", "input": {"file_path": "/project/.*", "text": "(?s).*"}, "do": "allow"}
        ]
        assert find(hook, rules, "Edit", {"file_path": path, "text": "from ../x import y"}) == found

    @pytest.mark.parametrize(
        "path",
        ["/etc/a", "//etc/a", "/project/../etc/a", "/etc/./a", "etc/a", "../etc/a", "link/a"],
    )
    def test_are_denied_in_every_spelling(
        self, hook: ModuleType, path: str, tmp_path: Path
    ) -> None:
        (tmp_path / "etc").mkdir()
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "link").symlink_to(tmp_path / "etc")
        named = f"{tmp_path}{path}" if path.startswith("/") else path
        folder = tmp_path if path.startswith("etc") else tmp_path / "work"
        sent = {
            **CLAUDE,
            "cwd": str(folder),
            "tool_name": "Edit",
            "tool_input": {"file_path": named},
        }
        rules = [
            {"tool": "Edit", "input": f"{tmp_path}/etc/.*", "do": "deny"},
            {"tool": "Edit", "do": "allow"},
        ]
        assert hook.find_rule({"rules": rules}, hook.read_call(json.dumps(sent)))["do"] == "deny"
