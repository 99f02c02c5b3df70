"""Runs parts as child processes: shows their output, restarts those that die or freeze, and leaves none behind."""

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
from typing import TextIO

from agents.platform.liveness import HEARTBEAT_FILE
from gadget_site.management.parts import Part

TETHER = str(Path(__file__).with_name("tether.py"))
DEATHS_ALLOWED = 5
DEATHS_WITHIN_S = 60.0
LINES_KEPT = 20
STOP_PATIENCE_S = 8.0
NAME_WIDTH = 8
FROZEN_AFTER_S = 20.0
"""A part without a heartbeat for this long is replaced, before the leases of its runs end at 30 s."""
LONGEST_LOOK_S = 1.0


class RestlessError(Exception):
    """Parts died too often; the text names the last one and has its last lines."""


@dataclass
class Child:
    """One running part.

    Attributes:
        heartbeat: the file it touches while its threads run; a part that has created none is not watched.
        silent_s: the time since the supervisor last saw it change.
    """

    part: Part
    process: subprocess.Popen[str]
    heartbeat: Path
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))
    last_beat_ns: int | None = None
    silent_s: float = 0.0
    is_frozen: bool = False

    def listen(self, seconds: float) -> None:
        """Look at the heartbeat; `seconds` have passed since the last look."""
        try:
            beat_ns = self.heartbeat.stat().st_mtime_ns
        except FileNotFoundError:
            return
        self.silent_s = self.silent_s + seconds if beat_ns == self.last_beat_ns else 0.0
        self.last_beat_ns = beat_ns


class Supervisor:
    """Starts parts and keeps them alive until `stop()`; every method is called from one thread."""

    def __init__(self, folder: Path, output: TextIO) -> None:
        self._folder = folder
        self._output = output
        self._children: dict[str, Child] = {}
        self._ended: SimpleQueue[Child] = SimpleQueue()
        self._deaths: deque[float] = deque(maxlen=DEATHS_ALLOWED)
        self._heartbeats = tempfile.TemporaryDirectory(prefix="gadget-heartbeats-")
        self._listened = time.monotonic()

    def start(self, part: Part) -> None:
        """Start the part in a process group of its own, so that the terminal's Ctrl-C reaches only the supervisor."""
        heartbeat = Path(self._heartbeats.name) / part.name
        heartbeat.unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, TETHER, str(os.getpid()), *part.command],
            cwd=self._folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1", HEARTBEAT_FILE: str(heartbeat), **part.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        child = Child(part, process, heartbeat)
        self._children[part.name] = child
        threading.Thread(target=self._read, args=(child,), name=f"lines-{part.name}", daemon=True).start()

    def watch(self, seconds: float) -> None:
        """Restart parts that die or freeze during this time.

        Raises:
            RestlessError: parts died too often."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._kill_frozen()
            try:
                child = self._ended.get(timeout=min(left, LONGEST_LOOK_S))
            except Empty:
                continue
            if not child.is_frozen:  # nobody must be able to stop everything by freezing five workers
                self._count_death(child)
            for line in child.lines if child.part.is_quiet else ():
                self._say(child.part.name, line)
            self._say(child.part.name, f"{_ending(child)}; restarting it")
            self.start(child.part)

    def stop(self) -> None:
        """Stop all parts: first by a signal, Redis last because the others use it, then by force."""
        self._end([child for child in self._children.values() if child.part.name != "redis"])
        self._end(list(self._children.values()))
        self._children.clear()
        self._heartbeats.cleanup()

    def _kill_frozen(self) -> None:
        """Kill parts that live without a heartbeat; time in which this process itself was frozen does not count."""
        now = time.monotonic()
        seconds, self._listened = min(now - self._listened, LONGEST_LOOK_S), now
        for child in self._children.values():
            child.listen(seconds)
            if child.silent_s >= FROZEN_AFTER_S and not child.is_frozen:
                child.is_frozen = True
                self._say(child.part.name, f"has had no heartbeat for {FROZEN_AFTER_S:.0f} s and is killed")
                _signal_group(child, signal.SIGKILL)

    def _end(self, children: list[Child]) -> None:
        for child in children:
            _signal_group(child, signal.SIGTERM)
        deadline = time.monotonic() + STOP_PATIENCE_S
        for child in children:
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._say(child.part.name, "did not stop in time and is killed")
            _signal_group(child, signal.SIGKILL)
            child.process.wait()

    def _count_death(self, child: Child) -> None:
        now = time.monotonic()
        self._deaths.append(now)
        if len(self._deaths) == DEATHS_ALLOWED and now - self._deaths[0] <= DEATHS_WITHIN_S:
            last_lines = "\n".join(f"    {line}" for line in child.lines)
            raise RestlessError(
                f"{DEATHS_ALLOWED} deaths within a minute, the last one of {child.part.name} ({_ending(child)}). "
                f"Its last lines:\n{last_lines}"
            )

    def _read(self, child: Child) -> None:
        for line in filter(str.strip, child.process.stdout or ()):
            child.lines.append(line.rstrip())
            if not child.part.is_quiet:
                self._say(child.part.name, line.rstrip())
        child.process.wait()
        if self._children.get(child.part.name) is child:
            self._ended.put(child)

    def _say(self, name: str, line: str) -> None:
        self._output.write(f"{name:<{NAME_WIDTH}} | {line}\n")
        self._output.flush()


def _ending(child: Child) -> str:
    code = child.process.returncode
    return f"ended by {signal.Signals(-code).name}" if code and code < 0 else f"ended with code {code}"


def _signal_group(child: Child, number: signal.Signals) -> None:
    try:
        os.killpg(child.process.pid, number)
    except ProcessLookupError:
        return
