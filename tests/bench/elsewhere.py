"""External agents and systems: reads over MCP, and messages that start runs."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection

from django.conf import settings
from django.test import Client

from agents.accounts.models import Membership
from agents.gateway.keys import issue_key
from agents.runs import actions
from agents.triggers.changes import TriggerTerms, make_trigger
from agents.triggers.models import Trigger
from tests.awaiting import await_that
from tests.bench.figures import Figure, latency
from tests.bench.site import passes_of_calls, seconds_of, succeeded, worksite
from tests.mcp_client import connect
from tests.processes import Installation
from tests.triggers.conftest import SECRET, sign

READS = 40
SENDERS = 8
AIM_READ_MS, AIM_MESSAGE_MS, AIM_PAGE_MS = 15.0, 50.0, 300.0
MESSAGES_A_MINUTE = 1_000
BURST, BURST_S = 1_000, 6.0
LARGEST_QUEUE = 30_000


def reads(running: Installation, repeats: int) -> list[Figure]:
    """Measure a permitted read over MCP and a pass with one read inside Gadget alternately, and
    compare them."""
    outside, inside = [], []
    with worksite(passes_of_calls(READS, 1)) as site:
        _, secret = issue_key(site.member, site.employee.pk, "bench", 7)
        with connect(running.url, secret) as agent:
            for turn in range(repeats):
                run = site.submit()
                await_that(
                    lambda run=run: type(run).objects.get(pk=run.pk).has_ended,  # type: ignore[misc]
                    "the run ends",
                    120,
                )
                inside.append(seconds_of(succeeded(run.pk)) / (READS + 1))
                for number in range(READS):
                    began = time.perf_counter()
                    answer = agent.call("utility.calculate", operation="add", a=turn, b=number)
                    outside.append(time.perf_counter() - began)
                    assert not answer.is_error
    more = statistics.median(outside) - statistics.median(inside)
    return [
        latency("a read over MCP", outside),
        latency("a pass of one read inside", inside),
        latency("a read over MCP, more than inside", [more], AIM_READ_MS),
    ]


def messages(running: Installation, minutes: float) -> list[Figure]:
    """Send messages to a trigger at a steady rate, then a thousand within seconds; measure the time
    until each message is accepted.

    The workers are paused, so that only the acceptance of messages is measured; the sender shares
    the cores with the web part. During the steady rate, a member opens the list of runs once a
    second. The started runs are cancelled at the end.
    """
    with worksite(passes_of_calls(0, 0)) as site:
        terms = TriggerTerms(
            "Bench", site.employee.pk, "github", "Do it.", secret=SECRET, max_queued=1_000
        )
        trigger, _ = make_trigger(site.member, terms)
        Trigger.objects.filter(pk=trigger.pk).update(max_queued=LARGEST_QUEUE)
        workers = [each for each in running.processes if each.name.startswith("worker")]
        for worker in workers:
            worker.pause()
        with _opening_pages(running, site.member) as pages:
            steady = _send(
                running, trigger, "steady", round(MESSAGES_A_MINUTE * minutes), 60.0 * minutes
            )
        burst = _send(running, trigger, "burst", BURST, BURST_S)
        runs = trigger.messages.filter(status="started").count()
        for message in trigger.messages.all():
            actions.cancel(site.member, message.run_id or 0)
        for worker in workers:
            worker.resume()
    assert runs == len(steady) + len(burst), "each message started one run"
    return [
        latency("a message accepted, 1,000 a minute", steady, AIM_MESSAGE_MS),
        latency("page: runs, while 1,000 messages a minute come", pages, AIM_PAGE_MS),
        latency("a message accepted, 1,000 in 6 s", burst),
    ]


@contextmanager
def _opening_pages(running: Installation, member: Membership) -> Iterator[list[float]]:
    """View the list of runs once a second until the block ends; yield a list, to which the duration
    of each view is added."""
    client, taken, ends = Client(), list[float](), threading.Event()
    client.force_login(member.user)
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"

    def open_pages() -> None:
        while not ends.wait(1):
            began = time.perf_counter()
            assert _request(running.port, "GET", "/runs/", headers={"Cookie": cookie}) == 200
            taken.append(time.perf_counter() - began)

    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(open_pages)
        try:
            yield taken
        finally:
            ends.set()
            opening.result()


def _send(
    running: Installation, trigger: Trigger, name: str, count: int, seconds: float
) -> list[float]:
    """Send this number of messages evenly over this time, and return the duration of each,
    including retries."""
    start = time.monotonic()

    def send_share(share: int) -> list[float]:
        taken = []
        for number in range(share, count, SENDERS):
            time.sleep(max(0.0, start + number * seconds / count - time.monotonic()))
            taken.append(_deliver(running.port, trigger, f"{name}-{number}"))
        return taken

    with ThreadPoolExecutor(SENDERS) as pool:
        return [each for taken in pool.map(send_share, range(SENDERS)) for each in taken]


def _deliver(port: int, trigger: Trigger, delivery: str) -> float:
    body, began = json.dumps({"number": delivery}).encode(), time.perf_counter()
    headers = {**sign(body, delivery), "Content-Type": "application/json"}
    while (status := _request(port, "POST", f"/hooks/{trigger.public_id}", body, headers)) != 202:
        assert status == 429, status
        time.sleep(0.5)
    return time.perf_counter() - began


def _request(
    port: int, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> int:
    """Send a request on its own connection, and return the status of the response."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        response.read()
        return response.status
