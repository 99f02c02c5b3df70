"""`gadget_hook.py check` finds ways around the hook, and lists the files that the assistant itself
can change."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.clients.conftest import ENTRY, Check, ConfigFile
from tests.clients.gadget import HOOK

ASKS = "/api/asks"


class TestSummary:
    @pytest.mark.usefixtures("unchangeable")
    def test_says_that_no_problem_was_found_and_that_the_hook_is_not_verified(
        self, check: Check
    ) -> None:
        found = check.run()
        assert (found.problems, [line for line in found.lines if line.startswith("PROBLEM")]) == (
            0,
            [],
        )
        assert found.has("The hook is not verified: no call of the assistant came to it") is False
        assert found.last.startswith("The check found no problem")

    def test_reports_files_that_can_be_changed(self, check: Check) -> None:
        found = check.run()
        for path in (HOOK, check.config_file.path, check.settings, "/usr/bin/python3"):
            assert found.has(f"can change {path}") is False
        assert found.has("AGENT_HOOK_CONFIG comes from the environment") is False
        assert found.last.startswith(
            "The hook is only cooperative: this user can change 5 file(s) or variable(s)"
        )

    @pytest.mark.usefixtures("unchangeable")
    def test_counts_a_problem(self, check: Check) -> None:
        check.gadget.cancelled = "approved"
        found = check.run()
        assert found.has("not cancelled: it is approved") is False
        assert found.last == "The check found 1 problem(s)."

    def test_reports_a_configuration_that_cannot_be_read(self, check: Check) -> None:
        check.config_file.write("{")
        found = check.run()
        assert found.has("cannot be read") is False
        assert found.problems == 1


class TestDefaultOfRules:
    @pytest.mark.parametrize(
        ("config", "is_good"),
        [
            ({}, True),
            ({"default": "deny"}, True),
            ({"default": "allow"}, False),
            ({"rules": [{"do": "allow"}]}, False),
            ({"rules": [{"do": "ask"}]}, True),
            ({"rules": [{"tool": "Read", "do": "allow"}]}, True),
            ({"rules": [{"input": "ls", "do": "allow"}]}, True),
        ],
    )
    def test_is_a_problem_if_it_allows_every_call_that_no_rule_names(
        self, check: Check, config: dict[str, Any], is_good: bool
    ) -> None:
        check.configure(**config)
        words = (
            "calls that no rule names are not allowed"
            if is_good
            else "allows every call that no rule names"
        )
        assert check.run().has(words) is is_good


class TestTheCheckOfSettings:
    @pytest.mark.parametrize(
        ("assistant", "event", "is_installed"),
        [
            ("claude", "PreToolUse", True),
            ("claude", "PostToolUse", False),
            ("gemini", "BeforeTool", True),
            ("codex", "PreToolUse", True),
            ("codex", "BeforeTool", False),
            ("copilot", "preToolUse", True),
            ("copilot", "PreToolUse", False),
            ("cursor", "preToolUse", True),
            ("cursor", "beforeShellExecution", False),
        ],
    )
    def test_finds_the_hook_only_under_events_that_can_block_a_call(
        self, check: Check, assistant: str, event: str, is_installed: bool
    ) -> None:
        check.install(event, timeout=60_000 if assistant == "gemini" else 60)
        found = check.run(assistant)
        words = f"the hook is installed in {check.settings}" if is_installed else "no hook for"
        assert found.has(words) is is_installed

    def test_requires_two_events_if_one_event_does_not_cover_all_calls(self, check: Check) -> None:
        check.install("beforeShellExecution")
        assert check.run("cursor").has("no hook for beforeMCPExecution in") is False
        check.write(
            {"hooks": {event: [ENTRY] for event in ("beforeShellExecution", "beforeMCPExecution")}}
        )
        assert check.run("cursor").has("the hook is installed") is True

    def test_reads_the_names_that_copilot_uses_for_command_and_timeout(self, check: Check) -> None:
        entry = {"type": "command", "bash": f"python3 '{HOOK}'", "timeoutSec": 61}
        check.write({"version": 1, "hooks": {"preToolUse": [entry]}})
        assert check.run("copilot").has("preToolUse: the assistant waits 61 s") is True

    @pytest.mark.parametrize(
        ("entry", "is_good", "words"),
        [
            ({"timeout": 61}, True, "the assistant waits 61 s, 6 s longer than the hook"),
            ({"timeout": 60}, True, "5 s longer than the hook"),
            ({"timeout": 59}, False, "the assistant waits only 59 s, less than timeout_s (60 s)"),
            ({"timeout": None}, True, "the assistant waits 600 s"),
            ({"timeout": True}, True, "the assistant waits 600 s"),
            ({"timeout": "1"}, True, "the assistant waits 600 s"),
        ],
    )
    def test_requires_the_assistant_to_wait_at_least_as_long_as_the_hook(
        self, check: Check, entry: dict[str, Any], is_good: bool, words: str
    ) -> None:
        check.install(**entry)
        assert check.run().has(words) is is_good

    def test_reads_geminis_timeouts_as_milliseconds(self, check: Check) -> None:
        check.install("BeforeTool", timeout=61_000)
        assert check.run("gemini").has("the assistant waits 61 s") is True

    @pytest.mark.parametrize(
        ("matcher", "is_good"),
        [(None, True), ("", True), ("*", True), (".*", True), ("Bash", False)],
    )
    def test_requires_a_matcher_that_covers_every_tool(
        self, check: Check, matcher: str | None, is_good: bool
    ) -> None:
        check.install(matcher=matcher)
        words = (
            "the matcher covers every tool"
            if is_good
            else f"the matcher {matcher!r} does not cover every tool"
        )
        assert check.run().has(words) is is_good

    def test_ignores_entries_with_another_command(self, check: Check) -> None:
        check.install(command="python3 other.py")
        assert check.run().has("no hook for PreToolUse") is False

    @pytest.mark.parametrize(
        "settings", ["{", "[]", {"hooks": []}, {"hooks": {"PreToolUse": 5}}, {"hooks": {"a": [5]}}]
    )
    def test_does_not_find_a_hook_in_settings_that_cannot_be_read(
        self, check: Check, settings: Any
    ) -> None:
        check.write(settings)
        assert check.run().has("no hook for PreToolUse") is False

    @pytest.mark.parametrize("end", ["SessionEnd", "sessionEnd"])
    def test_reports_a_missing_event_for_the_end_of_a_session(self, check: Check, end: str) -> None:
        missed = "no event tells the hook that a session ends"
        assert [line for line in check.run().lines if missed in line]
        check.write({"hooks": {event: [{"hooks": [ENTRY]}] for event in ("PreToolUse", end)}})
        assert not [line for line in check.run().lines if missed in line]

    @pytest.mark.parametrize("assistant", ["claude", "codex", "gemini", "cursor", "copilot"])
    def test_states_the_supported_version_of_the_assistant(
        self, hook: ModuleType, check: Check, assistant: str
    ) -> None:
        version = hook.OWN_TOOLS[assistant].split()[0]
        assert (
            f"note     the assistant's own tools are those of {assistant} {version}"
            in check.run(assistant).lines
        )

    def test_reports_settings_that_switch_hooks_off(self, check: Check) -> None:
        assert check.run().has("switches all hooks off") is None
        check.write({**json.loads(check.settings.read_text()), "disableAllHooks": True})
        assert check.run().has("switches all hooks off") is False


class TestTheCheckOfTheEnvironment:
    @pytest.mark.parametrize(
        ("command", "is_good"),
        [
            (f"/usr/bin/python3 -I '{HOOK}'", True),
            (f"'/usr/bin/python3' '-I' '{HOOK}'", True),
            (f"python3 -I '{HOOK}'", False),
            (f"/usr/bin/python3 '{HOOK}'", False),
            (f"/usr/bin/env python3 -I '{HOOK}'", False),
            (f"PATH=/usr/bin /usr/bin/python3 -I '{HOOK}'", False),
            ("/usr/bin/python3 -I gadget_hook.py", False),
            ("/usr/bin/python3 -I ~/gadget_hook.py", False),
            ("/usr/bin/python3 -I '$HOME/gadget_hook.py'", False),
            (f"'{HOOK}'", False),
        ],
    )
    def test_reports_a_command_that_the_environment_can_change(
        self, check: Check, command: str, is_good: bool
    ) -> None:
        check.install(command=command)
        words = (
            "takes nothing from the environment"
            if is_good
            else "the environment can change what the command starts"
        )
        assert check.run().has(words) is is_good

    @pytest.mark.parametrize(
        "name", ["AGENT_HOOK_CONFIG", "PYTHONPATH", "LD_PRELOAD", "BASH_ENV", "ANYTHING"]
    )
    def test_reports_each_variable_in_settings(self, check: Check, name: str) -> None:
        check.write({**json.loads(check.settings.read_text()), "env": {name: "x"}})
        assert check.run().has(f"{check.settings} sets {name} for the hook") is False

    def test_reports_variables_in_a_single_entry(self, check: Check) -> None:
        entry = {
            "type": "command",
            "bash": ENTRY["command"],
            "env": {"PYTHONPATH": "x"},
            "timeoutSec": 60,
        }
        check.write(
            {
                "hooks": {
                    "preToolUse": [entry],
                    "sessionStart": [{"bash": "true", "env": {"B": "y"}}],
                }
            }
        )
        assert (
            check.run("copilot").has(f"{check.settings} sets B, PYTHONPATH for the hook") is False
        )

    def test_does_not_report_a_problem_if_there_are_no_variables(self, check: Check) -> None:
        assert check.run().has(f"{check.settings} sets") is None

    @pytest.mark.usefixtures("unchangeable")
    def test_accepts_variables_in_settings_that_only_root_can_change(self, check: Check) -> None:
        check.write({**json.loads(check.settings.read_text()), "env": {"OTEL": "x"}})
        assert check.run().has(f"{check.settings} sets OTEL") is True

    def test_says_that_variables_are_ignored_beside_a_managed_configuration(
        self, hook: ModuleType, check: Check, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hook, "is_managed", lambda: True)
        monkeypatch.setattr(hook, "find_config", lambda: check.config_file.path)
        monkeypatch.setattr(hook, "MANAGED", str(check.config_file.path))
        assert check.run().has("AGENT_HOOK_CONFIG is set, and counts for nothing") is True


class TestStartedFile:
    def test_is_compared_with_the_served_file_for_every_command(
        self, check: Check, tmp_path: Path
    ) -> None:
        other = tmp_path / "gadget_hook_2.py"
        other.write_bytes(b"print('allow')")
        check.install(command=f"python3 '{other}'")
        found = check.run()
        assert found.has(f"{other} is not the file that Gadget serves") is False
        assert found.has(f"{HOOK} is") is None
        entries = [ENTRY, {**ENTRY, "command": f"python3 '{other}'"}]
        check.write({"hooks": {"PreToolUse": [{"hooks": [entry]} for entry in entries]}})
        found = check.run()
        assert found.has(f"{HOOK} is the file that Gadget serves") is True
        assert found.has(f"{other} is not the file that Gadget serves") is False

    def test_is_the_hook_itself_if_the_command_does_not_name_a_file(self, check: Check) -> None:
        check.install(command="python3 'gadget_hook")
        assert check.run().has(f"{HOOK} is the file that Gadget serves") is True

    def test_is_reported_when_it_was_changed(self, check: Check) -> None:
        check.gadget.file += b"# newer"
        assert check.run().has(f"{HOOK} is not the file that Gadget serves") is False

    def test_is_reported_when_missing_and_other_files_are_still_compared(
        self, check: Check
    ) -> None:
        entries = [{**ENTRY, "command": "python3 /nowhere/gadget_hook.py"}, ENTRY]
        check.write({"hooks": {"PreToolUse": [{"hooks": [entry]} for entry in entries]}})
        found = check.run()
        assert found.has("/nowhere/gadget_hook.py cannot be read") is False
        assert found.has(f"{HOOK} is the file that Gadget serves") is True

    def test_cannot_be_compared_without_the_served_file(self, check: Check) -> None:
        check.gadget.file_status = 404
        assert check.run().has("the file that Gadget serves cannot be read") is False


class TestAskingOnce:
    def test_creates_and_cancels_an_ask(self, check: Check) -> None:
        found = check.run()
        assert found.has("Gadget holds an ask: ask 7") is True
        assert found.has("the ask of this check was cancelled") is True
        assert check.gadget.paths[-2:] == ["POST /api/asks", "POST /api/asks/7/cancel"]

    def test_fails_if_the_ask_is_not_held(self, check: Check) -> None:
        check.gadget.statuses = ["approved"]
        found = check.run()
        assert found.has("an ask was approved, not held: ask 7") is False
        assert found.has("the ask of this check was") is None
        assert found.has("the approval lets one call through") is True
        assert found.has("a second call is refused") is True
        assert check.gadget.paths[-1] == "POST /api/asks/7/outcome"

    def test_lets_one_call_through_after_a_person_has_approved_it(self, check: Check) -> None:
        check.gadget.statuses = ["waiting", "approved"]
        found = check.run(waits=True)
        for words in (
            "a person approved the ask",
            "lets one call through",
            "a second call is refused",
        ):
            assert found.has(words) is True
        assert found.has("the ask of this check was") is None

    def test_fails_if_the_approval_lets_a_second_call_through(self, check: Check) -> None:
        check.gadget.statuses, check.gadget.redemptions = (
            ["waiting", "approved"],
            [(200, "redeemed")] * 2,
        )
        assert check.run(waits=True).has("the approval lets a second call through") is False

    def test_fails_if_the_second_call_is_refused_with_an_unexpected_error(
        self, check: Check
    ) -> None:
        check.gadget.statuses, check.gadget.redemptions = (
            ["waiting", "approved"],
            [(200, "redeemed"), (500, "")],
        )
        assert check.run(waits=True).has("Gadget responded with 500") is False

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            ("denied", "a person denied the ask"),
            ("expired", "the ask was not approved: it is expired"),
        ],
    )
    def test_does_not_let_any_call_through_without_an_approval(
        self, check: Check, status: str, words: str
    ) -> None:
        check.gadget.statuses = ["waiting", status]
        found = check.run(waits=True)
        assert found.has(words) is False
        assert found.has("lets one call through") is None
        assert "POST /api/asks/7/redeem" not in check.gadget.paths

    def test_fails_if_nobody_decides(
        self, hook: ModuleType, check: Check, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hook, "LONGEST_CHECK_S", 1)
        found = check.run(waits=True)
        assert found.has("nobody decided within 1 seconds") is False
        assert found.has("the ask of this check was cancelled") is True


ASSISTANT = """#!{python}
import json, subprocess, sys
call = {{"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/", "tool_name": "Bash"}}
call["tool_input"] = {{"command": sys.argv[-1].partition("stop: ")[2]}}
if {obeys}:
    subprocess.run([sys.executable, {hook!r}], input=json.dumps(call), text=True)
print("I have finished.")
"""
"""A stand-in for Claude Code: depending on `obeys`, it calls the hook for the command in its task
or ignores the hook."""


class TestLiveCheck:
    @pytest.fixture(autouse=True)
    def _short(self, hook: ModuleType, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
        # The limit is so short that the hook denies immediately, with a ticket.
        check.configure(timeout_s=15.5)
        monkeypatch.setattr(hook, "LONGEST_CHECK_S", 60.0)

    def start_with(self, check: Check, monkeypatch: pytest.MonkeyPatch, *, obeys: bool) -> None:
        program = check.settings.parent / "claude"
        program.write_text(ASSISTANT.format(python=sys.executable, hook=str(HOOK), obeys=obeys))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    def test_succeeds_if_a_call_of_the_assistant_itself_is_held(
        self, check: Check, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.start_with(check, monkeypatch, obeys=True)
        found = check.run(lives=True)
        assert found.has("the assistant's own call was held: ask 7") is True
        assert not [line for line in found.lines if "not verified" in line]
        commands = [
            body["params"]["input"].get("command", "")
            for _, path, body in check.gadget.sent
            if path == ASKS
        ]
        assert commands[-1].startswith("echo gadget-check-")
        assert check.gadget.paths[-1] == "POST /api/asks/7/cancel"

    def test_reports_an_assistant_that_ignores_the_hook(
        self, check: Check, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.start_with(check, monkeypatch, obeys=False)
        found = check.run(lives=True)
        assert found.has("no call of the assistant came to Gadget") is False
        assert [line for line in found.lines if "It said: I have finished." in line]
        assert [line for line in found.lines if "The hook is not verified" in line]

    def test_reports_a_rule_that_decides_its_command_before_starting_the_assistant(
        self, check: Check, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        check.configure(rules=[{"tool": "Bash", "input": "echo .*", "do": "allow"}])
        self.start_with(check, monkeypatch, obeys=False)
        assert check.run(lives=True).has("a rule of the configuration decides Bash") is False


class TestCommandLine:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["check"],
            ["check", "nobody"],
            ["hold", "claude"],
            ["check", "claude", "a", "b"],
            ["--wait"],
            ["check", "--wait"],
        ],
    )
    def test_prints_its_usage_for_an_unknown_command(
        self, hook: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        assert hook.main(arguments) == 2
        assert "gadget_hook.py check ASSISTANT" in capsys.readouterr().err

    @pytest.mark.usefixtures("unchangeable")
    def test_exits_with_an_error_if_the_check_found_a_problem(
        self, hook: ModuleType, check: Check
    ) -> None:
        assert hook.main(["check", "claude", str(check.settings)]) == 0
        check.gadget.cancelled = "waiting"
        assert hook.main(["check", "claude", str(check.settings)]) == 1

    @pytest.mark.usefixtures("unchangeable")
    def test_waits_for_a_person_only_if_asked_to(self, hook: ModuleType, check: Check) -> None:
        check.gadget.statuses = ["waiting", "approved"]
        assert hook.main(["check", "--wait", "claude", str(check.settings)]) == 0
        assert "GET /api/asks/7" in check.gadget.paths
        check.gadget.sent.clear()
        check.gadget.statuses = ["waiting"]
        hook.main(["check", "claude", str(check.settings)])
        assert "GET /api/asks/7" not in check.gadget.paths

    @pytest.mark.usefixtures("unchangeable")
    def test_reads_the_assistants_usual_settings_if_no_file_is_given(
        self, hook: ModuleType, check: Check, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(hook.SETTINGS, "claude", (str(check.settings),))
        assert hook.main(["check", "claude"]) == 0

    def test_without_arguments_responds_to_a_call(self, config_file: ConfigFile) -> None:
        config_file.change(default="deny")
        given = json.dumps({"toolName": "bash", "toolArgs": "{}"})
        command = [sys.executable, "-I", str(HOOK)]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["permissionDecision"] == "deny"
