"""The tasks extension: a client that declares support for it gets a task instead of a ticket;
everything else stays the same."""

from __future__ import annotations

from typing import Any

import httpx2
import mcp_types as types
import pytest

from agents.employees.models import Grant
from agents.mcp_server.tasks import EXTENSION
from agents.runs.models import Run
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.features import feature
from tests.gateway.live.conftest import make_secret
from tests.mcp_client import NEWEST
from tests.suite_probes import CrashingJob

WITH_TASKS: dict[str, Any] = {"extensions": {EXTENSION: {}}}


def send(
    site: Site,
    secret: str,
    method: str,
    params: dict[str, Any],
    capabilities: dict[str, Any] | None = None,
    *,
    name: str | None = None,
) -> dict[str, Any]:
    """Send one request in the newest revision of the protocol, and return the whole response. By
    default, the request declares support for tasks.

    Args:
        name: the header `Mcp-Name`, or "none" to leave it out; by default the tool or task that the
            params name.
    """
    meta = {
        types.PROTOCOL_VERSION_META_KEY: NEWEST,
        types.CLIENT_INFO_META_KEY: {"name": "Test", "version": "1"},
        types.CLIENT_CAPABILITIES_META_KEY: WITH_TASKS if capabilities is None else capabilities,
    }
    headers = {
        "Authorization": f"Bearer {secret}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": NEWEST,
        "Mcp-Method": method,
        "Mcp-Name": name if name is not None else params.get("name") or params.get("taskId") or "",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    if name == "none":
        del headers["Mcp-Name"]
    response = httpx2.post(f"{site.installation.url}/mcp", json=body, headers=headers, timeout=60)
    found: dict[str, Any] = response.json()
    return found


def ask(site: Site, secret: str, name: str = "a", **more: Any) -> dict[str, Any]:
    """Call a write, and return the result."""
    params = {"name": "probe.effect", "arguments": {"name": name}}
    result: dict[str, Any] = send(site, secret, "tools/call", params, **more)["result"]
    return result


def look_up(site: Site, secret: str, task: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = send(site, secret, "tasks/get", {"taskId": task["taskId"]})["result"]
    return result


@feature(
    "Agents elsewhere",
    "Clients that declare the tasks extension get a task",
    "agents/mcp_server/tasks.py",
)
def test_a_write_is_a_task_until_it_ends(site: Site, secret: str) -> None:
    task = ask(site, secret)
    assert (task["resultType"], task["status"]) == ("task", "working")
    assert {"taskId", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"} <= set(task)
    assert not {"content", "structuredContent", "task", "ttl"} & set(task)
    card = site.workshop.card(Run.objects.get())
    assert f"/approvals/{card.pk}/" in task["statusMessage"]
    waiting = look_up(site, secret, task)
    assert (waiting["resultType"], waiting["status"], "result" in waiting) == (
        "complete",
        "working",
        False,
    )
    assert ask(site, secret)["taskId"] == task["taskId"], "the same write has the same task"
    site.workshop.approve(card)
    await_that(lambda: look_up(site, secret, task)["status"] == "completed", "the task ends")
    done = look_up(site, secret, task)
    assert done["result"]["isError"] is False
    assert done["result"]["content"][0]["text"]


@pytest.mark.parametrize(
    "arguments", [{"arguments": {"region": "EU"}}, {}], ids=["with arguments", "without"]
)
def test_a_quick_read_returns_its_result_instead_of_a_task(
    site: Site, secret: str, arguments: dict[str, Any]
) -> None:
    result = send(site, secret, "tools/call", {"name": "data.searchRecords", **arguments})["result"]
    assert (result["resultType"], result["isError"]) == ("complete", False)


def test_a_slow_read_becomes_a_task(site: Site, secret: str) -> None:
    site.recorder.hold("slow")
    params = {"name": "probe.gate", "arguments": {"name": "slow"}}
    task = send(site, secret, "tools/call", params)["result"]
    assert task["resultType"] == "task"
    site.recorder.release("slow")
    await_that(lambda: look_up(site, secret, task)["status"] == "completed", "the task ends")


def test_a_denial_completes_the_task_with_an_error(site: Site, secret: str) -> None:
    task = ask(site, secret)
    site.workshop.deny(site.workshop.card(Run.objects.get()), "too early")
    done = look_up(site, secret, task)
    assert (done["status"], done["result"]["isError"]) == ("completed", True)
    assert "too early" in done["result"]["content"][0]["text"]


def test_a_task_whose_tool_crashes_fails_without_a_result(site: Site, secret: str) -> None:
    Grant.objects.create(employee=site.workshop.employee, tool=CrashingJob.name)
    task = send(site, secret, "tools/call", {"name": CrashingJob.name, "arguments": {}})["result"]
    assert task["status"] == "working"
    await_that(lambda: look_up(site, secret, task)["status"] == "failed", "the task fails")
    failed = look_up(site, secret, task)
    assert (failed["error"]["code"], "result" in failed) == (types.INTERNAL_ERROR, False)
    assert failed["error"]["message"]
    assert "on purpose" not in failed["error"]["message"], (
        "the text of an exception stays in the log"
    )


def test_a_task_can_be_cancelled(site: Site, secret: str) -> None:
    task = ask(site, secret)
    for _ in range(2):
        assert (
            send(site, secret, "tasks/cancel", {"taskId": task["taskId"]})["result"]["resultType"]
            == "complete"
        )
        assert look_up(site, secret, task)["status"] == "cancelled"


def test_an_agents_input_to_a_task_cannot_decide_a_card(site: Site, secret: str) -> None:
    task = ask(site, secret)
    update = {"taskId": task["taskId"], "inputResponses": {"approve": {"action": "accept"}}}
    assert send(site, secret, "tasks/update", update)["result"]["resultType"] == "complete"
    assert look_up(site, secret, task)["status"] == "working"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
class TestATaskRequest:
    def test_is_refused_with_another_key(self, site: Site, secret: str, method: str) -> None:
        task = ask(site, secret)
        other = make_secret(site, "approver")
        assert (
            send(site, other, method, {"taskId": task["taskId"]})["error"]["code"]
            == types.INVALID_PARAMS
        )

    def test_is_refused_for_an_unknown_task(self, site: Site, secret: str, method: str) -> None:
        assert (
            send(site, secret, method, {"taskId": "t-0"})["error"]["code"] == types.INVALID_PARAMS
        )

    @feature(
        "Agents elsewhere",
        "A request whose header names another task than its body is refused",
        "agents/mcp_server/tasks.py",
    )
    @pytest.mark.parametrize("name", ["t-0", "", "none"])
    def test_is_refused_unless_its_header_names_the_same_task(
        self, site: Site, secret: str, method: str, name: str
    ) -> None:
        task = ask(site, secret)
        response = send(site, secret, method, {"taskId": task["taskId"]}, name=name)
        assert response["error"]["code"] == types.HEADER_MISMATCH
        assert look_up(site, secret, task)["status"] == "working"

    def test_is_refused_unless_the_client_declares_the_extension(
        self, site: Site, secret: str, method: str
    ) -> None:
        task = ask(site, secret)
        response = send(site, secret, method, {"taskId": task["taskId"]}, {})
        assert response["error"]["code"] == types.MISSING_REQUIRED_CLIENT_CAPABILITY


def test_a_write_without_the_extension_gets_a_ticket(site: Site, secret: str) -> None:
    result = ask(site, secret, capabilities={})
    assert (result["resultType"], result["structuredContent"]["status"]) == (
        "complete",
        "waiting_for_approval",
    )


def test_the_server_announces_the_extension(site: Site, secret: str) -> None:
    capabilities = send(site, secret, "server/discover", {})["result"]["capabilities"]
    assert EXTENSION in capabilities["extensions"]
    assert "tasks" not in capabilities


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
def test_methods_of_earlier_protocol_drafts_are_unknown(
    site: Site, secret: str, method: str
) -> None:
    assert send(site, secret, method, {})["error"]["code"] == types.METHOD_NOT_FOUND
