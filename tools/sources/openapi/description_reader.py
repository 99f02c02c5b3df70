"""Reader of descriptions (OpenAPI 3, Swagger 2.0): each operation becomes a tool or is skipped."""

import re
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from tools.schemas.openapi import read_line
from tools.sources.openapi.document import DocumentError, DocumentLimits, read_document
from tools.sources.openapi.levels import FLOORS, infer_level
from tools.sources.openapi.names import assign_tool_names
from tools.sources.openapi.operations import ApiDescription, ApiOperation, SkippedOperation
from tools.sources.openapi.parameters import (
    BodyContent,
    ParameterReader,
    choose_content,
    pin_parameters,
)
from tools.sources.openapi.paths import has_path_traversal
from tools.sources.openapi.references import References, UnsupportedOperationError
from tools.sources.openapi.security import list_api_keys, read_security_schemes
from tools.sources.openapi.servers import ServerMatcher

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_MAX_DESCRIPTION_LENGTH = 1_024
_MAX_ADDRESS_LENGTH = 500
_MAX_TAGS = 50
_VARIABLE = re.compile(r"\{([^{}]+)\}")
_VERSION = re.compile(r"2\.0|3\.[012](\.\d+)?")


def read_description(
    text: str,
    *,
    limits: DocumentLimits | None = None,
    base_url: str = "",
    provided: frozenset[str] = frozenset(),
) -> ApiDescription:
    """Read the description in the text; an invalid operation is skipped with the reason.

    Args:
        base_url: the admin's address for the operations; operations of another server are skipped.
        provided: the body fields that the connection fills; a model may not set them.

    Raises:
        DocumentError: the text cannot be read: too large, neither JSON nor YAML, or not a supported
            description.
    """
    bounds = limits or DocumentLimits()
    return _DescriptionReader(read_document(text, bounds), bounds, base_url, provided).read()


class _DescriptionReader:
    def __init__(
        self,
        document: dict[str, Any],
        limits: DocumentLimits,
        base_url: str,
        provided: frozenset[str],
    ) -> None:
        self._document = document
        self._most = limits.operations
        version = str(document.get("swagger") or document.get("openapi") or "")
        if not _VERSION.fullmatch(version):
            raise DocumentError(
                f"its version is {version[:20]!r}; expected openapi: 3.x or swagger: '2.0'"
            )
        self._is_swagger = version == "2.0"
        self._references = References(document, time.thread_time() + limits.seconds)
        self._schemes = read_security_schemes(document, self._references)
        self._parameters = ParameterReader(self._references, list_api_keys(self._schemes), provided)
        self._base_url = base_url
        self._skipped: list[SkippedOperation] = []

    def read(self) -> ApiDescription:
        every = self._list_operations()
        found = dict(islice(every, self._most))
        self._skipped += [
            SkippedOperation(key, f"only the first {self._most:,} operations are read")
            for key, _ in every
        ]
        names = assign_tool_names(
            {key: read_line(node.get("operationId"), 500) for key, (node, _) in found.items()}
        )
        main = self._read_servers(self._document)
        self._servers = ServerMatcher(
            main, (self._read_own_servers(*each) for each in found.values()), self._base_url
        )
        operations = []
        for key, (node, item) in found.items():
            try:
                operations.append(self._read_operation(key, names[key], node, item))
            except UnsupportedOperationError as error:
                self._skipped.append(SkippedOperation(key, str(error)))
        about = _as_mapping(self._document.get("info"))
        return ApiDescription(
            read_line(about.get("title"), 200),
            read_line(about.get("version"), 50),
            self._servers.main,
            tuple(operations),
            tuple(self._skipped),
            self._schemes,
        )

    def _list_operations(self) -> Iterator[tuple[str, tuple[Mapping[str, Any], Mapping[str, Any]]]]:
        """Yield (key, (operation, path item)) for each operation; paths that cannot be used are
        skipped."""
        for path, given in _as_mapping(self._document.get("paths")).items():
            if path.startswith("x-"):
                continue
            try:
                item = self._references.resolve_object(given)
                _refuse_path(path)
            except UnsupportedOperationError as error:
                self._skipped.append(SkippedOperation(path[:500], str(error)))
                continue
            for method in _METHODS:
                if isinstance(node := item.get(method), Mapping):
                    yield f"{method.upper()} {path}", (node, item)

    def _read_operation(
        self, key: str, name: str, node: Mapping[str, Any], item: Mapping[str, Any]
    ) -> ApiOperation:
        self._references.check_time()
        method, _, path = key.partition(" ")
        if method not in FLOORS:
            raise UnsupportedOperationError(f"the method {method} is not supported")
        path = self._servers.find_prefix(self._read_own_servers(node, item)) + path
        _refuse_path(path)
        parameters = self._parameters.merge(item.get("parameters"), node.get("parameters"))
        path, _, fragment = path.partition("#")
        parameters = pin_parameters(parameters, fragment)
        content = (
            self._read_swagger_content(node, parameters)
            if self._is_swagger
            else self._read_content(node)
        )
        inputs = self._parameters.read_inputs(path, parameters, content)
        operation_id = read_line(node.get("operationId"), 500)
        inferred = infer_level(
            {
                "method": method,
                "path": f"{path}{'&' if '?' in path else '?'}{fragment}",
                "operation_id": operation_id,
                "params": inputs.schema,
            }
        )
        return ApiOperation(
            key=key,
            method=method,
            path=path,
            name=name,
            operation_id=operation_id,
            summary=read_line(node.get("summary"), 200),
            description=_write_description(key, node, item),
            level=inferred.level,
            level_reason=inferred.reason,
            params=inputs.schema,
            placements=tuple(inputs.placements),
            body=inputs.body,
            tags=tuple(
                read_line(tag, 100)
                for tag in _as_list(node.get("tags"))[:_MAX_TAGS]
                if isinstance(tag, str)
            ),
        )

    def _read_content(self, node: Mapping[str, Any]) -> BodyContent | None:
        body = self._references.resolve_object(node["requestBody"]) if "requestBody" in node else {}
        content = body.get("content")
        media = {
            kind: self._references.resolve_object(each)
            for kind, each in _as_mapping(content).items()
        }
        return choose_content(media, required=body.get("required") is True)

    def _read_swagger_content(
        self, node: Mapping[str, Any], parameters: list[dict[str, Any]]
    ) -> BodyContent | None:
        """Read the body or form, which Swagger 2.0 lists among the parameters; None if there is
        neither."""
        consumes = _as_list(node.get("consumes", self._document.get("consumes"))) or [
            "application/json"
        ]
        for each in parameters:
            if each["in"] == "body":
                media = {str(kind): {"schema": each.get("schema", {})} for kind in consumes}
                return choose_content(media, required=each.get("required") is True)
        form = [each for each in parameters if each["in"] == "formData"]
        if not form:
            return None
        required = [each["name"] for each in form if each.get("required") is True]
        has_files = any(each.get("type") == "file" for each in form)
        kind = "multipart/form-data" if has_files or "multipart/form-data" in consumes else ""
        schema = {
            "type": "object",
            "properties": {each["name"]: each for each in form},
            "required": required,
        }
        return BodyContent(kind or "application/x-www-form-urlencoded", schema, required=True)

    def _read_servers(self, node: Mapping[str, Any]) -> tuple[str, ...]:
        if self._is_swagger:
            host, base = read_line(node.get("host"), 300), read_line(node.get("basePath"), 300)
            schemes = [str(scheme) for scheme in _as_list(node.get("schemes"))] or ["https"]
            ordered = sorted(schemes, key=lambda scheme: scheme != "https")
            return (
                tuple(f"{scheme}://{host}{base}" for scheme in ordered)
                if host
                else tuple(filter(None, [base]))
            )
        servers = (each for each in _as_list(node.get("servers")) if isinstance(each, Mapping))
        return tuple(dict.fromkeys(filter(None, map(_read_server, servers))))

    def _read_own_servers(
        self, node: Mapping[str, Any], item: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return the servers of an operation, or else of its path."""
        return () if self._is_swagger else self._read_servers(node) or self._read_servers(item)


def _refuse_path(path: str) -> None:
    if not path.startswith("/"):
        raise UnsupportedOperationError("its path does not begin with a slash")
    if any(ord(character) < 32 for character in path) or "\\" in path:
        raise UnsupportedOperationError(
            "its path contains characters that are not allowed in a URL"
        )
    if any(map(has_path_traversal, path.partition("?")[0].split("/"))):
        raise UnsupportedOperationError("its path contains '.' or '..'")


def _read_server(server: Mapping[str, Any]) -> str:
    """Return the server's address, with the default of each variable."""
    variables = _as_mapping(server.get("variables"))

    def default(found: re.Match[str]) -> str:
        given = _as_mapping(variables.get(found[1])).get("default")
        return (
            str(given)[:_MAX_ADDRESS_LENGTH] if isinstance(given, str | int | float) else found[0]
        )

    address = _VARIABLE.sub(default, read_line(server.get("url"), _MAX_ADDRESS_LENGTH))[
        :_MAX_ADDRESS_LENGTH
    ]
    return address.rstrip("/") or ("/" if address else "")


def _write_description(key: str, node: Mapping[str, Any], item: Mapping[str, Any]) -> str:
    """Write the description for the model: summary, details, then the operation's key."""
    summary = read_line(node.get("summary") or item.get("summary"), 300)
    more = read_line(node.get("description") or item.get("description"), 5_000)
    parts = [
        summary,
        "" if more == summary else more,
        "Deprecated." if node.get("deprecated") is True else "",
    ]
    text = " ".join(
        part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part
    )
    tail = f"({key[:200]})"
    room = _MAX_DESCRIPTION_LENGTH - len(tail) - 1
    text = text if len(text) <= room else f"{text[: room - 1]}…"
    return f"{text} {tail}".strip()


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
