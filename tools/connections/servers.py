"""How a source is reached, made from its row and the organisation's own credentials."""

from base64 import b64encode
from collections.abc import Mapping

from tools.contract import ErrorCode, Reach, ToolError
from tools.network import read_url
from tools.sources import openapi
from tools.sources.credentials import refuse_missing
from tools.sources.mcp import HttpServer, Server, StdioServer

from .models import Authentication, Source, SourceKind

Fields = Mapping[str, str]

USUAL_KEY_NAME = "X-API-Key"


def server_of(source: Source, fields: Fields, reach: Reach) -> Server:
    """The MCP server; `fields` are the credentials of the source's service.

    Raises:
        ToolError: UNAUTHORIZED, a field is missing.
    """
    refuse_missing(source.credentials_service, needed_fields(source), fields)
    if source.kind == SourceKind.MCP_STDIO:
        environment = {name: fields[field] for name, field in source.environment.items()}
        return StdioServer(tuple(source.command), environment, owner=str(source.organization_id))
    return HttpServer(source.address, _headers(source, fields), reach)


def check_base_url(address: str) -> None:
    """Refuse what no path can stand behind.

    Raises:
        ToolError: INVALID_PARAMETER or SECURITY_VIOLATION.
    """
    read_url(address)
    if "?" in address or "#" in address:
        raise ToolError(ErrorCode.INVALID_PARAMETER, "Leave out what begins with ? or #: paths are put behind it.")


def needed_fields(source: Source) -> tuple[str, ...]:
    """Those that the credentials of the source's service have to have."""
    if source.kind == SourceKind.MCP_STDIO:
        return tuple(dict.fromkeys(source.environment.values()))
    return openapi.Kind(source.authentication).fields


def connection_of(source: Source) -> openapi.Connection:
    """The settings of an API; its credentials come with each call."""
    return openapi.Connection(
        source=source.name,
        base_url=source.base_url,
        title=source.title or source.name,
        authentication=openapi.Authentication(
            kind=openapi.Kind(source.authentication),
            service=source.credentials_service,
            place=source.key_place,
            name=source.key_name or USUAL_KEY_NAME,
            token_url=source.token_url,
            scopes=tuple(source.scopes.split()),
        ),
        timeout_s=source.timeout_s,
    )


def account_of(source: Source) -> tuple[str, ...]:
    """In whose name an MCP server is asked, without a secret: another password is the same account."""
    variables = (f"{name}={field}" for name, field in sorted(source.environment.items()))
    return source.credentials_service, source.authentication, source.key_name, *variables


def _headers(source: Source, fields: Fields) -> dict[str, str]:
    if source.authentication == Authentication.API_KEY:
        return {source.key_name or USUAL_KEY_NAME: fields["api_key"]}
    if source.authentication == Authentication.BEARER:
        return {"Authorization": f"Bearer {fields['token']}"}
    if source.authentication == Authentication.BASIC:
        pair = f"{fields['username']}:{fields['password']}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    return {}
