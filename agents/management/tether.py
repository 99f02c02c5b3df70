"""Runs one command that cannot outlive the process that started it: `python -m agents.management.tether COMMAND…`."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from typing import Any

PR_SET_PDEATHSIG = 1
LOOK_EVERY_S = 0.5


def main(arguments: list[str]) -> None:
    """Becomes the command on Linux, whose kernel holds the tether; elsewhere stays beside it and watches the parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:
            sys.exit("The process that started this one is gone.")
        os.execvp(arguments[0], arguments)  # noqa: S606
    sys.exit(_watch(arguments))


def _watch(arguments: list[str]) -> int:
    parent = os.getppid()
    child = subprocess.Popen(arguments)

    def forward(number: int, _frame: Any) -> None:
        child.send_signal(number)

    signal.signal(signal.SIGTERM, forward)
    while child.poll() is None:
        if os.getppid() != parent:
            os.killpg(0, signal.SIGKILL)
        time.sleep(LOOK_EVERY_S)
    return child.returncode


if __name__ == "__main__":
    main(sys.argv[1:])
