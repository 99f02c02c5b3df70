"""A small fake of Ollama over real HTTP: the fake model server with Ollama's addresses, which sends
lines of JSON.

It holds, drips, cuts and counts like the fake model server. It refuses the requests that Ollama
could not decode.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from tests.model_responses import Call, Response
from tests.model_server import ModelServer

TEXTS = ("role", "content", "thinking", "tool_name")


@dataclass(frozen=True)
class Chat(Response):
    """One response of Ollama: `finish` is its done_reason, None omits the last line; `events` are
    the lines."""

    finish: str | None = "stop"
    ids: bool = False
    thinking: str = ""

    @override
    def stream(self, number: int) -> bytes:
        return b"".join(_line(value) for value in self._values(number))

    @override
    def completion(self, number: int) -> bytes:
        message = {"role": "assistant", "content": self.text, **self._calls(number, self.calls)}
        return _line({"model": "fake", "message": message, **self._end()})

    def _values(self, number: int) -> Iterator[Any]:
        if self.events is not None:
            yield from self.events
            return
        for word in self.thinking.split():
            yield _piece({"content": "", "thinking": f"{word} "})
        for place, word in enumerate(self.text.split(" ") if self.text else []):
            yield _piece({"content": f" {word}" if place else word})
        for call in self.calls:
            yield _piece({"content": "", **self._calls(number, (call,))})
        if self.finish is not None:
            yield {**_piece({"content": ""}), **self._end()}

    def _calls(self, number: int, calls: tuple[Call, ...]) -> dict[str, Any]:
        entries = []
        for call in calls:
            made = {"id": f"call_{number}_{self.calls.index(call)}"} if self.ids else {}
            identity = made if call.id is None else {"id": call.id}
            arguments = call.params if call.arguments is None else json.loads(call.arguments)
            function = {"name": call.tool.replace(".", "__"), "arguments": arguments}
            entries.append({**identity, "function": function, **call.extra})
        return {"tool_calls": entries} if entries else {}

    def _end(self) -> dict[str, Any]:
        usage = self.usage or {}
        counts = {
            "prompt_eval_count": usage.get("prompt_tokens"),
            "eval_count": usage.get("completion_tokens"),
        }
        return {"done": True, "done_reason": self.finish, "total_duration": 1, **counts}


class OllamaServer(ModelServer):
    """The server and its controls; `pull` sets its models."""

    root = ""
    chat_path = "/api/chat"
    models_path = "/api/tags"
    media_type = "application/x-ndjson"
    keep_alive = b"\n"

    def __init__(self) -> None:
        super().__init__(script=(Chat(text="Done."),))
        self.pull("fake-model:latest")

    def pull(self, *models: str) -> None:
        listed = [{"name": model, "model": model, "size": 1} for model in models]
        self.models = Response(body=json.dumps({"models": listed}))

    @override
    def find_fault(self, body: dict[str, Any]) -> str | None:
        """Return the error with which Ollama refuses a request that it cannot decode into its Go
        types."""
        if not body.get("model"):
            return "model is required"
        for message in body.get("messages", ()):
            if not all(isinstance(message.get(name, ""), str) for name in TEXTS):
                return "json: cannot unmarshal into Go struct field ChatRequest.messages.content of type string"
            for call in message.get("tool_calls", ()):
                if not isinstance(call["function"]["arguments"], dict):
                    return "json: cannot unmarshal string into Go struct field ToolCallFunction.arguments"
        return None


def refused(status: int, message: str) -> Chat:
    """Return a status other than 200 in Ollama's form: the error is a string."""
    return Chat(status=status, body=json.dumps({"error": message}))


def _piece(message: dict[str, Any]) -> dict[str, Any]:
    return {"model": "fake", "message": {"role": "assistant", **message}, "done": False}


def _line(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{text}\n".encode()
