"""`gadget_hook.py check`: it goes the whole way, and names whatever lets calls past it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from agents.runs.models import CallStatus, ToolCall
from tests.faults.site import Site
from tests.gateway.live.hook import HOOK, Hook, decided

NOBODY = 65_534
CAN_CHANGE = f"""
import os, sys
hook = {{"__name__": "hook"}}
exec(sys.stdin.read(), hook)
os.setuid({NOBODY})
print(hook["can_change"](hook["Path"](sys.argv[1])))
"""


def find_problems(output: str) -> str:
    return "\n".join(line for line in output.splitlines() if line.startswith("PROBLEM"))


class TestCheck:
    def install(self, folder: Path, **entry: Any) -> str:
        """Write settings of Claude Code that start the hook."""
        command = {"type": "command", "command": f"python3 {HOOK}", "timeout": 60, **entry}
        path = folder / "settings.json"
        path.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [command]}]}}))
        return str(path)

    def run(self, hook: Hook, *arguments: str) -> tuple[int, str]:
        process = hook.start("check", *arguments)
        output, _ = process.communicate(timeout=60)
        return process.returncode, output

    def test_it_goes_the_whole_way_and_says_what_the_agent_itself_could_change(
        self, hook: Hook, tmp_path: Path
    ) -> None:
        code, output = self.run(hook, "claude", self.install(tmp_path))
        lines = {line[8:].strip(): line.startswith("ok") for line in output.splitlines()[:-1]}
        assert any("the hook is installed" in text and good for text, good in lines.items())
        assert any("5 s longer than the hook" in text and good for text, good in lines.items())
        assert any("is the file that Gadget serves" in text and good for text, good in lines.items())
        assert any("a call is held" in text and good for text, good in lines.items())
        assert any("check was cancelled" in text and good for text, good in lines.items())
        changeable = {text for text, good in lines.items() if " can change " in text and not good}
        assert {text.split()[-1] for text in changeable} == {
            str(HOOK),
            str(hook.config),
            str(tmp_path / "settings.json"),
        }
        assert code == 1
        assert ToolCall.objects.get().status == CallStatus.CANCELLED

    def test_it_waits_for_a_person_if_told_to_and_lets_one_call_through(
        self, site: Site, hook: Hook, tmp_path: Path
    ) -> None:
        with decided(site, approves=True):
            _, output = self.run(hook, "claude", self.install(tmp_path), "--wait")
        for found in ("a person approved the ask", "lets one call through", "a second call is refused"):
            assert re.search(rf"^ok .*{found}", output, re.MULTILINE), output
        assert ToolCall.objects.get().status == CallStatus.SUCCEEDED

    def test_a_denial_is_named(self, site: Site, hook: Hook, tmp_path: Path) -> None:
        with decided(site, approves=False):
            _, output = self.run(hook, "claude", self.install(tmp_path), "--wait")
        assert "PROBLEM  a person denied the ask" in output
        assert "lets one call through" not in output

    @pytest.mark.parametrize(
        ("entry", "problem"),
        [
            ({"timeout": 59}, "waits only 59 s, less than timeout_s (60 s)"),
            ({"command": "python3 other.py"}, "no hook for PreToolUse in"),
        ],
    )
    def test_it_names_what_is_wrong(self, hook: Hook, tmp_path: Path, entry: dict[str, Any], problem: str) -> None:
        code, output = self.run(hook, "claude", self.install(tmp_path, **entry))
        assert code == 1
        assert problem in find_problems(output)

    @pytest.mark.parametrize(
        ("assistant", "events", "problem"),
        [
            ("claude", ["Stop"], "no hook for PreToolUse in"),
            ("claude", ["PreToolUse"], ""),
            ("cursor", ["beforeShellExecution"], "no hook for beforeMCPExecution in"),
            ("cursor", ["beforeShellExecution", "beforeMCPExecution"], ""),
            ("cursor", ["preToolUse"], ""),
        ],
    )
    def test_it_wants_the_events_that_can_hold_a_call(
        self, hook: Hook, tmp_path: Path, assistant: str, events: list[str], problem: str
    ) -> None:
        path = tmp_path / "settings.json"
        entry = {"command": f"python3 {HOOK}", "timeout": 60}
        path.write_text(json.dumps({"hooks": {event: [entry] for event in events}}))
        found = find_problems(self.run(hook, assistant, str(path))[1])
        assert problem in found if problem else "no hook" not in found

    def test_settings_that_switch_all_hooks_off_are_a_problem(self, hook: Hook, tmp_path: Path) -> None:
        path = Path(self.install(tmp_path))
        path.write_text(json.dumps({**json.loads(path.read_text()), "disableAllHooks": True}))
        assert f"{path} switches all hooks off" in find_problems(self.run(hook, "claude", str(path))[1])

    @pytest.mark.parametrize("rules", [{"default": "allow"}, {"rules": [{"do": "allow"}]}])
    def test_so_is_a_configuration_that_allows_whatever_no_rule_names(
        self, hook: Hook, tmp_path: Path, rules: dict[str, Any]
    ) -> None:
        settings = self.install(tmp_path)
        text = "the configuration allows every call that no rule names"
        assert text not in self.run(hook, "claude", settings)[1]
        hook.write({**json.loads(hook.config.read_text()), **rules})
        assert text in find_problems(self.run(hook, "claude", settings)[1])

    def test_a_changed_file_is_noticed(self, hook: Hook, tmp_path: Path) -> None:
        copy = tmp_path / "gadget_hook.py"
        copy.write_bytes(HOOK.read_bytes() + b"# changed\n")
        _, output = self.run(hook, "claude", self.install(tmp_path, command=f"python3 '{copy}'"))
        assert f"PROBLEM  {copy} is not the file that Gadget serves" in output

    def test_every_file_that_is_started_is_compared(self, hook: Hook, tmp_path: Path) -> None:
        other = tmp_path / "other_gadget_hook.py"
        other.write_bytes(b"print('allow')")
        path = Path(self.install(tmp_path))
        settings_ = json.loads(path.read_text())
        settings_["hooks"]["PreToolUse"].append({"hooks": [{"command": f"python3 {other}", "timeout": 60}]})
        path.write_text(json.dumps(settings_))
        _, output = self.run(hook, "claude", str(path))
        assert f"ok       {HOOK} is the file that Gadget serves" in output
        assert f"PROBLEM  {other} is not the file that Gadget serves" in output

    def test_the_environment_can_replace_the_configuration(self, hook: Hook, tmp_path: Path) -> None:
        _, output = self.run(hook, "claude", self.install(tmp_path))
        assert "PROBLEM  AGENT_HOOK_CONFIG comes from the environment" in output

    @pytest.mark.skipif(os.geteuid() != 0, reason="another user can be tried only by root")
    @pytest.mark.parametrize(
        ("owner", "mode", "changeable"),
        [(0, 0o755, False), (NOBODY, 0o755, True), (0, 0o777, True), (0, 0o1777, False)],
    )
    def test_whoever_can_change_a_folder_above_can_change_the_file(
        self, owner: int, mode: int, changeable: bool
    ) -> None:
        with tempfile.TemporaryDirectory() as top:
            Path(top).chmod(0o755)
            folder = Path(top) / "above" / "own"
            folder.mkdir(parents=True)
            (folder / "hook.py").touch()
            os.chown(folder.parent, owner, owner)
            folder.parent.chmod(mode)
            command = [sys.executable, "-I", "-c", CAN_CHANGE, str(folder / "hook.py")]
            done = subprocess.run(command, input=HOOK.read_bytes(), capture_output=True, check=True)
            assert done.stdout.decode().strip() == str(changeable)

    def test_an_unknown_command_explains_itself(self, hook: Hook) -> None:
        assert self.run(hook, "nobody")[0] == 2
