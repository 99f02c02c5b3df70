"""Clients that violate the protocol, want to log in, or read only JSON: each client gets a helpful
response."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from django.utils import timezone
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from agents.accounts.membership import issue_token
from agents.accounts.models import Membership, Role
from agents.gateway.keys import revoke_key
from agents.gateway.models import AgentKey
from tests.faults.site import Site
from tests.features import feature
from tests.gateway.live.test_mcp_server import (
    INITIALIZE,
    INITIALIZE_PARAMS,
    PING,
    make_headers,
    post,
    read_result,
)
from tests.mcp_client import NEWEST

REVISIONS = ["2025-06-18", "2025-11-25", NEWEST]
WELL_KNOWN = (
    *(
        "oauth-authorization-server",
        "oauth-protected-resource",
        "oauth-protected-resource/mcp",
        "openid-configuration",
    ),
    *("oauth-authorization-server/mcp", "jwks.json", "nothing/at/all"),
)
LOGINS = (
    *(f"/.well-known/{name}" for name in WELL_KNOWN),
    *(
        "/register",
        "/authorize?client_id=x&redirect_uri=http://127.0.0.1/",
        "/token",
        "/revoke",
        "/register/",
    ),
    *("/mcp/.well-known/openid-configuration", "/mcp/register"),
)


def get_error(response: httpx2.Response) -> dict[str, Any]:
    """Return the error of a response."""
    return dict(response.json()["error"])


@feature(
    "Agents elsewhere",
    "Odd ids, unknown revisions and clients that read only JSON get a helpful response",
    "agents/mcp_server/messages.py",
)
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("message_id", [1.5, 1.0, True, False, None, [], [1], {}, {"a": 1}])
def test_a_request_with_an_invalid_id_is_refused(
    site: Site, secret: str, revision: str, message_id: Any
) -> None:
    response = post(site, secret, {**PING, "id": message_id}, MCP_Protocol_Version=revision)
    assert (response.status_code, response.json()["id"]) == (400, None)
    assert (get_error(response)["code"], get_error(response)["message"]) == (
        -32600,
        "id must be a string or an integer.",
    )


@pytest.mark.parametrize("message_id", [0, -1, 2**70, "", "a", "é", "x" * 500])
def test_a_valid_id_is_returned_unchanged(site: Site, secret: str, message_id: Any) -> None:
    response = post(site, secret, {**PING, "id": message_id}, Accept="application/json")
    assert (response.status_code, response.json()["id"]) == (200, message_id)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"jsonrpc": "1.0"}, -32600),
        ({"jsonrpc": None}, -32600),
        ({"method": 5}, -32600),
        ({"method": None}, -32600),
        ({"params": []}, -32602),
        ({"params": "x"}, -32602),
    ],
)
def test_a_malformed_message_is_refused_with_its_id(
    site: Site, secret: str, changes: dict[str, Any], code: int
) -> None:
    response = post(site, secret, {**PING, "id": 7, **changes})
    assert (response.status_code, response.json()["id"], get_error(response)["code"]) == (
        400,
        7,
        code,
    )


@pytest.mark.parametrize(
    "body", [{}, {"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "id": 1}, [], [PING], 5, "ping"]
)
def test_a_body_that_is_not_a_message_is_refused(site: Site, secret: str, body: Any) -> None:
    response = post(site, secret, body)
    assert (response.status_code, get_error(response)["code"]) == (400, -32600)


def test_null_params_are_treated_as_missing(site: Site, secret: str) -> None:
    assert post(site, secret, {**PING, "params": None}).status_code == 200


@pytest.mark.parametrize(
    "named", ["1999-01-01", "2027-01-01", "x", "", "2026-07-28, 2025-11-25", "é", "1" * 900]
)
@pytest.mark.parametrize(
    "body", [PING, INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
)
def test_an_unknown_revision_is_refused_and_the_served_revisions_are_named(
    site: Site, secret: str, named: str, body: Any
) -> None:
    sent = make_headers(secret, MCP_Protocol_Version=named)
    headers = {name.encode(): value.encode() for name, value in sent.items()}
    response = httpx2.post(
        f"{site.installation.url}/mcp", content=json.dumps(body).encode(), headers=headers
    )
    error = get_error(response)
    assert (response.status_code, error["code"]) == (400, -32022)
    assert error["data"]["supported"] == list(KNOWN_PROTOCOL_VERSIONS)
    assert NEWEST in error["message"]
    assert "_meta" not in response.text


@pytest.mark.parametrize("wanted", ["1999-01-01", "2027-01-01", ""])
def test_a_handshake_for_an_unknown_revision_offers_a_served_revision(
    site: Site, secret: str, wanted: str
) -> None:
    begin = {**INITIALIZE, "params": {**INITIALIZE_PARAMS, "protocolVersion": wanted}}
    headers = {
        name: value
        for name, value in make_headers(secret).items()
        if name != "MCP-Protocol-Version"
    }
    response = httpx2.post(f"{site.installation.url}/mcp", json=begin, headers=headers)
    assert read_result(response)["protocolVersion"] == "2025-11-25"


class TestAcceptHeader:
    @pytest.mark.parametrize(
        "accept", ["application/json", "application/json; q=1", "application/*", "Application/Json"]
    )
    def test_that_allows_only_json_gets_json(self, site: Site, secret: str, accept: str) -> None:
        record = site.workshop.record(region="EU")
        call = {"name": "data__searchRecords", "arguments": {"region": "EU"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        response = post(site, secret, body, Accept=accept)
        assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
        assert response.json()["result"]["structuredContent"]["records"][0]["id"] == str(record.pk)

    def test_that_allows_only_json_gets_json_in_the_newest_revision(
        self, site: Site, secret: str
    ) -> None:
        meta = {
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        headers = {"MCP_Protocol_Version": NEWEST, "Mcp_Method": "tools/list"}
        response = post(site, secret, body, Accept="application/json", **headers)
        assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
        assert response.json()["result"]["tools"]

    @pytest.mark.parametrize(
        "accept", ["*/*", "text/event-stream", "application/json, text/event-stream", None]
    )
    def test_that_allows_streams_or_is_missing_gets_a_stream(
        self, site: Site, secret: str, accept: str | None
    ) -> None:
        headers = {name: value for name, value in make_headers(secret).items() if name != "Accept"}
        with httpx2.Client(headers=headers | ({"Accept": accept} if accept else {})) as client:
            if accept is None:
                del client.headers["accept"]
            response = client.post(f"{site.installation.url}/mcp", json=PING)
        assert (response.status_code, response.headers["content-type"]) == (
            200,
            "text/event-stream",
        )

    @pytest.mark.parametrize("accept", ["text/html", "image/png"])
    def test_that_allows_neither_json_nor_streams_is_refused(
        self, site: Site, secret: str, accept: str
    ) -> None:
        assert post(site, secret, Accept=accept).status_code == 406

    def test_that_allows_only_json_opens_a_session_in_the_handshake(
        self, site: Site, secret: str
    ) -> None:
        begun = post(site, secret, INITIALIZE, Accept="application/json")
        assert begun.json()["result"]["serverInfo"]["name"] == "gadget"
        session = {"Accept": "application/json", "Mcp_Session_Id": begun.headers["mcp-session-id"]}
        assert post(site, secret, **session).json()["result"] == {}


class TestLoginDiscovery:
    @feature(
        "Agents elsewhere",
        "A client that looks for a login gets 404 in JSON, and the response to an invalid key says why",
        "agents/web/views/not_offered.py",
    )
    @pytest.mark.parametrize("path", LOGINS)
    @pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS"])
    def test_gets_404_in_json(self, site: Site, path: str, method: str) -> None:
        json_body = {"redirect_uris": ["http://127.0.0.1/"]} if method == "POST" else None
        response = httpx2.request(
            method, f"{site.installation.url}{path}", json=json_body, follow_redirects=False
        )
        assert (response.status_code, response.headers["content-type"]) == (404, "application/json")
        if method != "HEAD":
            assert "agent key" in response.json()["error_description"]

    def test_does_not_hide_the_public_keys(self, site: Site) -> None:
        assert "keys" in httpx2.get(f"{site.installation.url}/.well-known/gadget-keys.json").json()


class TestABrokenKey:
    def challenge(self, site: Site, secret: str) -> str:
        response = post(site, secret)
        assert response.status_code == 401
        return str(response.headers["www-authenticate"])

    def test_is_refused_with_the_reason(self, site: Site, secret: str) -> None:
        key, member = AgentKey.objects.get(), site.workshop.operator
        token = issue_token(site.workshop.admin, "token")[1]
        assert self.challenge(site, "") == 'Bearer realm="Gadget"', (
            "without a key there is no error yet"
        )
        for wrong, why in ((token, "not an agent key"), (f"{secret}x", "no such agent key")):
            assert 'error="invalid_token"' in self.challenge(site, wrong)
            assert why in self.challenge(site, wrong)
        Membership.objects.filter(pk=member.pk).update(role=Role.VIEWER)
        assert "cannot start runs" in self.challenge(site, secret)
        Membership.objects.filter(pk=member.pk).update(role=Role.OPERATOR)
        AgentKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(days=1))
        assert "expired on 20" in self.challenge(site, secret)
        revoke_key(member, key.pk)
        assert "was revoked" in self.challenge(site, secret)
        assert post(site, secret).json()["error"]["message"] == "This agent key was revoked."
