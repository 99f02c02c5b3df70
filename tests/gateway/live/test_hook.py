"""The hook: inputs in the documented forms of five assistants get the expected verdict; every
failure blocks."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from agents.approvals import decisions
from agents.gateway.asks import AskedRequest, submit
from agents.gateway.models import AgentKey, Ask
from agents.runs.models import Approval, ApprovalStatus, CallStatus, ToolCall
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.features import feature
from tests.gateway.live.hook import CLAUDE, DEPLOY, Hook, decided
from tests.sampling import take_sample

INPUTS = json.loads(
    (settings.BASE_DIR / "tests" / "clients" / "hook_inputs.json").read_text(encoding="utf-8")
)


def read_verdict(assistant: str, output: str) -> str:
    """Read the verdict from the assistant's form of a response: `allow`, `deny`, or `silence`."""
    if not output:
        return "silence"
    response = json.loads(output)
    forms = {"cursor": "permission", "gemini": "decision", "copilot": "permissionDecision"}
    if assistant in forms:
        return str(response[forms[assistant]])
    specific = response["hookSpecificOutput"]
    assert specific["hookEventName"] == "PreToolUse"
    return str(specific["permissionDecision"])


def test_there_are_at_least_100_hook_inputs() -> None:
    assert len(INPUTS) >= 100


@feature(
    "Agents elsewhere",
    "A hook for coding assistants without dependencies",
    "static/clients/gadget_hook.py",
)
@pytest.mark.parametrize("number", take_sample(range(len(INPUTS)), 10, "hook inputs"))
def test_each_input_gets_its_expected_verdict(site: Site, hook: Hook, number: int) -> None:
    assistant, given, expected = (
        INPUTS[number][name] for name in ("assistant", "input", "expected")
    )
    if expected in ("ok", "no"):
        with decided(site, approves=expected == "ok"):
            code, output, errors = hook.answer(given)
    else:
        code, output, errors = hook.answer(given)
    if expected == "blocked":
        assert (code, output) == (2, "")
        assert errors.startswith("Blocked by Gadget's hook: ")
        return
    assert (code, errors) == (0, "")
    approved = "silence" if assistant == "codex" else "allow"
    verdicts = {"allow": "silence", "deny": "deny", "ok": approved, "no": "deny"}
    assert read_verdict(assistant, output) == verdicts[expected]
    if expected == "ok":
        assert Ask.objects.get().redeemed_at is not None, "one approval lets one call through"


@feature(
    "Agents elsewhere",
    "Without a server the hook blocks every call that it would ask about",
    "static/clients/gadget_hook.py",
)
@pytest.mark.parametrize(
    "number", take_sample(range(len(INPUTS)), 10, "hook inputs without a server")
)
def test_every_call_is_blocked_without_a_server(tmp_path: Path, number: int) -> None:
    hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x", rules=[])
    code, output, errors = hook.answer(INPUTS[number]["input"])
    assert (code, output) == (2, "")
    assert errors.startswith("Blocked by Gadget's hook: ")


@feature(
    "Agents elsewhere",
    "The hook responds before the assistant's timeout, and finds its ask again",
    "static/clients/gadget_hook.py",
)
def test_the_hook_denies_with_a_ticket_before_the_timeout_and_later_finds_the_same_ask(
    site: Site, hook: Hook
) -> None:
    hook.write({**json.loads(hook.config.read_text()), "timeout_s": 16.5})
    code, output, _ = hook.answer(DEPLOY)
    assert (code, read_verdict("claude", output)) == (0, "deny")
    ask = Ask.objects.get()
    assert f"ask {ask.pk}" in output
    card = Approval.objects.get()
    decisions.approve(
        site.workshop.approver, card.pk, decisions.Decision(card.digest, confirm="assistant.Bash")
    )
    code, output, _ = hook.answer(DEPLOY)
    assert (code, read_verdict("claude", output)) == (0, "allow")
    assert Ask.objects.count() == 1, "the next try found the same ask"


def test_one_approval_lets_only_one_call_through(site: Site, hook: Hook) -> None:
    with decided(site, approves=True):
        assert read_verdict("claude", hook.answer(DEPLOY)[1]) == "allow"
    code, output, _ = hook.answer(DEPLOY)
    assert (code, read_verdict("claude", output)) == (0, "deny")
    assert "was let through before" in output


def test_a_changed_call_needs_its_own_decision(site: Site, hook: Hook) -> None:
    with decided(site, approves=True):
        hook.answer(DEPLOY)
    changed = {**DEPLOY, "tool_input": {"command": "make deploy-all"}}
    with decided(site, approves=False):
        code, output, _ = hook.answer(changed)
    assert (code, read_verdict("claude", output)) == (0, "deny")
    assert "Not now." in output


def test_the_hook_reports_a_success_and_asks_again_for_the_next_call(
    site: Site, hook: Hook
) -> None:
    with decided(site, approves=True):
        hook.answer(DEPLOY)
    after = {**DEPLOY, "hook_event_name": "PostToolUse", "tool_response": {"stdout": "done"}}
    assert hook.answer(after) == (0, "", "")
    assert ToolCall.objects.get().status == CallStatus.SUCCEEDED
    with decided(site, approves=True):
        assert read_verdict("claude", hook.answer(DEPLOY)[1]) == "allow", (
            "after that, it may be asked again"
        )


COMMAND = {"command": "make deploy"}
CURSOR = {"conversation_id": "c1", "command": "make deploy"}
COPILOT = {
    "sessionId": "p1",
    "cwd": "/home/ada/shop",
    "toolName": "bash",
    "toolArgs": json.dumps(COMMAND),
}


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (
            DEPLOY,
            {**DEPLOY, "hook_event_name": "PostToolUseFailure", "error": "exit 1"},
            CallStatus.FAILED,
        ),
        (
            {**CURSOR, "cwd": "/home/ada/shop", "hook_event_name": "beforeShellExecution"},
            {**CURSOR, "hook_event_name": "afterShellExecution", "output": "done", "duration": 5},
            CallStatus.SUCCEEDED,
        ),
        (COPILOT, {**COPILOT, "toolResult": {"resultType": "success"}}, CallStatus.SUCCEEDED),
        (COPILOT, {**COPILOT, "toolResult": {"resultType": "failure"}}, CallStatus.FAILED),
        (COPILOT, {**COPILOT, "error": "exit 1"}, CallStatus.FAILED),
        (
            {
                **CLAUDE,
                "hook_event_name": "BeforeTool",
                "tool_name": "run_shell_command",
                "tool_input": COMMAND,
            },
            {
                **CLAUDE,
                "hook_event_name": "AfterTool",
                "tool_name": "run_shell_command",
                "tool_input": COMMAND,
                "tool_response": {"error": "exit 1"},
            },
            CallStatus.FAILED,
        ),
    ],
)
def test_each_assistants_report_is_matched_to_its_call(
    site: Site, hook: Hook, before: dict[str, Any], after: dict[str, Any], status: CallStatus
) -> None:
    with decided(site, approves=True):
        assert hook.answer(before)[0] == 0
    assert ToolCall.objects.get().status == CallStatus.EXECUTING
    assert hook.answer(after) == (0, "", "")
    assert ToolCall.objects.get().status == status


def test_a_report_succeeds_even_if_there_are_many_other_large_asks(site: Site, hook: Hook) -> None:
    with decided(site, approves=True):
        hook.answer(DEPLOY)
    key = AgentKey.objects.get()
    for number in range(30):
        submit(
            key, AskedRequest("assistant.Write", {"text": "x" * 60_000, "number": number}, "write")
        )
    assert hook.answer({**DEPLOY, "hook_event_name": "PostToolUse", "tool_response": {}}) == (
        0,
        "",
        "",
    )
    assert ToolCall.objects.get(tool="ask/assistant.Bash").status == CallStatus.SUCCEEDED


def test_a_call_allowed_by_a_rule_is_not_reported(tmp_path: Path) -> None:
    hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x")
    given = {
        **CLAUDE,
        "tool_name": "Read",
        "tool_input": {"file_path": "a"},
        "hook_event_name": "PostToolUse",
    }
    assert hook.answer(given) == (0, "", "")


def test_the_call_of_an_ask_contains_exactly_the_tool_the_folder_and_the_input_that_will_run(
    site: Site, hook: Hook
) -> None:
    with decided(site, approves=False):
        hook.answer(DEPLOY)
    call = ToolCall.objects.get()
    assert call.params == {
        "tool": "Bash",
        "folder": "/home/ada/shop",
        "input": DEPLOY["tool_input"],
    }
    assert (call.tool, call.level) == ("ask/assistant.Bash", "destructive")


class TestConfiguration:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"url": "https://[gadget", "key": "gadget_agent_x"},
            {"url": "http://127.0.0.1:9", "key": "gadget_agent_x", "timeout_s": 10**400},
            '{"rules": ' + "[" * 100_000,
        ],
    )
    def test_with_a_fault_blocks_the_call(self, tmp_path: Path, wrong: Any) -> None:
        hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x")
        hook.write(wrong)
        assert hook.answer({**DEPLOY, "tool_name": "Read"})[0] == 2

    def test_that_is_missing_blocks_the_call(self, tmp_path: Path) -> None:
        hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x")
        hook.config.unlink()
        assert hook.answer(DEPLOY)[0] == 2

    @pytest.mark.usefixtures("running")
    def test_with_a_wrong_key_blocks_the_call(self, site: Site, tmp_path: Path) -> None:
        hook = Hook(tmp_path, site.installation.url, "gadget_agent_wrong")
        code, _, errors = hook.answer(DEPLOY)
        assert (code, "401" in errors) == (2, True)


def test_a_rule_with_an_endless_regular_expression_blocks_the_call_before_the_timeout(
    tmp_path: Path,
) -> None:
    rules = [{"tool": "Bash", "input": "(a+)+b", "do": "allow"}]
    hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x", rules=rules, timeout_s=15.1)
    began = time.monotonic()
    assert hook.answer({**DEPLOY, "tool_input": {"command": "a" * 60}})[0] == 2
    assert time.monotonic() - began < 15.1


def test_a_termination_signal_blocks_the_call(site: Site, hook: Hook) -> None:
    process = hook.start()
    assert process.stdin is not None
    process.stdin.write(json.dumps(DEPLOY))
    process.stdin.close()
    await_that(Ask.objects.exists, "the ask is made")
    process.terminate()
    assert process.wait(20) == 2


class TestHostileServers:
    @feature(
        "Agents elsewhere",
        "The hook ends before the assistant's timeout, whatever a server does",
        "static/clients/gadget_hook.py",
    )
    def test_that_send_single_bytes_are_abandoned_before_the_assistants_timeout(
        self, tmp_path: Path
    ) -> None:
        def drip(connection: socket.socket) -> None:
            with suppress(OSError):
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                while True:
                    connection.sendall(b" ")
                    threading.Event().wait(0.2)

        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=lambda: drip(server.accept()[0]), daemon=True).start()
            hook = Hook(
                tmp_path,
                f"http://127.0.0.1:{server.getsockname()[1]}",
                "gadget_agent_x",
                timeout_s=16,
            )
            began = time.monotonic()
            code, _, errors = hook.answer(DEPLOY)
            took = time.monotonic() - began
        assert (code, "did not respond in time" in errors) == (2, True)
        assert took < 15

    @pytest.mark.parametrize(
        ("status", "headers", "body"),
        [
            (200, {}, b"<html>Welcome</html>"),
            (200, {}, b"{}"),
            (
                200,
                {},
                b'{"id": "1", "status": "approved", "action": "assistant.Bash", "params_digest": "0"}',
            ),
            (200, {}, b" " * 2_000_000),
            (302, {"Location": "{elsewhere}"}, b""),
            (307, {"Location": "{elsewhere}"}, b""),
            (500, {}, b"oops"),
            (204, {}, b""),
        ],
    )
    def test_with_strange_responses_block_the_call_and_their_redirects_are_not_followed(
        self, tmp_path: Path, status: int, headers: dict[str, str], body: bytes
    ) -> None:
        with serve(200, {}, b"{}") as (elsewhere, there):
            filled = {name: value.format(elsewhere=elsewhere) for name, value in headers.items()}
            with serve(status, filled, body) as (url, here):
                assert Hook(tmp_path, url, "gadget_agent_x").answer(DEPLOY)[0] == 2
        assert here
        assert not there, "a redirect is not followed"


def test_no_card_is_pending_after_a_denial(site: Site, hook: Hook) -> None:
    with decided(site, approves=False):
        hook.answer(DEPLOY)
    assert not Approval.objects.filter(status=ApprovalStatus.PENDING).exists()


@contextmanager
def serve(status: int, headers: dict[str, str], body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Serve this response to every request; yield the address, and the requested paths."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 - the names of the library

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
