"""Build a model response from a received message: internal tool names, usable ids, arguments that can be sent back."""

import json
import uuid
from collections.abc import Iterable
from typing import Any

from agents.providers.answer_reader import ReceivedAnswer
from agents.providers.base import CutOff, ModelResponse, ProviderError, RequestedCall, Usage
from agents.providers.content_text import extract_text
from agents.providers.reasoning_text import extract_reasoning
from agents.providers.wire_json import is_json_object
from agents.providers.wire_names import WireNames
from tools.contract import make_storable

NAMELESS = "unnamed"
LONGEST_ID = 200
MAX_TRIES_IF_BROKEN = 3
MAX_TRIES_IF_EMPTY = 2
_CUT = frozenset({"length", "max_tokens", "model_length"})
_FILTERED = frozenset({"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"})
_BROKEN = frozenset({"error", "malformed_function_call", "insufficient_system_resource", "abort"})


def build_response(received: ReceivedAnswer, names: WireNames, used_ids: Iterable[str]) -> ModelResponse:
    """Build the response; its message stays verbatim except for parts that no server would accept.

    Malformed arguments become "{}" in the message, while the call has them raw. An id is replaced if it is missing, too
    long, or already used in the message or the conversation (`used_ids`), and so is text that no database can store.
    Reasoning is extracted.

    Raises:
        ProviderError: nothing in the answer is usable.
    """
    usage = received.usage or Usage()
    cut_off = _find_cut_off(received.finish_reason.lower(), usage)
    message = make_storable({key: value for key, value in received.message.items() if value is not None})
    message["role"] = "assistant"
    message.setdefault("content", None)
    thought = extract_reasoning(message)
    entries = _list_entries(message.pop("tool_calls", None))
    used = set(used_ids) if entries else set()
    calls = tuple(_repair_call(entry, names, used) for entry in entries)
    text = extract_text(message["content"])
    if entries:
        message["tool_calls"] = entries
        message["content"] = message["content"] or None
    elif not text:
        text = _find_refusal(message, cut_off, usage)
        message["content"] = text
    return ModelResponse(message, text, calls, usage, thought, cut_off)


def _find_cut_off(reason: str, usage: Usage) -> CutOff:
    if reason in _BROKEN:
        reason_text = "could not be used: the model asked for a call that its server cannot read"
        if reason != "malformed_function_call":
            reason_text = f"was interrupted by its server ({reason})"
        raise _build_useless_error("answer_cut", f"The model's answer {reason_text}", usage, MAX_TRIES_IF_BROKEN)
    if reason in _CUT:
        return CutOff.LENGTH
    return CutOff.FILTER if reason in _FILTERED else CutOff.NOTHING


def _build_useless_error(code: str, message: str, usage: Usage, most_tries: int = 0) -> ProviderError:
    error = ProviderError(code, message, transient=bool(most_tries))
    error.usage, error.most_tries = usage, most_tries
    return error


def _list_entries(tool_calls: Any) -> list[dict[str, Any]]:
    if isinstance(tool_calls, dict):
        tool_calls = [tool_calls]
    if not isinstance(tool_calls, list):
        return []
    return [
        {**call, "function": dict(call["function"])}
        for call in tool_calls
        if isinstance(call, dict) and isinstance(call.get("function"), dict)
    ]


def _repair_call(entry: dict[str, Any], names: WireNames, used: set[str]) -> RequestedCall:
    """Repair the entry in place, so that it can be sent back; return the call that it asks for."""
    function = entry["function"]
    call_id = entry.get("id")
    if not isinstance(call_id, str) or not 0 < len(call_id) <= LONGEST_ID or call_id in used:
        call_id = f"call_{uuid.uuid4().hex[:24]}"
    used.add(call_id)
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
    function["arguments"] = arguments if is_json_object(arguments) else "{}"
    return RequestedCall(provider_call_id=call_id, tool=names.to_internal(name), arguments=arguments)


def _find_refusal(message: dict[str, Any], cut_off: CutOff, usage: Usage) -> str:
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return refusal
    if cut_off == CutOff.FILTER:
        raise _build_useless_error("answer_filtered", "The model's server withheld the answer (content filter)", usage)
    if cut_off == CutOff.LENGTH:
        message_text = "The model used up its output tokens before it answered"
        raise _build_useless_error("answer_cut", message_text, usage, MAX_TRIES_IF_EMPTY)
    return ""
