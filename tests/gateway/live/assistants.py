"""The real coding assistants, set up as the guide says, on a separate machine, with a model that
plays a scripted case."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from tests.clients.machine import Machine
from tests.clients.terminal import Terminal
from tests.gateway.live.model_stub import Call, ModelStub
from tests.node import ASSISTANTS

GUIDE = settings.BASE_DIR / "docs" / "hooks.md"
BIN = "/usr/local/lib/node_modules/.bin"
CONFIG = "/etc/gadget/hook.json"


@dataclass(frozen=True)
class Assistant:
    """A coding assistant, set up and started as the guide says.

    Attributes:
        files: the guide's settings files that start the hook, for everybody and for one user.
        shell: the model's names for the tool that runs commands, and for its param.
        command: the command line that starts the assistant with one task, and that prevents the
            assistant itself from asking a person.
    """

    name: str
    files: tuple[str, ...]
    shell: tuple[str, str]
    command: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)

    def call_shell(self, command: str) -> Call:
        return self.shell[0], {self.shell[1]: command}


CLAUDE = Assistant(
    "claude",
    ("/etc/claude-code/managed-settings.json", "~/.claude/settings.json"),
    ("Bash", "command"),
    ("claude", "-p", "--dangerously-skip-permissions"),
    {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ANTHROPIC_API_KEY": "x",
        "ANTHROPIC_BASE_URL": "{model}",
    },
)
CODEX = Assistant(
    "codex",
    ("/etc/codex/requirements.toml", "~/.codex/hooks.json"),
    ("exec_command", "cmd"),
    ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
)
GEMINI = Assistant(
    "gemini",
    ("/etc/gemini-cli/settings.json", "~/.gemini/settings.json"),
    ("run_shell_command", "command"),
    ("gemini", "--yolo", "-m", "gemini-2.5-flash", "-p"),
    {
        "GOOGLE_GEMINI_BASE_URL": "{model}",
        "GEMINI_API_KEY": "x",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    },
)
COPILOT = Assistant(
    "copilot",
    (
        "/etc/github-copilot/policy.d/gadget.json",
        "~/.copilot/hooks/gadget.json",
        "~/.copilot/settings.json",
    ),
    ("bash", "command"),
    ("copilot", "--allow-all-tools", "-p"),
    {
        "COPILOT_PROVIDER_BASE_URL": "{model}/v1",
        "COPILOT_PROVIDER_API_KEY": "x",
        "COPILOT_OFFLINE": "true",
        "COPILOT_MODEL": "gpt-5",
    },
)
ALL = (CLAUDE, CODEX, GEMINI, COPILOT)
CODEX_PROVIDER = """model = "gpt-5"
model_provider = "stub"
[model_providers.stub]
name = "stub"
base_url = "{model}/v1"
wire_api = "responses"
"""


class Office:
    """A machine with the hook, its configuration and the assistants."""

    def __init__(self, machine: Machine, model: ModelStub, url: str, secret: str) -> None:
        self.machine, self.model = machine, model
        machine.mount(ASSISTANTS / "node_modules", "/usr/local/lib/node_modules")
        config = {**json.loads(read_block(CONFIG)), "url": url, "key": secret}
        machine.write(CONFIG, json.dumps(config), mode=0o640)
        machine.write_at_home(".codex/config.toml", CODEX_PROVIDER.format(model=model.address))
        auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        machine.write_at_home(".gemini/settings.json", json.dumps(auth))

    def let_hook_wait(self, seconds: int) -> None:
        """Let the hook wait about this many seconds, less its margin, before it denies with a
        ticket."""
        path = self.machine.find(CONFIG)
        self.machine.write(
            CONFIG, json.dumps({**json.loads(path.read_text()), "timeout_s": seconds}), mode=0o640
        )

    def install(self, file: str) -> None:
        """Write a file from the guide, in the administrator's folders or in the home folder."""
        text = read_block(file)
        if file.startswith("/"):
            self.machine.write(file, text)
            return
        name = file.removeprefix("~/")
        path = self.machine.home / name
        found = json.loads(path.read_text()) if path.exists() else {}
        self.machine.write_at_home(name, json.dumps({**found, **json.loads(text)}))
        if file.startswith(".github/"):
            self.machine.run(["/usr/bin/git", "init", "--quiet"])

    def start(self, assistant: Assistant) -> subprocess.Popen[str]:
        """Start the assistant with a task."""
        path, *arguments = assistant.command
        process = self.machine.start(
            [f"{BIN}/{path}", *arguments, "Do it."], **self.fill(assistant)
        )
        assert process.stdin is not None
        process.stdin.close()  # one assistant reads all of its input before it begins
        process.stdin = None
        return process

    def trust_hooks(self) -> None:
        """Start Codex in a terminal, trust all hooks in its dialog, and exit, as the guide
        says."""
        terminal = Terminal()
        process = self.machine.start_in(
            terminal, [f"{BIN}/codex"], **self.fill(CODEX) | {"TERM": "xterm-256color"}
        )
        try:
            terminal.await_text("Hooks need review")
            terminal.press_until("1", "trust all")  # Review hooks
            terminal.press_until("t", "details")  # trust all
            terminal.press_until("\x1b", "for shortcuts")
            terminal.press("\x03\x03")
            terminal.await_end(process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            terminal.close()

    def check(self, assistant: Assistant, *arguments: str) -> tuple[int, str]:
        """Run the guide's command that checks the setup; return its exit code and output."""
        command = re.findall(
            r"run `(\S.* check) claude --live`", GUIDE.read_text(encoding="utf-8")
        )[0]
        variables = {**self.fill(assistant), "PATH": f"{BIN}:/usr/bin:/bin"}
        code, output, errors = self.machine.run(
            [*command.split(), assistant.name, *arguments], **variables
        )
        assert not errors, errors
        return code, output

    def fill(self, assistant: Assistant) -> dict[str, str]:
        filled = {
            name: text.format(model=self.model.address)
            for name, text in assistant.variables.items()
        }
        return {"SHELL": "/bin/bash", "TERM": "dumb", **filled}

    def touch(self, assistant: Assistant, name: str) -> tuple[Path, Call]:
        """Return the path of a file that does not exist, and the call that creates it."""
        path = self.machine.home / name
        return path, assistant.call_shell(f"touch {path}")


def read_block(path: str) -> str:
    """Return the guide's text for a file; files that the guide calls identical share one text."""
    text = GUIDE.read_text(encoding="utf-8")
    same = {file: each.files[0] for each in ALL for file in each.files[1:]} | {
        "~/.codex/hooks.json": CLAUDE.files[0],
        "~/.copilot/hooks.json": COPILOT.files[0],
        ".github/hooks/gadget.json": COPILOT.files[0],
    }
    shown = same.get(path, path)
    assert f"`{path}`" in text
    found = re.search(
        rf"`{re.escape(shown)}`[^`]*\n\s*```(?:json|toml)\n(.*?)\n\s*```", text, re.DOTALL
    )
    assert found, f"the guide shows {shown}"
    return found[1]


def end(process: subprocess.Popen[str]) -> str:
    """Wait until an assistant has ended, and return its output."""
    output, errors = process.communicate(timeout=180)
    return f"{output}\n{errors}"


def list_tools(model: ModelStub) -> set[str]:
    """Return the names of the tools that were offered to the model."""
    found: set[str] = set()
    for _, body in model.asked:
        for tool in body.get("tools") or []:
            function: dict[str, Any] = tool.get("function") or tool
            found.update(
                filter(
                    None,
                    [
                        function.get("name"),
                        *(f["name"] for f in tool.get("functionDeclarations", [])),
                    ],
                )
            )
    return found
