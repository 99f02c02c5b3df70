"""Find a call that a model wrote as plain text. Such a text consists only of the name of an offered
tool and params that this tool takes.

The text is parsed in several notations, and the result is only compared with the tool's schema,
never run. A text with other content, such as figures about a tool, is a response.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.providers.labeled_lines import join_values, read_lines
from agents.providers.markup import Markup, read_markup
from agents.providers.relaxed_json import Pair, UnreadableError, read_relaxed

FindOffered = Callable[[str], str | None]
"""A function that returns the internal name of the offered tool with this wire name or internal
name; None if there is none."""
FindSchema = Callable[[str], Mapping[str, Any] | None]
"""A function that returns the schema of the params of the tool with this internal name; None if the
schema is not known."""

_LONGEST_NAME = 300
_MAX_DEPTH = 6
_MAX_CALLS = 100
_BEFORE_NAME = re.compile(
    r"^[^\w]{1,4}|^(?:functions?|tools?|call|default_api|print)[.:]?(?=\w)", re.I
)
_AFTER_NAME = re.compile(r":\d{1,4}$|\.call$|[\s*`>\]]{1,4}$")
_BESIDE = re.compile(
    r"(?:\w*id|type|index|role|content|kind|object|refusal|thoughts?|reasoning|rationale|explanation|observation"
    r"|final answer|server|server_?name|namespace)",
    re.I,
)
"""The keys beside a call that are not part of the call."""
_AROUND = re.compile(
    r"(?:[\w:]*(?:tool|function|call|action|invoke|plugin)[\w:]*|tool use|tool call|calls|print|request|command"
    r"|message|response|output)",
    re.I,
)
"""The keys and tags that enclose a call, and the labels before its name."""
_INPUT = re.compile(r"(?:\w+[ _])?(?:input|args|arguments|params|parameters)", re.I)
_SPECIAL_TOKEN = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|</?s>|<(?:end_of_turn|eos)>|<\?xml[^<>\n]{0,80}\?>"
)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)([^`\n]*)$", re.MULTILINE)
_SPEAKER = re.compile(r"\s*(?:assistant|ai)\s*(?::|\n)\s*", re.I)
_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class Offered:
    """The tools that a request offered, by name and with the schemas of their params."""

    find: FindOffered
    find_schema: FindSchema

    def look_up(self, name: Any) -> "_Tool | None":
        """Return the offered tool with this name, even if the model added something to the name, as
        models often do. Return None if there is no such tool."""
        if not isinstance(name, str) or not 0 < len(name) < _LONGEST_NAME:
            return None
        for written in (
            name,
            short := _AFTER_NAME.sub("", _BEFORE_NAME.sub("", name)),
            _BEFORE_NAME.sub("", short),
        ):
            if (tool := self.find(written)) is not None:
                return _Tool(tool, written != tool, self.find_schema(tool) or {})
        return None


@dataclass(frozen=True)
class _Tool:
    name: str
    has_wire_name: bool
    """True if the text used the tool's wire name, which only models use."""
    schema: Mapping[str, Any]

    @property
    def params(self) -> Mapping[str, Any]:
        found = self.schema.get("properties")
        return found if isinstance(found, Mapping) else {}

    @property
    def is_free(self) -> bool:
        """True if nothing is known about the tool's params."""
        return (
            "properties" not in self.schema and self.schema.get("additionalProperties") is not False
        )

    def accepts(self, value: Any) -> bool:
        """Return True if the value is a dict of params that fits the tool's schema, or a text that
        contains such a dict.

        If a tool's params are not known, any dict fits. So such a tool must have been called by its
        wire name.
        """
        params = _read_params(value)
        if params is None:
            return False
        if (
            len(params) == 1
            and _INPUT.fullmatch(only := next(iter(params)))
            and only not in self.params
        ):
            params = _read_params(params[only]) or {}
        required = self.schema.get("required")
        is_whole = set(required if isinstance(required, list) else ()) <= params.keys()
        if self.is_free:
            return self.has_wire_name and not isinstance(params.get("properties"), Mapping)
        return is_whole and all(
            key in self.params and _fits(self.params[key], each) for key, each in params.items()
        )

    def accepts_only(self, value: Any) -> bool:
        """Return True if the value, or the values of a list, may be the tool's params, written in
        order and without names."""
        values = value if isinstance(value, list) else [value]
        required = self.schema.get("required")
        least = len(required) if isinstance(required, list) else 0
        is_plain = all(isinstance(each, str | int | float) for each in values)
        fitting = zip(self.params.values(), values, strict=False)
        return (
            is_plain
            and max(least, 1) <= len(values) <= len(self.params)
            and all(_fits(*pair) for pair in fitting)
        )


def know_no_schema(_: str) -> None:
    """Return None. This is a `FindSchema` for which the params of every tool are unknown."""


def find_named_call(text: str, offered: Offered) -> str | None:
    """Return the internal name of the first called tool if the text consists only of calls of
    offered tools; None otherwise."""
    text = _FENCE.sub(lambda fence: fence[1] if offered.look_up(fence[1].strip()) else "", text)
    text = _SPECIAL_TOKEN.sub("", text).strip()
    if (speaker := _SPEAKER.match(text)) is not None:
        text = text[speaker.end() :]
    for items in _read_notations(text):
        if (tool := _find_in_list(items, offered, 0)) is not None:
            return tool
    return None


def _read_notations(text: str) -> Iterator[list[Any]]:
    """Yield the values in the text, parsed in each notation that fits."""
    for read in (_read_json, _read_relaxed, read_lines, read_markup):
        try:
            value = read(text)
        except (UnreadableError, ValueError, RecursionError):
            continue
        yield value if isinstance(value, list) else [value]


def _read_json(text: str) -> list[Any]:
    values, position = [], 0
    while position < len(text):
        value, position = _DECODER.raw_decode(text, position)
        is_quoted = isinstance(value, str) and value[:1] in ("{", "[")
        values += _read_json(value) if is_quoted else [value]
        while position < len(text) and text[position] in " \t\r\n,;":
            position += 1
    return values


def _read_relaxed(text: str) -> list[Any]:
    values = [dict([each]) if isinstance(each, Pair) else each for each in read_relaxed(text)]
    return (
        [_merge(values)]
        if len(values) > 1 and all(isinstance(each, dict) for each in values)
        else values
    )


def _merge(objects: list[dict[str, Any]]) -> Any:
    """Join dicts with one key each into one dict if all keys differ, because `tool: x, args: {…}`
    is a single call. Otherwise, return the list."""
    keys = [key for each in objects for key in each]
    is_one = all(len(each) == 1 for each in objects) and len(set(keys)) == len(keys)
    return {key: value for each in objects for key, value in each.items()} if is_one else objects


def _find_in_list(values: list[Any], offered: Offered, depth: int) -> str | None:
    if not values or len(values) > _MAX_CALLS or depth > _MAX_DEPTH:
        return None
    if (
        len(values) == 2
        and isinstance(values[1], dict)
        and (tool := offered.look_up(_get_name(values[0]))) is not None
    ):
        return tool.name if tool.accepts(values[1]) else None
    found = [_find_in(value, offered, depth) for value in values]
    if all(found):
        return found[0]
    merged = (
        _merge(values)
        if len(values) > 1 and all(isinstance(value, dict) for value in values)
        else None
    )
    return _find_in(merged, offered, depth) if isinstance(merged, dict) else None


def _find_in(value: Any, offered: Offered, depth: int) -> str | None:
    if isinstance(value, list):
        return _find_in_list(value, offered, depth + 1)
    if not isinstance(value, dict) or not value or len(value) > _MAX_CALLS:
        return None
    return (
        _find_by_keys(value, offered)
        or _find_by_value(value, offered)
        or _find_inside(value, offered, depth)
    )


def _find_by_keys(value: dict[str, Any], offered: Offered) -> str | None:
    """Return the name of the first tool if each key names a tool and each value has params that
    this tool takes; None otherwise."""
    tools = [
        (offered.look_up(key), each) for key, each in value.items() if not _BESIDE.fullmatch(key)
    ]
    is_call = all(tool is not None and _is_called_with(tool, each) for tool, each in tools)
    return tools[0][0].name if tools and is_call and tools[0][0] is not None else None


def _is_called_with(tool: _Tool, value: Any) -> bool:
    if isinstance(value, list) and value:
        are_objects = all(isinstance(each, dict) for each in value)
        return (
            all(tool.accepts(each) for each in value) if are_objects else tool.accepts_only(value)
        )
    return tool.accepts(value)


def _find_by_value(value: dict[str, Any], offered: Offered) -> str | None:
    """Return the tool's name if exactly one value names a tool, and the other values are its
    params, as a dict or one by one; None otherwise."""
    named = [
        (key, tool)
        for key, each in value.items()
        if (tool := offered.look_up(_get_name(each))) is not None
    ]
    if len(named) != 1:
        return None
    key, tool = named[0]
    others = {name: each for name, each in value.items() if name != key}
    params = {
        name: each
        for name, each in others.items()
        if name in tool.params or not _BESIDE.fullmatch(name)
    }
    if not params:
        return None
    return (
        tool.name
        if _has_input(params, tool) or (tool.accepts(params) and not tool.is_free)
        else None
    )


def _has_input(params: dict[str, Any], tool: _Tool) -> bool:
    """Return True if there is only one value, and it is either a dict of the tool's params or,
    under a key such as `input`, the plain values of these params."""
    name, only = next(iter(params.items()))
    is_input = _INPUT.fullmatch(name) is not None
    is_object = (isinstance(only, dict) or is_input) and tool.accepts(only)
    return len(params) == 1 and (is_object or (is_input and tool.accepts_only(only)))


def _find_inside(value: dict[str, Any], offered: Offered, depth: int) -> str | None:
    """Return the tool's name if the only value is a call, or a list of calls, and its key is
    commonly used for calls; None otherwise."""
    inner = [(key, each) for key, each in value.items() if not _BESIDE.fullmatch(key)]
    is_around = (
        len(inner) == 1 and isinstance(inner[0][1], dict | list) and _AROUND.fullmatch(inner[0][0])
    )
    return _find_in(inner[0][1], offered, depth + 1) if is_around and depth < _MAX_DEPTH else None


def _get_name(value: Any) -> Any:
    """Return the name in a dict or list that contains only a name, as in `{"function": {"name":
    "x"}}`; return any other value unchanged."""
    if isinstance(value, list):
        return value[0] if len(value) == 1 else value
    return (
        next(iter(value.values())) if isinstance(value, dict) and list(value) == ["name"] else value
    )


def _read_params(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        value = value[0] if len(value) == 1 else _merge(value)
    if isinstance(value, str):
        text = value.strip().strip("`")
        try:
            value = (
                json.loads(text)
                if text[:1] == "{"
                else join_values(read_relaxed(text))
                if text
                else {}
            )
        except (UnreadableError, ValueError, RecursionError):
            return None
    if value is None or value == []:
        return {}
    return (
        value if isinstance(value, Mapping) and all(isinstance(key, str) for key in value) else None
    )


def _fits(schema: Any, value: Any) -> bool:
    """Return True if the value may belong to a param with this schema. In most notations, all
    values are texts."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = kind if isinstance(kind, list) else [kind]
    return value is None or any(_is_of_kind(each, value) for each in kinds)


def _is_of_kind(kind: Any, value: Any) -> bool:
    is_text = isinstance(value, str)
    if kind in ("integer", "number"):
        return isinstance(value, int | float) or (
            is_text and _NUMBER.fullmatch(value[:40]) is not None
        )
    if kind == "boolean":
        return isinstance(value, bool) or (is_text and value.lower() in ("true", "false"))
    if kind == "array":
        return isinstance(value, list | Markup) or (is_text and value[:1] == "[")
    if kind == "object":
        return isinstance(value, Mapping) or (is_text and value[:1] in ("{", ""))
    return kind != "string" or not isinstance(value, Mapping | list) or isinstance(value, Markup)
