"""A thousand calls that wait for people, or 200 in a sample: they hold no thread and no memory, waited for or not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2

from agents.gateway.keys import authenticate_key
from agents.gateway.requests import ToolRequest, record_request
from agents.runs.engine.timing import MAX_OPEN_TICKETS
from agents.runs.models import CallStatus, Run, RunStatus, ToolCall
from tests import sampling
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.gateway.live.conftest import make_secret
from tests.processes import Installation, RealProcess

TICKETS = 1_000 if sampling.is_whole() else 200
WAIT_S = 12 if sampling.is_whole() else 5
POOLED_THREADS = 16
"""Threads of the pools that may start meanwhile, for any number of tickets: calls 8, door 2, sockets 4, pages 2."""
MEMORY_OF_CONNECTIONS = 40_000 + 150 * TICKETS
"""Kilobytes: what the first requests load, and the open connections with their requests."""


def park(site: Site) -> list[tuple[str, str]]:
    """Request as many writes, 100 with each key, and return each key's secret with each ticket."""
    tickets = []
    for number in range(TICKETS // MAX_OPEN_TICKETS):
        secret = make_secret(site, name=f"Agent {number}")
        key = authenticate_key(secret)
        assert key is not None
        for name in range(MAX_OPEN_TICKETS):
            call = record_request(key, None, ToolRequest("probe.effect", {"name": f"{number}-{name}"}))
            tickets.append((secret, f"t-{call.pk}"))
    return tickets


def read_status(process: RealProcess, name: str) -> int:
    """Read a number of the process from the kernel."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))


async def wait_for_all(site: Site, tickets: list[tuple[str, str]], web: RealProcess) -> tuple[int, int, float]:
    """Wait for all tickets at once; return the web's threads, its memory, and how long another page took meanwhile."""
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(timeout=120, limits=limits) as client:

        async def wait(secret: str, ticket: str) -> int:
            params = {"name": "gadget.ticket", "arguments": {"ticket": ticket, "wait_s": WAIT_S}}
            headers = {
                "Authorization": f"Bearer {secret}",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2025-11-25",
            }
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            return (await client.post(f"{site.installation.url}/mcp", json=body, headers=headers)).status_code

        waits = [asyncio.create_task(wait(*each)) for each in tickets]
        await asyncio.sleep(WAIT_S / 2)  # the middle of the wait is what is measured
        began = asyncio.get_running_loop().time()
        await client.get(f"{site.installation.url}/api/health")
        page_s = asyncio.get_running_loop().time() - began
        measured = read_status(web, "Threads"), read_status(web, "VmRSS"), page_s
        assert set(await asyncio.gather(*waits)) == {200}
    return measured


def test_they_hold_no_thread_and_no_memory(site: Site, running: Installation) -> None:
    web = running.process("web")
    httpx2.get(f"{running.url}/api/health")
    threads, memory = read_status(web, "Threads"), read_status(web, "VmRSS")
    tickets = park(site)
    assert ToolCall.objects.filter(status=CallStatus.AWAITING_APPROVAL).count() == TICKETS
    assert set(Run.objects.values_list("status", "lease_owner")) == {(RunStatus.WAITING, "")}, "no worker is held"
    assert read_status(web, "Threads") <= threads + POOLED_THREADS
    busy_threads, busy_memory, page_s = asyncio.run(wait_for_all(site, tickets, web))
    assert busy_threads <= threads + POOLED_THREADS
    assert busy_memory <= memory + MEMORY_OF_CONNECTIONS
    print(f"threads {threads} -> {busy_threads}, memory {memory} -> {busy_memory} kB, a page in {page_s * 1000:.0f} ms")
    await_that(lambda: read_status(web, "Threads") <= threads + POOLED_THREADS, "the threads stay few")
