"""Conversion of a server's raw response into a tool result; links in it are never opened."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools.contract import JSON_TYPE, ErrorCode, ToolError, ToolResult, canonical_json
from tools.schemas.validation import UncheckableError, build_validator, find_faults
from tools.sources.mcp.binary_texts import replace_binary
from tools.sources.mcp.definitions import MAX_TITLE_LENGTH, Definition
from tools.sources.mcp.display_text import clean_line
from tools.sources.mcp.repetitions import drop_repeated, shorten_repeated
from tools.sources.mcp.result_files import list_files
from tools.sources.mcp.summaries import summarize

MAX_ERROR_LENGTH = 1_000
MAX_ADDRESS_LENGTH = 300
MAX_STEPS = 500_000
"""The maximum number of keywords applied to structured content, which may have very many entries.
"""
MAX_COMPARED = 20
"""The number of parts compared with the data; each comparison walks through the data."""
_KNOWN_MEMBERS = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})
_MEDIA = ("image", "audio", "video")


@dataclass(frozen=True)
class _Part:
    """One part of a response, for the model; only its texts are the server's words."""

    kind: str
    text: str
    is_text: bool = False


def build_result(response: Any, definition: Definition, title: str) -> ToolResult:
    """Build a tool result: structured content becomes the data; the model also gets other texts.

    A response without `isError` says that the call was done, so a fault in its form does not make
    it a failure: content that does not fit the output schema is dropped, and unknown members are
    named.

    Args:
        response: the result that the server sent, of any JSON type.
        title: the tool's name in messages.

    Raises:
        ToolError: OPERATION_FAILED, the server reports a failure; OUTCOME_UNKNOWN, it is not clear
            whether the server reports one.
    """
    members = response if isinstance(response, Mapping) else {"content": response}
    parts = [
        part
        for entry in _list_entries(members.get("content"))
        if (part := _read_part(entry)) is not None
    ]
    data, notes = replace_binary(members.get("structuredContent")), []
    _raise_for_error(members.get("isError"), title, parts, data)
    if (
        data is not None
        and definition.output_schema is not None
        and (fault := _find_fault(data, definition)) is not None
    ):
        notes.append(f"[the structured part is left out: {fault}]")
        data = None
    if unknown := sorted(key for key in map(str, members) if key not in _KNOWN_MEMBERS):
        notes.append(
            f"[left out, because it is unknown: {clean_line(', '.join(unknown), MAX_ERROR_LENGTH)}]"
        )
    texts = [part.text for part in parts if part.is_text]
    summary = summarize(texts, data, [part.text for part in parts if not part.is_text])
    kinds = sorted({part.kind for part in parts})
    markdown, files = _render_markdown(data, parts, notes), list_files(members.get("content"))
    kind = "text/markdown" if data is None else JSON_TYPE
    metadata = {"content_type": kinds}
    return ToolResult(True, data, summary or "Done", markdown, None, metadata, files, kind)  # noqa: FBT003


def _render_markdown(data: Any, parts: list[_Part], notes: list[str]) -> str:
    """Return the text for the model, without repetitions; empty if the data contains all of it."""
    texts = (
        drop_repeated(part.text, data)
        if part.is_text and data is not None and number < MAX_COMPARED
        else part.text
        for number, part in enumerate(parts)
    )
    text = "\n\n".join(each for each in (*texts, *notes) if each.strip())
    if data is None or not text:
        return text
    return f"{text}\n\n```json\n{canonical_json(shorten_repeated(data, text))}\n```"


def _list_entries(content: Any) -> list[Any]:
    """List the parts of the content, which some servers send as one part or as plain text."""
    if content is None:
        return []
    return content if isinstance(content, list) else [content]


def _read_part(part: Any) -> _Part | None:
    """Read one part; None if it is empty."""
    if not isinstance(part, Mapping):
        text = (
            part
            if isinstance(part, str)
            else ""
            if part is None
            else canonical_json(replace_binary(part))
        )
        return _Part("text", _hide_binary(text), is_text=True) if text else None
    kind = _get_text(part, "type") or ("text" if "text" in part else "")
    mime_type = _get_text(part, "mimeType")
    if kind == "text" and "text" in part:
        text = (
            part["text"]
            if isinstance(part["text"], str)
            else canonical_json(replace_binary(part["text"]))
        )
        return _Part("text", _hide_binary(text), is_text=True)
    if kind in _MEDIA:
        size = _measure(part.get("data"))
        return _Part(
            kind, f"[{kind}: {_clean_type(mime_type) or 'unknown type'}, {size:,} bytes, not shown]"
        )
    if kind == "resource_link":
        return _Part(kind, _describe_link(part, mime_type))
    if kind == "resource" and isinstance(part.get("resource"), Mapping):
        return _Part(kind, _describe_resource(part["resource"]))
    return _Part(
        "unknown",
        f"[left out, because its kind is not known: {clean_line(kind, 100) or 'no type'}]",
    )


def _get_text(node: Mapping[str, Any], key: str) -> str:
    value = node.get(key)
    return value if isinstance(value, str) else ""


def _hide_binary(text: str) -> str:
    hidden = replace_binary(text)
    return hidden if isinstance(hidden, str) else text


def _describe_link(part: Mapping[str, Any], mime_type: str) -> str:
    size = part.get("size")
    bytes_ = f", {size:,} bytes" if isinstance(size, int) else ""
    name = clean_line(str(part.get("title") or part.get("name") or "no name"), MAX_TITLE_LENGTH)
    kind = f", {_clean_type(mime_type)}" if mime_type else ""
    return f"[link: {name}, {_clean_uri(part.get('uri'))}{kind}{bytes_}, not opened]"


def _describe_resource(resource: Mapping[str, Any]) -> str:
    mime_type = _get_text(resource, "mimeType")
    kind = f", {_clean_type(mime_type)}" if mime_type else ""
    head = f"[resource: {_clean_uri(resource.get('uri'))}{kind}"
    text = resource.get("text")
    if isinstance(text, str):
        return f"{head}, {len(text):,} characters]\n{_hide_binary(text)}"
    return f"{head}, {_measure(resource.get('blob')):,} bytes, not shown]"


def _measure(encoded: Any) -> int:
    """Return the number of bytes that a base64 text encodes; 0 for anything but text."""
    return len(encoded) * 3 // 4 if isinstance(encoded, str) else 0


def _clean_uri(uri: object) -> str:
    return clean_line(str(uri or "no address"), MAX_ADDRESS_LENGTH)


def _clean_type(mime_type: str) -> str:
    return clean_line(mime_type, 100)


def _raise_for_error(flag: Any, title: str, parts: list[_Part], data: Any) -> None:
    """Raise the failure that the server reports, in its own words.

    Raises:
        ToolError: OPERATION_FAILED, or OUTCOME_UNKNOWN for a flag that is not true or false.
    """
    if flag in (None, False, 0, "false", "False", ""):
        return
    texts = [part.text for part in parts] or ([canonical_json(data)] if data is not None else [])
    words = clean_line("\n\n".join(texts), MAX_ERROR_LENGTH)
    if flag in (True, 1, "true", "True"):
        reason = words or "the server gave no reason"
        raise ToolError(ErrorCode.OPERATION_FAILED, f"{title} failed: {reason}")
    raise ToolError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"{title} responded without saying clearly whether it failed.",
        recovery_hint="Check whether it was done before trying again.",
        words=words,
    )


def _find_fault(data: Any, definition: Definition) -> str | None:
    """Return the content's first fault, as part of a sentence; None if it fits its schema."""
    try:
        faults: Iterator[Any] = iter(
            find_faults(
                build_validator(definition.output_schema or {}), data, most=1, steps=MAX_STEPS
            )
        )
    except UncheckableError as error:
        return f"it cannot be checked: {error}"
    fault = next(faults, None)
    if fault is None:
        return None
    place = ".".join(["data", *(str(part) for part in fault.absolute_path)])
    return clean_line(
        f"it does not fit the output schema at {place:.200}: {fault.message:.300}", MAX_ERROR_LENGTH
    )
