"""A script that runs a command and kills it when the process at the other end of a pipe ends:
`tether.py PIPE COMMAND…`.

The script runs next to the command and leads their process group. When the other process ends for
any reason, the pipe closes and the script kills the whole group, because the command may be only a
launcher of the server. Only the command uses standard input and output. The script runs without
Gadget's environment, so it imports the standard library only.
"""

import os
import signal
import sys
import threading

GROUP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
STREAMS = (0, 1, 2)


def main(pipe: int, command: list[str]) -> int:
    """Run the command and return its exit code; if a signal ended it, kill this process, too."""
    for number in GROUP_SIGNALS:
        signal.signal(number, _ignore_signal)
    try:
        started = os.posix_spawn(
            command[0],
            command,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_CLOSE, pipe)],
            setsigdef=IGNORED_BY_PYTHON,
        )
    except OSError as error:
        sys.exit(f"It cannot be run: {error.strerror}.")
    _release_streams()
    threading.Thread(target=_kill_all_when_closed, args=(pipe,), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(started, 0)[1])
    if code < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return code


def _ignore_signal(number: int, _frame: object) -> None:
    """Ignore the signal: it was sent to the whole group, so the command handles it.

    SIG_IGN would not work here, because the command would inherit it.
    """


def _release_streams() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in STREAMS:
        os.dup2(null, stream)


def _kill_all_when_closed(pipe: int) -> None:
    os.read(pipe, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
