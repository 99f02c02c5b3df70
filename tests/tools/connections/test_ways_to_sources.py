"""An MCP server is reached with the organization's credentials, and missing credentials are
reported."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from tests.features import feature
from tools.connections.models import AuthenticationMethod, Source, SourceKind
from tools.connections.servers import build_api_connection, build_server
from tools.contract import NetworkAccess, ToolError
from tools.sources.mcp import HttpServer, StdioServer
from tools.sources.openapi import OpenAPITool, read_description
from tools.testing import run_tool

GIVEN = {
    "api_key": "key-of-ours",
    "token": "token-of-ours",
    "username": "kim",
    "password": "word-of-ours",
}
DESCRIPTION = {
    "openapi": "3.1.0",
    "info": {"title": "CRM", "version": "1"},
    "paths": {
        "/contacts": {"get": {"operationId": "list", "responses": {"200": {"description": "All."}}}}
    },
}


def source_of(kind: SourceKind, **more: object) -> Source:
    return Source(
        kind=kind, name="crm", organization_id=1, address="https://mcp.example.com/mcp", **more
    )


@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        ({"authentication": AuthenticationMethod.NONE}, {}),
        (
            {"authentication": AuthenticationMethod.BEARER},
            {"Authorization": "Bearer token-of-ours"},
        ),
        ({"authentication": AuthenticationMethod.API_KEY}, {"X-API-Key": "key-of-ours"}),
        (
            {"authentication": AuthenticationMethod.API_KEY, "key_name": "X-Key"},
            {"X-Key": "key-of-ours"},
        ),
        (
            {"authentication": AuthenticationMethod.BASIC},
            {"Authorization": f"Basic {b64encode(b'kim:word-of-ours').decode()}"},
        ),
    ],
)
def test_a_server_with_an_address_gets_its_headers(
    settings: dict[str, str], headers: dict[str, str]
) -> None:
    server = build_server(source_of(SourceKind.MCP_HTTP, **settings), GIVEN, NetworkAccess())
    assert isinstance(server, HttpServer)
    assert server.headers == headers


def test_a_program_gets_its_variables_unchanged() -> None:
    source = source_of(
        SourceKind.MCP_STDIO, command=["crm-server"], environment={"CRM_KEY": "token"}
    )
    server = build_server(source, {"token": "-----BEGIN-----\nof two lines"}, NetworkAccess())
    assert isinstance(server, StdioServer)
    assert server.environment == {"CRM_KEY": "-----BEGIN-----\nof two lines"}


@feature(
    "Tools from API descriptions",
    "All sources report missing credentials in the same way",
    "tools/sources/credentials.py",
)
def test_all_kinds_of_sources_report_missing_credentials_with_the_same_message() -> None:
    said = "The credentials for 'crm' are incomplete: token is missing."
    program = source_of(
        SourceKind.MCP_STDIO, command=["crm-server"], environment={"CRM_KEY": "token"}
    )
    behind = source_of(SourceKind.MCP_HTTP, authentication=AuthenticationMethod.BEARER)
    for source in (program, behind):
        with pytest.raises(ToolError) as failure:
            build_server(source, {"token": ""}, NetworkAccess())
        assert (failure.value.message, failure.value.attempted) == (said, False)
    api = build_api_connection(
        source_of(
            SourceKind.OPENAPI,
            authentication=AuthenticationMethod.BEARER,
            base_url="https://x.test/",
        )
    )
    operation = read_description(json.dumps(DESCRIPTION)).operations[0]
    error = run_tool(OpenAPITool(operation, api), {}).error
    assert error is not None
    assert (error.message, error.is_definite) == (said, True)
