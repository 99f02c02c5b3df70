"""Asks a source what it describes now."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urljoin

from tools.contract import ErrorCode, Reach, ToolError, secrets_of
from tools.network import NetworkLimits, read_url, request
from tools.network.urls import origin_of
from tools.sources import mcp, openapi
from tools.toolbox.secrecy import error_without_secrets, json_without_secrets

from .changes import Described, Description
from .models import Authentication, Source
from .servers import check_base_url, server_of

NO_SYNTAX = "this is neither JSON nor YAML: "
"""What the reader of documents says of a text that has the rules of neither."""


@dataclass(frozen=True)
class Patience:
    """How long a source may take to say what it describes, and how large an API's description may be."""

    seconds: float = 30.0
    document_bytes: int = 20_000_000


def describe(source: Source, fields: Mapping[str, str], reach: Reach, patience: Patience) -> Description:
    """What the source describes; an API's description is fetched anew where it has an address.

    Args:
        fields: the credentials of the source's service.

    Raises:
        ToolError: it cannot be reached, or what it says cannot be read; the message is for the admin. TIMEOUT and
            LIMIT_EXCEEDED: more patience may help.
    """
    if source.is_mcp:
        return _mcp(source, server_of(source, fields, reach), fields, patience)
    return _openapi(source, reach, patience)


def _mcp(source: Source, server: mcp.Server, fields: Mapping[str, str], patience: Patience) -> Description:
    """Without what the server says of the credentials that it was given."""
    secrets = server.secrets | secrets_of({"": fields})
    try:
        listing = mcp.list_tools(server, timeout_s=patience.seconds)
    except ToolError as error:
        raise error_without_secrets(error, secrets) from error
    found = Description(
        title=listing.name,
        version=listing.version,
        tools=tuple(
            Described(
                key=each.name,
                tool=f"{source.name}.{each.legal_name}",
                title=each.title,
                tags=(),
                definition=each.to_json(),
                hash=each.hash,
                inferred_level=mcp.suggested_level(each.annotations, each),
            )
            for each in listing.tools
        ),
        left_out=tuple((each.name, each.reason) for each in listing.left_out),
        note=f"It speaks the protocol of {listing.protocol}.",
    )
    return _without_secrets(found, secrets, secrets - {fields.get("username", "")})


def _without_secrets(found: Description, secrets: frozenset[str], unnamed: frozenset[str]) -> Description:
    """The same in other words.

    Args:
        unnamed: of the secrets, those that no tool and no param may be named by: in other words it could not be called.
    """

    def clean(value: Any) -> Any:
        return json_without_secrets(value, secrets)

    def tells(tool: Described) -> bool:
        return any(secret in name for name in (tool.key, *_names_in(tool.definition)) for secret in unnamed)

    left_out = [(clean(where), clean(reason)) for where, reason in found.left_out]
    left_out += [(clean(each.key), "it is named by our credentials") for each in found.tools if tells(each)]
    return replace(
        found,
        title=clean(found.title),
        version=clean(found.version),
        note=clean(found.note),
        tools=tuple(
            replace(each, title=clean(each.title), definition={**clean(each.definition), "name": each.key})
            for each in found.tools
            if not tells(each)
        ),
        left_out=tuple(left_out),
    )


def _names_in(value: Any) -> Iterator[str]:
    """All keys."""
    if isinstance(value, Mapping):
        yield from value
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for child in value:
        yield from _names_in(child)


def _openapi(source: Source, reach: Reach, patience: Patience) -> Description:
    text = _fetched(source, reach, patience) if source.address else source.document
    if len(text) > patience.document_bytes:
        raise ToolError(ErrorCode.LIMIT_EXCEEDED, f"The description has {len(text):,} characters.", attempted=False)
    try:
        found = openapi.read_description(text, base_url=source.base_url)
    except openapi.DocumentError as error:
        raise ToolError(ErrorCode.OPERATION_FAILED, _told(text, error)) from error
    proposed = _first_server(source, found)
    return Description(
        title=found.title,
        version=found.version,
        tools=tuple(
            Described(
                key=each.key,
                tool=f"{source.name}.{each.name}",
                title=each.summary,
                tags=each.tags,
                definition=each.as_json(),
                hash=each.hash,
                inferred_level=each.level,
            )
            for each in found.operations
        ),
        left_out=tuple((each.where, each.reason) for each in found.left_out),
        document=text,
        base_url=source.base_url or (proposed if _is_trusted(source, proposed) else ""),
        note=_advice(source, found, proposed),
    )


def _told(text: str, error: openapi.DocumentError) -> str:
    """Why the text cannot be read, for somebody who has an address or a file and no parser in mind."""
    beginning = text[:1_000].removeprefix("\ufeff").lstrip().lower()
    if beginning.startswith("<") and not beginning.startswith("<?xml"):
        return "This is a web page, not an OpenAPI description: it needs the address of the JSON or YAML itself."
    told = str(error)
    if beginning.startswith(("{", "[")) and NO_SYNTAX in told:
        return f"This is neither JSON nor YAML: {_json_fault(text)}."
    if NO_SYNTAX in told:
        return f"This is neither JSON nor YAML: {told.replace(NO_SYNTAX, '')}."
    if told.endswith("not an object"):
        return "This is a text, a number or a list, not an OpenAPI description."
    return f"This is no description that can be read: {told}."


def _json_fault(text: str) -> str:
    """Where what begins like JSON is none."""
    try:
        json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        pass
    return "it cannot be read"


def _fetched(source: Source, reach: Reach, patience: Patience) -> str:
    limits = NetworkLimits(total_s=patience.seconds, answer_bytes=patience.document_bytes)
    answer = request("GET", source.address, reach=reach, limits=limits)
    if answer.status != 200:
        raise ToolError(ErrorCode.OPERATION_FAILED, f"The address of the description answers with {answer.status}.")
    return answer.text


def _first_server(source: Source, found: openapi.Description) -> str:
    """The description's first server, if it leads somewhere."""
    for server in found.servers or ("/",):
        address = urljoin(source.address, server)
        try:
            check_base_url(address)
        except ToolError:
            continue
        return address
    return ""


def _is_trusted(source: Source, address: str) -> bool:
    """Whether operations may go there though no admin has said so: credentials go only where an admin sends them."""
    if source.authentication == Authentication.NONE:
        return True
    return bool(source.address and address) and origin_of(read_url(source.address)) == origin_of(read_url(address))


def _advice(source: Source, found: openapi.Description, proposed: str) -> str:
    """What an admin has to do before its operations can work."""
    if not (source.base_url or proposed):
        return "It does not say where its operations go: give the address of its operations."
    if not (source.base_url or _is_trusted(source, proposed)):
        proposal = f"It says that its operations are at {proposed}:"
        return f"{proposal} write that as the address of its operations if it is right."
    if source.authentication != Authentication.NONE or not found.schemes:
        return ""
    named = {
        "api_key": "an API key in the {place} {parameter}",
        "bearer": "a bearer token",
        "basic": "a user name and a password",
        "oauth2": "OAuth 2 client credentials from {token_url}",
    }
    told = [named[each.kind].format(**vars(each)) for each in found.schemes if each.kind in named]
    return f"It asks for {', or '.join(told)}: set the authentication." if told else ""
