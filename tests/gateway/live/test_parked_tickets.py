"""A thousand calls (200 in a sample) that wait for people: while parked, they use no thread or
memory of the web process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2

from agents.runs.engine.timing import MAX_OPEN_TICKETS
from agents.runs.models import CallStatus, Run, RunStatus, ToolCall
from tests import sampling
from tests.faults.site import Site
from tests.features import feature
from tests.gateway.live.conftest import make_secret
from tests.processes import Installation, RealProcess

TICKETS = 1_000 if sampling.is_whole() else 200
WAIT_S = 12 if sampling.is_whole() else 5
POOLED_THREADS = 36
"""The number of threads in all pools together, for any number of tickets: calls 8, door 2, sockets
4, pages 16, database 6."""
FEW_KB = 8_000 + 8 * TICKETS
"""Kilobytes by which a process may grow for other reasons, such as the page cache of SQLite in each
of its threads."""
STEADY_S, STEADY_KB = 0.5, 500
CONNECTION_KB = 150
"""The maximum number of kilobytes that an open connection and its waiting request may use."""


def park(site: Site, keys: int) -> list[tuple[str, str]]:
    """Request 100 writes with each of `keys` new keys; return a (secret, ticket) pair for each
    write."""
    return asyncio.run(_park(site, [make_secret(site) for _ in range(keys)]))


async def _park(site: Site, secrets: list[str]) -> list[tuple[str, str]]:
    places = asyncio.Semaphore(8)
    async with httpx2.AsyncClient(timeout=120) as client:

        async def request(secret: str, name: int) -> tuple[str, str]:
            async with places:
                params = {"name": "probe.effect", "arguments": {"name": str(name)}}
                response = await send(client, site, secret, params)
            return secret, response["structuredContent"]["ticket"]

        return await asyncio.gather(
            *(request(secret, name) for secret in secrets for name in range(MAX_OPEN_TICKETS))
        )


async def send(
    client: httpx2.AsyncClient, site: Site, secret: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Send a call and return its result."""
    headers = {
        "Authorization": f"Bearer {secret}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response = await client.post(f"{site.installation.url}/mcp", json=body, headers=headers)
    assert response.status_code == 200, response.text
    # A response that takes long also contains comments, which keep the connection open.
    return dict(json.loads(response.text.rpartition("data: ")[2].splitlines()[0])["result"])


def read_status(process: RealProcess, name: str) -> int:
    """Read a number of the process from the kernel."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))


async def await_steady_memory(web: RealProcess) -> None:
    """Wait until the memory no longer grows, which shows that all requests have arrived. Give up
    before the first wait ends."""
    before = 0
    for _ in range(round(WAIT_S * 0.8 / STEADY_S)):
        await asyncio.sleep(STEADY_S)
        now = read_status(web, "VmRSS")
        if now - before < STEADY_KB:
            return
        before = now


async def wait_for_all(
    site: Site, tickets: list[tuple[str, str]], web: RealProcess
) -> tuple[int, int, float]:
    """Wait for all tickets at the same time; return the number of threads and the memory of the web
    process while they wait, and the seconds that a page took."""
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(timeout=120, limits=limits) as client:

        async def wait(secret: str, ticket: str) -> dict[str, Any]:
            arguments = {"ticket": ticket, "wait_s": WAIT_S}
            return await send(
                client, site, secret, {"name": "gadget__ticket", "arguments": arguments}
            )

        waits = [asyncio.create_task(wait(*each)) for each in tickets]
        await await_steady_memory(web)
        began = asyncio.get_running_loop().time()
        await client.get(f"{site.installation.url}/api/health")
        page_s = asyncio.get_running_loop().time() - began
        measured = read_status(web, "Threads"), read_status(web, "VmRSS"), page_s
        found = [
            response["structuredContent"]["status"] for response in await asyncio.gather(*waits)
        ]
        assert set(found) == {"waiting_for_approval"}
    return measured


@feature(
    "Agents elsewhere", "A thousand open tickets hold no thread", "agents/web/sockets/call_feed.py"
)
def test_parked_calls_use_no_resources_and_awaited_calls_use_only_their_connections(
    site: Site, running: Installation
) -> None:
    web = running.process("web")
    httpx2.get(f"{running.url}/api/health")
    threads, keys = read_status(web, "Threads"), TICKETS // MAX_OPEN_TICKETS
    tickets = park(site, 1)  # loads the modules that every request needs
    memory = read_status(web, "VmRSS")
    tickets += park(site, keys - 1)
    assert (
        ToolCall.objects.filter(status=CallStatus.AWAITING_APPROVAL).count()
        == len(set(tickets))
        == TICKETS
    )
    assert set(Run.objects.values_list("status", "lease_owner")) == {(RunStatus.WAITING, "")}, (
        "no worker is held"
    )
    parked_memory = read_status(web, "VmRSS")
    assert parked_memory <= memory + FEW_KB
    assert read_status(web, "Threads") <= threads + POOLED_THREADS
    busy_threads, busy_memory, page_s = asyncio.run(wait_for_all(site, tickets, web))
    assert busy_threads <= threads + POOLED_THREADS
    assert busy_memory <= parked_memory + FEW_KB + CONNECTION_KB * TICKETS
    print(
        f"threads {threads} -> {busy_threads}; kB {memory} -> parked {parked_memory} -> waited for {busy_memory};"
        f" a page in {page_s * 1000:.0f} ms"
    )
    again_threads, again_memory, _ = asyncio.run(wait_for_all(site, tickets, web))
    assert again_threads <= threads + POOLED_THREADS
    assert again_memory <= busy_memory + FEW_KB, "a wait leaves nothing behind"
