"""Reads a whole description, OpenAPI 3.1, 3.0 or Swagger 2.0: every operation becomes a tool's, or is left out."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote

from .document import DocumentError, Limits, read_document
from .levels import FLOORS, inferred_level
from .names import tool_names
from .operations import Description, LeftOut, Operation
from .parameters import Content, Parameters, chosen_content
from .references import References, RefusedError
from .security import api_keys, schemes_of, security_of

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_LONGEST_DESCRIPTION = 1_024
_MOST_WARNINGS = 50
_VERSION = re.compile(r"2\.0|3\.[012](\.\d+)?")


def read_description(text: str | bytes, *, limits: Limits | None = None) -> Description:
    """The description in the text; what is wrong with single operations is told, and refuses nothing else.

    Raises:
        DocumentError: it cannot be read at all: too large, no JSON or YAML, no description, or of an unknown version.
    """
    bounds = limits or Limits()
    return _Reading(read_document(text, bounds), bounds.operations).description()


class _Reading:
    def __init__(self, document: dict[str, Any], most: int) -> None:
        self._document = document
        self._most = most
        version = str(document.get("swagger") or document.get("openapi") or "")
        if not _VERSION.fullmatch(version):
            raise DocumentError(f"its version is {version[:20]!r}; expected openapi: 3.x or swagger: '2.0'")
        self._is_old = version == "2.0"
        self._references = References(document)
        self._schemes = schemes_of(document, self._references)
        self._parameters = Parameters(self._references, api_keys(self._schemes))
        self._servers = self._servers_of(document)
        self._warnings: list[str] = []
        self._left_out: list[LeftOut] = []

    def description(self) -> Description:
        every = self._found()
        found = dict(islice(every, self._most))
        self._left_out += [LeftOut(key, f"it stands behind the first {self._most:,} operations") for key, _ in every]
        names = tool_names({key: _text(node.get("operationId"), 500) for key, (node, _) in found.items()})
        self._warn_of_doubles(node for node, _ in found.values())
        operations = []
        for key, (node, item) in found.items():
            try:
                operations.append(self._operation(key, names[key], node, item))
            except RefusedError as error:
                self._left_out.append(LeftOut(key, str(error)))
        info = self._document.get("info")
        told = info if isinstance(info, Mapping) else {}
        return Description(
            _text(told.get("title"), 200),
            _text(told.get("version"), 50),
            self._servers,
            tuple(operations),
            tuple(self._left_out),
            tuple(self._warnings[:_MOST_WARNINGS]),
            self._schemes,
        )

    def _found(self) -> Iterator[tuple[str, tuple[Mapping[str, Any], Mapping[str, Any]]]]:
        """By key, each operation and the path that it stands in."""
        paths = self._document.get("paths")
        if not isinstance(paths, Mapping):
            self._warnings.append("it has no paths")
            return
        for path, given in paths.items():
            if path.startswith("x-"):
                continue
            try:
                item = self._references.found(given)
                _refuse_path(path)
            except RefusedError as error:
                self._left_out.append(LeftOut(path[:500], str(error)))
                continue
            for method in _METHODS:
                if isinstance(node := item.get(method), Mapping):
                    yield f"{method.upper()} {path}", (node, item)

    def _operation(self, key: str, name: str, node: Mapping[str, Any], item: Mapping[str, Any]) -> Operation:
        method, _, path = key.partition(" ")
        if method not in FLOORS:
            raise RefusedError(f"the method {method} is not used")
        self._refuse_other_server(node, item)
        parameters = self._parameters.merged(item.get("parameters"), node.get("parameters"))
        content = self._old_content(node, parameters) if self._is_old else self._content(node)
        inputs = self._parameters.inputs(path, parameters, content)
        operation_id = _text(node.get("operationId"), 500)
        inferred = inferred_level(method, path, operation_id)
        return Operation(
            key=key,
            method=method,
            path=path,
            name=name,
            operation_id=operation_id,
            summary=_text(node.get("summary"), 200),
            description=_description(key, node, item),
            level=inferred.level,
            level_reason=inferred.reason,
            params=inputs.schema,
            placements=tuple(inputs.placements),
            body=inputs.body,
            tags=tuple(_text(tag, 100) for tag in _list(node.get("tags")) if isinstance(tag, str)),
            deprecated=node.get("deprecated") is True,
            response_types=self._response_types(node),
            security=security_of(node, self._document),
        )

    def _content(self, node: Mapping[str, Any]) -> Content | None:
        body = self._references.found(node["requestBody"]) if "requestBody" in node else {}
        content = body.get("content")
        media = {kind: self._references.found(each) for kind, each in _mapping(content).items()}
        return chosen_content(media, required=body.get("required") is True)

    def _old_content(self, node: Mapping[str, Any], parameters: list[dict[str, Any]]) -> Content | None:
        """Swagger 2.0 keeps bodies and forms among the parameters."""
        consumes = _list(node.get("consumes", self._document.get("consumes"))) or ["application/json"]
        for each in parameters:
            if each["in"] == "body":
                media = {str(kind): {"schema": each.get("schema", {})} for kind in consumes}
                return chosen_content(media, required=each.get("required") is True)
        form = [each for each in parameters if each["in"] == "formData"]
        if not form:
            return None
        required = [each["name"] for each in form if each.get("required") is True]
        has_files = any(each.get("type") == "file" for each in form)
        kind = "multipart/form-data" if has_files or "multipart/form-data" in consumes else ""
        schema = {"type": "object", "properties": {each["name"]: each for each in form}, "required": required}
        return Content(kind or "application/x-www-form-urlencoded", schema, required=True)

    def _response_types(self, node: Mapping[str, Any]) -> tuple[str, ...]:
        if self._is_old:
            produces = _list(node.get("produces", self._document.get("produces")))
            return tuple(str(kind)[:100] for kind in produces)
        kinds: dict[str, None] = {}
        for status, response in _mapping(node.get("responses")).items():
            if str(status).startswith("2") or status == "default":
                kinds.update(dict.fromkeys(self._content_types(response)))
        return tuple(kinds)

    def _content_types(self, response: Any) -> list[str]:
        try:
            return [str(kind)[:100] for kind in _mapping(self._references.found(response).get("content"))]
        except RefusedError as error:
            self._warnings.append(f"a response cannot be read: {error}")
            return []

    def _servers_of(self, node: Mapping[str, Any]) -> tuple[str, ...]:
        if self._is_old:
            host, base = _text(node.get("host"), 300), _text(node.get("basePath"), 300)
            schemes = [str(scheme) for scheme in _list(node.get("schemes"))] or ["https"]
            ordered = sorted(schemes, key=lambda scheme: scheme != "https")
            return tuple(f"{scheme}://{host}{base}" for scheme in ordered) if host else tuple(filter(None, [base]))
        servers = (each for each in _list(node.get("servers")) if isinstance(each, Mapping))
        return tuple(dict.fromkeys(filter(None, map(_server, servers))))

    def _refuse_other_server(self, node: Mapping[str, Any], item: Mapping[str, Any]) -> None:
        """The base address is one setting of the source, so what lives elsewhere needs a source of its own."""
        if self._is_old:
            return
        own = self._servers_of(node) or self._servers_of(item)
        if own and self._servers and not set(own) & set(self._servers):
            raise RefusedError(f"it has a server of its own: {own[0]}")

    def _warn_of_doubles(self, nodes: Iterator[Mapping[str, Any]]) -> None:
        seen: set[str] = set()
        for node in nodes:
            operation_id = _text(node.get("operationId"), 500)
            if not operation_id:
                continue
            if operation_id in seen:
                self._warnings.append(f"the operationId {operation_id!r} stands more than once")
            seen.add(operation_id)


def _refuse_path(path: str) -> None:
    if not path.startswith("/"):
        raise RefusedError("its path does not begin with a slash")
    if any(ord(character) < 32 for character in path) or "#" in path or "\\" in path:
        raise RefusedError("its path holds characters that no address has")
    if any(unquote(part) in (".", "..") for part in path.partition("?")[0].split("/")):
        raise RefusedError("its path holds '.' or '..'")


def _server(server: Mapping[str, Any]) -> str:
    """Its address, with the default of each variable."""
    address = _text(server.get("url"), 500)
    for name, variable in _mapping(server.get("variables")).items():
        if isinstance(variable, Mapping):
            address = address.replace(f"{{{name}}}", str(variable.get("default", "")))
    return address.rstrip("/") or ("/" if address else "")


def _description(key: str, node: Mapping[str, Any], item: Mapping[str, Any]) -> str:
    """For the model: what it does, then what it is."""
    summary = _text(node.get("summary") or item.get("summary"), 300)
    more = _text(node.get("description") or item.get("description"), 5_000)
    parts = [summary, "" if more == summary else more, "Deprecated." if node.get("deprecated") is True else ""]
    told = " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)
    tail = f"({key[:200]})"
    room = _LONGEST_DESCRIPTION - len(tail) - 1
    told = told if len(told) <= room else f"{told[: room - 1]}…"
    return f"{told} {tail}".strip()


def _text(value: Any, longest: int) -> str:
    """On one line; empty if it is no text."""
    return " ".join(value.split())[:longest] if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
