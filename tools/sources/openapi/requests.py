"""Conversion of a call's params into an HTTP request; of the credentials, only those in a body are
added here."""

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from tools.contract import ErrorCode, ToolError, canonical_json
from tools.sources.openapi.credential_names import may_change_method, object_to_name
from tools.sources.openapi.operations import ApiOperation, OperationBody, Placement
from tools.sources.openapi.paths import has_path_traversal
from tools.sources.openapi.schemas import restore_api_names

_SEPARATORS = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}
_WITHOUT_BODY = ("GET", "HEAD")
_JSON = "application/json"
_PATH_TEXT = "/:@!$&'()*+,;=~-._%"


@dataclass(frozen=True)
class ApiRequest:
    """The request of one call.

    Attributes:
        path: percent-encoded, with a leading slash.
        query: percent-encoded, without the question mark.
        fixed_query: the part of the query that comes from the operation's path, not from params.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    fixed_query: str = ""


def build_request(
    operation: ApiOperation, params: Mapping[str, Any], credentials: Mapping[str, str] | None = None
) -> ApiRequest:
    """Build the request for canonical params.

    Args:
        credentials: fields to add to the body; ignored for GET and HEAD, which have no body.

    Raises:
        ToolError: INVALID_PARAMETER, a value would leave its place in the path, cannot be written
            in a header, or contains a name that a model may not use; or the body cannot hold the
            credentials.
    """
    given = [
        (each, restore_api_names(params[each.shown], each.names))
        for each in operation.placements
        if each.shown in params
    ]
    for each, value in given:
        _refuse_forbidden_keys(each, value)
    path, _, fixed = operation.path.partition("?")
    segments = {
        each.name: _encode_path_value(each, value) for each, value in given if each.place == "path"
    }
    fixed = quote(fixed, safe=_PATH_TEXT + "?")
    query = [fixed] if fixed else []
    query += [
        pair
        for each, value in given
        if each.place == "query"
        for pair in _encode_query(each, value)
    ]
    headers = {
        each.name: _encode_header_value(each, value)
        for each, value in given
        if each.place == "header" and value is not None
    }
    cookies = [
        pair
        for each, value in given
        if each.place == "cookie"
        for pair in _encode_query(each, value)
    ]
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    added = (credentials or {}) if operation.method not in _WITHOUT_BODY else {}
    content_type, body = _encode_body(operation.body, params, added)
    if content_type:
        headers["Content-Type"] = content_type
    return ApiRequest(
        operation.method, _fill_path(path, segments), "&".join(query), headers, body, fixed
    )


def has_control_characters(text: str) -> bool:
    """Return True if the text has a control character, which could end a header or path early."""
    return any(ord(character) < 32 or ord(character) == 127 for character in text)


def _refuse_forbidden_keys(placement: Placement, value: Any) -> None:
    """Refuse keys in the value that are credentials or would change the operation."""
    top, inside = (
        (value, value.values()) if placement.spread and isinstance(value, dict) else ({}, [value])
    )
    names = [
        name
        for name in top
        if name.lower() in placement.refused or object_to_name(name, placement.spread) is not None
    ]
    _refuse_names(placement.shown, [*names, *_find_credentials(*inside)])


def _refuse_names(shown: str, names: list[str]) -> None:
    if names:
        fault = (
            f"it contains {names[0][:100]!r}, which is a credential or would change the operation"
        )
        raise _build_param_error(
            shown, fault, "a value without it; credentials come from the connection"
        )


def _find_credentials(*values: Any) -> Iterator[str]:
    """Yield the names of credentials at every depth, without recursion, because nesting is
    unlimited."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from (
                name for name in value if object_to_name(name, "body", is_top=False) is not None
            )
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _fill_path(path: str, segments: Mapping[str, str]) -> str:
    """Fill the path template with the values and refuse path traversal in the result."""
    parts, rest = [], path
    while "{" in rest:
        before, _, after = rest.partition("{")
        name, closed, rest = after.partition("}")
        parts.append(quote(before, safe=_PATH_TEXT))
        parts.append(
            segments[name]
            if closed and name in segments
            else quote(f"{{{name}{closed}", safe=_PATH_TEXT)
        )
    filled = "".join([*parts, quote(rest, safe=_PATH_TEXT)])
    if any(map(has_path_traversal, filled.split("/"))):
        raise _build_param_error(
            "path",
            "the values turn a part of the path into '.' or '..'",
            "values that are plain path segments",
        )
    return filled


def _encode_path_value(placement: Placement, value: Any) -> str:
    parts = [_to_text(each) for each in _list_entries(placement, value)]
    text = ",".join(parts)
    if not text or has_path_traversal(text):
        raise _build_param_error(
            placement.shown,
            f"{text!r:.100} cannot be part of a path",
            "a plain path segment, such as an id",
        )
    if has_control_characters(text):
        raise _build_param_error(
            placement.shown, "it contains a line break or another control character", "plain text"
        )
    return ",".join(quote(part, safe="") for part in parts)


def _encode_header_value(placement: Placement, value: Any) -> str:
    text = ",".join(_to_text(each) for each in _list_entries(placement, value))
    if has_control_characters(text) or not text.isascii():
        raise _build_param_error(
            placement.shown,
            "a header value must be printable ASCII on one line",
            "printable ASCII on one line",
        )
    return text


def _list_entries(placement: Placement, value: Any) -> list[Any]:
    """List the entries of a value in the style `simple`."""
    if placement.as_json:
        return [canonical_json(value)]
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return [value]
    if placement.explode:
        return [f"{key}={_to_text(each)}" for key, each in value.items()]
    return [part for pair in value.items() for part in pair]


def _encode_query(placement: Placement, value: Any) -> Iterator[str]:
    """Yield encoded `name=value` pairs; do not yield any for null or an empty list."""
    name = quote(placement.name, safe="")
    if placement.as_json:
        yield f"{name}={quote(canonical_json(value), safe='')}"
    elif isinstance(value, dict):
        yield from _encode_query_object(placement, name, value)
    elif isinstance(value, list):
        entries = [quote(_to_text(each), safe="") for each in value]
        if placement.explode and placement.style in ("form", "deepObject"):
            yield from (f"{name}={entry}" for entry in entries)
        elif entries:
            yield f"{name}={_SEPARATORS.get(placement.style, ',').join(entries)}"
    elif value is not None:
        yield f"{name}={quote(_to_text(value), safe='')}"


def _encode_query_object(
    placement: Placement, name: str, value: Mapping[str, Any]
) -> Iterator[str]:
    if placement.style == "deepObject":
        yield from _encode_deep_object(placement.name, value)
    elif placement.explode:
        for key, entry in value.items():
            yield from _encode_query(Placement(key, key, "query"), entry)
    else:
        parts = [quote(_to_text(part), safe="") for pair in value.items() for part in pair]
        if parts:
            yield f"{name}={_SEPARATORS.get(placement.style, ',').join(parts)}"


def _encode_deep_object(name: str, value: Any) -> Iterator[str]:
    """Yield pairs such as `filter[color][shade]=dark`; the entries of a list repeat its name."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _encode_deep_object(f"{name}[{key}]", entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _encode_deep_object(name, entry)
    elif value is not None:
        yield f"{quote(name, safe='')}={quote(_to_text(value), safe='')}"


def _encode_body(
    body: OperationBody | None, params: Mapping[str, Any], added: Mapping[str, str]
) -> tuple[str, bytes | None]:
    """Return the content type and content of the body with the added fields; JSON keeps nulls."""
    if body is None or (body.shown and body.shown not in params and not added):
        return (_JSON, _write_json(added)) if added else ("", None)
    own = {shown: params[shown] for shown in body.names if shown in params}
    given = params.get(body.shown, {}) if body.shown else own
    if not (body.shown or given or body.required or added):
        return "", None
    value = restore_api_names(given, body.names)
    filled = {name.lower() for name in added}
    names = value if isinstance(value, dict) else ()
    top = [name for name in names if may_change_method(name) or name.lower() in filled]
    _refuse_names(body.shown or "body", [*top, *_find_credentials(value)])
    if added:
        if not isinstance(value, dict):
            raise _build_param_error(
                body.shown,
                "the API’s key is sent in this body, which must be an object",
                "an object",
            )
        value = {**value, **added}
    if body.media_type == "application/x-www-form-urlencoded":
        return body.media_type, urlencode(_list_form_pairs(value)).encode()
    if body.media_type == "multipart/form-data":
        return _encode_multipart(_list_form_pairs(value))
    if body.media_type.startswith("text/") and body.media_type != "text/json":
        return f"{body.media_type}; charset=utf-8", _to_text(value).encode()
    return body.media_type, _write_json(value)


def _write_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _list_form_pairs(value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, dict):
        raise _build_param_error("body", "a form must be an object with fields", "an object")
    listed = (
        (name, entry if isinstance(entry, list) else [entry]) for name, entry in value.items()
    )
    return [
        (name, "" if each is None else _to_text(each))
        for name, entries in listed
        for each in entries
    ]


def _encode_multipart(pairs: list[tuple[str, str]]) -> tuple[str, bytes]:
    """Encode text fields; the boundary is random, so that no value can end its own part."""
    boundary = f"gadget-{secrets.token_hex(16)}"
    lines = []
    for name, value in pairs:
        plain = quote(name, safe=" !#$&'()*+,-./:;<=>?@[]^_`{|}~")
        lines.append(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{plain}"\r\n\r\n{value}\r\n'
        )
    return f"multipart/form-data; boundary={boundary}", (
        "".join(lines) + f"--{boundary}--\r\n"
    ).encode()


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _build_param_error(shown: str, fault: str, expected: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"The '{shown}' parameter is invalid: {fault}.",
        parameter=shown,
        expected=expected,
        recovery_hint=f"Correct '{shown}' and try again.",
        attempted=False,
    )
