"""A model server with four protocols that plays a scripted case: it requests the given tool calls
one by one, then ends the conversation."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

Call = tuple[str, dict[str, Any]]
_numbers = count(1)


class ModelStub:
    """The scripted case, and the requests that the server has received.

    Attributes:
        calls: the tool calls that the model requests, one after another.
        asked: path and body of each request.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.calls: list[Call] = []
        self._shell: tuple[str, str] | None = None
        self.asked: list[tuple[str, Any]] = []

    def answer(self, path: str, body: Any) -> tuple[str, str]:
        """Return the content type and the text of the response to this request."""
        self.asked.append((path, body))
        call = self._find_next(body) if body.get("tools") else None
        if path.endswith("/messages"):
            return write_anthropic(body, call)
        if path.endswith("/responses"):
            return write_responses(call)
        if path.endswith("/chat/completions"):
            return write_completions(body, call)
        if "enerateContent" in path:
            return write_gemini(path, call)
        return "application/json", json.dumps(
            {"input_tokens": 1, "totalTokens": 1, "data": [], "models": []}
        )

    def plays_check(self, shell: tuple[str, str]) -> None:
        """Request the command in the task, as a model does during a check."""
        self._shell = shell

    def _find_next(self, body: Any) -> Call | None:
        done = count_results(body)
        if self._shell and (named := re.search(r"echo gadget-check-\w+", json.dumps(body))):
            self.calls = [(self._shell[0], {self._shell[1]: named[0]})]
        return self.calls[done] if done < len(self.calls) else None


def count_results(body: Any) -> int:
    """Count the results of tools in a request, in any protocol."""
    if isinstance(body, list):
        return sum(map(count_results, body))
    if not isinstance(body, dict):
        return 0
    is_result = (
        body.get("type") in ("tool_result", "function_call_output", "custom_tool_call_output")
        or body.get("role") == "tool"
        or "functionResponse" in body
    )
    return 1 if is_result else sum(count_results(body[name]) for name in MESSAGES if name in body)


MESSAGES = ("messages", "input", "contents", "content", "parts")
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def write_events(events: list[Any], *, named: bool) -> str:
    lines = ""
    for each in events:
        lines += (f"event: {each['type']}\n" if named else "") + f"data: {json.dumps(each)}\n\n"
    return lines


def write_anthropic(body: Any, call: Call | None) -> tuple[str, str]:
    block: dict[str, Any] = {"type": "text", "text": "Done."}
    if call:
        block = {
            "type": "tool_use",
            "id": f"toolu_{next(_numbers)}",
            "name": call[0],
            "input": call[1],
        }
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "usage": usage,
    }
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    if not body.get("stream"):
        return "application/json", json.dumps({**message, **stop, "content": [block]})
    if call:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    else:
        delta = {"type": "text_delta", "text": "Done."}
    empty: dict[str, Any] = {**block, "input": {}} if call else {**block, "text": ""}
    events = [
        {
            "type": "message_start",
            "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None},
        },
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return "text/event-stream", write_events(events, named=True)


def write_responses(call: Call | None) -> tuple[str, str]:
    item: dict[str, Any] = {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
    }
    if call:
        arguments = json.dumps(call[1])
        name, _, space = call[0][::-1].partition("/")
        item = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": f"call_{next(_numbers)}",
            "name": name[::-1],
            "arguments": arguments,
        }
        if space:
            item["namespace"] = space[::-1]
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": "resp_1", "object": "response", "output": [item], "usage": usage}
    events = [
        {
            "type": "response.created",
            "response": {**response, "output": [], "status": "in_progress"},
        },
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "status": "completed"}},
    ]
    return "text/event-stream", write_events(events, named=True)


def write_completions(body: Any, call: Call | None) -> tuple[str, str]:
    message: dict[str, Any] = {"role": "assistant", "content": None if call else "Done."}
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message["tool_calls"] = [
            {"index": 0, "id": f"call_{next(_numbers)}", "type": "function", "function": function}
        ]
    end = {"index": 0, "finish_reason": "tool_calls" if call else "stop"}
    head = {"id": "chat_1", "created": 1, "model": body.get("model", "m")}
    if not body.get("stream"):
        choice = {**end, "message": message}
        return "application/json", json.dumps(
            {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}
        )
    head["object"] = "chat.completion.chunk"
    chunks = [
        {**head, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**head, "choices": [{**end, "delta": {}}], "usage": USAGE},
    ]
    return "text/event-stream", write_events(chunks, named=False) + "data: [DONE]\n\n"


def write_gemini(path: str, call: Call | None) -> tuple[str, str]:
    part: dict[str, Any] = {"text": "Done."}
    if call:
        part = {"functionCall": {"name": call[0], "args": call[1]}}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    response = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini"}
    if "stream" in path:
        return "text/event-stream", write_events([response], named=False)
    return "application/json", json.dumps(response)


@contextmanager
def serve_model() -> Iterator[ModelStub]:
    """Serve the models until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kind, text = found.answer(self.path.partition("?")[0], json.loads(body) if body else {})
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = answer  # noqa: N815 - the names of the library

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = ModelStub(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield found
        server.shutdown()
