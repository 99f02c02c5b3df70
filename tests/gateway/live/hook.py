"""The hook for coding assistants with its configuration, started as an assistant starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from agents.accounts.membership import issue_token
from agents.approvals import decisions
from agents.runs.models import Approval
from tests.awaiting import await_that
from tests.clients.gadget import HOOK
from tests.faults.site import Site
from tests.workshop import beside

SHELLS = "Bash|bash|shell|run_shell_command"
RULES = [
    {"tool": "Read|Grep|Glob", "do": "allow"},
    {"tool": SHELLS, "input": "ls -la|git (status|diff|log --oneline -5)", "do": "allow"},
    {"tool": SHELLS, "input": "rm -rf /|curl .*|sudo .*", "do": "deny"},
]
CLAUDE = {
    "session_id": "s1",
    "cwd": "/home/ada/shop",
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
}
PATIENCE_S = 120
"""The time limit in seconds for a real assistant to start and ask, on a busy machine."""
DEPLOY = {**CLAUDE, "tool_input": {"command": "make deploy", "description": "Deploy the shop"}}


class Hook:
    """The hook with its configuration, started as an assistant starts it."""

    def __init__(self, folder: Path, url: str, secret: str, **more: Any) -> None:
        self.config = folder / "hook.json"
        self.write({"url": url, "key": secret, "rules": RULES, "timeout_s": 60, **more})

    def write(self, config: Any) -> None:
        self.config.write_text(
            config if isinstance(config, str) else json.dumps(config), encoding="utf-8"
        )
        self.config.chmod(0o600)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "AGENT_HOOK_CONFIG": str(self.config),
            "PYTHONUTF8": "1",
        }
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(
            [sys.executable, "-I", str(HOOK), *arguments], env=environment, text=True, **pipes
        )

    def answer(self, given: Any) -> tuple[int, str, str]:
        """Return the exit code, the output and the errors for this input."""
        process = self.start()
        output, errors = process.communicate(
            given if isinstance(given, str) else json.dumps(given), timeout=90
        )
        return process.returncode, output, errors


@contextmanager
def decided(site: Site, *, approves: bool) -> Iterator[None]:
    """Decide the next card while the block runs."""
    before = list_cards()
    with beside(lambda: decide_next(site, before, approves=approves)):
        yield


def list_cards() -> set[int]:
    return set(Approval.objects.values_list("pk", flat=True))


def decide_next(site: Site, before: set[int], *, approves: bool) -> Approval:
    """Await a new card, and decide it over REST, so that waiting requests are notified
    immediately."""
    await_that(lambda: Approval.objects.exclude(pk__in=before).exists(), "a card comes", PATIENCE_S)
    card = Approval.objects.exclude(pk__in=before).select_related("tool_call").get()
    confirmed = (
        {"confirm": decisions.make_confirmation_phrase(card) or ""}
        if approves
        else {"reason": "Not now."}
    )
    response = httpx2.post(
        f"{site.installation.url}/api/approvals/{card.pk}/{'approve' if approves else 'deny'}",
        json={"digest": card.digest, **confirmed},
        headers={"Authorization": f"Bearer {issue_token(site.workshop.approver, 'test')[1]}"},
    )
    response.raise_for_status()
    return card
