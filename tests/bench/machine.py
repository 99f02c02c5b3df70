"""What the figures were measured on, without names or places."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SYNCS = 50
BUSY = 0.5
"""Load for each core from which on other work is in the way."""


@dataclass(frozen=True)
class Machine:
    """Cores, processor, Python, and how long the disk takes to keep 4 KB; the load is that of the minute before."""

    cores: int
    processor: str
    python: str
    system: str
    sync_ms: float
    load: float

    @property
    def is_busy(self) -> bool:
        return self.load > BUSY * self.cores


def this_machine() -> Machine:
    """Looks at the machine; to be asked before anything is measured."""
    return Machine(
        cores=os.cpu_count() or 1,
        processor=_processor(),
        python=platform.python_version(),
        system=platform.system(),
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


def _sync_ms() -> float:
    """Median of an append of 4 KB with fsync, where the databases of the benchmark lie."""
    seconds = []
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(SYNCS):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - began)
    return 1000 * statistics.median(seconds)
