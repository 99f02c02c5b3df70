"""Asks a source what it describes now."""

from collections.abc import Mapping
from urllib.parse import urljoin

from tools.contract import ErrorCode, Reach, ToolError, fingerprint
from tools.network import NetworkLimits, read_url, request
from tools.sources import mcp, openapi

from .changes import Described, Description
from .models import Authentication, Source
from .servers import server_of

LARGEST_DOCUMENT = 20_000_000
PATIENCE_S = 30.0


def describe(source: Source, fields: Mapping[str, str], reach: Reach) -> Description:
    """What the source describes; an API's description is fetched anew where it has an address.

    Args:
        fields: the credentials of the source's service.

    Raises:
        ToolError: it cannot be reached, or what it says cannot be read; the message is for the admin.
    """
    return _mcp(source, fields, reach) if source.is_mcp else _openapi(source, reach)


def _mcp(source: Source, fields: Mapping[str, str], reach: Reach) -> Description:
    listing = mcp.list_tools(server_of(source, fields, reach), timeout_s=PATIENCE_S)
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


def _openapi(source: Source, reach: Reach) -> Description:
    text = _fetched(source, reach) if source.address else source.document
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


def _fetched(source: Source, reach: Reach) -> str:
    limits = NetworkLimits(total_s=PATIENCE_S, answer_bytes=LARGEST_DOCUMENT)
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
