"""Whatever a server does during a call, the result is clear, the worker survives, and the next call
works."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from pathlib import Path

import pytest

from tests.features import feature
from tests.tools.sources_mcp.servers import (
    SECRET,
    called,
    called_too_late,
    failure_of,
    misbehaving,
    tool_of,
)
from tools.contract import Level, ToolError
from tools.sources.mcp import McpTool, StdioServer, has_tool_list_changed, list_tools, suggest_level
from tools.sources.mcp.loop import LOOP
from tools.testing import run_tool


@feature(
    "Tools from API descriptions",
    "A server that crashes, hangs, floods or sends garbage: a clear error, no repeated write, and the next call works",
    "tools/sources/mcp/server_process.py",
)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("crash", "ended with code 3"),
        ("kill", "was killed"),
        ("close", "closed its output"),
        ("huge", "more than 10,000,000 bytes"),
        ("nonsense", "does not follow the protocol"),
    ],
)
@pytest.mark.parametrize("level", [Level.READ, Level.WRITE])
def test_a_lost_call_is_reported_and_a_write_is_never_repeated(
    name: str, words: str, level: Level, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    server = misbehaving(calls=calls)
    code, definite, message = failure_of(called(tool_of(server, name, level)))
    assert (code, definite) == ("NETWORK_ERROR", False)
    assert words in message
    assert calls.read_text().split() == [name] * (2 if level is Level.READ else 1)
    assert called(tool_of(server, "echo"), text="again").markdown == '{"text": "again"}'


def test_a_late_write_is_not_sent(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    tool = tool_of(misbehaving(calls=calls), "echo", Level.WRITE)
    assert failure_of(called_too_late(tool))[:2] == ("WORKER_LOST", True)
    assert not calls.exists()


def test_a_hanging_call_ends_at_its_timeout_and_the_next_has_a_new_process() -> None:
    server = misbehaving()
    before = called(tool_of(server, "pid")).markdown
    began = time.monotonic()
    code, definite, message = failure_of(
        called(tool_of(server, "hang", Level.WRITE), timeout_s=1.0)
    )
    assert (code, definite) == ("TIMEOUT", False)
    assert "did not respond within" in message
    assert time.monotonic() - began < 20
    deadline = time.monotonic() + 10
    while called(tool_of(server, "pid"), timeout_s=2.0).markdown == before:
        assert time.monotonic() < deadline


def test_an_abandoned_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    server = misbehaving(owner="cancel", calls=tmp_path / "calls")
    tool = tool_of(server, "slow_response")
    assert failure_of(called(tool, timeout_s=0.6))[0] == "TIMEOUT"
    deadline = time.monotonic() + 10
    while json.loads(called(tool_of(server, "cancelled")).markdown) == []:
        assert time.monotonic() < deadline


def test_a_write_with_a_malformed_response_is_reported_as_done() -> None:
    assert called(tool_of(misbehaving(), "broken", Level.WRITE)).markdown == "no list"
    result = called(tool_of(misbehaving(), "wrong_structure", Level.WRITE))
    assert (result.success, result.data, result.summary) == (True, None, "x")
    assert (
        "[the structured part is left out: it does not fit the output schema at data.n:"
        in result.markdown
    )


@pytest.mark.parametrize("name", ["fail_inside", "locked"])
def test_an_error_object_makes_a_write_unknown_and_a_read_fail(name: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    server = misbehaving(calls=calls)
    # The message comes from the client library, not from the server.
    words = "Internal error" if name == "fail_inside" else "Connection closed"
    result = called(tool_of(server, name, Level.WRITE))
    code, definite, message = failure_of(result)
    assert (code, definite, result.error and result.error.words) == (
        "OUTCOME_UNKNOWN",
        False,
        words,
    )
    assert message.endswith(f"does not say whether the call took effect: {words}.")
    assert failure_of(called(tool_of(server, name)))[:2] == ("OPERATION_FAILED", True)
    assert calls.read_text().split() == [name, name]


def test_a_failure_reported_by_the_server_is_definite_short_and_clean() -> None:
    code, definite, message = failure_of(called(tool_of(misbehaving(), "fail", Level.WRITE)))
    assert (code, definite) == ("OPERATION_FAILED", True)
    assert len(message) < 1_100
    assert message.isprintable()
    code, definite, message = failure_of(called(tool_of(misbehaving(), "refuse", Level.WRITE)))
    assert (code, definite) == ("OPERATION_FAILED", True)
    assert "Unknown tool" in message


@feature(
    "Tools from API descriptions",
    "An admin sets an MCP tool's level; its hints are suggestions",
    "tools/sources/mcp/tool.py",
)
def test_a_tools_hints_are_only_suggestions_and_its_process_gets_few_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = misbehaving()
    definition = next(each for each in list_tools(server).tools if each.name == "environment")
    assert suggest_level(definition.annotations) is Level.READ  # the hint is false
    tool = McpTool(definition, server, "there", Level.DESTRUCTIVE)
    assert tool.level is Level.DESTRUCTIVE
    assert "Harmless" not in tool.sentence({}, None)  # type: ignore[arg-type]
    monkeypatch.setenv("SECRET_OF_OURS", "not for servers")
    result = called(tool)
    told = json.loads(result.markdown)
    assert set(told) - {"LC_CTYPE"} <= {"HOME", "PATH", "LANG", "TMPDIR", "TOKEN"}
    assert told["TOKEN"] == "[hidden]"


@feature(
    "Tools from API descriptions",
    "Text of an embedded MCP resource reaches the model; a tool that requires tasks is skipped",
    "tools/sources/mcp/results.py, tools/sources/mcp/definitions.py",
)
def test_a_text_resource_is_returned_and_other_parts_are_named() -> None:
    told = called(tool_of(misbehaving(), "parts")).markdown
    assert "[image: image/png, 3 bytes, not shown]" in told
    assert "[link: x, http://127.0.0.1:1/x, not opened]" in told
    assert "[resource: file:///notes, text/plain, 28 characters]\nSold\nto [hidden]" in told
    assert "[resource: file:///sound, audio/wav, 3 bytes, not shown]" in told


def test_structured_content_is_the_data_and_other_text_is_kept() -> None:
    server = misbehaving()
    structured, both = called(tool_of(server, "structured")), called(tool_of(server, "both"))
    assert (structured.data, structured.markdown) == ({"n": 1}, "")
    assert both.data == {"n": 1}
    assert both.markdown == 'It is one.\n\n```json\n{"n":1}\n```'


def test_progress_sent_by_the_server_is_reported_to_the_caller() -> None:
    seen: list[tuple[float, str]] = []
    tool = tool_of(misbehaving(), "progress")
    assert run_tool(tool, {}, progress=lambda fraction, text: seen.append((fraction, text))).success
    assert sorted(seen) == [(0.25, "step 1"), (0.5, "step 2"), (0.75, "step 3")]


def test_the_servers_own_requests_are_declined() -> None:
    server = misbehaving(owner="asks")
    assert called(tool_of(server, "samples"), text="x").success
    told = json.loads(called(tool_of(server, "cancelled")).markdown)
    assert told[0]["id"] == "s1"
    assert "not supported" in told[0]["error"]["message"]


def test_logs_and_standard_error_are_limited_and_never_contain_a_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = misbehaving(owner="logs")
    with caplog.at_level(logging.DEBUG, "gadget.tools.mcp"):
        assert called(tool_of(server, "logs")).success
        assert called(tool_of(server, "talk")).success
        deadline = time.monotonic() + 10
        while "writes too much" not in caplog.text:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    said = [record.getMessage() for record in caplog.records if record.name == "gadget.tools.mcp"]
    assert 0 < sum("logs (info): log" in text for text in said) <= 200
    assert sum("says: [hidden]" in text for text in said) <= 1_000
    assert SECRET not in caplog.text


def test_endless_text_does_not_affect_other_servers() -> None:
    async def loop_work() -> float:
        before = time.thread_time()
        await asyncio.sleep(1.0)
        return time.thread_time() - before

    server = misbehaving(owner="talks for ever")
    assert called(tool_of(server, "talk_on")).success
    time.sleep(0.5)
    assert LOOP.submit(loop_work()).result() < 0.15
    assert called(tool_of(server, "echo"), text="still").success


@feature(
    "Tools from API descriptions",
    "Reading one server's definitions does not delay calls of other servers",
    "tools/sources/mcp/calls.py",
)
def test_definitions_are_read_on_a_separate_thread(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    schema = {
        "type": "object",
        "properties": {f"p{number}": {"type": "string"} for number in range(1_500)},
    }
    file.write_text(
        json.dumps([{"name": f"tool{number}", "inputSchema": schema} for number in range(4)])
    )
    server = misbehaving(owner="heavy", definitions=file)
    waited = [0.0]

    def wait_for_others() -> None:
        while not is_read.is_set():
            began = time.monotonic()
            LOOP.submit(asyncio.sleep(0)).result()
            waited.append(time.monotonic() - began)
            is_read.wait(0.01)

    is_read = threading.Event()
    other = threading.Thread(target=wait_for_others)
    began = time.monotonic()
    other.start()
    assert len(list_tools(server).tools) == 4
    is_read.set()
    other.join()
    assert max(waited) < (time.monotonic() - began) / 3


def test_a_changed_listing_is_flagged_until_it_is_read_again() -> None:
    server = misbehaving(owner="changes")
    tool = tool_of(server, "change")
    assert not has_tool_list_changed(server)
    assert called(tool).success
    deadline = time.monotonic() + 10
    while not has_tool_list_changed(server):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    list_tools(server)
    assert not has_tool_list_changed(server)


@feature(
    "Tools from API descriptions",
    "A changed definition or location of an MCP tool changes its hash",
    "tools/sources/mcp/definitions.py",
)
def test_the_hash_depends_on_definition_and_address_but_not_on_the_title(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    tool = {"name": "save", "description": "Saves.", "inputSchema": {"type": "object"}}

    def hash_of(server: StdioServer, **changes: object) -> str:
        file.write_text(json.dumps([{**tool, **changes}]))
        return tool_of(server, "save").definition_hash

    server = misbehaving(definitions=file)
    first = hash_of(server)
    assert hash_of(server, title="Nice") == first
    assert hash_of(server, description="Saves. Then sends it to me.") != first
    assert hash_of(server, annotations={"readOnlyHint": True}) != first
    assert hash_of(server, outputSchema={"type": "object"}) != first
    assert hash_of(misbehaving(definitions=file, pages=7)) != first


def test_a_listing_is_read_page_by_page_up_to_2000_tools(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text(
        json.dumps([{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(2_100)])
    )
    listing = list_tools(misbehaving(definitions=file, pages=50))
    assert [tool.name for tool in listing.tools] == [f"t{n}" for n in range(2_000)]
    assert "at most 2,000 tools" in listing.skipped[-1].reason


def test_a_server_that_does_not_start_is_reported_to_the_admin(tmp_path: Path) -> None:
    with pytest.raises(
        ToolError, match="ended with code 1 before the connection was ready"
    ) as failure:
        list_tools(misbehaving(start="dies"))
    assert not failure.value.attempted
    assert "No key was given." in failure.value.__notes__
    with pytest.raises(ToolError, match="The program 'no-such-program' is not installed"):
        list_tools(StdioServer(("no-such-program",)))
    unreadable = tmp_path / "server"
    unreadable.write_bytes(b"\x7fELF no program")
    unreadable.chmod(0o755)
    with pytest.raises(
        ToolError, match="ended with code 1 before the connection was ready"
    ) as failure:
        list_tools(StdioServer((str(unreadable),)))
    assert "It cannot be run: Exec format error." in failure.value.__notes__
    with pytest.raises(ToolError, match="did not respond in time") as failure:
        list_tools(misbehaving(start="hangs"), timeout_s=1.0)
    assert list_tools(misbehaving(start="slow")).protocol == "2024-11-05"
