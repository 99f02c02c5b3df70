"""Fork test processes from a server that has loaded all third-party libraries, which halves the CPU
time of a start.

Our own code is not loaded there: each process reads its environment and settings and loads our code
itself. tests/gadget_site and tests/journeys do not use the server, so they test how parts start on
a real machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

PR_SET_CHILD_SUBREAPER = 36
LARGEST_REQUEST = 128 * 1024
PR_SET_PDEATHSIG = 1
OURS = frozenset({"agents", "gadget_site", "tools"})
LIBRARIES = (
    "autobahn.twisted.websocket", "axes", "celery.apps.worker", "celery.bin.celery", "celery.concurrency.thread",
    "celery.fixups.django", "celery.worker.consumer", "channels.auth", "channels_redis.pubsub", "cronsim",
    "cryptography.fernet", "cryptography.x509", "csp", "dateutil.parser", "dateutil.rrule",
    "django.core.management.base", "django.db.backends.sqlite3.base", "django.db.models.functions", "django.forms",
    "django.template.defaulttags", "django.test.signals", "django.views.debug", "httpcore2", "httpx2",
    "jinja2.sandbox", "jsonschema", "kombu.transport.redis", "markdown_it", "nh3", "openai.types.chat", "openai.types",
    "prometheus_client", "psutil", "psycopg", "psycopg_pool", "pydantic", "pydantic.alias_generators", "re2",
    "redis.asyncio", "sqlparse", "structlog", "truststore", "twisted.internet.asyncioreactor",
    "twisted.internet.endpoints", "twisted.internet.ssl", "twisted.web.http", "whitenoise.middleware", "yaml",
    "zoneinfo",
)  # fmt: skip
"""Libraries that can be imported without reading settings or the environment, opening files or
connections, or starting threads."""


@dataclass
class ForkedProcess:
    """A child of this process, with the methods of `subprocess.Popen` that tests use."""

    pid: int
    stdout: IO[str]
    returncode: int | None = None
    _poll_lock: threading.Lock = field(default_factory=threading.Lock)

    def poll(self) -> int | None:
        """Return the exit code, negative after a signal; None while the process runs."""
        with self._poll_lock:
            if self.returncode is None:
                self._reap()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code and return it; raise TimeoutExpired after this number of
        seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            self._await_end(left)
        return code

    def _reap(self) -> None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # another caller has reaped it; Popen does the same
            self.returncode = 0
            return
        if pid:
            self.returncode = os.waitstatus_to_exitcode(status)

    def _await_end(self, seconds: float | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            end = os.pidfd_open(self.pid)
            try:
                select.select([end], [], [], seconds)
            finally:
                os.close(end)


class ForkServer:
    """The process that has loaded the libraries, started when it is first needed. It ends with the
    process that started it."""

    def __init__(self, folder: Path) -> None:
        self._socket, other_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._request_lock = threading.Lock()
        command = [sys.executable, "-m", "tests.fork_server", str(other_end.fileno())]
        with other_end:
            environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[other_end.fileno()],
                start_new_session=True,
            )

    def start(self, command: Sequence[str], environment: dict[str, str]) -> ForkedProcess:
        """Start `python …` in its own session, with its output in `stdout`; the new process ends
        when this one does."""
        reading, writing = os.pipe()
        request = json.dumps(
            {"command": command[1:], "environment": environment, "parent": os.getpid()}
        )
        with self._request_lock, _as_subreaper():
            socket.send_fds(self._socket, [request.encode()], [writing])
            pid = int(self._socket.recv(LARGEST_REQUEST))
        os.close(writing)
        return ForkedProcess(pid, os.fdopen(reading, errors="replace"))


@lru_cache(maxsize=1)
def fork_server(folder: Path) -> ForkServer:
    """Return the fork server of this process; `folder` is the folder of the project."""
    return ForkServer(folder)


@contextlib.contextmanager
def _as_subreaper() -> Iterator[None]:
    """Adopt orphaned descendants during the block, in place of init."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


# In the process with the libraries


def serve(control: socket.socket) -> list[str] | None:
    """Fork a process for each request until the client is gone; in the new process, return its
    command."""
    for name in LIBRARIES:
        importlib.import_module(name)
    _assert_fresh()
    gc.collect()
    gc.freeze()
    while True:
        message, files, *_ = socket.recv_fds(control, LARGEST_REQUEST, 1)
        if not message:
            return None
        request = json.loads(message)
        adopted, pid_pipe = os.pipe(), os.pipe()
        intermediate = os.fork()
        if not intermediate and (child := os.fork()):
            os.write(pid_pipe[1], str(child).encode())
            os._exit(0)
        if not intermediate:
            os.close(adopted[1])
            os.read(adopted[0], 1)  # returns when the client has adopted this process
            for one in (adopted[0], *pid_pipe):
                os.close(one)
            control.close()
            return _set_up_process(request, files[0])
        os.waitpid(intermediate, 0)
        control.send(os.read(pid_pipe[0], 20))
        for one in (*adopted, *pid_pipe, *files):
            os.close(one)


def _assert_fresh() -> None:
    assert threading.active_count() == 1, "a thread would be missing in each process"
    assert "twisted.internet.reactor" not in sys.modules, "each process has a loop of its own"
    ours = {name for name in sys.modules if name.partition(".")[0] in OURS}
    assert not ours, ours


def _set_up_process(request: dict[str, Any], output: int) -> list[str]:
    """Set up the process as `exec` would, with its own session, files and environment; it ends when
    its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != request["parent"]:
        sys.exit("The process that asked for this one is gone.")
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(here, there)
    os.close(nothing)
    os.close(output)
    os.environ.clear()
    os.environ.update(request["environment"])
    return list(request["command"])


def run(arguments: list[str]) -> None:
    """Run like `python ARGUMENTS…`: `-m` and a module, or a file."""
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as control_socket:
        command = serve(control_socket)
    if command:
        run(command)
