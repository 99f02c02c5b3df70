"""The hook for coding assistants: recorded inputs of five assistants get the right answer; whatever fails blocks."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
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
from agents.approvals.models import Approval, ApprovalStatus
from agents.gateway.asks import AskedRequest, submit
from agents.gateway.models import AgentKey, Ask
from agents.runs.models import CallStatus, ToolCall
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.sampling import take_sample
from tests.workshop import beside

HOOK = settings.BASE_DIR / "static" / "clients" / "gadget_hook.py"
RECORDED = json.loads((settings.BASE_DIR / "tests" / "clients" / "hook_inputs.json").read_text(encoding="utf-8"))
SHELLS = "Bash|bash|shell|run_shell_command"
RULES = [
    {"tool": "Read|Grep|Glob", "do": "allow"},
    {"tool": SHELLS, "input": "ls -la|git (status|diff|log --oneline -5)", "do": "allow"},
    {"tool": SHELLS, "input": "rm -rf /|curl .*|sudo .*", "do": "deny"},
]
CLAUDE = {"session_id": "s1", "cwd": "/home/ada/shop", "hook_event_name": "PreToolUse", "tool_name": "Bash"}
DEPLOY = {**CLAUDE, "tool_input": {"command": "make deploy", "description": "Deploy the shop"}}


NOBODY = 65_534
CAN_CHANGE = f"""
import os, sys
hook = {{"__name__": "hook"}}
exec(sys.stdin.read(), hook)
os.setuid({NOBODY})
print(hook["can_change"](hook["Path"](sys.argv[1])))
"""
GIT = {"tool": "Bash", "input": "git (status|diff)", "do": "allow"}


class Hook:
    """The hook with its configuration, as an assistant starts it."""

    def __init__(self, folder: Path, url: str, secret: str, **more: Any) -> None:
        self.config = folder / "hook.json"
        self.write({"url": url, "key": secret, "rules": RULES, "timeout_s": 60, **more})

    def write(self, config: Any, mode: int = 0o600) -> None:
        self.config.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
        self.config.chmod(mode)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {"PATH": os.environ["PATH"], "AGENT_HOOK_CONFIG": str(self.config), "PYTHONUTF8": "1"}
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen([sys.executable, "-I", str(HOOK), *arguments], env=environment, text=True, **pipes)

    def answer(self, given: Any) -> tuple[int, str, str]:
        """Return the exit code, the output and the errors for this input."""
        process = self.start()
        output, errors = process.communicate(given if isinstance(given, str) else json.dumps(given), timeout=90)
        return process.returncode, output, errors


@pytest.fixture
def hook(site: Site, secret: str, tmp_path: Path) -> Hook:
    return Hook(tmp_path, site.installation.url, secret)


@contextmanager
def decided(site: Site, *, approves: bool) -> Iterator[None]:
    """Decide the card that comes while the block runs."""
    before = set(Approval.objects.values_list("pk", flat=True))

    def decide() -> None:
        await_that(lambda: Approval.objects.exclude(pk__in=before).exists(), "a card comes")
        card = Approval.objects.exclude(pk__in=before).select_related("tool_call").get()
        decision = decisions.Decision(card.digest, confirm=card.tool_call.tool.removeprefix("ask/"), reason="Not now.")
        (decisions.approve if approves else decisions.deny)(site.workshop.approver, card.pk, decision)

    with beside(decide):
        yield


def read_verdict(assistant: str, output: str) -> str:
    """Read the assistant's form of an answer: `allow`, `deny`, or `silence`."""
    if not output:
        return "silence"
    answer = json.loads(output)
    forms = {"cursor": "permission", "gemini": "decision", "copilot": "permissionDecision"}
    if assistant in forms:
        return str(answer[forms[assistant]])
    specific = answer["hookSpecificOutput"]
    assert specific["hookEventName"] == "PreToolUse"
    return str(specific["permissionDecision"])


def test_there_are_a_hundred_recorded_inputs() -> None:
    assert len(RECORDED) >= 100


@pytest.mark.parametrize("number", take_sample(range(len(RECORDED)), 5, "hook inputs"))
def test_each_input_gets_the_right_answer(site: Site, hook: Hook, number: int) -> None:
    assistant, given, expected = (RECORDED[number][name] for name in ("assistant", "input", "expected"))
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


@pytest.mark.parametrize("number", take_sample(range(len(RECORDED)), 5, "hook inputs without a server"))
def test_without_a_server_everything_is_blocked(tmp_path: Path, number: int) -> None:
    hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x", rules=[])
    code, output, errors = hook.answer(RECORDED[number]["input"])
    assert (code, output) == (2, "")
    assert errors.startswith("Blocked by Gadget's hook: ")


def test_before_the_assistants_timeout_it_denies_with_a_ticket_and_finds_it_again(site: Site, hook: Hook) -> None:
    hook.write({**json.loads(hook.config.read_text()), "timeout_s": 16.5})
    code, output, _ = hook.answer(DEPLOY)
    assert (code, read_verdict("claude", output)) == (0, "deny")
    ask = Ask.objects.get()
    assert f"ask {ask.pk}" in output
    card = Approval.objects.get()
    decisions.approve(site.workshop.approver, card.pk, decisions.Decision(card.digest, confirm="assistant.Bash"))
    code, output, _ = hook.answer(DEPLOY)
    assert (code, read_verdict("claude", output)) == (0, "allow")
    assert Ask.objects.count() == 1, "the next try found the same ask"


def test_one_approval_lets_one_call_through(site: Site, hook: Hook) -> None:
    with decided(site, approves=True):
        assert read_verdict("claude", hook.answer(DEPLOY)[1]) == "allow"
    code, output, _ = hook.answer(DEPLOY)
    assert (code, read_verdict("claude", output)) == (0, "deny")
    assert "was let through before" in output


def test_a_changed_call_needs_a_decision_of_its_own(site: Site, hook: Hook) -> None:
    with decided(site, approves=True):
        hook.answer(DEPLOY)
    changed = {**DEPLOY, "tool_input": {"command": "make deploy-all"}}
    with decided(site, approves=False):
        code, output, _ = hook.answer(changed)
    assert (code, read_verdict("claude", output)) == (0, "deny")
    assert "Not now." in output


def test_it_reports_what_happened(site: Site, hook: Hook) -> None:
    with decided(site, approves=True):
        hook.answer(DEPLOY)
    after = {**DEPLOY, "hook_event_name": "PostToolUse", "tool_response": {"stdout": "done"}}
    assert hook.answer(after) == (0, "", "")
    assert ToolCall.objects.get().status == CallStatus.SUCCEEDED
    with decided(site, approves=True):
        assert read_verdict("claude", hook.answer(DEPLOY)[1]) == "allow", "after that, it may be asked again"


COMMAND = {"command": "make deploy"}
CURSOR = {"conversation_id": "c1", "command": "make deploy"}
COPILOT = {"sessionId": "p1", "cwd": "/home/ada/shop", "toolName": "bash", "toolArgs": json.dumps(COMMAND)}


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (DEPLOY, {**DEPLOY, "hook_event_name": "PostToolUseFailure", "error": "exit 1"}, CallStatus.FAILED),
        (
            {**CURSOR, "cwd": "/home/ada/shop", "hook_event_name": "beforeShellExecution"},
            {**CURSOR, "hook_event_name": "afterShellExecution", "output": "done", "duration": 5},
            CallStatus.SUCCEEDED,
        ),
        (COPILOT, {**COPILOT, "toolResult": {"resultType": "success"}}, CallStatus.SUCCEEDED),
        (COPILOT, {**COPILOT, "toolResult": {"resultType": "failure"}}, CallStatus.FAILED),
        (COPILOT, {**COPILOT, "error": "exit 1"}, CallStatus.FAILED),
        (
            {**CLAUDE, "hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": COMMAND},
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
def test_each_assistants_report_finds_its_call(
    site: Site, hook: Hook, before: dict[str, Any], after: dict[str, Any], status: CallStatus
) -> None:
    with decided(site, approves=True):
        assert hook.answer(before)[0] == 0
    assert ToolCall.objects.get().status == CallStatus.EXECUTING
    assert hook.answer(after) == (0, "", "")
    assert ToolCall.objects.get().status == status


def test_a_report_reads_one_ask_however_many_and_large_the_others_are(site: Site, hook: Hook) -> None:
    with decided(site, approves=True):
        hook.answer(DEPLOY)
    key = AgentKey.objects.get()
    for number in range(30):
        submit(key, AskedRequest("assistant.Write", {"text": "x" * 60_000, "number": number}, "write"))
    assert hook.answer({**DEPLOY, "hook_event_name": "PostToolUse", "tool_response": {}}) == (0, "", "")
    assert ToolCall.objects.get(tool="ask/assistant.Bash").status == CallStatus.SUCCEEDED


def test_a_call_that_a_rule_allowed_reports_nothing(tmp_path: Path) -> None:
    hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x")
    given = {**CLAUDE, "tool_name": "Read", "tool_input": {"file_path": "a"}, "hook_event_name": "PostToolUse"}
    assert hook.answer(given) == (0, "", "")


def test_the_card_shows_exactly_what_will_run(site: Site, hook: Hook) -> None:
    with decided(site, approves=False):
        hook.answer(DEPLOY)
    call = ToolCall.objects.get()
    assert call.params == {"tool": "Bash", "folder": "/home/ada/shop", "input": DEPLOY["tool_input"]}
    assert (call.tool, call.level) == ("ask/assistant.Bash", "destructive")


class TestConfiguration:
    @pytest.mark.parametrize(
        "wrong",
        [
            "{",
            "[]",
            {"url": "http://example.com", "key": "gadget_agent_x"},
            {"url": "ftp://127.0.0.1", "key": "gadget_agent_x"},
            {"url": "http://127.0.0.1:9"},
            {"url": "http://127.0.0.1:9", "key": "gadget_x"},
            {"url": "http://127.0.0.1:9", "key": "gadget_agent_x", "default": "maybe"},
            {"url": "http://127.0.0.1:9", "key": "gadget_agent_x", "timeout_s": 5},
            {"url": "http://127.0.0.1:9", "key": "gadget_agent_x", "rules": {}},
            {"url": "http://127.0.0.1:9", "key": "gadget_agent_x", "rules": [{"tool": "(", "do": "allow"}]},
            {"url": "http://127.0.0.1:9", "key": "gadget_agent_x", "rules": [{"tol": "Bash", "do": "allow"}]},
            {
                "url": "http://127.0.0.1:9",
                "key": "gadget_agent_x",
                "rules": [{"tool": "a{99999999999}", "do": "allow"}],
            },
            {"url": "https://[gadget", "key": "gadget_agent_x"},
            {"url": "http://127.0.0.1:9", "key": "gadget_agent_x", "timeout_s": 10**400},
            {"url": "http://127.0.0.1:9", "key": "gadget_agent_x", "timeout_s": float("inf")},
            '{"rules": ' + "[" * 100_000,
        ],
    )
    def test_a_wrong_one_blocks(self, tmp_path: Path, wrong: Any) -> None:
        hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x")
        hook.write(wrong)
        assert hook.answer({**DEPLOY, "tool_name": "Read"})[0] == 2

    def test_one_that_others_can_read_blocks(self, tmp_path: Path) -> None:
        hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x")
        hook.config.chmod(0o644)
        code, _, errors = hook.answer({**DEPLOY, "tool_name": "Read"})
        assert (code, "chmod 600" in errors) == (2, True)

    def test_a_missing_one_blocks(self, tmp_path: Path) -> None:
        hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x")
        hook.config.unlink()
        assert hook.answer(DEPLOY)[0] == 2

    @pytest.mark.usefixtures("running")
    def test_a_wrong_key_blocks(self, site: Site, tmp_path: Path) -> None:
        hook = Hook(tmp_path, site.installation.url, "gadget_agent_wrong")
        code, _, errors = hook.answer(DEPLOY)
        assert (code, "401" in errors) == (2, True)


class TestLyingAgents:
    """A rule that allows a call holds for all of its texts, because the agent writes them."""

    @pytest.mark.parametrize(
        "given",
        [
            {"command": "rm -rf ~", "description": "git status"},
            {"command": "git status", "more": "rm -rf ~"},
            {"command": ["rm", "git status"], "description": "git status"},
            {"description": "git status"},
            {},
        ],
    )
    def test_another_text_that_matches_allows_nothing(self, tmp_path: Path, given: dict[str, Any]) -> None:
        hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x", rules=[GIT])
        expected = 0 if given == {"description": "git status"} else 2
        assert hook.answer({**DEPLOY, "tool_input": given})[0] == expected

    def test_the_description_of_a_command_does_not_count(self, tmp_path: Path) -> None:
        hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x", rules=[GIT])
        given = {"command": "git status", "description": "Look at the state"}
        assert hook.answer({**DEPLOY, "tool_input": given}) == (0, "", "")

    def test_an_expression_that_takes_for_ever_blocks_in_time(self, tmp_path: Path) -> None:
        rules = [{"tool": "Bash", "input": "(a+)+b", "do": "allow"}]
        hook = Hook(tmp_path, "http://127.0.0.1:9", "gadget_agent_x", rules=rules, timeout_s=15.1)
        began = time.monotonic()
        assert hook.answer({**DEPLOY, "tool_input": {"command": "a" * 60}})[0] == 2
        assert time.monotonic() - began < 15.1


class TestHostileServers:
    def test_a_server_that_drips_is_given_up_before_the_assistants_timeout(self, tmp_path: Path) -> None:
        def drip(connection: socket.socket) -> None:
            with suppress(OSError):
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                while True:
                    connection.sendall(b" ")
                    threading.Event().wait(0.2)

        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=lambda: drip(server.accept()[0]), daemon=True).start()
            hook = Hook(tmp_path, f"http://127.0.0.1:{server.getsockname()[1]}", "gadget_agent_x", timeout_s=16)
            began = time.monotonic()
            code, _, errors = hook.answer(DEPLOY)
            took = time.monotonic() - began
        assert (code, "did not answer in time" in errors) == (2, True)
        assert took < 15

    @pytest.mark.parametrize(
        ("status", "headers", "body"),
        [
            (200, {}, b"<html>Welcome</html>"),
            (200, {}, b"[]"),
            (200, {}, b"{}"),
            (200, {}, b'{"id": "1", "status": "approved", "action": "assistant.Bash", "params_digest": "0"}'),
            (200, {}, b" " * 2_000_000),
            (302, {"Location": "{elsewhere}"}, b""),
            (307, {"Location": "{elsewhere}"}, b""),
            (500, {}, b"oops"),
            (204, {}, b""),
        ],
    )
    def test_a_strange_answer_blocks_and_the_key_goes_nowhere_else(
        self, tmp_path: Path, status: int, headers: dict[str, str], body: bytes
    ) -> None:
        with serve(200, {}, b"{}") as (elsewhere, there):
            filled = {name: value.format(elsewhere=elsewhere) for name, value in headers.items()}
            with serve(status, filled, body) as (url, here):
                assert Hook(tmp_path, url, "gadget_agent_x").answer(DEPLOY)[0] == 2
        assert here
        assert not there, "a redirect is not followed"


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
        for found in ("a person decided: approved", "lets one call through", "a second one is refused"):
            assert re.search(rf"^ok .*{found}", output, re.MULTILINE), output
        assert ToolCall.objects.get().status == CallStatus.SUCCEEDED

    def test_a_denial_is_named(self, site: Site, hook: Hook, tmp_path: Path) -> None:
        with decided(site, approves=False):
            _, output = self.run(hook, "claude", self.install(tmp_path), "--wait")
        assert "PROBLEM  a person decided: denied" in output
        assert "lets one call through" not in output

    @pytest.mark.parametrize(
        ("entry", "problem"),
        [
            ({"timeout": 59}, "4 s longer than the hook"),
            ({"command": "python3 other.py"}, "no hook in"),
        ],
    )
    def test_it_names_what_is_wrong(self, hook: Hook, tmp_path: Path, entry: dict[str, Any], problem: str) -> None:
        code, output = self.run(hook, "claude", self.install(tmp_path, **entry))
        assert code == 1
        assert any(line.startswith("PROBLEM") and problem in line for line in output.splitlines())

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


def test_no_card_is_left(site: Site, hook: Hook) -> None:
    with decided(site, approves=False):
        hook.answer(DEPLOY)
    assert not Approval.objects.filter(status=ApprovalStatus.PENDING).exists()


@contextmanager
def serve(status: int, headers: dict[str, str], body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Serve this answer to everything; yield the address, and the paths that were asked for."""
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
