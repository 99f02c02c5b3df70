"""The official conformance suite of MCP, and a third-party client."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from agents.employees.models import Grant
from agents.platform.refusals import Refusal
from agents.runs.models import Approval, ApprovalStatus, Run
from tests import node
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.features import feature
from tests.suite_probes import LONG_S, PROBES
from tools.office.records.models import Record

SUITE = node.FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NOT_OFFERED = node.FOLDER / "not_offered.yml"
OUTCOME = re.compile(r"^[✓✗] ([a-z0-9-]+): (\d+) passed, (\d+) failed")


@pytest.fixture(scope="module")
def node_path() -> str:
    return node.require_node()


@feature(
    "Agents elsewhere",
    "The official conformance suite of MCP runs in the tests",
    "agents/mcp_server/door.py",
)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_conformance_suite_passes_except_for_features_that_gadget_does_not_offer(
    site: Site, secret: str, node_path: str, revision: str, tmp_path: Path
) -> None:
    for tool in PROBES:
        Grant.objects.create(employee=site.workshop.employee, tool=tool.name)
    with opened_for_all(site, secret) as address:
        arguments = [
            "server",
            "--url",
            f"{address}/mcp",
            "--requirements",
            revision,
            "--output-dir",
            str(tmp_path),
        ]
        baseline = ["--expected-failures", str(NOT_OFFERED)]
        code, output = run_approving(site, [node_path, str(SUITE), *arguments, *baseline])
    text = re.sub("\x1b\\[[0-9;]*m", "", output)
    outcomes = {
        found[1]: int(found[3]) for line in text.splitlines() if (found := OUTCOME.match(line))
    }
    assert len(outcomes) > 30, text[-3_000:]
    assert code == 0, text[-6_000:]
    for scenario in (
        "tools-list",
        "tools-call-simple-text",
        "tools-call-error",
        "tools-call-with-progress",
    ):
        assert outcomes[scenario] == 0, scenario
    assert outcomes["dns-rebinding-protection"] == 0
    listed = set(yaml.safe_load(NOT_OFFERED.read_text())["server"])
    assert {name for name, failures in outcomes.items() if failures} <= listed, (
        "the suite itself lets extensions fail"
    )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_typescript_client_can_list_read_ask_wait_and_fetch(
    site: Site, secret: str, node_path: str, mode: str
) -> None:
    record = site.workshop.record(region="EU")
    address = f"{site.installation.url}/mcp"
    command = [node_path, "client.mjs", address, secret, mode, str(record.pk)]
    with subprocess.Popen(command, cwd=node.FOLDER, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        seen = json.loads(client.stdout.readline())
        assert seen["status"] == "waiting_for_approval"
        assert "data__updateRecord" in seen["tools"]
        assert [one["id"] for one in seen["found"]] == [str(record.pk)]
        await_that(lambda: bool(Run.objects.filter(status="waiting")), "the run waits")
        site.workshop.approve(site.workshop.card(Run.objects.latest("pk")))
        fetched = json.loads(client.stdout.readline())
    assert (client.returncode, fetched["isError"]) == (0, False)
    assert Record.objects.get().phone == "+49 2"


def run_approving(site: Site, command: list[str]) -> tuple[int, str]:
    """Run the suite while a person approves its calls, except the long calls, which the suite
    cancels itself."""
    with tempfile.TemporaryFile("w+") as output:
        with subprocess.Popen(
            command, cwd=node.FOLDER, stdout=output, stderr=subprocess.DEVNULL
        ) as suite:
            while suite.poll() is None:
                for card in Approval.objects.filter(status=ApprovalStatus.PENDING).select_related(
                    "tool_call"
                ):
                    if (card.tool_call.params or {}).get("seconds", 0) < LONG_S:
                        with suppress(Refusal):  # cancelled meanwhile
                            site.workshop.approve(card)
                time.sleep(0.2)
        output.seek(0)
        return suite.returncode, output.read()


@contextmanager
def opened_for_all(site: Site, secret: str) -> Iterator[str]:
    """Serve an address that adds the key to every request, because the suite cannot send a key."""
    port = site.installation.port

    class Relay(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def relay(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            there = HTTPConnection("127.0.0.1", port, timeout=60)
            there.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("content-length", "connection"):
                    there.putheader(name, value)
            there.putheader("Authorization", f"Bearer {secret}")
            there.putheader("Content-Length", str(len(body)))
            there.endheaders(body)
            response = there.getresponse()
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in (
                    "transfer-encoding",
                    "connection",
                    "content-length",
                    "server",
                    "date",
                ):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while chunk := response.read1(65_536):
                self.wfile.write(chunk)
                self.wfile.flush()
            self.close_connection = True
            there.close()

        do_GET = do_POST = do_DELETE = relay  # noqa: N815 - the names of the library

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Relay) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
