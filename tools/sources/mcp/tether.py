"""Becomes a command, and on Linux dies with the process that started it: `python tether.py PARENT COMMAND…`.

Run as a file of its own, without Gadget's environment, so it imports nothing but the standard library.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: str, command: list[str]) -> None:
    """Elsewhere a server learns by its closed input that nobody is there any more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):
            sys.exit("The process that started this one is gone.")
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
