"""Removal of binary content that a server sends as text, because it would only fill a model's
context."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.contract import canonical_json
from tools.sources.mcp.encodings import (
    LONGEST_KEPT,
    SHORTEST_DECLARED,
    SHORTEST_RUN,
    Encoded,
    recognize_bytes,
    recognize_numbers,
    recognize_pairs,
    recognize_raw,
    recognize_run,
    recognize_wrapped,
)

_DATA_URI = re.compile(
    r"data:([\w.+-]{1,60}/[\w.+-]{1,60})?(?:;[\w=.-]{1,80})*;base64,([A-Za-z0-9+/_=\s-]{64,})"
)
_RUN = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{SHORTEST_RUN},}}={{0,2}}")
_SOLID = re.compile(rf"(?<!\S)\S{{{SHORTEST_RUN},}}")
_NUMBERS = re.compile(r"(?<![\w.-])-?\d[\d\s,;-]*\d(?![\w.])")
_PAIRS = re.compile(r"(?<!\w)(?:(?:0x|\\x)?[0-9A-Fa-f]{2}(?![0-9A-Fa-f])[\s,;:-]{0,12})+")
_PLAIN_LINE = re.compile(r"\S+")
_ESCAPED_LINE = re.compile(r"[^\s\\]+(?:\\(?![nr])[^\s\\]*)*")
_QUOTED_LINE = re.compile(r"[\"',;]{0,3}(?:0x(?=[0-9A-Fa-f]{2}\b))?([\w+/=-]{1,8192})[\"',;]{0,3}")
_ADDRESS = re.compile(r"[a-z][a-z0-9+]{1,11}://")
_DUMP = re.compile(
    r"(?:^(?>(?:0x)?[0-9A-Fa-f]{4,16}:?[ \t]{1,4}(?:[0-9A-Fa-f]{2,8}[ \t]{1,4}){4,32}[^\n]{0,40}(?:\n|\Z))){8,}+",
    re.MULTILINE,
)
"""Lines of a dump: an offset, bytes in hex, and mostly the same bytes as text."""
_MEDIA = frozenset({"image", "audio", "video", "blob", "file", "Buffer"})
_TYPE_KEYS = (
    "mimeType",
    "mime_type",
    "mimetype",
    "media_type",
    "mediaType",
    "contentType",
    "content_type",
)
_TEXT_TYPE = re.compile(r"text/|.*[/+](?:json|xml|yaml|javascript|x-www-form-urlencoded)\b")
_SHORTEST_LINE = 40
_SHORTEST_ROW = 32


def replace_binary(value: Any) -> Any:
    """Return the JSON value with binary content of any form replaced by its kind and size."""
    return _replace(value, "")


def _replace(value: Any, media_type: str) -> Any:
    if isinstance(value, str):
        return _replace_in_text(value, media_type)
    if isinstance(value, list):
        found = _recognize_list(value, is_declared=bool(media_type))
        return (
            [_replace(entry, media_type) for entry in value]
            if found is None
            else _describe(found, media_type)
        )
    if isinstance(value, Mapping):
        if (found := _recognize_numbered(value)) is not None:
            return _describe(found, media_type)
        own = _find_media_type(value)
        if (
            own == "Buffer"
            and (found := recognize_bytes(_get_list(value, "data"), is_declared=True)) is not None
        ):
            return _describe(found, "")
        return {key: _replace(entry, own) for key, entry in value.items()}
    return value


def _find_media_type(node: Mapping[str, Any]) -> str:
    """Return the media type that an object names, or else its kind if that is a medium such as
    `image`; empty for text."""
    named = next((node[key] for key in _TYPE_KEYS if isinstance(node.get(key), str)), "")
    kind = node.get("type")
    if not named and isinstance(kind, str) and kind in _MEDIA:
        return kind
    return "" if _TEXT_TYPE.match(named[:100]) else named


def _get_list(node: Mapping[str, Any], key: str) -> list[Any]:
    found = node.get(key)
    return found if isinstance(found, list) else []


def _recognize_numbered(node: Mapping[str, Any]) -> Encoded | None:
    """Recognize bytes in an object with the keys 0, 1, 2…, as JavaScript writes byte arrays."""
    if len(node) < SHORTEST_DECLARED or "0" not in node or str(len(node) - 1) not in node:
        return None
    return recognize_bytes(list(node.values()))


def _recognize_list(values: list[Any], *, is_declared: bool) -> Encoded | None:
    """Recognize data in a list of bytes, of rows of bytes, or of lines of an encoded text."""
    first = values[0] if values else None
    if isinstance(first, int):
        return recognize_bytes(values, is_declared=is_declared)
    if (
        isinstance(first, str)
        and len(values) > 1
        and all(isinstance(value, str) for value in values)
    ):
        return _recognize_lines([value.strip() for value in values], is_declared=is_declared)
    if (
        isinstance(first, list)
        and len(first) >= _SHORTEST_ROW
        and all(_is_row(row, len(first)) for row in values)
    ):
        return recognize_bytes([value for row in values for value in row], is_declared=is_declared)
    return None


def _is_row(row: Any, length: int) -> bool:
    return isinstance(row, list) and len(row) == length


def _recognize_lines(lines: list[str], *, is_declared: bool) -> Encoded | None:
    """Recognize lines of equal length (the last may be shorter) as one encoded text."""
    if len({len(line) for line in lines[:-1]}) > 1 or not 0 < len(lines[-1]) <= len(lines[0]):
        return None
    places = ((number, number + 1, line) for number, line in enumerate(lines))
    found = next((found for _, _, found in _find_wrapped(places) if found), None)
    if found is None and is_declared and len(lines[0]) >= _SHORTEST_LINE:
        return recognize_run("".join(lines), is_declared=True)
    return found


def _replace_in_text(text: str, media_type: str) -> str:
    if len(text) < SHORTEST_DECLARED:
        return text
    if media_type and (found := recognize_run("".join(text.split()), is_declared=True)) is not None:
        return _describe(found, media_type)
    if text.lstrip()[:1] in ("{", "[") and (replaced := _replace_in_json(text)) is not None:
        return replaced
    text = _DATA_URI.sub(lambda found: _describe_uri(found[1] or "data", found[2]), text)
    text = _NUMBERS.sub(lambda found: _replace_found(found[0], recognize_numbers), text)
    if len(text) < SHORTEST_RUN:
        return text
    if (raw := recognize_raw(text)) is not None:
        return _describe(raw, media_type)
    text = _DUMP.sub(
        lambda found: _describe(Encoded("hex dump", 16 * found[0].count("\n")), "") + "\n", text
    )
    text = _PAIRS.sub(lambda found: _replace_found(found[0], recognize_pairs), text)
    text = _replace_wrapped(text)
    return _SOLID.sub(lambda found: _replace_in_run(found[0]), text)


def _replace_in_json(text: str) -> str | None:
    """Return the JSON text with any binary content replaced, or None if it is not JSON."""
    try:
        value = json.loads(text)
        replaced = _replace(value, "")
    except (ValueError, RecursionError):
        return None
    return canonical_json(replaced) if replaced != value else text


def _replace_found(text: str, recognize: Any) -> str:
    found = recognize(text) if len(text) >= 2 * SHORTEST_DECLARED else None
    return text if found is None else _describe(found, "") + text[len(text.rstrip()) :]


def _replace_wrapped(text: str) -> str:
    """Replace data that is broken into lines, which may be quoted."""
    parts, position = [], 0
    lines = (_PLAIN_LINE if "\n" in text else _ESCAPED_LINE).finditer(text)
    places = ((found.start(), found.end(), found[0]) for found in lines)
    for start, end, found in _find_wrapped(places):
        if found is not None and not _is_key(text, start, end):
            parts += [text[position:start], _describe(found, "")]
            position = end
    return "".join([*parts, text[position:]])


def _find_wrapped(
    places: Iterator[tuple[int, int, str]],
) -> Iterator[tuple[int, int, Encoded | None]]:
    """Yield the start and end of each run of consecutive lines of equal length (the last may be
    shorter), with the data that it encodes, if any."""
    group: list[str] = []
    begin = finish = 0
    for start, end, written in places:
        quoted = _QUOTED_LINE.fullmatch(written)
        line = quoted[1] if quoted else written
        if group and len(line) == len(group[0]):
            group.append(line)
            finish = end
            continue
        is_last = len(group) > 1 and len(line) < len(group[0])
        if is_last and (found := _recognize_group([*group, line])) is not None:
            yield begin, end, found
            group = []
            continue
        yield begin, finish, _recognize_group(group)
        group, begin, finish = [line], start, end
    yield begin, finish, _recognize_group(group)


def _recognize_group(group: list[str]) -> Encoded | None:
    is_wide = bool(group) and (len(group[0]) >= _SHORTEST_LINE or len(group[0]) in (2, 4))
    is_long = is_wide and len(group) > 1 and len(group[0]) * len(group) >= SHORTEST_RUN
    return recognize_wrapped(group) if is_long else None


def _is_key(text: str, start: int, end: int) -> bool:
    """Return True for a key or certificate of usual length between its BEGIN and END lines."""
    return end - start <= LONGEST_KEPT and text[max(0, start - 80) : start].rstrip().endswith(
        "-----"
    )


def _replace_in_run(run: str) -> str:
    """Replace data in a run of characters without white space."""
    if len(run) < SHORTEST_RUN or (len(run) <= LONGEST_KEPT and _ADDRESS.search(run[:200])):
        return run
    if (found := recognize_run(run)) is not None:
        return _describe(found, "")
    return _RUN.sub(lambda inner: _replace_found(inner[0], recognize_run), run)


def _describe_uri(media_type: str, encoded: str) -> str:
    size = sum(not character.isspace() for character in encoded.rstrip("=")) * 3 // 4
    return _describe(Encoded("data", size), media_type)


def _describe(found: Encoded, media_type: str) -> str:
    is_named = bool(media_type) and media_type != "Buffer"
    return f"[{media_type[:100] if is_named else found.kind}: {found.size:,} bytes, not shown]"
