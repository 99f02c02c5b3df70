"""Run one command that ends when its starter ends: `python tether.py STARTER_PID COMMAND…`.

This module does not import any other module of Gadget.
"""

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


def main(starter: int, command: list[str]) -> None:
    """On Linux, replace this process with the command, which the kernel ends together with the
    starter. Elsewhere, start the command and watch both processes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The starter may have ended before prctl took effect. Compare with its id, not with 1: in a
        # container, the starter may be process 1.
        if os.getppid() != starter:
            sys.exit("The process that started this one is gone.")
        os.execvp(command[0], command)  # noqa: S606
    sys.exit(_watch(starter, command))


def _watch(starter: int, command: list[str]) -> int:
    child = subprocess.Popen(command)

    def forward(number: int, _frame: Any) -> None:
        child.send_signal(number)

    signal.signal(signal.SIGTERM, forward)
    while child.poll() is None:
        if os.getppid() != starter:
            os.killpg(0, signal.SIGKILL)
        time.sleep(LOOK_EVERY_S)
    return child.returncode


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
