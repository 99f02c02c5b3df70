"""Supervise child processes: show their output, restart those that die or freeze, and leave none
running when it stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from gadget_site.management.parts_output import PartsOutput
from gadget_site.management.processes import ProcessSpec
from gadget_site.settings_table import SiteSettings
from tools.contract import RateLimit
from tools.toolbox import ProcessRateLimiter

TETHER = str(Path(__file__).with_name("tether.py"))
DEATHS_ALLOWED = 5
DEATHS_WITHIN_S = 60.0
LINES_KEPT = 20
STOP_PATIENCE_S = 8.0
FROZEN_AFTER_S = 20.0
"""The number of seconds after which a process without a heartbeat is replaced. The leases of its
runs expire later, after 30 s."""
CHECK_EVERY_S = 1.0


class TooManyDeathsError(Exception):
    """Processes died too often; the text names the last one and quotes its last lines."""


@dataclass
class Child:
    """One running process.

    Attributes:
        heartbeat: the file that the process touches while its threads run; a process that never
            creates it is not checked.
        silent_s: the time since the supervisor last saw the heartbeat change.
    """

    spec: ProcessSpec
    process: subprocess.Popen[str]
    heartbeat: Path
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))
    last_beat_ns: int | None = None
    silent_s: float = 0.0
    is_frozen: bool = False

    def check_heartbeat(self, seconds: float) -> None:
        """Read the heartbeat again, `seconds` after the last time, and update `silent_s`."""
        try:
            beat_ns = self.heartbeat.stat().st_mtime_ns
        except FileNotFoundError:
            return
        self.silent_s = self.silent_s + seconds if beat_ns == self.last_beat_ns else 0.0
        self.last_beat_ns = beat_ns


class Supervisor:
    """Starts processes and keeps them alive until `stop()`; all methods are called from one
    thread."""

    def __init__(self, folder: Path, output: PartsOutput) -> None:
        self._folder = folder
        self._output = output
        self._children: dict[str, Child] = {}
        self._ended: SimpleQueue[Child] = SimpleQueue()
        self._deaths = ProcessRateLimiter()
        self._heartbeats = tempfile.TemporaryDirectory(prefix="gadget-heartbeats-")
        self._checked_at = time.monotonic()

    def start(self, spec: ProcessSpec) -> None:
        """Start a process in its own process group, so that the terminal's Ctrl-C reaches only the
        supervisor."""
        heartbeat = Path(self._heartbeats.name) / spec.name
        heartbeat.unlink(missing_ok=True)
        own = {"PYTHONUNBUFFERED": "1", SiteSettings.heartbeat_file.name: str(heartbeat)}
        process = subprocess.Popen(
            [sys.executable, TETHER, str(os.getpid()), *spec.command],
            cwd=self._folder,
            env={**os.environ, **own, **spec.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        child = Child(spec, process, heartbeat)
        self._children[spec.name] = child
        threading.Thread(
            target=self._read, args=(child,), name=f"lines-{spec.name}", daemon=True
        ).start()

    def watch(self, seconds: float) -> None:
        """Wait for `seconds`, and restart processes that die or freeze meanwhile.

        Raises:
            TooManyDeathsError: processes died too often.
        """
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._kill_frozen()
            try:
                child = self._ended.get(timeout=min(left, CHECK_EVERY_S))
            except Empty:
                continue
            # A freeze is not counted as a death: five frozen workers must not stop everything.
            if not child.is_frozen:
                self._count_death(child)
            for line in child.lines if child.spec.is_quiet else ():
                self._output.write(child.spec.name, line)
            self._output.write(child.spec.name, f"{_describe_end(child)}; restarting it")
            self.start(child.spec)

    def stop(self) -> None:
        """Stop all processes: first by a signal, then by force. Redis is last, because the other
        processes use it."""
        self._end([child for child in self._children.values() if child.spec.name != "redis"])
        self._end(list(self._children.values()))
        self._children.clear()
        self._heartbeats.cleanup()

    def _kill_frozen(self) -> None:
        """Kill processes whose heartbeat has stopped. Time in which the supervisor itself was
        frozen does not count."""
        now = time.monotonic()
        seconds, self._checked_at = min(now - self._checked_at, CHECK_EVERY_S), now
        for child in self._children.values():
            child.check_heartbeat(seconds)
            if child.silent_s >= FROZEN_AFTER_S and not child.is_frozen:
                child.is_frozen = True
                self._output.write(
                    child.spec.name, f"no heartbeat for {FROZEN_AFTER_S:.0f} s; killing it"
                )
                _signal_group(child, signal.SIGKILL)

    def _end(self, children: list[Child]) -> None:
        for child in children:
            _signal_group(child, signal.SIGTERM)
        deadline = time.monotonic() + STOP_PATIENCE_S
        for child in children:
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._output.write(child.spec.name, "did not stop in time; killing it")
            _signal_group(child, signal.SIGKILL)
            child.process.wait()

    def _count_death(self, child: Child) -> None:
        if self._deaths.seconds_to_wait("", RateLimit(DEATHS_ALLOWED - 1, DEATHS_WITHIN_S)):
            last_lines = "\n".join(f"    {line}" for line in child.lines)
            raise TooManyDeathsError(
                f"{DEATHS_ALLOWED} processes died within a minute. The last one was {child.spec.name} "
                f"({_describe_end(child)}). Its last lines:\n{last_lines}"
            )

    def _read(self, child: Child) -> None:
        for line in filter(str.strip, child.process.stdout or ()):
            child.lines.append(line.rstrip())
            if not child.spec.is_quiet:
                self._output.write(child.spec.name, line.rstrip())
        child.process.wait()
        if self._children.get(child.spec.name) is child:
            self._ended.put(child)


def _describe_end(child: Child) -> str:
    code = child.process.returncode
    return (
        f"ended by {signal.Signals(-code).name}" if code and code < 0 else f"ended with code {code}"
    )


def _signal_group(child: Child, number: signal.Signals) -> None:
    try:
        os.killpg(child.process.pid, number)
    except ProcessLookupError:
        return
