"""Reads a whole description, OpenAPI 3.1, 3.0 or Swagger 2.0: every operation becomes a tool's, or is left out."""

import re
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from .document import DocumentError, Limits, read_document
from .levels import FLOORS, inferred_level
from .names import one_line, tool_names
from .operations import Description, LeftOut, Operation
from .parameters import Content, Parameters, chosen_content, pin_parameters
from .paths import leads_elsewhere
from .references import References, RefusedError
from .security import api_keys, schemes_of
from .servers import Servers

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_LONGEST_DESCRIPTION = 1_024
_LONGEST_ADDRESS = 500
_MOST_TAGS = 50
_VARIABLE = re.compile(r"\{([^{}]+)\}")
_VERSION = re.compile(r"2\.0|3\.[012](\.\d+)?")


def read_description(text: str, *, limits: Limits | None = None, base_url: str = "") -> Description:
    """Read the description in the text; faults of single operations are reported, and refuse nothing else.

    Args:
        base_url: the admin's address for the operations; those that name another server are left out.

    Raises:
        DocumentError: it cannot be read at all: too large, no JSON or YAML, no description, or of an unknown version.
    """
    bounds = limits or Limits()
    return _Reading(read_document(text, bounds), bounds, base_url).description()


class _Reading:
    def __init__(self, document: dict[str, Any], limits: Limits, base_url: str) -> None:
        self._document = document
        self._most = limits.operations
        version = str(document.get("swagger") or document.get("openapi") or "")
        if not _VERSION.fullmatch(version):
            raise DocumentError(f"its version is {version[:20]!r}; expected openapi: 3.x or swagger: '2.0'")
        self._is_old = version == "2.0"
        self._references = References(document, time.monotonic() + limits.seconds)
        self._schemes = schemes_of(document, self._references)
        self._parameters = Parameters(self._references, api_keys(self._schemes))
        self._base_url = base_url
        self._left_out: list[LeftOut] = []

    def description(self) -> Description:
        every = self._found()
        found = dict(islice(every, self._most))
        self._left_out += [LeftOut(key, f"it stands behind the first {self._most:,} operations") for key, _ in every]
        names = tool_names({key: one_line(node.get("operationId"), 500) for key, (node, _) in found.items()})
        main = self._servers_of(self._document)
        self._servers = Servers(main, (self._own_servers(*each) for each in found.values()), self._base_url)
        operations = []
        for key, (node, item) in found.items():
            try:
                operations.append(self._operation(key, names[key], node, item))
            except RefusedError as error:
                self._left_out.append(LeftOut(key, str(error)))
        info = self._document.get("info")
        told = info if isinstance(info, Mapping) else {}
        return Description(
            one_line(told.get("title"), 200),
            one_line(told.get("version"), 50),
            self._servers.main,
            tuple(operations),
            tuple(self._left_out),
            self._schemes,
        )

    def _found(self) -> Iterator[tuple[str, tuple[Mapping[str, Any], Mapping[str, Any]]]]:
        """By key, each operation and the path that it stands in."""
        for path, given in _mapping(self._document.get("paths")).items():
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
        self._references.refuse_late()
        method, _, path = key.partition(" ")
        if method not in FLOORS:
            raise RefusedError(f"the method {method} is not used")
        path = self._servers.prefix(self._own_servers(node, item)) + path
        _refuse_path(path)
        parameters = self._parameters.merged(item.get("parameters"), node.get("parameters"))
        path, _, mark = path.partition("#")
        parameters = pin_parameters(parameters, mark)
        content = self._old_content(node, parameters) if self._is_old else self._content(node)
        inputs = self._parameters.inputs(path, parameters, content)
        operation_id = one_line(node.get("operationId"), 500)
        inferred = inferred_level(
            {
                "method": method,
                "path": f"{path}{'&' if '?' in path else '?'}{mark}",
                "operation_id": operation_id,
                "params": inputs.schema,
            }
        )
        return Operation(
            key=key,
            method=method,
            path=path,
            name=name,
            operation_id=operation_id,
            summary=one_line(node.get("summary"), 200),
            description=_description(key, node, item),
            level=inferred.level,
            level_reason=inferred.reason,
            params=inputs.schema,
            placements=tuple(inputs.placements),
            body=inputs.body,
            tags=tuple(one_line(tag, 100) for tag in _list(node.get("tags"))[:_MOST_TAGS] if isinstance(tag, str)),
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

    def _servers_of(self, node: Mapping[str, Any]) -> tuple[str, ...]:
        if self._is_old:
            host, base = one_line(node.get("host"), 300), one_line(node.get("basePath"), 300)
            schemes = [str(scheme) for scheme in _list(node.get("schemes"))] or ["https"]
            ordered = sorted(schemes, key=lambda scheme: scheme != "https")
            return tuple(f"{scheme}://{host}{base}" for scheme in ordered) if host else tuple(filter(None, [base]))
        servers = (each for each in _list(node.get("servers")) if isinstance(each, Mapping))
        return tuple(dict.fromkeys(filter(None, map(_server, servers))))

    def _own_servers(self, node: Mapping[str, Any], item: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the servers of an operation, or else of its path."""
        return () if self._is_old else self._servers_of(node) or self._servers_of(item)


def _refuse_path(path: str) -> None:
    if not path.startswith("/"):
        raise RefusedError("its path does not begin with a slash")
    if any(ord(character) < 32 for character in path) or "\\" in path:
        raise RefusedError("its path holds characters that no address has")
    if any(map(leads_elsewhere, path.partition("?")[0].split("/"))):
        raise RefusedError("its path holds '.' or '..'")


def _server(server: Mapping[str, Any]) -> str:
    """Its address, with the default of each variable."""
    variables = _mapping(server.get("variables"))

    def default(found: re.Match[str]) -> str:
        given = _mapping(variables.get(found[1])).get("default")
        return str(given)[:_LONGEST_ADDRESS] if isinstance(given, str | int | float) else found[0]

    address = _VARIABLE.sub(default, one_line(server.get("url"), _LONGEST_ADDRESS))[:_LONGEST_ADDRESS]
    return address.rstrip("/") or ("/" if address else "")


def _description(key: str, node: Mapping[str, Any], item: Mapping[str, Any]) -> str:
    """For the model: what it does, then what it is."""
    summary = one_line(node.get("summary") or item.get("summary"), 300)
    more = one_line(node.get("description") or item.get("description"), 5_000)
    parts = [summary, "" if more == summary else more, "Deprecated." if node.get("deprecated") is True else ""]
    told = " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)
    tail = f"({key[:200]})"
    room = _LONGEST_DESCRIPTION - len(tail) - 1
    told = told if len(told) <= room else f"{told[: room - 1]}…"
    return f"{told} {tail}".strip()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
