"""Command-line assistants as MCP clients: the real programs, each with a stub that speaks the
protocol of the assistant's model.

The stub requests the calls that the soak chooses. It receives their results in the form in which
the assistant shows them to its model.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from tests.soak.client_kinds import ANSWER_S, Client, install_from_npm

TASK = "Do what the tools are for"
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Turn:
    """One request to the model, as parsed by the stub.

    Attributes:
        tools: the names of the offered tools.
        result: what the last call returned; None in the first turn.
    """

    tools: list[str]
    result: str | None


@dataclass(frozen=True)
class Event:
    """An event in a streamed response."""

    name: str
    data: Mapping[str, Any]


class Wire:
    """The protocol between an assistant and its model's server."""

    def read(self, body: Any) -> Turn:
        """Parse a request."""
        raise NotImplementedError

    def write(self, call: Call | None, number: int) -> Iterator[Event]:
        """Yield the events of the next response: a call of a tool, or the final answer if the call
        is None."""
        raise NotImplementedError


class Messages(Wire):
    """The protocol of Claude Code's model."""

    def read(self, body: Any) -> Turn:
        tools = [tool["name"] for tool in body.get("tools") or ()]
        content = body["messages"][-1]["content"]
        results = [
            part for part in content if isinstance(part, dict) and part["type"] == "tool_result"
        ]
        return Turn(tools, _join(results[-1]["content"]) if results else None)

    def write(self, call: Call | None, number: int) -> Iterator[Event]:
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "stub",
            "content": [],
        }
        start = {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}
        yield Event("message_start", {"type": "message_start", "message": start})
        if call is None:
            block: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": "Done."}
        else:
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        yield Event(
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": block},
        )
        yield Event(
            "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
        )
        yield Event("content_block_stop", {"type": "content_block_stop", "index": 0})
        reason = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
        yield Event("message_delta", {"type": "message_delta", "delta": reason, "usage": usage})
        yield Event("message_stop", {"type": "message_stop"})


class Responses(Wire):
    """The protocol of Codex and its model, in which the tools of an MCP server form a namespace."""

    def __init__(self) -> None:
        self._spaces: dict[str, tuple[str, str]] = {}

    def read(self, body: Any) -> Turn:
        for tool in body.get("tools") or ():
            if tool.get("type") == "namespace":
                names = [each["name"] for each in tool["tools"]]
                self._spaces |= {
                    f"{tool['name'].rstrip('_')}__{name}": (tool["name"], name) for name in names
                }
        last = body["input"][-1]
        result = _join(last["output"]) if last.get("type") == "function_call_output" else None
        return Turn(list(self._spaces), result)

    def write(self, call: Call | None, number: int) -> Iterator[Event]:
        if call is None:
            text = {"type": "output_text", "text": "Done.", "annotations": []}
            item: dict[str, Any] = {
                "type": "message",
                "id": f"i_{number}",
                "role": "assistant",
                "content": [text],
            }
        else:
            space, name = self._spaces[call[0]]
            item = {"type": "function_call", "id": f"i_{number}", "call_id": f"call_{number}"}
            item |= {"namespace": space, "name": name, "arguments": json.dumps(call[1])}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        response = {
            "id": f"resp_{number}",
            "object": "response",
            "status": "completed",
            "output": [item],
        }
        yield Event(
            "response.created", {"type": "response.created", "response": {**response, "output": []}}
        )
        yield Event(
            "response.output_item.done",
            {"type": "response.output_item.done", "output_index": 0, "item": item},
        )
        yield Event(
            "response.completed",
            {"type": "response.completed", "response": {**response, "usage": usage}},
        )


class GenerateContent(Wire):
    """The protocol of Gemini CLI's model."""

    def read(self, body: Any) -> Turn:
        declared = [
            each
            for tool in body.get("tools") or ()
            for each in tool.get("functionDeclarations") or ()
        ]
        parts = body["contents"][-1]["parts"]
        results = [
            part["functionResponse"]["response"] for part in parts if "functionResponse" in part
        ]
        return Turn([each["name"] for each in declared], _join(results[-1]) if results else None)

    def write(self, call: Call | None, number: int) -> Iterator[Event]:
        part: dict[str, Any] = {"text": "Done."}
        if call is not None:
            part = {"functionCall": {"id": f"call_{number}", "name": call[0], "args": call[1]}}
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        yield Event(
            "",
            {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage},
        )


def _join(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


class StubModel:
    """A model's server: it takes the next call from the soak, and gives the soak the result of the
    last call."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.turns: queue.Queue[Turn] = queue.Queue()
        self.calls: queue.Queue[Call | None] = queue.Queue()
        self.number = 0
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body: Any) -> list[Event]:
        """Return the events of the response to a request. A request without Gadget's tools, such as
        one for a title, is not a turn of the task."""
        turn = self.wire.read(body)
        self.number += 1
        if not any("gadget" in name for name in turn.tools):
            return list(self.wire.write(None, self.number))
        self.turns.put(turn)
        return list(self.wire.write(self.calls.get(timeout=ANSWER_S), self.number))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: StubModel


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        if "count_tokens" in self.path or "countTokens" in self.path:
            self._send(
                "application/json", json.dumps({"input_tokens": 1, "totalTokens": 1}).encode()
            )
            return
        events = self.server.model.answer(body)
        is_stream = body.get("stream") or "stream" in self.path
        if not is_stream:
            self._send("application/json", json.dumps(events[0].data).encode())
            return
        lines = [f"event: {each.name}\n" if each.name else "" for each in events]
        texts = [
            f"{line}data: {json.dumps(each.data)}\n\n"
            for line, each in zip(lines, events, strict=True)
        ]
        self._send("text/event-stream", "".join(texts).encode())

    def do_GET(self) -> None:
        self._send("application/json", b'{"data": [], "models": []}')

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def _send(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Do not log requests."""


@dataclass(frozen=True)
class Place:
    """The settings with which an assistant starts: a home directory of its own, Gadget's address
    and key, and its model's address."""

    home: Path
    url: str
    secret: str
    model_url: str


class Assistant:
    """A program from npm that works on a task with Gadget's tools."""

    name = ""
    package = ""
    wire: type[Wire]

    def connect(self, url: str, secret: str) -> Client:
        """Return a client: a context manager that installs the assistant if it is missing, and
        gives it a task."""
        return _Conversation(self, url, secret)

    def set_up(self, place: Place) -> tuple[list[str], dict[str, str]]:
        """Write the assistant's settings; return its command and its environment variables."""
        raise NotImplementedError


class ClaudeCode(Assistant):
    name, package, wire = "claude-code", "@anthropic-ai/claude-code", Messages

    def set_up(self, place: Place) -> tuple[list[str], dict[str, str]]:
        server = {
            "type": "http",
            "url": place.url,
            "headers": {"Authorization": f"Bearer {place.secret}"},
        }
        (place.home / "mcp.json").write_text(json.dumps({"mcpServers": {"gadget": server}}))
        allowed = ["--allowedTools", "mcp__gadget", "--model", "stub"]
        arguments = [
            "claude",
            "-p",
            TASK,
            "--mcp-config",
            str(place.home / "mcp.json"),
            "--strict-mcp-config",
            *allowed,
        ]
        variables = {
            "ANTHROPIC_BASE_URL": place.model_url,
            "ANTHROPIC_API_KEY": "stub",
            "ENABLE_TOOL_SEARCH": "false",
        }
        # Wait for the tools before the first turn.
        waits = {
            "MCP_CONNECTION_NONBLOCKING": "0",
            "MCP_TIMEOUT": "60000",
        }
        return arguments, {**variables, **waits, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


class Codex(Assistant):
    name, package, wire = "codex", "@openai/codex", Responses

    def set_up(self, place: Place) -> tuple[list[str], dict[str, str]]:
        settings = f"""
            model = "stub"
            model_provider = "stub"
            [model_providers.stub]
            name = "stub"
            base_url = "{place.model_url}/v1"
            wire_api = "responses"
            env_key = "STUB_KEY"
            [mcp_servers.gadget]
            url = "{place.url}"
            bearer_token_env_var = "GADGET_KEY"
            tool_timeout_sec = 60
        """
        (place.home / ".codex").mkdir()
        (place.home / ".codex" / "config.toml").write_text(
            "\n".join(map(str.strip, settings.splitlines()))
        )
        trusted = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return ["codex", "exec", *trusted, TASK], {"STUB_KEY": "stub", "GADGET_KEY": place.secret}


class GeminiCli(Assistant):
    name, package, wire = "gemini-cli", "@google/gemini-cli", GenerateContent

    def set_up(self, place: Place) -> tuple[list[str], dict[str, str]]:
        headers = {"Authorization": f"Bearer {place.secret}"}
        server = {"httpUrl": place.url, "headers": headers, "trust": True, "timeout": 60_000}
        settings = {
            "mcpServers": {"gadget": server},
            "security": {
                "auth": {"selectedType": "gemini-api-key"},
                "folderTrust": {"enabled": False},
            },
            "privacy": {"usageStatisticsEnabled": False},
        }
        (place.home / ".gemini").mkdir()
        (place.home / ".gemini" / "settings.json").write_text(json.dumps(settings))
        arguments = ["gemini", "-p", TASK, "--approval-mode", "yolo", "--model", "gemini-2.5-pro"]
        variables = {"GEMINI_API_KEY": "stub", "GOOGLE_GEMINI_BASE_URL": place.model_url}
        return arguments, {
            **variables,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_HOME": str(place.home),
        }


class _Conversation:
    """One task of an assistant, turn by turn."""

    def __init__(self, kind: Assistant, url: str, secret: str) -> None:
        self._kind, self._url, self._secret = kind, url, secret

    def __enter__(self) -> Self:
        bin_folder = (
            install_from_npm(self._kind.name, [self._kind.package]) / "node_modules" / ".bin"
        )
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._model = StubModel(self._kind.wire())
        place = Place(Path(self._folder.name), self._url, self._secret, self._model.url)
        (command, *arguments), variables = self._kind.set_up(place)
        kept = {
            name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TERM")
        }
        environment = {
            **kept,
            "HOME": str(place.home),
            "CODEX_HOME": str(place.home / ".codex"),
            **variables,
        }
        self._log = (place.home / "log").open("w+")
        self._process = subprocess.Popen(
            [str(bin_folder / command), *arguments],
            cwd=place.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._turn = self._next_turn()
        return self

    def __exit__(self, *_: object) -> None:
        self._model.calls.put(None)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._model.close()
        self._log.close()
        self._folder.cleanup()

    def list_tools(self) -> list[str]:
        return [name for name in self._turn.tools if "gadget" in name]

    def call(self, tool: str, params: dict[str, Any]) -> str:
        full = next(name for name in self._turn.tools if name.endswith(tool))
        self._model.calls.put((full, params))
        self._turn = self._next_turn()
        return self._turn.result or ""

    def _next_turn(self) -> Turn:
        try:
            return self._model.turns.get(timeout=ANSWER_S)
        except queue.Empty:
            self._log.flush()
            self._log.seek(0)
            raise AssertionError(
                f"{self._kind.name} did not ask its model: {self._log.read()[-2_000:]}"
            ) from None


ASSISTANTS = (ClaudeCode(), Codex(), GeminiCli())
