"""Makes the answer of a received message: calls under internal names, usable ids, arguments fit to be sent back."""

import json
import uuid
from collections.abc import Iterable
from typing import Any

from agents.providers.base import ModelResponse, ProviderError, RequestedCall
from agents.providers.failures import bad_answer
from agents.providers.parts import text_of
from agents.providers.reading import Received
from agents.providers.wire_json import is_object
from agents.providers.wire_names import WireNames
from tools.contract import made_storable

NAMELESS = "unnamed"
LONGEST_ID = 200


def response_from(received: Received, names: WireNames, used_ids: Iterable[str]) -> ModelResponse:
    """Keep the message verbatim, except for what no server would take back.

    Malformed arguments become "{}" in the message while the call keeps them raw; an id that is missing, too long, or
    taken already in the message or the conversation (`used_ids`) is replaced; so is what no database keeps.
    Raises ProviderError for an answer withheld or cut short.
    """
    message = made_storable({key: value for key, value in received.message.items() if value is not None})
    message["role"] = "assistant"
    message.setdefault("content", None)
    entries = _entries(message.pop("tool_calls", None))
    taken = set(used_ids) if entries else set()
    calls = tuple(_take_call(entry, names, taken) for entry in entries)
    text = text_of(message["content"])
    if entries:
        message["tool_calls"] = entries
    elif not text:
        text = _text_instead(message, received.finish_reason)
        message["content"] = text
    return ModelResponse(message=message, text=text, calls=calls, usage=received.usage)


def _entries(tool_calls: Any) -> list[dict[str, Any]]:
    if isinstance(tool_calls, dict):
        tool_calls = [tool_calls]
    if not isinstance(tool_calls, list):
        return []
    return [
        {**call, "function": dict(call["function"])}
        for call in tool_calls
        if isinstance(call, dict) and isinstance(call.get("function"), dict)
    ]


def _take_call(entry: dict[str, Any], names: WireNames, taken: set[str]) -> RequestedCall:
    """Make the entry fit to be sent back, in place, and tell what it asks for."""
    function = entry["function"]
    call_id = entry.get("id")
    if not isinstance(call_id, str) or not 0 < len(call_id) <= LONGEST_ID or call_id in taken:
        call_id = f"call_{uuid.uuid4().hex[:24]}"
    taken.add(call_id)
    name = function.get("name")
    if not isinstance(name, str) or not name:
        name = NAMELESS
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    if arguments is None or not arguments.strip():
        arguments = "{}"
    entry.pop("index", None)
    entry["id"] = call_id
    entry["type"] = "function"
    function["name"] = name
    function["arguments"] = arguments if is_object(arguments) else "{}"
    return RequestedCall(provider_call_id=call_id, tool=names.internal(name), arguments=arguments)


def _text_instead(message: dict[str, Any], finish_reason: str) -> str:
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return refusal
    if finish_reason == "content_filter":
        raise ProviderError("refused", "The model's server withheld the answer (content filter)", transient=False)
    if finish_reason == "length":
        raise bad_answer("The model used up its output tokens before it answered", transient=False)
    return ""
