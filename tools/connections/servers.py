"""Connection settings of a source, built from its row and the organization's own credentials."""

from base64 import b64encode
from collections.abc import Mapping

from tools.connections.models import AuthenticationMethod, Source, SourceKind
from tools.contract import ErrorCode, NetworkAccess, ToolError
from tools.network import read_url
from tools.sources import openapi
from tools.sources.credentials import require_credentials
from tools.sources.mcp import HttpServer, Server, StdioServer

Fields = Mapping[str, str]

DEFAULT_KEY_NAME = "X-API-Key"


def build_server(source: Source, fields: Fields, reach: NetworkAccess) -> Server:
    """Build the MCP server of a source; `fields` are the credentials of its service.

    Raises:
        ToolError: UNAUTHORIZED, if a field is missing.
    """
    require_credentials(source.credentials_service, required_fields(source), fields)
    if source.kind == SourceKind.MCP_STDIO:
        environment = {name: fields[field] for name, field in source.environment.items()}
        return StdioServer(tuple(source.command), environment, owner=str(source.organization_id))
    return HttpServer(source.address, _build_headers(source, fields), reach)


def check_base_url(address: str) -> None:
    """Check that paths can be appended to the address.

    Raises:
        ToolError: INVALID_PARAMETER or SECURITY_VIOLATION.
    """
    read_url(address)
    if "?" in address or "#" in address:
        raise ToolError(
            ErrorCode.INVALID_PARAMETER,
            "Remove everything from ? or # on, because paths are appended to the address.",
        )


def required_fields(source: Source) -> tuple[str, ...]:
    """Return the fields that the credentials of the source's service must have."""
    if source.kind == SourceKind.MCP_STDIO:
        return tuple(dict.fromkeys(source.environment.values()))
    return openapi.AuthenticationKind(source.authentication).fields


def build_api_connection(source: Source) -> openapi.ApiConnection:
    """Build the settings of an API; its credentials are added to each call."""
    return openapi.ApiConnection(
        source=source.name,
        base_url=source.base_url,
        title=source.title or source.name,
        authentication=openapi.AuthenticationSettings(
            kind=openapi.AuthenticationKind(source.authentication),
            service=source.credentials_service,
            place=source.key_place,
            name=source.key_name or DEFAULT_KEY_NAME,
            token_url=source.token_url,
            scopes=tuple(source.scopes.split()),
        ),
        timeout_s=source.timeout_s,
    )


def identify_account(source: Source) -> tuple[str, ...]:
    """Return the settings that identify the account with which an MCP server is called. Secrets are
    left out, because they may change."""
    variables = (f"{name}={field}" for name, field in sorted(source.environment.items()))
    return source.credentials_service, source.authentication, source.key_name, *variables


def _build_headers(source: Source, fields: Fields) -> dict[str, str]:
    if source.authentication == AuthenticationMethod.API_KEY:
        return {source.key_name or DEFAULT_KEY_NAME: fields["api_key"]}
    if source.authentication == AuthenticationMethod.BEARER:
        return {"Authorization": f"Bearer {fields['token']}"}
    if source.authentication == AuthenticationMethod.BASIC:
        pair = f"{fields['username']}:{fields['password']}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    return {}
