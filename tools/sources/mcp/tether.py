"""Starts a command that ends with whoever holds the other end of a pipe: `python tether.py PIPE COMMAND…`.

It stays beside the command and leads their process group. The pipe closes when its holder dies, however that comes, and
then the whole group is killed: the command may be a launcher with the server behind it. Standard input and output are
the command's alone. Run as a file of its own, without Gadget's environment, so it imports the standard library only.
"""

import os
import signal
import sys
import threading

FOR_THE_GROUP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SILENCED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
STREAMS = (0, 1, 2)


def main(pipe: int, command: list[str]) -> int:
    """The command's exit code; where a signal ended it, one ends this process too."""
    for number in FOR_THE_GROUP:
        signal.signal(number, _leave_to_the_command)
    try:
        started = os.posix_spawn(
            command[0],
            command,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_CLOSE, pipe)],
            setsigdef=SILENCED_BY_PYTHON,
        )
    except OSError as error:
        sys.exit(f"It cannot be run: {error.strerror}.")
    _let_go_of_streams()
    threading.Thread(target=_kill_all_when_closed, args=(pipe,), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(started, 0)[1])
    if code < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return code


def _leave_to_the_command(number: int, _frame: object) -> None:
    """A signal is sent to the group, so the command has it already; whether it ends of it is its own business.

    A function, because a command would inherit that a signal is ignored, but not that it is heard.
    """


def _let_go_of_streams() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in STREAMS:
        os.dup2(nowhere, stream)


def _kill_all_when_closed(pipe: int) -> None:
    os.read(pipe, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
