"""`gadget_hook.py check` checks every step between the agent and an installation; the problems that
it reports are tested in tests/clients."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agents.runs.models import CallStatus, ToolCall
from tests.clients.gadget import HOOK
from tests.faults.site import Site
from tests.features import feature
from tests.gateway.live.hook import Hook, decided


class TestCheckWithAnInstallation:
    def install(self, folder: Path, **entry: Any) -> str:
        """Write settings of Claude Code that start the hook."""
        command = {
            "type": "command",
            "command": f"/usr/bin/python3 -I {HOOK}",
            "timeout": 60,
            **entry,
        }
        path = folder / "settings.json"
        path.write_text(
            json.dumps({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [command]}]}})
        )
        return str(path)

    def run(self, hook: Hook, *arguments: str) -> tuple[int, str]:
        process = hook.start("check", *arguments)
        output, _ = process.communicate(timeout=60)
        return process.returncode, output

    @feature(
        "Agents elsewhere",
        "`gadget_hook.py check` looks at settings, file and configuration, holds a call and cancels its ask",
        "static/clients/gadget_hook.py",
    )
    def test_covers_every_step_and_lists_the_files_that_the_agent_itself_can_change(
        self, hook: Hook, tmp_path: Path
    ) -> None:
        code, output = self.run(hook, "claude", self.install(tmp_path))
        lines = {line[8:].strip(): line.startswith("ok") for line in output.splitlines()[:-2]}
        assert any("the hook is installed" in text and good for text, good in lines.items())
        assert any("5 s longer than the hook" in text and good for text, good in lines.items())
        assert any(
            "is the file that Gadget serves" in text and good for text, good in lines.items()
        )
        assert any("Gadget holds an ask" in text and good for text, good in lines.items())
        assert any("check was cancelled" in text and good for text, good in lines.items())
        changeable = {text for text, good in lines.items() if " can change " in text and not good}
        assert {text.split()[-1] for text in changeable} == {
            "/usr/bin/python3",
            str(HOOK),
            str(hook.config),
            str(tmp_path / "settings.json"),
        }
        assert code == 1
        assert ToolCall.objects.get().status == CallStatus.CANCELLED

    def test_can_wait_for_a_person_and_lets_one_call_through(
        self, site: Site, hook: Hook, tmp_path: Path
    ) -> None:
        with decided(site, approves=True):
            _, output = self.run(hook, "claude", self.install(tmp_path), "--wait")
        for found in (
            "a person approved the ask",
            "lets one call through",
            "a second call is refused",
        ):
            assert re.search(rf"^ok .*{found}", output, re.MULTILINE), output
        assert ToolCall.objects.get().status == CallStatus.SUCCEEDED

    def test_reports_a_denial(self, site: Site, hook: Hook, tmp_path: Path) -> None:
        with decided(site, approves=False):
            _, output = self.run(hook, "claude", self.install(tmp_path), "--wait")
        assert "PROBLEM  a person denied the ask" in output
        assert "lets one call through" not in output
