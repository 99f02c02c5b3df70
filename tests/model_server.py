"""A small fake of an OpenAI-compatible server over real HTTP: in a test's process, or on its own
with `python -m`.

In a test: `with ModelServer() as server:` gives `server.url` (ends in /v1). Responses come from
`enqueue`, else from `respond_with`, else from the script, by the number of assistant messages in
the request (the last one repeats). Other processes use `/control/`: POST enqueue, script, hold,
release, reset; GET requests, held.
"""

import argparse
import contextlib
import json
import re
import socket
import socketserver
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tests.model_responses import Call, Response, error_200, failing, html, nonsense

__all__ = ["Call", "ModelServer", "Response", "error_200", "failing", "html", "nonsense"]

DRIP_S = 0.02
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ASSISTANT = re.compile(rb'"role":\s?"assistant"')


def _is_title_request(body: dict[str, Any]) -> bool:
    messages = body.get("messages") or [{}]
    return len(messages) == 1 and str(messages[0].get("content")).startswith(
        "Give the following task a title"
    )


class ModelServer:
    """The server and its controls. `records=False` skips reading the bodies, for benchmarks."""

    root = "/v1"
    chat_path = "/v1/chat/completions"
    models_path = "/v1/models"
    media_type = "text/event-stream"
    keep_alive = b": keep-alive\n\n"

    def __init__(
        self, port: int = 0, *, records: bool = True, script: Sequence[Response] = ()
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.request_headers: list[dict[str, str]] = []
        self.models: Response = Response(
            body='{"object": "list", "data": [{"id": "fake", "object": "model"}]}'
        )
        self.title: Response | None = None
        """The response to a request for a run's title, which is not counted; with None, this
        request is treated like any other."""
        self.pages: dict[str, str] = {}
        """Other pages, by path."""
        self.connections = 0
        self.dropped = 0
        self._records = records
        self._script = tuple(script)
        self._queue: deque[Response] = deque()
        self._choose: Callable[[dict[str, Any]], Response] | None = None
        self._changed = threading.Condition()
        self._holds_all = False
        self._held = 0
        self._releases = 0
        self._number = 0
        self._closing = False
        self._server = _Server(port, self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.root}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release all held requests, and end every connection."""
        self._closing = True
        self.release()
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()

    def serve_until_ended(self) -> None:
        self._server.serve_forever(0.5)

    def enqueue(self, *responses: Response) -> None:
        """Set the responses of the next requests, in order."""
        with self._changed:
            self._queue.extend(responses)

    def respond_with(self, choose: Callable[[dict[str, Any]], Response]) -> None:
        """Set the function that chooses a response by the request's body when none is queued."""
        self._choose = choose

    def script(self, *responses: Response) -> None:
        self._script = responses

    def hold(self) -> None:
        """Make every request wait, before the first byte, until `release`."""
        with self._changed:
            self._holds_all = True

    def release(self) -> None:
        """Release all held requests, and hold no further requests."""
        with self._changed:
            self._holds_all = False
            self._releases += 1
            self._changed.notify_all()

    def wait_for_held(self, count: int = 1, timeout: float = 10.0) -> None:
        """Wait until this number of requests is held; raise TimeoutError if that takes too long."""
        self._wait(lambda: self._held >= count, timeout, f"{count} held requests")

    def wait_for_requests(self, count: int, timeout: float = 10.0) -> None:
        self._wait(lambda: self._number >= count, timeout, f"{count} requests")

    def wait_for_dropped(self, count: int = 1, timeout: float = 10.0) -> None:
        """Wait until this number of clients have disconnected while they received a response."""
        self._wait(lambda: self.dropped >= count, timeout, f"{count} dropped connections")

    def reset(self) -> None:
        """Forget requests, queue and chooser, and release."""
        self.release()
        with self._changed:
            self.requests.clear()
            self.request_headers.clear()
            self._queue.clear()
            self._choose = None

    def _wait(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(condition, timeout):
                raise TimeoutError(f"no {what} within {timeout} s")

    def answer_for(self, raw: bytes, headers: dict[str, str]) -> tuple[Response, bool, int]:
        """Return the chosen response, True if it should be streamed, and the number of the
        request."""
        if self._records:
            body = json.loads(raw)
            fault = self.find_fault(body)
            streams, passes = (
                bool(body.get("stream")),
                sum(m["role"] == "assistant" for m in body.get("messages", ())),
            )
        else:
            body, fault = {}, None
            streams, passes = b'"stream":true' in raw, len(_ASSISTANT.findall(raw))
        if self.title is not None and _is_title_request(body):
            return self.title, streams, 0
        with self._changed:
            self._number += 1
            number = self._number
            if self._records:
                self.requests.append(body)
                self.request_headers.append(headers)
            queued = self._queue.popleft() if self._queue and fault is None else None
            self._changed.notify_all()
        response = failing(400, fault) if fault else queued or self._unqueued(body, passes)
        return response, streams if response.streamed is None else response.streamed, number

    def find_fault(self, body: dict[str, Any]) -> str | None:
        """Return the fault of the request, which then gets a 400 response."""
        return _find_fault(body)

    def _unqueued(self, body: dict[str, Any], passes: int) -> Response:
        if self._choose is not None:
            return self._choose(body)
        if self._script:
            return self._script[min(passes, len(self._script) - 1)]
        return Response(text="Done.")

    def wait_if_held(self, response: Response, place: str) -> None:
        with self._changed:
            if not (response.hold == place or (place == "start" and self._holds_all)):
                return
            before = self._releases
            self._held += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._releases > before or self._closing)
            self._held -= 1
            self._changed.notify_all()

    def note_dropped(self) -> None:
        with self._changed:
            self.dropped += 1
            self._changed.notify_all()

    def is_closing(self) -> bool:
        return self._closing

    def control(self, action: str, value: Any) -> Any:
        """Carry out a request to /control/ from another process."""
        if action == "enqueue":
            self.enqueue(*(Response.from_json(response) for response in value))
        elif action == "script":
            self.script(*(Response.from_json(response) for response in value))
        elif action == "held":
            return {"held": self._held, "requests": self._number}
        elif action == "requests":
            return self.requests
        elif action in ("hold", "release", "reset"):
            {"hold": self.hold, "release": self.release, "reset": self.reset}[action]()
        else:
            raise ValueError(f"no action {action!r}")
        return {"ok": True}


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def __init__(self, port: int, model: ModelServer) -> None:
        self.model = model
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        self.model.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Connection(socketserver.StreamRequestHandler):
    """One persistent connection. For speed, it has its own parser for the few parts of HTTP/1.1
    that our clients use."""

    disable_nagle_algorithm = True
    rbufsize = 65536
    server: _Server

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while self._serve_one():
                pass

    def _serve_one(self) -> bool:
        line = self.rfile.readline()
        if not line:
            return False
        method, path, _ = line.decode("latin-1").split(" ", 2)
        headers: dict[str, str] = {}
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        raw = self.rfile.read(int(headers.get("content-length", 0)))
        if path.startswith("/control/"):
            result = self.server.model.control(
                path.removeprefix("/control/"), json.loads(raw or b"null")
            )
            return self._send_body(200, {}, json.dumps(result).encode())
        if path == self.server.model.chat_path and method == "POST":
            return self._answer(raw, headers)
        if path == self.server.model.models_path:
            models = self.server.model.models
            return self._send_body(models.status, models.headers, (models.body or "").encode())
        if path in self.server.model.pages:
            return self._send_body(200, {}, self.server.model.pages[path].encode())
        return self._send_body(404, {}, b'{"error": {"message": "no such path"}}')

    def _answer(self, raw: bytes, headers: dict[str, str]) -> bool:
        model = self.server.model
        response, streams, number = model.answer_for(raw, headers)
        model.wait_if_held(response, "start")
        if response.delay_ms:
            time.sleep(response.delay_ms / 1000)
        if response.fault == "reset":
            return False
        if response.fault == "cut_raw":
            self.wfile.write(_head(200, {"Transfer-Encoding": "chunked"}) + _framed(response.raw))
            return False
        if response.body is not None:
            return self._send_body(response.status, response.headers, response.body.encode())
        if not streams:
            return self._send_body(response.status, response.headers, response.completion(number))
        try:
            return self._send_stream(response, response.stream(number))
        except ConnectionError:
            model.note_dropped()
            raise

    def _send_body(self, status: int, headers: dict[str, str], body: bytes) -> bool:
        sent = {"Content-Type": "application/json", **headers, "Content-Length": str(len(body))}
        self.wfile.write(_head(status, sent) + body)
        return True

    def _send_stream(self, response: Response, whole: bytes) -> bool:
        sent = {
            "Content-Type": self.server.model.media_type,
            **response.headers,
            "Transfer-Encoding": "chunked",
        }
        head = _head(response.status, sent)
        if response.fault == "drip":
            self.wfile.write(head)
            while not self.server.model.is_closing():
                self.wfile.write(_framed(self.server.model.keep_alive))
                time.sleep(DRIP_S)
            return False
        if response.fault == "cut":
            self.wfile.write(head + _framed(whole[: len(whole) // 2]))
            return False
        if response.hold == "middle":
            self.wfile.write(head + _framed(whole[: len(whole) // 2]))
            self.server.model.wait_if_held(response, "middle")
            self.wfile.write(_framed(whole[len(whole) // 2 :]) + b"0\r\n\r\n")
            return True
        if response.fault == "no_end":
            self.wfile.write(head + _framed(whole))
            self.rfile.readline()
            return False
        step = response.chunk_bytes or len(whole)
        frames = [_framed(whole[start : start + step]) for start in range(0, len(whole), step)]
        self.wfile.write(head + b"".join(frames) + b"0\r\n\r\n")
        return True


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Fake\r\n{lines}\r\n".encode("latin-1")


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _find_fault(body: dict[str, Any]) -> str | None:
    """Return why OpenAI would respond with 400: illegal names, too many tools, unmatched calls or
    tool messages."""
    tools = body.get("tools", ())
    if len(tools) > 128:
        return f"array too long: {len(tools)} tools"
    for tool in tools:
        name = tool["function"]["name"]
        if not _LEGAL_NAME.fullmatch(name):
            return (
                f"Invalid 'tools[].function.name': {name!r} does not match ^[a-zA-Z0-9_-]{{1,64}}$"
            )
    if "messages" not in body or "model" not in body:
        return "you must provide model and messages"
    open_ids: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                return f"tool message for {message['tool_call_id']!r}, which is not asked for or answered already"
            open_ids.remove(message["tool_call_id"])
        elif open_ids:
            return f"tool_calls without a tool message: {open_ids}"
        open_ids.extend(call["id"] for call in message.get("tool_calls") or ())
    return f"tool_calls without a tool message: {open_ids}" if open_ids else None


def main() -> None:
    """Serve until ended; prints `model server ready at URL` once it listens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", help="a JSON list of answers, or the path of a file with one")
    parser.add_argument(
        "--fast", action="store_true", help="do not read or record the bodies of requests"
    )
    options = parser.parse_args()
    text = options.script or "[]"
    responses = json.loads(text if text.lstrip().startswith("[") else Path(text).read_text())
    server = ModelServer(
        options.port,
        records=not options.fast,
        script=[Response.from_json(each) for each in responses],
    )
    print(f"model server ready at {server.url}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_until_ended()
    sys.exit(0)


if __name__ == "__main__":
    main()
