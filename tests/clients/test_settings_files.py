"""The check finds the hook in every file from which an assistant reads its hooks, and ignores all
other files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import SECRET
from tests.clients.gadget import AskServer
from tests.clients.machine import COMMAND, Machine, can_separate, make_machine

pytestmark = pytest.mark.skipif(
    not can_separate(), reason="another user with other folders can be tried only by root"
)

JSON = json.dumps(
    {"hooks": {"{event}": [{"matcher": "*", "hooks": [{"command": COMMAND, "timeout": 90_000}]}]}}
)
TOML = f'[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "{COMMAND}"\ntimeout = 600\n'
EVENTS = {
    "claude": "PreToolUse",
    "codex": "PreToolUse",
    "gemini": "BeforeTool",
    "cursor": "preToolUse",
}
FILES = [
    ("claude", "/etc/claude-code/managed-settings.json"),
    ("claude", "/etc/claude-code/managed-settings.d/gadget.json"),
    ("claude", "~/.claude/settings.json"),
    ("codex", "/etc/codex/requirements.toml"),
    ("codex", "~/.codex/hooks.json"),
    ("codex", "~/.codex/config.toml"),
    ("gemini", "/etc/gemini-cli/settings.json"),
    ("gemini", "~/.gemini/settings.json"),
    ("cursor", "~/.cursor/hooks.json"),
    ("copilot", "/etc/github-copilot/policy.d/gadget.json"),
    ("copilot", "~/.copilot/hooks/gadget.json"),
    ("copilot", "~/.copilot/settings.json"),
    ("copilot", ".github/hooks/gadget.json"),
]
TRUST = "Codex runs its hooks only after a person has trusted them"


@pytest.fixture
def machine(gadget: AskServer) -> Iterator[Machine]:
    with make_machine() as found:
        found.write(
            "/etc/gadget/hook.json", json.dumps({"url": gadget.address, "key": SECRET}), mode=0o640
        )
        yield found


def install(machine: Machine, assistant: str, file: str) -> str:
    """Write the hook into the file, check, and return the output of the check."""
    text = (
        TOML
        if file.endswith(".toml")
        else JSON.replace("{event}", EVENTS.get(assistant, "preToolUse"))
    )
    if file.startswith("/"):
        machine.write(file, text)
    else:
        machine.write_at_home(file.removeprefix("~/"), text)
    return machine.run([*COMMAND.split(), "check", assistant])[1]


@pytest.mark.parametrize(("assistant", "file"), FILES, ids=[file for _, file in FILES])
def test_each_settings_file_of_an_assistant_is_read(
    machine: Machine, assistant: str, file: str
) -> None:
    path = Path(file.replace("~", str(machine.home)))
    assert f"ok       the hook is installed in {path}\n" in install(machine, assistant, file)


@pytest.mark.parametrize(
    ("assistant", "file"), [("copilot", "~/.copilot/hooks.json"), ("codex", "~/.codex/hooks.toml")]
)
def test_a_file_that_the_assistant_does_not_read_is_ignored(
    machine: Machine, assistant: str, file: str
) -> None:
    assert "PROBLEM  no hook for" in install(machine, assistant, file)


@pytest.mark.parametrize(
    ("file", "is_told"),
    [
        ("/etc/codex/requirements.toml", False),
        ("~/.codex/hooks.json", True),
        ("~/.codex/config.toml", True),
    ],
)
def test_codex_hooks_require_trust_except_in_the_managed_file(
    machine: Machine, file: str, is_told: bool
) -> None:
    assert (TRUST in install(machine, "codex", file)) is is_told


@pytest.mark.parametrize(
    ("assistant", "file", "text"),
    [
        ("gemini", ".gemini/.env", "export PYTHONPATH=/tmp\n"),
        ("codex", ".codex/config.toml", '[shell_environment_policy.set]\nPYTHONPATH = "/tmp"\n'),
    ],
)
def test_variables_in_files_of_other_formats_are_reported(
    machine: Machine, assistant: str, file: str, text: str
) -> None:
    path = machine.write_at_home(file, text)
    said = machine.run([*COMMAND.split(), "check", assistant])[1]
    assert f"PROBLEM  {path} sets PYTHONPATH for the hook" in said
