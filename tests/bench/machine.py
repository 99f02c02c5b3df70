"""The machine on which the benchmark runs, described without names or paths."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SYNCS = 50
LOOPS = 5
BUSY = 0.5
"""The load per core above which other work on the machine distorts the figures."""


@dataclass(frozen=True)
class Machine:
    """The machine's cores, processor, system and Python version, the measured speed of Python and
    of the disk, and the load in the last minute."""

    cores: int
    processor: str
    python: str
    system: str
    loop_ms: float
    sync_ms: float
    load: float

    @property
    def is_busy(self) -> bool:
        return self.load > BUSY * self.cores


def this_machine() -> Machine:
    """Measure the machine; call this before any benchmark."""
    return Machine(
        cores=os.cpu_count() or 1,
        processor=_processor(),
        python=platform.python_version(),
        system=platform.system(),
        loop_ms=_loop_ms(),
        sync_ms=_sync_ms(),
        load=os.getloadavg()[0],
    )


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    if known.exists():
        for line in known.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _loop_ms() -> float:
    """Return the median time of a loop of a million multiplications, in the machine's current
    state."""
    seconds = []
    for _ in range(LOOPS):
        began, total = time.perf_counter(), 0
        for number in range(1_000_000):
            total += number * number
        seconds.append(time.perf_counter() - began)
    return 1000 * statistics.median(seconds)


def _sync_ms() -> float:
    """Return the median time of an append of 4 KB with fsync, in the folder of the benchmark's
    databases."""
    seconds = []
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(SYNCS):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - began)
    return 1000 * statistics.median(seconds)
