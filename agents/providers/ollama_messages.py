"""The history as Ollama wants it: content is text, arguments are objects, and results name their tool."""

import json
from collections.abc import Iterator
from typing import Any

from agents.providers.parts import text_of

Message = dict[str, Any]


def as_ollama(messages: list[Message]) -> list[Message]:
    """Messages in the shape of Chat Completions, as `/api/chat` takes them; fields that it may know stay."""
    return list(_converted(messages))


def _converted(messages: list[Message]) -> Iterator[Message]:
    tools: dict[str, str] = {}
    for message in messages:
        calls = message.get("tool_calls") or []
        tools.update((call["id"], call["function"]["name"]) for call in calls)
        if message["role"] == "tool":
            name = tools.get(message["tool_call_id"], "")
            yield {"role": "tool", "tool_name": name, "content": text_of(message["content"])}
        elif message["role"] == "assistant":
            yield _assistant(message, calls)
        else:
            yield message


def _assistant(message: Message, calls: list[dict[str, Any]]) -> Message:
    converted = {**message, "content": text_of(message.get("content"))}
    if calls:
        converted["tool_calls"] = [_call(call) for call in calls]
    return converted


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    others = {name: value for name, value in call.items() if name != "type"}
    return {**others, "function": {**function, "arguments": json.loads(function["arguments"])}}
