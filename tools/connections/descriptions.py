"""Retrieval of a source's current description."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urljoin

from tools.connections.changes import DescribedTool, SourceDescription
from tools.connections.models import AuthenticationMethod, Source
from tools.connections.servers import build_api_connection, build_server, check_base_url
from tools.contract import ErrorCode, NetworkAccess, ToolError, collect_secrets
from tools.network import NetworkLimits, read_url, request
from tools.network.urls import get_origin
from tools.sources import mcp, openapi
from tools.toolbox.secrecy import hide_secrets_in_error, hide_secrets_in_json

MAX_NAMED = 5
NO_SYNTAX = "this is neither JSON nor YAML: "
"""The beginning of the error that the document reader raises for a text that is neither JSON nor
YAML."""


@dataclass(frozen=True)
class FetchLimits:
    """The limits for a source's response: the time that it may take, and the size of an API's
    description."""

    seconds: float = 30.0
    document_bytes: int = 64_000_000


def fetch_description(
    source: Source, fields: Mapping[str, str], reach: NetworkAccess, limits: FetchLimits
) -> SourceDescription:
    """Fetch the source's current description; for an API without an address, read its stored text.

    Args:
        fields: the credentials of the source's service.

    Raises:
        ToolError: the source cannot be reached or its description cannot be read; the message is
            for the admin. For TIMEOUT and LIMIT_EXCEEDED, higher limits may help.
    """
    if source.is_mcp:
        return _describe_mcp(source, build_server(source, fields, reach), fields, limits)
    return _describe_openapi(source, reach, limits)


def _describe_mcp(
    source: Source, server: mcp.Server, fields: Mapping[str, str], limits: FetchLimits
) -> SourceDescription:
    """Describe the server's tools, with our credentials hidden wherever the server repeats them."""
    secrets = server.secrets | collect_secrets({"": fields})
    try:
        listing = mcp.list_tools(server, timeout_s=limits.seconds)
    except ToolError as error:
        raise hide_secrets_in_error(error, secrets) from error
    found = SourceDescription(
        title=listing.name,
        version=listing.version,
        tools=tuple(
            DescribedTool(
                key=each.name,
                tool=f"{source.name}.{each.legal_name}",
                title=each.title,
                tags=(),
                definition=each.to_json(),
                hash=each.hash,
                inferred_level=mcp.suggest_level(each.annotations, each),
            )
            for each in listing.tools
        ),
        skipped=tuple((each.name, each.reason) for each in listing.skipped),
        note=" ".join(
            [f"Its protocol version is {listing.protocol}.", *_describe_adapted(listing.adapted)]
        ),
    )
    return _hide_secrets(found, secrets, secrets - {fields.get("username", "")})


def _describe_adapted(adapted: Sequence[mcp.SkippedTool]) -> Iterator[str]:
    """Yield a sentence that names the first few tools with schema parts that were left out; yield
    nothing if there are no such tools."""
    if adapted:
        named = "; ".join(f"{each.name}: {each.reason}" for each in adapted[:MAX_NAMED])
        more = f"; and {len(adapted) - MAX_NAMED} more" if len(adapted) > MAX_NAMED else ""
        yield f"Parts of schemas that cannot be used: {named}{more}."


def _hide_secrets(
    found: SourceDescription, secrets: frozenset[str], forbidden_in_names: frozenset[str]
) -> SourceDescription:
    """Hide the secrets in all texts; skip tools with a secret in a name.

    Args:
        forbidden_in_names: the secrets that no name of a tool or param may contain; hiding one
            would rename the tool, and the server would not know the new name.
    """

    def clean(value: Any) -> Any:
        return hide_secrets_in_json(value, secrets)

    def has_secret_in_name(tool: DescribedTool) -> bool:
        return any(
            secret in name
            for name in (tool.key, *_list_keys(tool.definition))
            for secret in forbidden_in_names
        )

    skipped = [(clean(where), clean(reason)) for where, reason in found.skipped]
    skipped += [
        (clean(each.key), "its names contain our credentials")
        for each in found.tools
        if has_secret_in_name(each)
    ]
    return replace(
        found,
        title=clean(found.title),
        version=clean(found.version),
        note=clean(found.note),
        tools=tuple(
            replace(
                each,
                title=clean(each.title),
                definition={**clean(each.definition), "name": each.key},
            )
            for each in found.tools
            if not has_secret_in_name(each)
        ),
        skipped=tuple(skipped),
    )


def _list_keys(value: Any) -> Iterator[str]:
    """Yield all keys, at every depth."""
    if isinstance(value, Mapping):
        yield from value
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for child in value:
        yield from _list_keys(child)


def _describe_openapi(
    source: Source, reach: NetworkAccess, limits: FetchLimits
) -> SourceDescription:
    text = _fetch_document(source, reach, limits) if source.address else source.document
    if len(text) > limits.document_bytes:
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            f"The description is too long: {len(text):,} characters.",
            attempted=False,
        )
    try:
        provided = build_api_connection(source).authentication.body_names
        found = openapi.read_description(text, base_url=source.base_url, provided=provided)
    except openapi.DocumentError as error:
        raise ToolError(
            ErrorCode.OPERATION_FAILED, _describe_document_error(text, error)
        ) from error
    proposed = _find_server(source, found)
    return SourceDescription(
        title=found.title,
        version=found.version,
        tools=tuple(
            DescribedTool(
                key=each.key,
                tool=f"{source.name}.{each.name}",
                title=each.summary,
                tags=each.tags,
                definition=each.to_json(),
                hash=each.hash,
                inferred_level=each.level,
            )
            for each in found.operations
        ),
        skipped=tuple((each.where, each.reason) for each in found.skipped),
        document=text,
        base_url=source.base_url or (proposed if _is_trusted(source, proposed) else ""),
        note=_write_advice(source, found, proposed),
    )


def _describe_document_error(text: str, error: openapi.DocumentError) -> str:
    """Explain why the text cannot be read, to a person who gave an address or a file."""
    beginning = text[:1_000].removeprefix("\ufeff").lstrip().lower()
    if beginning.startswith("<") and not beginning.startswith("<?xml"):
        return "This is a web page, not an OpenAPI description. Enter the address of the JSON or YAML file."
    message = str(error)
    if beginning.startswith(("{", "[")) and NO_SYNTAX in message:
        return f"This is neither JSON nor YAML: {_locate_json_error(text)}."
    if NO_SYNTAX in message:
        return f"This is neither JSON nor YAML: {message.replace(NO_SYNTAX, '')}."
    if message.endswith("not an object"):
        return "This is a text, a number or a list, not an OpenAPI description."
    return f"This description cannot be read: {message}."


def _locate_json_error(text: str) -> str:
    """Locate the syntax error in a text that begins like JSON."""
    try:
        json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        pass
    return "it cannot be read"


def _fetch_document(source: Source, reach: NetworkAccess, limits: FetchLimits) -> str:
    bounds = NetworkLimits(total_s=limits.seconds, response_bytes=limits.document_bytes)
    response = request("GET", source.address, reach=reach, limits=bounds)
    if response.status != 200:
        raise ToolError(
            ErrorCode.OPERATION_FAILED,
            f"The address of the description returned status {response.status}.",
        )
    return response.text


def _find_server(source: Source, found: openapi.ApiDescription) -> str:
    """Return the description's first server with a valid address; empty if there is none."""
    for server in found.servers or ("/",):
        address = urljoin(source.address, server)
        try:
            check_base_url(address)
        except ToolError:
            continue
        return address
    return ""


def _is_trusted(source: Source, address: str) -> bool:
    """Return True if requests to the address carry no credentials, or if the address has the origin
    that an admin entered."""
    if source.authentication == AuthenticationMethod.NONE:
        return True
    return bool(source.address and address) and get_origin(read_url(source.address)) == get_origin(
        read_url(address)
    )


def _write_advice(source: Source, found: openapi.ApiDescription, proposed: str) -> str:
    """Describe what the admin must do next before the operations can work; empty if nothing is left
    to do."""
    if not (source.base_url or proposed):
        return "The source has no address for its operations. Enter it in the source's settings."
    if not (source.base_url or _is_trusted(source, proposed)):
        return f"The description gives {proposed} as the server. If right, enter it as the address of operations."
    if source.authentication != AuthenticationMethod.NONE or not found.schemes:
        return ""
    named = {
        "api_key": "an API key in the {place} {parameter}",
        "bearer": "a bearer token",
        "basic": "a user name and a password",
        "oauth2": "OAuth 2 client credentials from {token_url}",
    }
    methods = [
        named[each.kind].format(**vars(each)) for each in found.schemes if each.kind in named
    ]
    return (
        f"The source requires {', or '.join(methods)}. Set the authentication." if methods else ""
    )
