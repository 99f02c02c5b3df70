"""Gadget as an MCP server: real clients list, read, ask, wait and fetch, and invalid requests are
refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from django.apps import apps
from django.test import Client
from mcp.shared.exceptions import MCPError
from redis import Redis

from agents.accounts.membership import issue_token
from agents.gateway.keys import MAX_REQUESTS_PER_MINUTE, revoke_key
from agents.gateway.models import AgentKey
from agents.mcp_server.door import LARGEST_BODY, MAX_WRONG_KEYS_PER_MINUTE
from agents.runs.models import Run, RunStatus, ToolCall
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.features import feature
from tests.gateway.live.conftest import make_secret
from tests.mcp_client import NEWEST, WITH_SESSIONS, connect
from tests.processes import Installation
from tests.workshop import again
from tools.office.records.models import Record

MODES = [NEWEST, WITH_SESSIONS]
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
INITIALIZE_PARAMS = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "Test", "version": "1"},
}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE_PARAMS}


def post(site: Site, secret: str, body: Any = PING, **headers: str) -> httpx2.Response:
    """Send one message, as a client of the revision 2025-11-25."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(
        f"{site.installation.url}/mcp", content=content, headers=make_headers(secret, **headers)
    )


def make_headers(secret: str, **more: str) -> dict[str, str]:
    fixed = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    revision = {"MCP-Protocol-Version": "2025-11-25"}
    login = {"Authorization": f"Bearer {secret}"} if secret else {}
    return (
        fixed | revision | login | {name.replace("_", "-"): value for name, value in more.items()}
    )


@feature(
    "Agents elsewhere",
    "An MCP server at `/mcp`, in the newest revision and those before it",
    "agents/mcp_server/server.py",
)
@pytest.mark.parametrize("mode", MODES)
def test_a_client_can_list_read_ask_wait_and_fetch(site: Site, secret: str, mode: str) -> None:
    record = site.workshop.record(region="EU")
    with connect(site.installation.url, secret, mode) as agent:
        tools = {tool.name: tool for tool in agent.list_tools()}
        assert {
            "data__searchRecords",
            "data__updateRecord",
            "gadget__ticket",
            "gadget__cancel",
        } <= set(tools)
        assert tools["data__searchRecords"].input_schema["properties"]["region"]
        read = agent.call("data__searchRecords", region="EU")
        assert not read.is_error
        assert read.structured_content["records"][0]["id"] == str(record.pk)
        asked = agent.call(
            "data__updateRecord", record_id=str(record.pk), changes={"phone": "+49 1"}
        )
        ticket = asked.structured_content
        assert ticket["status"] == "waiting_for_approval"
        card = site.workshop.card(Run.objects.get())
        assert ticket["url"] == f"{site.installation.url}/approvals/{card.pk}/"
        assert agent.wait_for(ticket["ticket"], 0).structured_content == ticket
        with ThreadPoolExecutor(1) as waiting:
            response = waiting.submit(agent.wait_for, ticket["ticket"])
            site.workshop.approve(card)
            assert not response.result(30).is_error
    assert Record.objects.get().phone == "+49 1"
    with connect(site.installation.url, secret, mode) as agent:
        assert not agent.wait_for(ticket["ticket"], 0).is_error, (
            "the next session of the key can fetch it"
        )


def test_a_client_of_the_oldest_revision_can_read_and_write(site: Site, secret: str) -> None:
    record = site.workshop.record(region="EU")
    begun = post(site, secret, INITIALIZE, MCP_Protocol_Version="2025-06-18")
    assert read_result(begun)["protocolVersion"] == "2025-06-18"
    session = {
        "MCP_Protocol_Version": "2025-06-18",
        "Mcp_Session_Id": begun.headers["mcp-session-id"],
    }

    def send(method: str, **params: Any) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
        return read_result(post(site, secret, body, **session))

    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        return send("tools/call", name=tool, arguments=arguments)

    assert {"data__searchRecords", "gadget__ticket"} <= {
        tool["name"] for tool in send("tools/list")["tools"]
    }
    read = call("data.searchRecords", region="EU")
    assert read["structuredContent"]["records"][0]["id"] == str(record.pk)
    asked = call("data.updateRecord", record_id=str(record.pk), changes={"phone": "+49 1"})[
        "structuredContent"
    ]
    assert asked["status"] == "waiting_for_approval"
    site.workshop.approve(site.workshop.card(Run.objects.get()))
    assert not call("gadget.ticket", ticket=asked["ticket"], wait_s=30)["isError"]
    assert Record.objects.get().phone == "+49 1"


def read_result(response: httpx2.Response) -> dict[str, Any]:
    """Read the result of a response, which may be a stream of one event."""
    assert response.status_code == 200, response.text
    data = response.text if response.text.startswith("{") else response.text.rpartition("data: ")[2]
    return dict(json.loads(data)["result"])


def test_a_clients_description_of_itself_or_of_a_call_is_not_stored(
    site: Site, secret: str
) -> None:
    record, words = site.workshop.record(), "CANARY"
    client = {"name": words, "title": words, "version": "1"}
    about_itself = {**INITIALIZE_PARAMS, "clientInfo": client, "_meta": {"title": words}}
    begin = {**INITIALIZE, "params": about_itself}
    session = post(site, secret, begin).headers["mcp-session-id"]
    arguments = {"record_id": str(record.pk), "changes": {"phone": "+49 1"}}
    params = {
        "name": "data.updateRecord",
        "arguments": arguments,
        "_meta": {"title": words, "reason": words},
    }
    body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    assert post(site, secret, body, Mcp_Session_Id=session).status_code == 200
    card = site.workshop.card(Run.objects.get())
    models = [
        model
        for name in ("runs", "gateway", "approvals")
        for model in apps.get_app_config(name).get_models()
    ]
    stored = [row for model in models for row in model._default_manager.values()]
    assert str(card.digest) in str(stored)
    assert words not in str(stored)


def test_only_the_tools_of_the_employee_and_of_the_gateway_are_listed_and_callable(
    site: Site, secret: str
) -> None:
    site.workshop.employee.grants.exclude(tool="data.searchRecords").delete()
    with connect(site.installation.url, secret) as agent:
        assert [tool.name for tool in agent.list_tools()] == [
            "data__searchRecords",
            "gadget__ticket",
            "gadget__cancel",
        ]
        for tool in (
            "probe.nothing",
            "data.updateRecord",
            "data__updateRecord",
            "x___aaaaaaaaaaaaaaaa",
        ):
            with pytest.raises(MCPError, match="there is no tool"):
                agent.call(tool)


def test_progress_is_reported_while_a_call_runs(site: Site, secret: str) -> None:
    with connect(site.installation.url, secret) as agent:
        ticket = agent.call("probe.knock", name="knock").structured_content["ticket"]
        site.recorder.hold("knock")
        with ThreadPoolExecutor(1) as waiting:
            response = waiting.submit(agent.wait_for, ticket)
            site.workshop.approve(site.workshop.card(Run.objects.get()))
            site.recorder.await_arrival("knock")
            await_that(lambda: (0.5, 1.0, "half") in agent.progress, "the progress arrives")
            site.recorder.release("knock")
            assert not response.result(30).is_error


def test_a_client_can_cancel_its_request(site: Site, secret: str) -> None:
    record = site.workshop.record()
    with connect(site.installation.url, secret) as agent:
        asked = agent.call(
            "data__updateRecord", record_id=str(record.pk), changes={"phone": "+49 1"}
        )
        ticket = asked.structured_content["ticket"]
        cancelled = agent.call("gadget__cancel", ticket=ticket)
        assert (cancelled.structured_content["status"], cancelled.is_error) == ("cancelled", False)
        assert (
            agent.call("gadget.cancel", ticket=ticket).structured_content
            == cancelled.structured_content
        )
        assert agent.call("gadget__ticket", ticket=ticket).is_error, (
            "the call itself did not happen"
        )


def test_both_spellings_of_a_name_call_the_same_tool(site: Site, secret: str) -> None:
    record = site.workshop.record()
    changes = {"record_id": str(record.pk), "changes": {"phone": "+49 1"}}
    with connect(site.installation.url, secret) as agent:
        tickets = [
            agent.call(f"data{dot}updateRecord", **changes).structured_content["ticket"]
            for dot in (".", "__")
        ]
        assert tickets[0] == tickets[1]
        assert {
            agent.call(f"gadget{dot}ticket", ticket=tickets[0]).structured_content["status"]
            for dot in (".", "__")
        }
    assert [call.tool for call in ToolCall.objects.all()] == ["data.updateRecord"]


def test_invalid_tickets_are_refused(site: Site, secret: str) -> None:
    with connect(site.installation.url, secret) as agent:
        assert agent.call("gadget.ticket", ticket="t-1").is_error
        for ticket in ({}, {"ticket": 1}):
            with pytest.raises(MCPError, match="ticket must be a string"):
                agent.call("gadget.ticket", **ticket)


def test_the_web_process_stays_subscribed_between_calls(site: Site, secret: str) -> None:
    """Without a subscription, its channel layer would notice the end of the next call up to 0.1 s
    late."""
    with (
        connect(site.installation.url, secret) as agent,
        Redis.from_url(site.installation.redis.url) as redis,
    ):
        agent.call("data.searchRecords", region="EU")
        await_that(
            lambda: not redis.pubsub_channels("*bell__group__run.*"),
            "nobody waits for a run any more",
        )
        assert redis.pubsub_channels("*bellspecific.*")


@pytest.mark.parametrize("wait_s", ["1", True, None, -1, 30.5, 31, [1]])
def test_a_wait_that_is_not_a_number_of_seconds_is_refused(
    site: Site, secret: str, wait_s: Any
) -> None:
    with connect(site.installation.url, secret) as agent, pytest.raises(MCPError, match="wait_s"):
        agent.call("gadget.ticket", ticket="t-1", wait_s=wait_s)


def test_calls_of_one_session_run_in_parallel(site: Site, secret: str) -> None:
    site.recorder.hold("slow")
    with connect(site.installation.url, secret) as agent, ThreadPoolExecutor(1) as beside:
        slow = beside.submit(agent.call, "probe.gate", name="slow")
        site.recorder.await_arrival("slow")
        assert not agent.call("probe.gate", name="quick").is_error, "a slow call delays no other"
        site.recorder.release("slow")
        assert not slow.result(30).is_error


def test_a_running_write_does_not_delay_reads(site: Site, secret: str) -> None:
    site.recorder.hold("slow")
    with connect(site.installation.url, secret) as agent:
        ticket = agent.call("probe.effect", name="slow").structured_content["ticket"]
        site.workshop.approve(site.workshop.card(Run.objects.get()))
        site.recorder.await_arrival("slow")
        assert not agent.call("probe.gate", name="quick").is_error
        site.recorder.release("slow")
        assert not agent.wait_for(ticket).is_error


class TestSessions:
    def test_map_to_runs_and_end_with_their_client(self, site: Site, secret: str) -> None:
        with connect(site.installation.url, secret, WITH_SESSIONS) as agent:
            agent.call("data.searchRecords", region="EU")
        (run,) = Run.objects.all()
        await_that(
            lambda: again(run).status == RunStatus.SUCCEEDED, "the end of the session ends the run"
        )
        with connect(site.installation.url, secret, WITH_SESSIONS) as agent:
            agent.call("data.searchRecords", region="EU")
        assert Run.objects.count() == 2

    def test_are_not_found_once_ended(self, site: Site, secret: str) -> None:
        opened = post(site, secret, INITIALIZE)
        session = opened.headers["mcp-session-id"]
        assert post(site, secret, mcp_session_id=session).status_code == 200
        ended = httpx2.delete(
            f"{site.installation.url}/mcp", headers=make_headers(secret, mcp_session_id=session)
        )
        assert ended.status_code == 204
        assert post(site, secret, mcp_session_id=session).status_code == 404

    def test_are_not_found_with_another_key(self, site: Site, secret: str) -> None:
        session = post(site, secret, INITIALIZE).headers["mcp-session-id"]
        other = make_secret(site, "approver")
        assert post(site, other, mcp_session_id=session).status_code == 404

    @pytest.mark.parametrize("session", ["", "x", "1.2.3", "é" * 10])
    def test_are_not_found_by_an_unknown_id(self, site: Site, secret: str, session: str) -> None:
        sent = make_headers(secret, mcp_session_id=session)
        headers = {name.encode(): value.encode() for name, value in sent.items()}
        response = httpx2.post(
            f"{site.installation.url}/mcp", content=json.dumps(PING).encode(), headers=headers
        )
        assert response.status_code == 404

    def test_do_not_exist_in_the_newest_revision(self, site: Site, secret: str) -> None:
        with connect(site.installation.url, secret) as agent:
            assert agent.revision == NEWEST
            agent.call("data.searchRecords", region="EU")
        with connect(site.installation.url, secret) as agent:
            agent.call("data.searchRecords", region="EU")
        assert Run.objects.count() == 1, "calls of one key are one run"
        response = post(site, secret, INITIALIZE, MCP_Protocol_Version=NEWEST)
        assert "mcp-session-id" not in response.headers


class TestAccessToTheServer:
    @pytest.mark.parametrize("secret_of", ["nobody", "token", "revoked", "unknown"])
    def test_requires_a_working_agent_key(self, site: Site, secret: str, secret_of: str) -> None:
        token = issue_token(site.workshop.admin, "token")[1]
        if secret_of == "revoked":
            revoke_key(site.workshop.operator, AgentKey.objects.get().pk)
        presented = {"nobody": "", "token": token, "revoked": secret, "unknown": f"{secret}x"}[
            secret_of
        ]
        response = post(site, presented)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")

    def test_is_not_given_by_a_browser_session(self, site: Site, running: Installation) -> None:
        browser = Client()
        browser.force_login(site.workshop.admin.user)
        cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())
        assert post(site, "", Cookie=cookies).status_code == 401

    def test_is_denied_to_pages_of_other_sites(self, site: Site, secret: str) -> None:
        assert post(site, secret, Origin="https://evil.example").status_code == 403
        assert post(site, secret, Host="evil.example").status_code == 403
        assert post(site, secret, Origin=site.installation.url).status_code == 200

    def test_is_refused_for_other_methods(self, site: Site, secret: str) -> None:
        for method in ("GET", "PUT", "HEAD", "OPTIONS"):
            response = httpx2.request(
                method, f"{site.installation.url}/mcp", headers=make_headers(secret)
            )
            assert response.status_code == 405

    def test_is_refused_for_an_oversized_request(self, site: Site, secret: str) -> None:
        assert post(site, secret, b"x" * (LARGEST_BODY + 1)).status_code == 413

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b"null",
            b"[]",
            b"[" * 5_000,
            b'{"jsonrpc":"1.0"}',
            b"\xff",
            json.dumps([PING]).encode(),
        ],
    )
    @pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", NEWEST, "1999-01-01"])
    def test_is_refused_for_a_malformed_request(
        self, site: Site, secret: str, body: bytes, revision: str
    ) -> None:
        assert post(site, secret, body, MCP_Protocol_Version=revision).status_code == 400

    @pytest.mark.parametrize("value", ["NaN", "-Infinity", r'"\u0000"', r'"\ud800"'])
    def test_is_refused_for_arguments_that_cannot_be_stored(
        self, site: Site, secret: str, value: str
    ) -> None:
        params = f'{{"name":"data.searchRecords","arguments":{{"region":{value}}}}}'
        response = post(
            site,
            secret,
            f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode(),
        )
        assert '"isError":true' in response.text or response.status_code == 400
        assert not Run.objects.exists()
        assert post(site, secret).status_code == 200

    def test_is_refused_for_a_while_after_many_wrong_keys_but_not_for_a_working_key(
        self, site: Site, secret: str
    ) -> None:
        responses = [
            post(site, "wrong").status_code for _ in range(MAX_WRONG_KEYS_PER_MINUTE * 2 + 1)
        ]
        assert 429 in responses
        assert post(site, secret).status_code == 200, "a working key is still accepted"

    @pytest.mark.parametrize(
        "session", [{}, {"mcp_session_id": "made-up"}], ids=["no session", "wrong session"]
    )
    def test_is_refused_for_a_while_after_many_requests_with_one_key_but_not_for_another_key(
        self, site: Site, secret: str, session: dict[str, str]
    ) -> None:
        with httpx2.Client(headers=make_headers(secret, **session)) as client:
            for _ in range(MAX_REQUESTS_PER_MINUTE * 2 + 1):
                response = client.post(f"{site.installation.url}/mcp", json=PING)
                if response.status_code == 429:
                    break
        assert response.status_code == 429
        assert 1 <= int(response.headers["retry-after"]) <= 60
        assert post(site, make_secret(site, name="Server")).status_code == 200, "other keys go on"
