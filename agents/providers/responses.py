"""Build a model response from a received message, with internal tool names, unique ids and valid
arguments."""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from agents.providers.base import CutOff, ModelResponse, RequestedCall, Usage
from agents.providers.content_text import extract_text
from agents.providers.reasoning_text import extract_reasoning, split_reasoning
from agents.providers.response_reader import RawResponse
from agents.providers.text_calls import find_text_call
from agents.providers.unusable_responses import (
    MAX_TRIES,
    MAX_TRIES_IF_BROKEN,
    build_empty_error,
    build_missing_call_error,
    build_text_call_error,
    build_useless_error,
)
from agents.providers.wire_json import is_json_object
from agents.providers.wire_names import WireNames
from tools.contract import make_storable

NAMELESS = "unnamed"
LONGEST_ID = 200
_CUT = frozenset({"length", "max_tokens", "model_length"})
_FILTERED = frozenset(
    {"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"}
)
_REASONING_FIELDS = ("reasoning", "reasoning_content", "thinking")
_CALLED = frozenset({"tool_calls", "tool_call", "tool_use", "function_call"})
_BROKEN = frozenset({"error", "insufficient_system_resource", "abort"})


def build_response(
    received: RawResponse,
    names: WireNames,
    used_ids: frozenset[str],
    tools: Sequence[Mapping[str, Any]] = (),
) -> ModelResponse:
    """Build the response. Its message stays verbatim, except for parts that no server would accept.

    Malformed arguments become "{}" in the message, while the call keeps the raw text. An id is
    replaced if it is missing, too long, or already used in the message or the conversation
    (`used_ids`). Characters that no database can store are replaced, too, and reasoning is
    extracted.

    Args:
        tools: the definitions of the offered tools, for recognizing a call written as text.

    Raises:
        ProviderError: the response has no usable part, or is a call written as text.
    """
    usage, reason = received.usage or Usage(), received.finish_reason.lower()
    cut_off = _find_cut_off(reason, received.message, usage)
    message = make_storable(
        {key: value for key, value in received.message.items() if value is not None}
    )
    message["role"] = "assistant"
    message.setdefault("content", None)
    thought = extract_reasoning(message)
    entries = _list_entries(message.pop("tool_calls", None))
    used = set(used_ids)  # grows with each call of the message
    calls = tuple(_repair_call(entry, names, used) for entry in entries)
    text = extract_text(message["content"])
    if entries:
        message["tool_calls"] = entries
        message["content"] = message["content"] or None
    elif (tool := _find_call(text, names, tools, is_parsed=bool(used_ids))) is not None:
        raise build_text_call_error(tool, usage)
    elif reason in _CALLED:
        raise build_missing_call_error(usage)
    elif not text.strip():
        text = _read_refusal(message, cut_off, usage)
        if not text:
            raise build_empty_error(usage, has_thought=bool(thought or _has_reasoning(message)))
        message["content"] = text
    return ModelResponse(message, text, calls, usage, thought, cut_off)


def _find_call(
    text: str, names: WireNames, tools: Sequence[Mapping[str, Any]], *, is_parsed: bool
) -> str | None:
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") for tool in tools}
    return find_text_call(text, names.find_offered, is_parsed=is_parsed, find_schema=schemas.get)


def _find_cut_off(reason: str, message: dict[str, Any], usage: Usage) -> CutOff:
    if reason == "malformed_function_call":
        what = "The model's response could not be used: it contains a tool call that its server could not parse"
        raise build_useless_error("answer_cut", what, usage, MAX_TRIES_IF_BROKEN)
    if reason in _BROKEN:
        text = split_reasoning(extract_text(message.get("content"))).content.strip()
        what = f"The model's response was interrupted by its server ({reason})"
        error = build_useless_error(
            "answer_cut", what, usage, MAX_TRIES if text else MAX_TRIES_IF_BROKEN
        )
        error.text = text
        raise error
    if reason in _CUT:
        return CutOff.LENGTH
    return CutOff.FILTER if reason in _FILTERED else CutOff.NOTHING


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
    """Repair the entry in place, so that it can be sent back to the server. Return the call that
    the entry requests."""
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
    if arguments is None or arguments.strip() in ("", "null"):
        arguments = "{}"
    tool = names.to_internal(name)
    if names.is_offered(tool) and not names.is_offered(name):
        name = names.to_wire(tool)
    entry.pop("index", None)
    entry["id"] = call_id
    entry["type"] = "function"
    function["name"] = name
    function["arguments"] = arguments if is_json_object(arguments) else "{}"
    return RequestedCall(provider_call_id=call_id, tool=tool, arguments=arguments)


def _read_refusal(message: dict[str, Any], cut_off: CutOff, usage: Usage) -> str:
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return refusal
    if cut_off == CutOff.FILTER:
        raise build_useless_error(
            "answer_filtered", "The model's server withheld the response (content filter)", usage
        )
    if cut_off == CutOff.LENGTH:
        message_text = "The model used up its output tokens before it responded"
        raise build_useless_error("answer_cut", message_text, usage, MAX_TRIES)
    return ""


def _has_reasoning(message: dict[str, Any]) -> bool:
    return any(message.get(field) for field in _REASONING_FIELDS)
