"""The official conformance suite of MCP, and a client that is not the server's maker's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agents.employees.models import Grant
from agents.runs.models import Run
from tests import node
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.suite_probes import PROBES
from tools.records.models import Record

SUITE = node.FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
OUTCOME = re.compile(r"^[✓✗] ([a-z0-9-]+): (\d+) passed, (\d+) failed")


@pytest.fixture(scope="module")
def node_path() -> str:
    """Return the path of Node with the packages installed; without npm, fail in CI and skip elsewhere, saying so."""
    try:
        return node.find_node()
    except node.NodeMissingError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_conformance_suite_passes_but_for_what_is_not_offered(
    site: Site, secret: str, node_path: str, revision: str, tmp_path: Path
) -> None:
    for tool in PROBES:
        Grant.objects.create(employee=site.workshop.employee, tool=tool.name)
    with opened_for_all(site, secret) as address:
        arguments = ["server", "--url", f"{address}/mcp", "--requirements", revision, "--output-dir", str(tmp_path)]
        baseline = ["--expected-failures", str(node.FOLDER / "not_offered.yml")]
        done = run(node_path, [str(SUITE), *arguments, *baseline])
    text = re.sub("\x1b\\[[0-9;]*m", "", done.stdout)
    outcomes = {found[1]: int(found[3]) for line in text.splitlines() if (found := OUTCOME.match(line))}
    assert len(outcomes) > 30, text[-3_000:]
    assert done.returncode == 0, text[-6_000:]
    for scenario in ("tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-with-progress"):
        assert outcomes[scenario] == 0, scenario
    assert outcomes["dns-rebinding-protection"] == 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_typescript_client_lists_reads_asks_waits_and_fetches(
    site: Site, secret: str, node_path: str, mode: str
) -> None:
    record = site.workshop.record(region="EU")
    address = f"{site.installation.url}/mcp"
    command = [node_path, "client.mjs", address, secret, mode, str(record.pk)]
    with subprocess.Popen(command, cwd=node.FOLDER, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        seen = json.loads(client.stdout.readline())
        assert seen["status"] == "waiting_for_approval"
        assert "data.updateRecord" in seen["tools"]
        assert [one["id"] for one in seen["found"]] == [str(record.pk)]
        await_that(lambda: bool(Run.objects.filter(status="waiting")), "the run waits")
        site.workshop.approve(site.workshop.card(Run.objects.latest("pk")))
        fetched = json.loads(client.stdout.readline())
    assert (client.returncode, fetched["isError"]) == (0, False)
    assert Record.objects.get().phone == "+49 2"


def run(node_path: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([node_path, *arguments], cwd=node.FOLDER, capture_output=True, text=True, check=False)


@contextmanager
def opened_for_all(site: Site, secret: str) -> Iterator[str]:
    """Open a second door that adds the key to every request, because the suite cannot send one."""
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
            answer = there.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length", "server", "date"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while chunk := answer.read1(65_536):
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
