"""The real system for tests: web, workers and sweeper as processes on the test database, with their
own Redis."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from gadget_site.management.processes import (
    ProcessSpec,
    build_sweeper_process,
    build_web_process,
    build_worker_process,
)
from gadget_site.management.supervisor import TETHER
from tests import services
from tests.fork_server import ForkedProcess, fork_server

READY_PATIENCE_S = 150.0
STOP_PATIENCE_S = 20.0
PORTS = range(20_000, 32_768)


class RealProcess:
    """One part of the system as a process, with its output in lines."""

    def __init__(
        self, part: ProcessSpec, environment: dict[str, str], *, is_forked: bool = False
    ) -> None:
        self.name = part.name
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._process: subprocess.Popen[str] | ForkedProcess
        if is_forked and sys.platform == "linux":
            self._process = fork_server(settings.BASE_DIR).start(part.command, environment)
        else:
            self._process = _start(part, environment)
        threading.Thread(target=self._read, name=f"lines-{part.name}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative after a signal; None while the process runs."""
        return self._process.poll()

    def await_line(self, text: str, seconds: float = READY_PATIENCE_S) -> str:
        """Wait for a line with this text and return it.

        Raises:
            AssertionError: the line does not appear in time; the message contains the whole output.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            while (found := next((line for line in self.lines if text in line), None)) is None:
                left = deadline - time.monotonic()
                if left <= 0 or (not self.is_alive and not self._changed.wait(0.5)):
                    raise AssertionError(f"{self.name} did not print {text!r}:\n{self.output}")
                self._changed.wait(min(left, 0.5))
        return found

    def wait_for_end(self, seconds: float = READY_PATIENCE_S) -> int:
        """Wait until the process has exited on its own, and return its exit code."""
        return self._process.wait(seconds)

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process is gone."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """Send SIGSTOP, and wait until all threads of the process have stopped."""
        if self.is_alive:
            self._signal(signal.SIGSTOP)
            os.waitpid(self._process.pid, os.WUNTRACED)

    def resume(self) -> None:
        """Send SIGCONT, to undo `pause()`."""
        self._signal(signal.SIGCONT)

    def stop(self, seconds: float = STOP_PATIENCE_S) -> None:
        """Send SIGTERM, and SIGKILL if the process is still there after `seconds`."""
        self.resume()
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if not self.is_alive:
            return  # the pid may belong to another process by now
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return

    def _read(self) -> None:
        for line in self._process.stdout or ():
            with self._changed:
                self.lines.append(line.rstrip())
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


@dataclass
class Installation:
    """A whole Gadget on the current test database: `start_web()`, `start_worker()`,
    `start_sweeper()` as needed.

    `timing_scale` multiplies the engine's lease, heartbeat, sweep, grace and expiry; `variables`
    are added to the processes' environment; with `is_forked` they start faster, through
    tests/fork_server.py. Use it as a context manager, or the fixture `installation`: it always
    cleans up.
    """

    timing_scale: float = 0.1
    variables: dict[str, str] = field(default_factory=dict)
    is_forked: bool = False
    processes: list[RealProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = f"test-{secrets.token_hex(4)}"
        self.port = find_free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="gadget-site-"))
        self.redis = services.start_redis(self._folder)

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The web's address, without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process of this installation."""
        return {
            **os.environ,
            services.GIVEN_VARIABLE: "1",
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "PYTHONUNBUFFERED": "1",
            "GADGET_DATA_DIR": str(self._folder),
            "DATABASE_URL": current_database_url(),
            "REDIS_URL": self.redis.url,
            "GADGET_QUEUE": self.queue,
            "GADGET_TIMING_SCALE": str(self.timing_scale),
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            **self.variables,
        }

    def start_all(self, workers: int = 1) -> None:
        """Start web, workers and sweeper at the same time; return when all are ready."""
        workers_started = [build_worker_process(number + 1) for number in range(workers)]
        parts = [build_web_process(), build_sweeper_process(), *workers_started]
        for process in [self.spawn(part) for part in parts]:
            process.await_line(" ready")

    def start_web(self) -> RealProcess:
        return self._start(build_web_process())

    def start_worker(self, number: int = 1) -> RealProcess:
        return self._start(build_worker_process(number))

    def start_sweeper(self) -> RealProcess:
        return self._start(build_sweeper_process())

    def process(self, name: str) -> RealProcess:
        """Return the newest process of this name: web, sweeper, worker1, worker2…"""
        return next(process for process in reversed(self.processes) if process.name == name)

    def wipe_redis(self) -> None:
        """Replace Redis with an empty one at the same address."""
        with self.without_redis():
            pass

    def forget_files(self) -> None:
        """Remove the organizations' files, because a later process would use them with a different
        database."""
        for folder in self._folder.glob("files/[0-9]*"):
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def without_redis(self) -> Iterator[None]:
        """Stop Redis while the block runs, and start an empty one at the same address
        afterwards."""
        self.redis.stop()
        yield
        self.redis = services.start_redis(self._folder)

    def spawn(self, part: ProcessSpec) -> RealProcess:
        """Start the part without waiting for its ready line."""
        process = RealProcess(
            part, {**self.environment, **part.environment}, is_forked=self.is_forked
        )
        self.processes.append(process)
        return process

    def stop(self) -> None:
        """End everything, by force where needed, and remove the folder."""
        threads = [threading.Thread(target=process.stop) for process in self.processes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.redis.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, part: ProcessSpec) -> RealProcess:
        process = self.spawn(part)
        process.await_line(" ready")
        return process


def _start(part: ProcessSpec, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, TETHER, str(os.getpid()), *part.command],
        cwd=settings.BASE_DIR,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def current_database_url() -> str:
    """Return the address of the test database."""
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    login = quote(found["USER"], safe="") + (
        ":" + quote(found["PASSWORD"], safe="") if found["PASSWORD"] else ""
    )
    where = f"?host={found['HOST']}" + (f"&port={found['PORT']}" if found["PORT"] else "")
    return f"postgresql://{login}@/{found['NAME']}{where}"


def find_free_port() -> int:
    """Return a port of 127.0.0.1 that nobody uses, for a process that listens a few seconds later.

    It is below the ports that systems assign automatically, so no connection or server of another
    test can take it in the meantime.
    """
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
