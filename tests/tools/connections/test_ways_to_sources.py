"""How an MCP server is reached with the organisation's credentials, and what is said where these are missing."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from tools.connections.models import Authentication, Source, SourceKind
from tools.connections.servers import connection_of, server_of
from tools.contract import Reach, ToolError
from tools.sources.mcp import HttpServer, StdioServer
from tools.sources.openapi import OpenAPITool, read_description
from tools.testing import run_tool

GIVEN = {"api_key": "key-of-ours", "token": "token-of-ours", "username": "kim", "password": "word-of-ours"}
DESCRIPTION = {
    "openapi": "3.1.0",
    "info": {"title": "CRM", "version": "1"},
    "paths": {"/contacts": {"get": {"operationId": "list", "responses": {"200": {"description": "All."}}}}},
}


def source_of(kind: SourceKind, **more: object) -> Source:
    return Source(kind=kind, name="crm", organization_id=1, address="https://mcp.example.com/mcp", **more)


@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        ({"authentication": Authentication.NONE}, {}),
        ({"authentication": Authentication.BEARER}, {"Authorization": "Bearer token-of-ours"}),
        ({"authentication": Authentication.API_KEY}, {"X-API-Key": "key-of-ours"}),
        ({"authentication": Authentication.API_KEY, "key_name": "X-Key"}, {"X-Key": "key-of-ours"}),
        (
            {"authentication": Authentication.BASIC},
            {"Authorization": f"Basic {b64encode(b'kim:word-of-ours').decode()}"},
        ),
    ],
)
def test_a_server_behind_an_address_gets_its_headers(settings: dict[str, str], headers: dict[str, str]) -> None:
    server = server_of(source_of(SourceKind.MCP_HTTP, **settings), GIVEN, Reach())
    assert isinstance(server, HttpServer)
    assert server.headers == headers


def test_a_program_gets_its_variables_as_they_are() -> None:
    source = source_of(SourceKind.MCP_STDIO, command=["crm-server"], environment={"CRM_KEY": "token"})
    server = server_of(source, {"token": "-----BEGIN-----\nof two lines"}, Reach())
    assert isinstance(server, StdioServer)
    assert server.environment == {"CRM_KEY": "-----BEGIN-----\nof two lines"}


def test_all_kinds_of_sources_say_the_same_of_what_is_missing() -> None:
    said = "There are no credentials for 'crm': token is missing."
    program = source_of(SourceKind.MCP_STDIO, command=["crm-server"], environment={"CRM_KEY": "token"})
    behind = source_of(SourceKind.MCP_HTTP, authentication=Authentication.BEARER)
    for source in (program, behind):
        with pytest.raises(ToolError) as failure:
            server_of(source, {"token": ""}, Reach())
        assert (failure.value.message, failure.value.attempted) == (said, False)
    api = connection_of(source_of(SourceKind.OPENAPI, authentication=Authentication.BEARER, base_url="https://x.test/"))
    operation = read_description(json.dumps(DESCRIPTION)).operations[0]
    error = run_tool(OpenAPITool(operation, api), {}).error
    assert error is not None
    assert (error.message, error.is_definite) == (said, True)
