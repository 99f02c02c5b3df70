"""Responses of the fake model server: valid responses in every style of streaming, and every fault
that was seen in practice."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
PIECE = 12


@dataclass(frozen=True)
class Call:
    """A call that the model requests; `tool` may be the internal name, `arguments` is raw text
    instead of params."""

    tool: str
    params: dict[str, Any] = field(default_factory=dict)
    id: str | None = None
    arguments: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return json.dumps(self.params) if self.arguments is None else self.arguments

    def entry(self, number: int, prefix: str) -> dict[str, Any]:
        call_id = f"call_{prefix}_{number}" if self.id is None else self.id
        identity = {"id": call_id} if call_id else {}
        function = {"name": self.tool.replace(".", "__"), "arguments": self.text}
        return {**identity, "type": "function", "function": function, **self.extra}


@dataclass(frozen=True)
class Response:
    """One response of the server.

    `style` chooses how calls are split into deltas; `streamed=None` follows the request; `body` or
    `events` replace what is built from text and calls; `fault` breaks the transmission, after `raw`
    with "cut_raw"; `hold` waits until it is released, before the first byte or in the middle;
    `chunk_bytes` sends the response in pieces of that size.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    style: Literal["fragments", "whole", "one_delta", "no_index", "same_index"] = "fragments"
    extra: dict[str, Any] = field(default_factory=dict)
    finish: str | None = ""
    done: bool = True
    usage: dict[str, Any] | None = field(default_factory=lambda: dict(USAGE))
    streamed: bool | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    events: tuple[Any, ...] | None = None
    fault: Literal["", "cut", "cut_raw", "drip", "reset", "no_end"] = ""
    raw: bytes = b""
    hold: Literal["", "start", "middle"] = ""
    delay_ms: int = 0
    chunk_bytes: int = 0

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Response":
        """Build a response from a JSON object of fields; `calls` is [{tool, params}]. Other
        fields raise ValueError."""
        known = {each.name for each in fields(cls)}
        if unknown := set(value) - known:
            raise ValueError(f"a response has no fields {sorted(unknown)}, only {sorted(known)}")
        changed: dict[str, Any] = {}
        if "calls" in value:
            changed["calls"] = tuple(Call(**call) for call in value["calls"])
        if value.get("events") is not None:
            changed["events"] = tuple(value["events"])
        return cls(**{**value, **changed})

    @property
    def finish_reason(self) -> str | None:
        return ("tool_calls" if self.calls else "stop") if self.finish == "" else self.finish

    @property
    def _ending(self) -> bytes:
        return DONE if self.done else b""

    def completion(self, number: int) -> bytes:
        """Return the body of a response that is not streamed; `number` makes generated ids
        unique."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None, **self.extra}
        if self.calls:
            message["tool_calls"] = [
                call.entry(place, str(number)) for place, call in enumerate(self.calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        whole = {
            "id": f"fake-{number}",
            "object": "chat.completion",
            "choices": [choice],
            "usage": self.usage,
        }
        return json.dumps(whole).encode()

    def stream(self, number: int) -> bytes:
        """Return the event stream, with [DONE] at its end unless `done` is False."""
        if self.events is not None:
            return b"".join(_event(event) for event in self.events) + self._ending
        events = [_event(_chunk(delta)) for delta in self._deltas(number)]
        events.append(_event(_chunk({}, self.finish_reason)))
        if self.usage is not None:
            events.append(
                _event({"object": "chat.completion.chunk", "choices": [], "usage": self.usage})
            )
        return b"".join(events) + self._ending

    def _deltas(self, number: int) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": ""}
        for name, value in self.extra.items():
            yield {name: value}
        words = self.text.split(" ")
        for place, word in enumerate(words if self.text else []):
            yield {"content": word if place == len(words) - 1 else f"{word} "}
        entries = [call.entry(place, str(number)) for place, call in enumerate(self.calls)]
        if self.style == "one_delta" and entries:
            yield {"tool_calls": [{"index": place, **entry} for place, entry in enumerate(entries)]}
            return
        for place, entry in enumerate(entries):
            index = {"no_index": {}, "same_index": {"index": 0}}.get(self.style, {"index": place})
            if self.style == "whole":
                yield {"tool_calls": [{**index, **entry}]}
            else:
                yield from _fragments(entry, index)


def _fragments(entry: dict[str, Any], index: dict[str, Any]) -> Iterator[dict[str, Any]]:
    arguments: str = entry["function"]["arguments"]
    yield {
        "tool_calls": [
            {**index, **entry, "function": {"name": entry["function"]["name"], "arguments": ""}}
        ]
    }
    for start in range(0, len(arguments), PIECE):
        yield {
            "tool_calls": [{**index, "function": {"arguments": arguments[start : start + PIECE]}}]
        }


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "fake", "object": "chat.completion.chunk", "choices": [choice]}


def _event(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"data: {text}\n\n".encode()


def html() -> Response:
    """Return a web page with status 200, as from a proxy or a wrong address."""
    return Response(
        body="<!doctype html><html><body>Welcome to nginx</body></html>",
        headers={"Content-Type": "text/html"},
    )


def nonsense(body: str = "what? 42 { not json") -> Response:
    return Response(body=body)


def error_200(error: Any) -> Response:
    """Return status 200 with a body that is only an error."""
    return Response(body=json.dumps({"error": error}))


def failing(
    status: int, message: str = "the fake server was told to fail", **headers: str
) -> Response:
    """Return a status other than 200 with the usual error body; headers are keywords, with `_` for
    `-`."""
    body = json.dumps({"error": {"message": message, "type": "fake", "code": None}})
    return Response(
        status=status,
        body=body,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )
