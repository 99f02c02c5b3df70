"""Makes the answer of a received message: calls under internal names, usable ids, arguments fit to be sent back."""

import json
import uuid
from collections.abc import Iterable
from typing import Any

from agents.providers.base import CutOff, ModelResponse, ProviderError, RequestedCall, Usage
from agents.providers.parts import text_of
from agents.providers.reading import Received
from agents.providers.thoughts import take_thoughts
from agents.providers.wire_json import is_object
from agents.providers.wire_names import WireNames
from tools.contract import made_storable

NAMELESS = "unnamed"
LONGEST_ID = 200


MOST_TRIES_OF_A_BROKEN_ONE = 3
MOST_TRIES_OF_AN_EMPTY_ONE = 2
_CUT = frozenset({"length", "max_tokens", "model_length"})
_FILTERED = frozenset({"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"})
_BROKEN = frozenset({"error", "malformed_function_call", "insufficient_system_resource", "abort"})


def response_from(received: Received, names: WireNames, used_ids: Iterable[str]) -> ModelResponse:
    """Keep the message verbatim, except for parts that no server would accept.

    Malformed arguments become "{}" in the message while the call keeps them raw; an id that is missing, too long, or
    taken already in the message or the conversation (`used_ids`) is replaced; so is what no database keeps.
    Thoughts are taken out. Raises ProviderError for an answer of which nothing usable came.
    """
    usage = received.usage or Usage()
    cut_off = _cut_off(received.finish_reason.lower(), usage)
    message = made_storable({key: value for key, value in received.message.items() if value is not None})
    message["role"] = "assistant"
    message.setdefault("content", None)
    thought = take_thoughts(message)
    entries = _entries(message.pop("tool_calls", None))
    taken = set(used_ids) if entries else set()
    calls = tuple(_take_call(entry, names, taken) for entry in entries)
    text = text_of(message["content"])
    if entries:
        message["tool_calls"] = entries
        message["content"] = message["content"] or None
    elif not text:
        text = _text_instead(message, cut_off, usage)
        message["content"] = text
    return ModelResponse(message, text, calls, usage, thought, cut_off)


def _cut_off(reason: str, usage: Usage) -> CutOff:
    if reason in _BROKEN:
        told = "could not be used: the model asked for a call that its server cannot read"
        if reason != "malformed_function_call":
            told = f"was interrupted by its server ({reason})"
        raise _useless("answer_cut", f"The model's answer {told}", usage, MOST_TRIES_OF_A_BROKEN_ONE)
    if reason in _CUT:
        return CutOff.LENGTH
    return CutOff.FILTER if reason in _FILTERED else CutOff.NOTHING


def _useless(code: str, message: str, usage: Usage, most_tries: int = 0) -> ProviderError:
    error = ProviderError(code, message, transient=bool(most_tries))
    error.usage, error.most_tries = usage, most_tries
    return error


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


def _text_instead(message: dict[str, Any], cut_off: CutOff, usage: Usage) -> str:
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return refusal
    if cut_off == CutOff.FILTER:
        raise _useless("answer_filtered", "The model's server withheld the answer (content filter)", usage)
    if cut_off == CutOff.LENGTH:
        told = "The model used up its output tokens before it answered"
        raise _useless("answer_cut", told, usage, MOST_TRIES_OF_AN_EMPTY_ONE)
    return ""
