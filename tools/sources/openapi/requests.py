"""Turns the params of one call into one HTTP request, before anybody is asked and without a credential in it."""

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from tools.contract import ErrorCode, ToolError, canonical_json

from .credential_names import changes_method, why_kept_back
from .operations import Body, Operation, Placement
from .paths import leads_elsewhere
from .schemas import outside_value

_SEPARATORS = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}
_PATH_TEXT = "/:@!$&'()*+,;=~-._%"


@dataclass(frozen=True)
class Request:
    """What would be sent.

    Attributes:
        path: percent-encoded, with a slash at its start.
        query: percent-encoded, without its question mark.
        fixed_query: that part of it which no param says: it stands in the operation's path.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    fixed_query: str = ""


def made_request(operation: Operation, params: Mapping[str, Any]) -> Request:
    """The request for canonical params.

    Raises:
        ToolError: INVALID_PARAMETER: a value would leave its place in the path, cannot be written in a header, or
            brings a name that no model may give a value for.
    """
    given = [
        (each, outside_value(params[each.shown], each.names)) for each in operation.placements if each.shown in params
    ]
    for each, value in given:
        _refuse_kept_back(each, value)
    path, _, fixed = operation.path.partition("?")
    segments = {each.name: _path_value(each, value) for each, value in given if each.place == "path"}
    fixed = quote(fixed, safe=_PATH_TEXT + "?")
    query = [fixed] if fixed else []
    query += [pair for each, value in given if each.place == "query" for pair in _query_pairs(each, value)]
    headers = {
        each.name: _header_value(each, value) for each, value in given if each.place == "header" and value is not None
    }
    cookies = [pair for each, value in given if each.place == "cookie" for pair in _query_pairs(each, value)]
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    content_type, body = _written_body(operation.body, params)
    if content_type:
        headers["Content-Type"] = content_type
    return Request(operation.method, _filled(path, segments), "&".join(query), headers, body, fixed)


def line_break_in(text: str) -> bool:
    """Whether a header or a path of this text would begin another one, or end early."""
    return any(ord(character) < 32 or ord(character) == 127 for character in text)


def _refuse_kept_back(placement: Placement, value: Any) -> None:
    """An object may bring names of its own, but neither a credential nor what makes another operation of this one."""
    top, inside = (value, value.values()) if placement.spread and isinstance(value, dict) else ({}, [value])
    names = [name for name in top if name.lower() in placement.refused or why_kept_back(name, placement.spread)]
    _refuse_names(placement.shown, [*names, *_credentials_in(*inside)])


def _refuse_names(shown: str, names: list[str]) -> None:
    if names:
        fault = f"it holds {names[0][:100]!r}, which is a credential or would change the operation"
        raise _wrong(shown, fault, "a value without it: credentials come from the connection")


def _credentials_in(*values: Any) -> Iterator[str]:
    """Their names, at every depth; without recursion, because a value may be as deep as JSON can be."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from (name for name in value if why_kept_back(name, "body", is_top=False))
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _filled(path: str, segments: Mapping[str, str]) -> str:
    """The template with its values; what they make together may not lead elsewhere either."""
    parts, rest = [], path
    while "{" in rest:
        before, _, after = rest.partition("{")
        name, closed, rest = after.partition("}")
        parts.append(quote(before, safe=_PATH_TEXT))
        parts.append(segments[name] if closed and name in segments else quote(f"{{{name}{closed}", safe=_PATH_TEXT))
    filled = "".join([*parts, quote(rest, safe=_PATH_TEXT)])
    if any(map(leads_elsewhere, filled.split("/"))):
        raise _wrong("path", "the values make '.' or '..' of a part of the path", "values that name one thing")
    return filled


def _path_value(placement: Placement, value: Any) -> str:
    parts = [_text(each) for each in _flat(placement, value)]
    whole = ",".join(parts)
    if not whole or leads_elsewhere(whole):
        raise _wrong(placement.shown, f"{whole!r:.100} cannot stand in a path", "a value that names one thing")
    if line_break_in(whole):
        raise _wrong(placement.shown, "it holds a line break or another control character", "plain text")
    return ",".join(quote(part, safe="") for part in parts)


def _header_value(placement: Placement, value: Any) -> str:
    text = ",".join(_text(each) for each in _flat(placement, value))
    if line_break_in(text) or not text.isascii():
        raise _wrong(placement.shown, "a header holds printable ASCII on one line", "printable ASCII on one line")
    return text


def _flat(placement: Placement, value: Any) -> list[Any]:
    """The entries of the style `simple`."""
    if placement.as_json:
        return [canonical_json(value)]
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return [value]
    if placement.explode:
        return [f"{key}={_text(each)}" for key, each in value.items()]
    return [part for pair in value.items() for part in pair]


def _query_pairs(placement: Placement, value: Any) -> Iterator[str]:
    """`name=value`, encoded; nothing for null and for an empty list."""
    name = quote(placement.name, safe="")
    if placement.as_json:
        yield f"{name}={quote(canonical_json(value), safe='')}"
    elif isinstance(value, dict):
        yield from _pairs_of_object(placement, name, value)
    elif isinstance(value, list):
        entries = [quote(_text(each), safe="") for each in value]
        if placement.explode and placement.style in ("form", "deepObject"):
            yield from (f"{name}={entry}" for entry in entries)
        elif entries:
            yield f"{name}={_SEPARATORS.get(placement.style, ',').join(entries)}"
    elif value is not None:
        yield f"{name}={quote(_text(value), safe='')}"


def _pairs_of_object(placement: Placement, name: str, value: Mapping[str, Any]) -> Iterator[str]:
    if placement.style == "deepObject":
        yield from _deep(placement.name, value)
    elif placement.explode:
        for key, entry in value.items():
            yield from _query_pairs(Placement(key, key, "query"), entry)
    else:
        parts = [quote(_text(part), safe="") for pair in value.items() for part in pair]
        if parts:
            yield f"{name}={_SEPARATORS.get(placement.style, ',').join(parts)}"


def _deep(name: str, value: Any) -> Iterator[str]:
    """`filter[colour][shade]=dark`; the entries of a list repeat its name."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _deep(f"{name}[{key}]", entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _deep(name, entry)
    elif value is not None:
        yield f"{quote(name, safe='')}={quote(_text(value), safe='')}"


def _written_body(body: Body | None, params: Mapping[str, Any]) -> tuple[str, bytes | None]:
    """Content type and content; explicit nulls stay in JSON."""
    if body is None or (body.shown and body.shown not in params):
        return "", None
    given = params[body.shown] if body.shown else {shown: params[shown] for shown in body.names if shown in params}
    if not (body.shown or given or body.required):
        return "", None
    value = outside_value(given, body.names)
    top = [name for name in value if changes_method(name)] if isinstance(value, dict) else []
    _refuse_names(body.shown or "body", [*top, *_credentials_in(value)])
    if body.media_type == "application/x-www-form-urlencoded":
        return body.media_type, urlencode(_form_pairs(value)).encode()
    if body.media_type == "multipart/form-data":
        return _multipart(_form_pairs(value))
    if body.media_type.startswith("text/") and body.media_type != "text/json":
        return f"{body.media_type}; charset=utf-8", _text(value).encode()
    return body.media_type, json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _form_pairs(value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, dict):
        raise _wrong("body", "a form is an object with fields", "an object")
    listed = ((name, entry if isinstance(entry, list) else [entry]) for name, entry in value.items())
    return [(name, "" if each is None else _text(each)) for name, entries in listed for each in entries]


def _multipart(pairs: list[tuple[str, str]]) -> tuple[str, bytes]:
    """Fields of text; the boundary is random, so that no value can end its part."""
    boundary = f"gadget-{secrets.token_hex(16)}"
    lines = []
    for name, value in pairs:
        plain = quote(name, safe=" !#$&'()*+,-./:;<=>?@[]^_`{|}~")
        lines.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{plain}"\r\n\r\n{value}\r\n')
    return f"multipart/form-data; boundary={boundary}", ("".join(lines) + f"--{boundary}--\r\n").encode()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _wrong(shown: str, fault: str, expected: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"The '{shown}' parameter is wrong: {fault}.",
        parameter=shown,
        expected=expected,
        recovery_hint=f"Correct '{shown}' and try again.",
        attempted=False,
    )
