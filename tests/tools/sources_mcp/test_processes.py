"""Processes of MCP servers: they are few, end with our process or when idle, and are not restarted
again and again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.features import feature
from tests.tools.sources_mcp.servers import called, failure_of, misbehaving, tool_of
from tools.contract import Level, ToolContext, ToolError
from tools.sources.mcp import PROCESS_POOL, list_tools
from tools.sources.mcp.loop import LOOP
from tools.sources.mcp.process_pool import PoolLimits, ProcessPool
from tools.sources.mcp.servers import StdioServer

ROOT = Path(__file__).parents[3]
PARENT = """
import os, sys
from django.conf import settings
apps = ["django.contrib.contenttypes", "tools.office.records", "tools.schedules"]
settings.configure(INSTALLED_APPS=apps, SECRET_KEY="x")
import django
django.setup()
from tools.sources.mcp import PROCESS_POOL, StdioServer, list_tools
server = StdioServer(tuple(sys.argv[2:]))
list_tools(server)
tether = PROCESS_POOL.pid(server)
if sys.argv[1] == "alone" or os.fork():
    print(tether, flush=True)
sys.stdin.readline()
"""
LAUNCHER = ("sh", "-c", '"$@"; true', "sh")
"""A program that starts another program and keeps running until that program has ended."""


def group_of(leader: int) -> list[int]:
    """Return all processes in the group of this leader: tether, launcher, server."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            group = stat.read_text().rpartition(")")[2].split()[2]
            found += [int(stat.parent.name)] if int(group) == leader else []
    return found


def is_alive(pid: int) -> bool:
    """Return True if the process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until_gone(*pids: int, seconds: float = 10.0) -> None:
    ends_at = time.monotonic() + seconds
    while alive := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < ends_at, f"{alive} still run"
        time.sleep(0.02)


def parent_of(
    server: StdioServer, copies: str = "alone"
) -> tuple[subprocess.Popen[str], list[int]]:
    """Start a Python process that uses the server; return that process, and the ids of the
    processes in the server's group."""
    command = [sys.executable, "-c", PARENT, copies, *server.command]
    parent = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    return parent, group_of(int(parent.stdout.readline()))


@feature(
    "Tools from API descriptions",
    "A server's process ends with Gadget's, even if that is killed and the server runs behind a launcher",
    "tools/sources/mcp/tether.py",
)
@pytest.mark.parametrize("copies", ["alone", "forks"])
@pytest.mark.parametrize("launcher", [(), LAUNCHER])
def test_a_server_ends_with_a_killed_process_even_if_it_ignores_its_input(
    launcher: tuple[str, ...], copies: str
) -> None:
    server = StdioServer((*launcher, *misbehaving(start="stays").command))
    parent, group = parent_of(server, copies)
    assert len(group) == (3 if launcher else 2)
    parent.kill()
    parent.wait(10)
    wait_until_gone(*group)
    parent.communicate()  # ends the forked copy, which reads this pipe


def test_a_signal_to_all_processes_does_not_end_the_guard_of_a_surviving_server() -> None:
    parent, group = parent_of(misbehaving(start="stays"))
    os.killpg(os.getpgid(group[0]), signal.SIGTERM)
    parent.kill()
    parent.communicate()
    wait_until_gone(*group)


@pytest.mark.parametrize("how", ["its end", "SIGTERM"])
def test_a_server_ends_with_the_process_that_started_it(how: str) -> None:
    parent, group = parent_of(misbehaving())
    if how == "SIGTERM":
        parent.send_signal(signal.SIGTERM)
    _, _ = parent.communicate("end\n", timeout=20)
    wait_until_gone(*group)


def test_a_server_that_does_not_end_is_killed_with_its_children() -> None:
    server = StdioServer((*LAUNCHER, *misbehaving(start="stays").command))
    list_tools(server)
    group = group_of(PROCESS_POOL.pid(server))
    assert len(group) == 3
    PROCESS_POOL.close_all(10)
    wait_until_gone(*group)


def test_a_server_gets_one_signal_to_end(tmp_path: Path) -> None:
    server = misbehaving(start="obeys", calls=tmp_path / "calls")
    list_tools(server)
    group = group_of(PROCESS_POOL.pid(server))
    PROCESS_POOL.close_all(10)
    wait_until_gone(*group)
    assert (tmp_path / "calls").read_text().split() == ["SIGTERM"]


def test_an_idle_process_is_ended_and_the_next_call_starts_a_new_process() -> None:
    connections, server = ProcessPool(PoolLimits(idle_s=0.2)), misbehaving(owner="idle")

    async def pid() -> int:
        async with connections.connect(server, 10):
            return connections.pid(server)

    first = LOOP.submit(pid()).result(20)
    wait_until_gone(first)
    second = LOOP.submit(pid()).result(20)
    assert second not in (0, first)
    wait_until_gone(second)


def test_organizations_do_not_share_processes() -> None:
    pids = {called(tool_of(misbehaving(owner=owner), "pid")).markdown for owner in ("1", "2", "1")}
    assert len(pids) == 2


def test_a_killed_server_is_started_again() -> None:
    server = misbehaving(owner="killed")
    tool = tool_of(server, "pid", Level.WRITE)
    first = int(called(tool).markdown)
    os.kill(first, signal.SIGKILL)
    wait_until_gone(first)
    deadline = time.monotonic() + 10
    while not (response := called(tool)).success:  # until its end has been noticed
        assert time.monotonic() < deadline, response
    assert int(response.markdown) != first


@feature(
    "Tools from API descriptions",
    "A server that crashes repeatedly is restarted after a delay",
    "tools/sources/mcp/process_pool.py",
)
def test_a_crashing_server_is_not_restarted_immediately() -> None:
    server = misbehaving(owner="loop", start="dies")
    for _ in range(10):
        with pytest.raises(ToolError, match="ended with code 1"):
            list_tools(server)
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"was started 10 times within 60 s") as failure:
        list_tools(server)
    assert time.monotonic() - began < 20
    assert not failure.value.attempted


def test_a_call_while_the_server_starts_is_reported_as_not_done() -> None:
    server = misbehaving(owner="starting")
    tool = tool_of(server, "echo", Level.WRITE)
    tool._server = misbehaving(owner="starting", start="hangs")
    code, definite, _ = failure_of(called(tool, timeout_s=1.0))
    assert (code, definite) == ("TIMEOUT", True)


def test_a_cancelled_call_returns_immediately() -> None:
    tool = tool_of(misbehaving(owner="cancelled run"), "hang")

    async def cancelled() -> float:
        work = asyncio.create_task(tool.execute({}, _context()))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        return time.monotonic() - began

    assert asyncio.run(cancelled()) < 5


def _context() -> ToolContext:
    return ToolContext(organization_id=1)
