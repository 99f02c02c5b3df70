"""Convert the history for Ollama. In its format, content is text, arguments are objects, and
results name their tool."""

import json
from collections.abc import Iterator
from typing import Any

from agents.providers.content_text import extract_text

Message = dict[str, Any]


def convert_messages(messages: list[Message]) -> list[Message]:
    """Convert messages of Chat Completions to messages of `/api/chat`; other fields stay
    unchanged."""
    return list(_convert(messages))


def _convert(messages: list[Message]) -> Iterator[Message]:
    tools: dict[str, str] = {}
    for message in messages:
        calls = message.get("tool_calls") or []
        tools.update((call["id"], call["function"]["name"]) for call in calls)
        if message["role"] == "tool":
            name = tools.get(message["tool_call_id"], "")
            yield {"role": "tool", "tool_name": name, "content": extract_text(message["content"])}
        elif message["role"] == "assistant":
            yield _convert_assistant(message, calls)
        else:
            yield message


def _convert_assistant(message: Message, calls: list[dict[str, Any]]) -> Message:
    converted = {**message, "content": extract_text(message.get("content"))}
    if calls:
        converted["tool_calls"] = [_convert_call(call) for call in calls]
    return converted


def _convert_call(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    others = {name: value for name, value in call.items() if name != "type"}
    return {**others, "function": {**function, "arguments": json.loads(function["arguments"])}}
