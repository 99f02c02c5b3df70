"""kill -9 of the client, the web process or the worker at any point of an agent's call: nothing is
lost or done twice."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx2
import pytest
from django.conf import settings

from agents.employees.models import Grant
from agents.gateway import asks
from agents.gateway.keys import authenticate_key, issue_key
from agents.gateway.models import AgentKey
from agents.gateway.redemptions import load_state, report_outcome
from agents.gateway.requests import ToolRequest, record_request
from agents.gateway.tickets import find_ticket
from agents.runs.models import TERMINAL_CALLS, CallStatus, Run, RunStatus, ToolCall
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.features import feature
from tests.mcp_client import connect
from tests.sampling import take_sample

TOOLS = {
    "read": "probe.gate",
    "draft": "probe.draw",
    "write": "probe.effect",
    "destructive": "probe.doom",
}
"""A tool of each level, which waits until the recorder replies."""
WRITES = ("write", "destructive")
GRACE_S = 2
MOMENTS = [
    *((state, level) for state in ("waiting", "executing") for level in TOOLS),
    *(("approved", level) for level in WRITES),
]


class Call:
    """An agent's call, and the steps that bring it to the moment of a kill."""

    def __init__(self, site: Site, level: str) -> None:
        self.site, self.level = site, level
        Grant.objects.get_or_create(employee=site.workshop.employee, tool=TOOLS[level])
        self.secret = issue_key(site.workshop.operator, site.workshop.employee.pk, "Laptop", 30)[1]
        key = authenticate_key(self.secret)
        assert key is not None
        self.key: AgentKey = key
        self.call = ToolCall()

    def bring(self, state: str) -> None:
        """Request the call, and bring it to this state."""
        self.site.recorder.hold("gate")
        self.call = record_request(self.key, None, ToolRequest(TOOLS[self.level], {"name": "gate"}))
        self.move_on(state)

    def move_on(self, state: str) -> None:
        """Let the recorded call get as far as `waiting`, `approved` (it can still be undone) or
        `executing`."""
        if self.level in WRITES:
            assert self.call.status == CallStatus.AWAITING_APPROVAL
        if state == "approved":
            self.decide(grace_s=GRACE_S)
        if state == "executing":
            self.decide()
            self.site.recorder.await_arrival("gate")

    def decide(self, grace_s: int = 0) -> None:
        """Approve the call's card if one is pending."""
        waiting = self.site.workshop.cards(self.call.run)
        for card in waiting:
            self.site.workshop.approve(card, confirm="probe.doom", grace_s=grace_s)

    def settle(self, *, died_in_effect: bool = False) -> None:
        """Let everything continue, and check that the call ends once, with its ticket."""
        self.site.recorder.release("gate")
        if self._status() == CallStatus.AWAITING_APPROVAL:
            self.decide()
        expected = CallStatus.OUTCOME_UNKNOWN if died_in_effect else CallStatus.SUCCEEDED
        await_that(
            lambda: self._status() in (*TERMINAL_CALLS, CallStatus.OUTCOME_UNKNOWN),
            "the call ends",
            60,
        )
        assert self._status() == expected
        if died_in_effect:
            assert find_ticket(self.key, f"t-{self.call.pk}").status == "outcome_unknown"
            self.site.resolve(self.call.run, "succeeded")
        ended = find_ticket(self.key, f"t-{self.call.pk}")
        assert ended.has_ended, "no ticket is lost"
        if self.level in WRITES:
            assert self.site.recorder.effects[self.call.idempotency_key] == 1, (
                "no effect is doubled"
            )
            assert ToolCall.objects.get(pk=self.call.pk).attempts == 1

    def _status(self) -> str:
        return ToolCall.objects.values_list("status", flat=True).get(pk=self.call.pk)


@pytest.mark.parametrize(("state", "level"), MOMENTS)
def test_nothing_is_lost_or_repeated_if_a_worker_is_killed(
    site: Site, level: str, state: str
) -> None:
    site.have_workers(2)
    call = Call(site, level)
    call.bring(state)
    victim = site.driver_of(call.call.run) if _is_running(call.call.run) else site.workers()[0]
    victim.kill()
    call.settle(died_in_effect=state == "executing" and level in WRITES)


@feature(
    "Agents elsewhere",
    "Kills of client, web and worker lose and double nothing",
    "agents/gateway/requests.py",
)
@pytest.mark.parametrize(
    ("victim", "state", "level"),
    take_sample(
        [(victim, *moment) for victim in ("client", "web") for moment in MOMENTS],
        3,
        "killed clients and webs",
    ),
)
def test_nothing_is_lost_or_repeated_if_a_client_or_the_web_process_is_killed(
    site: Site, victim: str, state: str, level: str
) -> None:
    """The client is killed while it waits, in some cases just after the web process; a worker
    finishes the call anyway."""
    site.have_workers(1)
    web = site.have_web()
    call = Call(site, level)
    site.recorder.hold("gate")
    command = [
        sys.executable,
        "-m",
        "tests.mcp_caller",
        site.installation.url,
        call.secret,
        TOOLS[level],
        "gate",
    ]
    client = subprocess.Popen(command, cwd=settings.BASE_DIR)
    await_that(ToolCall.objects.exists, "the request is recorded")
    call.call = ToolCall.objects.get()
    call.move_on(state)
    if victim == "web":
        web.kill()
    client.kill()
    client.wait()
    call.settle()


def test_an_interrupted_request_is_recorded_once(site: Site) -> None:
    """A client that repeats a write, because the response was lost, gets the ticket of the first
    write."""
    site.have_workers(1)
    web = site.have_web()
    call = Call(site, "write")
    site.recorder.hold("gate")
    with connect(site.installation.url, call.secret) as agent:
        first = agent.call("probe.effect", name="gate").structured_content["ticket"]
    web.kill()
    site.have_web()
    with connect(site.installation.url, call.secret) as agent:
        assert agent.call("probe.effect", name="gate").structured_content["ticket"] == first
    call.call = ToolCall.objects.get()
    call.settle()


def test_a_receipt_is_redeemed_only_once_even_if_the_web_process_is_killed(site: Site) -> None:
    """Many clients redeem the receipt at the same time while the web process is killed: at most one
    redemption is accepted, and the ask ends as redeemed."""
    site.have_workers(1)
    site.have_web()
    key, secret = issue_key(site.workshop.operator, site.workshop.employee.pk, "Laptop", 30)
    asked, _ = asks.submit(key, asks.AskedRequest("deploy", {"version": "1"}, "write"))
    site.workshop.approve(site.workshop.card(asked.run), confirm="deploy")
    body = {"receipt": load_state(asked).sign()}
    headers = {"Authorization": f"Bearer {secret}"}
    stop, statuses = threading.Event(), []

    def redeem() -> None:
        while not stop.is_set():
            with suppress(httpx2.HTTPError):
                response = httpx2.post(
                    f"{site.installation.url}/api/asks/{asked.pk}/redeem",
                    json=body,
                    headers=headers,
                )
                statuses.append(response.status_code)

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(redeem)
        for kill in range(3):
            await_that(lambda kill=kill: len(statuses) > kill * 4, "some were answered", 60)  # type: ignore[misc]
            site.have_web().kill()
            site.have_web()
        stop.set()
    assert statuses.count(200) <= 1
    assert set(statuses) <= {200, 409}
    assert load_state(asked).status == "redeemed"
    report_outcome(key, str(asked.pk), "succeeded")
    assert ToolCall.objects.get(run=asked.run).attempts == 1


def _is_running(run: Run) -> bool:
    return Run.objects.filter(pk=run.pk, status=RunStatus.RUNNING).exists()
