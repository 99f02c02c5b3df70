"""Asks a source what it describes now."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urljoin

from tools.contract import ErrorCode, Reach, ToolError, fingerprint
from tools.network import NetworkLimits, read_url, request
from tools.sources import mcp, openapi

from .changes import Described, Description
from .models import Authentication, Source
from .servers import server_of


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
        return _mcp(source, server_of(source, fields, reach), patience)
    return _openapi(source, reach, patience)


def _mcp(source: Source, server: mcp.Server, patience: Patience) -> Description:
    listing = mcp.list_tools(server, timeout_s=patience.seconds)
    return Description(
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
                inferred_level=mcp.suggested_level(each.annotations),
            )
            for each in listing.tools
        ),
        left_out=tuple((each.name, each.reason) for each in listing.left_out),
        note=f"It speaks the protocol of {listing.protocol}.",
    )


def _openapi(source: Source, reach: Reach, patience: Patience) -> Description:
    text = _fetched(source, reach, patience) if source.address else source.document
    if len(text) > patience.document_bytes:
        raise ToolError(ErrorCode.LIMIT_EXCEEDED, f"The description has {len(text):,} characters.", attempted=False)
    try:
        found = openapi.read_description(text)
    except openapi.DocumentError as error:
        raise ToolError(ErrorCode.OPERATION_FAILED, f"This is no description that can be read: {error}.") from error
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
                hash=fingerprint(each.as_json()),
                inferred_level=each.level,
            )
            for each in found.operations
        ),
        left_out=tuple((each.where, each.reason) for each in found.left_out),
        document=text,
        base_url=source.base_url or _first_server(source, found),
        note=_advice(source, found),
    )


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
            read_url(address)
        except ToolError:
            continue
        return address
    return ""


def _advice(source: Source, found: openapi.Description) -> str:
    """What an admin has to do before its operations can work."""
    if not (source.base_url or _first_server(source, found)):
        return "It does not say where its operations go: give the address of its operations."
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
