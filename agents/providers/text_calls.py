"""Find a tool call that a model wrote as text, because its server cannot parse the model's notation
of calls.

Such a call is never run. It is recognized by an offered tool's name after a marker of calls, such
as `<tool_call>`, or because the text, or its last part, consists only of a call as JSON or code.
Names in code spans, quotations, and code blocks followed by prose are ignored.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agents.providers.named_calls import (
    FindOffered,
    FindSchema,
    Offered,
    find_named_call,
    know_no_schema,
)

MAX_EXAMINED = 40
"""The maximum number of tool names that are examined at each end of a text."""
MAX_READ = 20_000_000
"""The maximum number of characters that are read to find the beginning of a call. A limit is needed
because, from each candidate, the text is read to its end."""
_MOST_PARTS = 8
_LONGEST_PARAMS = 20_000
_NEAR = 300
"""The maximum number of characters between the beginning of a call and the tool's name."""
_NAME = re.compile(r"[\w][\w.\-]*")
_FENCE = re.compile(r"^[^\n`]*```+[^\n`]*$|^(?=[^\n`]*$)[^\n]*?~~~[^\n]*$", re.MULTILINE)
_QUOTED_LINE = re.compile(r"^[ \t]*>[ \t][^\n]*$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_TAG = r"(?:<[^<>\n]{1,80}>|\[/?[A-Z][A-Z_]{2,30}\])"
_CALL_WORD = r"(?:tool|func|call|invoke|action|plugin|python_tag|channel)"
_MARKER = re.compile(
    rf"<[^<>\n]{{0,60}}?{_CALL_WORD}[^<>\n]{{0,40}}>|<[|\uff5c][^<>\n]{{1,60}}>|(?-i:\[(?:TOOL|FUNCTION|CALL)[A-Z_]*\])"
    r"|\bto=(?=functions?\.)|\bfunctools(?=\[)|^>>>",
    re.I | re.M,
)
_BESIDE_NAME = re.compile(
    rf"(?:[\s\[\](){{}},:\"'=|]|{_TAG}|(?:functions?|tools?|default_api|call|json)[.:]"
    r"|\"\w{1,30}\"\s*:|'\w{1,30}'\s*:|\"[^\"\s]{0,60}\"|(?:function|json|commentary|assistant|to|call|tool)\b)*"
)
_TAG_BEFORE = re.compile(
    rf"<[/|\uff5c\s]*(?:[\w:|\uff5c▁]*{_CALL_WORD}[\w:|\uff5c▁]*(?:\s+name)?\s*[=:\s]\s*[\"']?(?:functions?\.)?)?$",
    re.I,
)
_TAG_AFTER = re.compile(r"[\"']?[^<>\n]{0,40}/?>")
_ACTION = re.compile(r"^[ \t*_]*Action[ \t*_]*:[ \t*_\"'`]*$", re.I)
_ACTION_INPUT = re.compile(r"[\"'`*]*\s*[*_]*Action[ _]?Input", re.I)
_BEFORE_CODE = re.compile(
    r"(?:\w+\s*=\s*)?(?:await\s+)?(?:print\s*\(\s*)?[\[(]*\s*(?:[a-z_]+\.)?$", re.I
)
_HEAD = re.compile(r"(?:functions?\.|(call:))?")
_NUMBER_OF_CALL = re.compile(r"^:\d+|^\[ARGS\]")
"""The text between the tool's name and the params in some models' calls if the server drops their
special tokens, such as `:0` in `functions.data__find:0{…}`."""
_AFTER_CODE = " \t\r\n])},;|"
_BROKEN_JSON = re.compile(r"[\"']?\w{1,30}[\"']?\s*:\s*[\"'](?:functions?\.)?$")
_AFTER_BROKEN = re.compile(r"[\"']\s*,\s*[\"']?\w{1,30}[\"']?\s*:\s*[\"']?[{\[]")
_IDENTITY = re.compile(
    r"(?:\w*id|type|index|role|content|thoughts?|reasoning|kind|object|refusal)", re.I
)
_DECODER = json.JSONDecoder(strict=False)
_INPUT = re.compile(r"(?:action|tool|function)_?input", re.I)
"""The keys whose value is a call's input, which may be something other than a dict."""
_WRAPPED = ("function", "function_call", "tool_call", "tool_calls", "tool_uses", "calls", "action")


@dataclass(frozen=True)
class _Named:
    """The name of an offered tool in a text, from `start` to `end`."""

    tool: str
    start: int
    end: int


def find_text_call(
    text: str,
    find_offered: FindOffered,
    *,
    is_parsed: bool,
    find_schema: FindSchema = know_no_schema,
) -> str | None:
    """Return the internal name of the called tool if the text is or contains a call; None
    otherwise.

    Args:
        is_parsed: True if the server has parsed a call of this model before, so that a call after
            prose is only an example.
    """
    text, offered = text.strip(), Offered(find_offered, find_schema)
    shown = _unwrap(text)
    tool = _find_only_call(shown, find_offered) or _find_announced(shown, find_offered)
    tool = tool or find_named_call(text if _FENCE.match(text) else shown, offered)
    if tool is not None or is_parsed:
        return tool
    before, last_block = _split_last_block(text)
    if last_block:
        tool = _find_only_call(last_block, find_offered) or _find_announced(
            last_block, find_offered
        )
        return tool or find_named_call(last_block, offered)
    prose = _hide_quotations(before)
    names = _list_names(prose, find_offered)
    paragraph = prose.rfind("\n\n", 0, names[0].start) if names else -1
    tool = _find_last_call(prose, names, find_offered)
    return tool or (find_named_call(prose[paragraph:], offered) if paragraph >= 0 else None)


def _find_announced(text: str, find_offered: FindOffered) -> str | None:
    """Return the tool that is called after a marker in the text, outside quotations; None if there
    is none."""
    prose = _hide_quotations(text)
    names = _list_names(prose, find_offered)
    if (
        tool := next((name.tool for name in names if _is_announced(prose, name)), None)
    ) is not None or not names:
        return tool
    for marker in islice(_MARKER.finditer(prose), MAX_EXAMINED):
        begin = _find_json(prose, marker.end())
        if (
            begin is not None
            and (tool := _find_first_value(prose[begin:], find_offered)) is not None
        ):
            return tool if _stands_alone(prose, marker.start()) else None
    return None


def _unwrap(text: str) -> str:
    """Remove the backticks from a text that is one code span, or consists only of code blocks;
    return other texts unchanged."""
    if _FENCE.match(text):
        lines = text.splitlines()
        fences = {number for number, line in enumerate(lines) if _FENCE.fullmatch(line)}
        outside = [line for opened, line in _find_open(lines, fences) if not opened]
        if not "".join(outside).strip():
            return "\n".join(
                line for number, line in enumerate(lines) if number not in fences
            ).strip()
    if len(text) > 2 and text[0] == text[-1] == "`" and "`" not in text[1:-1]:
        return text[1:-1].strip()
    return text


def _find_open(lines: list[str], fences: set[int]) -> Iterator[tuple[bool, str]]:
    """Yield a pair for each line: True if the line belongs to a code block, and the line itself."""
    is_open = False
    for number, line in enumerate(lines):
        if number in fences:
            is_open = not is_open
            yield True, line
        else:
            yield is_open, line


def _split_last_block(text: str) -> tuple[str, str]:
    """Return the text before the code block at the end, and the content of that block, empty if
    there is none."""
    fences = list(_FENCE.finditer(text))
    if len(fences) % 2:  # the last block is not closed
        return text[: fences[-1].start()], text[fences[-1].end() :].strip()
    if fences and not text[fences[-1].end() :].strip():
        return text[: fences[-2].start()], text[fences[-2].end() : fences[-1].start()].strip()
    return text, ""


def _hide_quotations(text: str) -> str:
    """Replace code blocks, code spans and quoted lines with spaces."""
    fences = list(_FENCE.finditer(text))
    blocks = (
        (opening.start(), closing.end())
        for opening, closing in zip(fences[::2], fences[1::2], strict=False)
    )
    text = _blank(text, blocks)
    text = _blank(text, (found.span() for found in _QUOTED_LINE.finditer(text)))
    return "\n".join(
        _blank(line, _find_code_spans(line)) if "`" in line else line for line in text.split("\n")
    )


def _blank(text: str, places: Iterable[tuple[int, int]]) -> str:
    """Replace the text at these sorted places with spaces, but keep the line breaks."""
    parts, position = [], 0
    for start, end in places:
        parts += [text[position:start], re.sub(r"[^\n]", " ", text[start:end])]
        position = end
    return "".join([*parts, text[position:]])


def _find_code_spans(line: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each code span in a line. A span reaches from a run of backticks
    to the next run of the same length."""
    runs = [found.span() for found in _TICKS.finditer(line)]
    later: dict[int, int] = {}
    closing: list[int | None] = [None] * len(runs)
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        closing[number], later[length] = later.get(length), number
    number = 0
    while number < len(runs):
        if (end := closing[number]) is not None:
            yield runs[number][0], runs[end][1]
            number = end
        number += 1


def _list_names(text: str, find_offered: FindOffered) -> list[_Named]:
    """List the names of offered tools in the text; if there are many, only the first and the last
    names."""
    names = [named for found in _NAME.finditer(text) if (named := _find_named(found, find_offered))]
    return names if len(names) <= 2 * MAX_EXAMINED else names[:MAX_EXAMINED] + names[-MAX_EXAMINED:]


def _find_named(found: re.Match[str], find_offered: FindOffered) -> _Named | None:
    """Return the longest part of a dotted name that names an offered tool, as in
    `functions.data__find` or `data__find.call`; None if no part does."""
    dots = [
        -1,
        *(place for place, letter in enumerate(found[0][:_NEAR]) if letter == "."),
        len(found[0]),
    ]
    if len(dots) > _MOST_PARTS:
        return None
    parts = [(start + 1, end) for place, start in enumerate(dots) for end in dots[place + 1 :]]
    for start, end in sorted(parts, key=lambda part: part[0] - part[1]):
        if (tool := find_offered(found[0][start:end].rstrip("-"))) is not None:
            return _Named(tool, found.start() + start, found.start() + end)
    return None


def _is_announced(text: str, name: _Named) -> bool:
    """Return True if the name follows a marker of calls or is inside the marker, and the call
    begins a line or ends the text."""
    begin = max(0, name.start - _NEAR)
    near = text[begin : name.start]
    after = text[name.end : name.end + _NEAR]
    line = text.rfind("\n", 0, name.start) + 1
    if _ACTION.fullmatch(text[line : name.start]) and _ACTION_INPUT.match(after):
        return True
    in_tag = _TAG_BEFORE.search(near)
    if in_tag and "=" in in_tag[0] and after[:1] == "{":
        return _stands_alone(text, begin + in_tag.start())
    if in_tag and (closed := _TAG_AFTER.match(after)):
        at_marker = begin + in_tag.start()
        is_plain = len(in_tag[0].strip("</|\uff5c ")) == 0
        tag = f"</{text[name.start : name.end]}>"
        is_call = (
            tag in text[name.end :]
            if is_plain
            else re.match(r"\s*[{<\[]|\s*$", after[closed.end() :])
        )
        return bool(is_call) and "</" not in in_tag[0] and _stands_alone(text, at_marker)
    markers = [
        found for found in _MARKER.finditer(near) if _BESIDE_NAME.fullmatch(near, found.end())
    ]
    return (
        bool(markers)
        and _is_followed_by_params(after)
        and _stands_alone(text, begin + markers[0].start())
    )


def _is_followed_by_params(after: str) -> bool:
    return (
        re.match(
            r"[\"']?\s*[,:}\]]|[\"']\s+\w+=[\"']|(?::\d+|\.\w+)?\s*(?:[{(\[<]|json\b|$)", after
        )
        is not None
    )


def _stands_alone(text: str, at_marker: int) -> bool:
    """Return True if only tags precede the marker in its line, or if the text ends with a closing
    bracket."""
    line = text.rfind("\n", 0, at_marker) + 1
    return not re.sub(_TAG, "", text[line:at_marker]).strip() or text.rstrip()[-1] in ">}])"


def _find_last_call(text: str, names: list[_Named], find_offered: FindOffered) -> str | None:
    """Return the tool if the end of the text, beginning shortly before one of the names, consists
    only of a call; None otherwise."""
    left = MAX_READ
    for begin, is_line in dict.fromkeys(_list_beginnings(text, names)):
        last = text[begin:].strip()
        left -= len(last)
        if left < 0:
            return None
        if (
            tool := (_find_only_call if is_line else _find_values_called)(last, find_offered)
        ) is not None:
            return tool
    return None


def _list_beginnings(text: str, names: list[_Named]) -> Iterator[tuple[int, bool]]:
    """Yield the positions where a call with one of the names may begin: the start of the name's
    line, with True, and each bracket shortly before the name."""
    for name in names:
        yield text.rfind("\n", 0, name.start) + 1, True
        begin = max(0, name.start - _NEAR)
        yield from (
            (begin + found.start(), False)
            for found in re.finditer(r"[{\[]", text[begin : name.start])
        )


def _find_json(text: str, position: int) -> int | None:
    """Return the start of the JSON after the position; None if anything but tags and white space
    comes first."""
    found = re.compile(rf"(?:\s|{_TAG})*(?=[{{\[])").match(text, position)
    return found.end() if found else None


def _find_first_value(text: str, find_offered: FindOffered) -> str | None:
    try:
        value, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return _find_called(value, find_offered)


def _find_values_called(text: str, find_offered: FindOffered) -> str | None:
    """Return the tool of the first call if the text consists only of JSON values that are all
    calls; None otherwise."""
    called = [_find_called(value, find_offered) for value in _parse_values(text)]
    return called[0] if called and all(called) else None


def _find_only_call(text: str, find_offered: FindOffered) -> str | None:
    """Return the tool of the first call if the text consists only of calls; None otherwise."""
    if text[:1] in ("{", "[") and next(_parse_values(text), None) is not None:
        return _find_values_called(text, find_offered)
    names = _list_names(text[: 2 * _NEAR], find_offered)
    if not names:
        return None
    first = names[0]
    before, after = text[: first.start], text[first.end :]
    is_broken = (
        text[:1] in ("{", "[") and _BROKEN_JSON.search(before) and _AFTER_BROKEN.match(after)
    )
    headed = _HEAD.fullmatch(before)
    params = _NUMBER_OF_CALL.sub("", after).strip()
    is_headed = headed and (
        isinstance(next(_parse_values(params), None), dict)
        or bool(headed[1] and params[:1] + params[-1:] == "{}")
    )
    return first.tool if is_broken or is_headed or _is_code(text, first, find_offered) else None


def _is_code(text: str, first: _Named, find_offered: FindOffered) -> bool:
    """Return True if the text consists only of calls written as code, and the first call has this
    name."""
    name: _Named | None = first
    for _ in range(MAX_EXAMINED):
        if name is None:
            break
        end = (
            _find_closing(text[name.end :]) if _BEFORE_CODE.fullmatch(text[: name.start]) else None
        )
        if end is None:
            return False
        text = text[name.end + end :].lstrip(_AFTER_CODE)
        name = next(iter(_list_names(text[:_NEAR], find_offered)), None)
    return not text or name is not None


def _parse_values(text: str) -> Iterator[Any]:
    """Yield the JSON values in the text; yield nothing if the text contains anything else."""
    values, position = [], 0
    try:
        while position < len(text):
            value, position = _DECODER.raw_decode(text, position)
            values.append(value)
            while position < len(text) and text[position] in " \t\r\n,;":
                position += 1
    except (ValueError, RecursionError):
        return
    yield from values


def _find_called(value: Any, find_offered: FindOffered, depth: int = 0) -> str | None:
    """Return the tool of the first call if the JSON value has the form of a call or of a list of
    calls; None otherwise."""
    if isinstance(value, list):
        found = [_find_called(each, find_offered, depth + 1) for each in value] if depth < 4 else []
        return found[0] if found and all(found) else None
    if not isinstance(value, dict) or depth > 4:
        return None
    others = {key: each for key, each in value.items() if not _IDENTITY.fullmatch(key)}
    for key in _WRAPPED:
        if len(others) == 1 and isinstance(others.get(key), dict | list):
            return _find_called(others[key], find_offered, depth + 1)
    named = [
        (key, tool)
        for key, each in others.items()
        if isinstance(each, str) and (tool := _look_up(each, find_offered))
    ]
    params = {key: each for key, each in others.items() if key != (named[0][0] if named else "")}
    is_call = all(_are_params(each) or _INPUT.fullmatch(key) for key, each in params.items())
    is_call = is_call and len(named) == 1 and len(params) <= 1
    return named[0][1] if is_call else None


def _look_up(name: str, find_offered: FindOffered) -> str | None:
    return find_offered(re.sub(r"^functions?\.|:\d+$", "", name)) if len(name) < _NEAR else None


def _are_params(value: Any) -> bool:
    """Return True if the value may be a call's params: a dict that is not a schema, the text of
    such a dict, or an empty value."""
    if isinstance(value, str):
        text = value.strip()
        try:
            value = json.loads(text or "{}")
        except (ValueError, RecursionError):
            return text.startswith("{")
    if value is None or value == []:
        return True
    return isinstance(value, dict) and not isinstance(value.get("properties"), dict)


def _find_closing(text: str) -> int | None:
    """Return the position after the parentheses with which the text begins; None if the text begins
    differently, or the parentheses are not closed."""
    opening = re.match(r"(?:\.call)?\s?\(", text)
    if opening is None:
        return None
    depth, quote, position = 0, "", opening.end() - 1
    while position < min(len(text), _LONGEST_PARAMS):
        letter = text[position]
        if quote:
            position += letter == "\\"
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        position += 1
        if not depth:
            return position
    return None
