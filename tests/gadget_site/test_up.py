"""`manage.py up` starts everything as real processes, keeps the processes alive, and leaves nothing
behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.processes import find_free_port

ROOT = Path(__file__).resolve().parents[2]
READY = "Gadget is ready: "
PATIENCE_S = 60.0
KEYS = (
    "dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk=",
    "YXVkaXQtdGVzdHMtb25seS1hdWRpdC10ZXN0cy1vbmw=",
)


class Up:
    """A running `manage.py up` with its own data folder and port."""

    def __init__(self, folder: Path, port: int, *arguments: str, **variables: str) -> None:
        self.folder, self.port = folder, port
        self.lines: list[str] = []
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in {"PATH", "HOME", "LANG", "TMPDIR"}
        }
        self.environment = {**kept, "GADGET_DATA_DIR": str(folder), "PORT": str(port), **variables}
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            has_ended = self.process.poll() is not None and not self._reader.is_alive()
            too_late = time.monotonic() > deadline or (has_ended and not condition())
            assert not too_late, f"this did not happen in time: {what}\n{self.output}"
            time.sleep(0.05)

    def until_said(self, text: str, times: int = 1) -> None:
        self.until(lambda: self.output.count(text) >= times, f"{text!r} {times} times")

    def until_gone(self) -> None:
        deadline = time.monotonic() + 10
        while left := self.parts():
            assert time.monotonic() < deadline, f"still there: {left}"
            time.sleep(0.05)

    def end(self, number: signal.Signals, seconds: float = 15) -> int:
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def parts(self) -> dict[int, str]:
        """Return the command lines of the processes for this data folder, by process id."""
        listing = subprocess.run(
            ["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True
        )
        rows = (line.strip().partition(" ") for line in listing.stdout.splitlines())
        return {int(pid): command for pid, _, command in rows if self._is_mine(int(pid), command)}

    def _is_mine(self, pid: int, command: str) -> bool:
        if str(self.folder) in command:
            return True
        try:
            return f"GADGET_DATA_DIR={self.folder}" in Path(f"/proc/{pid}/environ").read_text(
                errors="replace"
            )
        except OSError:
            return False

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.lines.append(line.rstrip())


@pytest.fixture
def port() -> int:
    return find_free_port()


@pytest.fixture
def up(tmp_path: Path, port: int) -> Iterator[Up]:
    running = Up(tmp_path / "var", port, "--demo")
    yield running
    running.process.kill()
    running.process.wait()
    running.until_gone()


@pytest.mark.alone
def test_every_part_starts_is_replaced_when_killed_and_stops_without_orphans(up: Up) -> None:
    up.until_said(READY)
    assert f"{READY}http://127.0.0.1:{up.port}/" in up.output
    assert "one click, for example as approver" in up.output
    assert "gadget-demo" in up.output
    assert status_of(up.port, "/api/health") == 200
    assert status_of(up.port, "/static/vendor/pico/pico.min.css") == 200

    second = Up(up.folder, up.port, "--demo")
    assert second.process.wait(PATIENCE_S) == 1
    holder = f"http://127.0.0.1:{up.port}/ (process {up.process.pid})"
    second.until_said(f"Gadget is already running in '{up.folder}': {holder}")

    web = next(pid for pid, command in up.parts().items() if "gadget_site.web" in command)
    os.kill(web, signal.SIGKILL)
    up.until_said("web      | ended by SIGKILL; restarting it")
    up.until_said("web ready", times=2)
    assert status_of(up.port, "/api/health") == 200

    assert up.end(signal.SIGINT) == 0
    up.until_said("Gadget has stopped.")
    assert not up.parts()
    assert "Traceback" not in up.output


def test_a_refused_start_prints_only_the_reason(tmp_path: Path, port: int) -> None:
    keys = {"GADGET_ENCRYPTION_KEYS": KEYS[0], "GADGET_AUDIT_KEYS": KEYS[1], "SECRET_KEY": "s" * 50}
    up = Up(tmp_path / "var", port, "--demo", DEBUG="off", **keys)
    assert up.process.wait(PATIENCE_S) == 1
    up.until_said("CommandError: DEBUG is off")
    assert "Gadget has stopped." not in up.output
    up.until_gone()


@pytest.mark.alone
def test_all_parts_end_if_the_command_is_killed_and_it_can_start_again(up: Up) -> None:
    up.until_said(READY)
    up.end(signal.SIGKILL)
    up.until_gone()
    again = Up(up.folder, up.port, "--demo")
    again.until_said(READY)
    assert again.end(signal.SIGTERM) == 0
    assert not again.parts()


@pytest.mark.alone
def test_a_start_behind_a_proxy_prints_the_public_address_and_logs_only_json(
    tmp_path: Path, port: int
) -> None:
    up = Up(
        tmp_path / "var",
        port,
        ALLOWED_HOSTS=".gadget.example.com",
        ALLOWED_ORIGINS="https://gadget.example.com",
        TRUSTED_PROXIES="127.0.0.1",
        LOG_FORMAT="json",
        GADGET_ENCRYPTION_KEYS=KEYS[0],
        GADGET_AUDIT_KEYS=KEYS[1],
        SECRET_KEY="s" * 50,
    )
    up.until_said(f"{READY}https://gadget.example.com/")
    assert up.end(signal.SIGTERM) == 0
    up.until_said("Gadget has stopped.")
    rows = [json.loads(line) for line in up.lines]
    assert {"up", "web", "worker1", "sweeper"} <= {row["part"] for row in rows}
    assert all(row["event"] and row["timestamp"] for row in rows)
    assert not [
        row for row in rows if row.get("level") in {"warning", "error"} or "exception" in row
    ]


@pytest.mark.timeout(90)
def test_a_port_in_use_is_reported_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken_port = taken.getsockname()[1]
        up = Up(tmp_path, taken_port, "--demo")
        assert up.process.wait(PATIENCE_S) == 1
    up.until_said(f"Cannot listen on 127.0.0.1:{taken_port}: Address already in use.")
    assert f"PORT={taken_port + 1}" in up.output
    assert "redis" not in up.output


@pytest.mark.timeout(90)
def test_an_invalid_setting_ends_the_start_with_one_line(tmp_path: Path, port: int) -> None:
    up = Up(tmp_path, port, "--demo", DATABASE_URL="mysql://localhost/gadget")
    assert up.process.wait(PATIENCE_S) == 1
    up.until_said(
        "Gadget cannot start. DATABASE_URL: 'mysql://localhost/gadget' begins with neither"
    )
    assert "Traceback" not in up.output


def status_of(port: int, path: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()
