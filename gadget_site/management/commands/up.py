"""`manage.py up`: all processes of a running Gadget under one command."""

from __future__ import annotations

import fcntl
import http.client
import io
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import IO, Any

import redis
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from agents.accounts.installation import confirm_at_start
from agents.accounts.models import Organization
from agents.platform.database_server import wait_for_server
from agents.platform.liveness import SWEEPER, WORKER, list_alive
from agents.platform.redis_client import connect_redis
from gadget_site.demo import names
from gadget_site.demo.accounts import OpenDemoAccountsError, check_before_listening
from gadget_site.management.parts_output import PartsOutput
from gadget_site.management.processes import (
    build_redis_process,
    build_sweeper_process,
    build_web_process,
    build_worker_name,
    build_worker_process,
)
from gadget_site.management.supervisor import Supervisor, TooManyDeathsError

READY_PATIENCE_S = 60.0
LOOK_EVERY_S = 0.1
LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


class Command(BaseCommand):
    """Starts web, workers, sweeper and, unless REDIS_URL is set, Redis; keeps them alive until
    Ctrl-C."""

    help = "Start web, workers and sweeper, and Redis unless REDIS_URL is set. Ctrl-C stops everything."
    requires_system_checks: list[str] = []
    _stopping = False

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--demo`, which creates the demo data first."""
        parser.add_argument(
            "--demo", action="store_true", help="create the demo organization and its users first"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until SIGINT or SIGTERM.

        Raises:
            CommandError: something prevents the start."""
        with _lock_folder(Path(settings.GADGET_DATA_DIR) / "up.lock"):
            _refuse_port_in_use(settings.GADGET_HOST, settings.GADGET_PORT)
            self._output = PartsOutput(sys.stdout, as_json=settings.GADGET_LOG_FORMAT == "json")
            supervisor = Supervisor(Path(settings.BASE_DIR), self._output)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self._stop)
            try:
                self._run(supervisor, options["demo"])
            except TooManyDeathsError as error:
                raise CommandError(f"Gadget has stopped. {error}") from error
            finally:
                supervisor.stop()
            self._output.write_plain("Gadget has stopped.")

    def _run(self, supervisor: Supervisor, with_demo: bool) -> None:
        if settings.REDIS_IS_EMBEDDED:
            supervisor.start(build_redis_process())
        wait_for_server(lambda: self._stopping)
        if self._stopping:
            return
        call_command("migrate", verbosity=0)
        confirm_at_start(lambda: self._stopping)
        self._warn_of_demo_accounts()
        if with_demo:
            call_command("demo", keep=True, stdout=io.StringIO())
        self._await(supervisor, _is_redis_ready)
        workers = [build_worker_process(number + 1) for number in range(settings.GADGET_WORKERS)]
        for spec in (build_web_process(), build_sweeper_process(), *workers):
            supervisor.start(spec)
        self._await(supervisor, _is_everything_ready)
        if not self._stopping:
            self._welcome()
        while not self._stopping:
            supervisor.watch(LOOK_EVERY_S)

    def _warn_of_demo_accounts(self) -> None:
        try:
            if warning := check_before_listening():
                self._output.write_plain(f"WARNING: {warning}")
        except OpenDemoAccountsError as error:
            raise CommandError(str(error)) from error

    def _await(self, supervisor: Supervisor, condition: Any) -> None:
        deadline = time.monotonic() + READY_PATIENCE_S
        while not self._stopping and not condition():
            if time.monotonic() > deadline:
                raise CommandError(
                    f"Not everything is ready after {READY_PATIENCE_S:.0f} s; the lines above say why."
                )
            supervisor.watch(LOOK_EVERY_S)

    def _welcome(self) -> None:
        lines = [
            f"Gadget is ready: {settings.GADGET_LINK_BASE if settings.ALLOWED_ORIGINS else _build_address()}/"
        ]
        if settings.DEBUG and Organization.objects.filter(slug=names.ORGANIZATION).exists():
            how = " with one click" if settings.GADGET_ONLY_LOCAL else ""
            lines.append(
                f"Log in{how}, for example as approver. The demo's password is {names.PASSWORD}"
            )
        if settings.DEBUG:
            lines.append(
                "DEBUG is on: use Gadget on this machine only. Set ALLOWED_HOSTS before others connect."
            )
        lines.append("Ctrl-C stops everything.")
        connections.close_all()
        width = max(map(len, lines))
        self._output.write_plain("", "─" * width, *lines, "─" * width, "")

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Shut down cleanly at the first signal. At the second, exit immediately; the other
        processes are then ended by their tethers."""
        if self._stopping:
            os._exit(1)
        self._stopping = True


def _lock_folder(path: Path) -> IO[str]:
    """Lock the data folder for this process.

    Raises:
        CommandError: Gadget is already running in this folder.
    """
    file = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        holder = file.read().strip()
        file.close()
        raise CommandError(
            f"Gadget is already running in {str(path.parent)!r}: {holder or 'it is starting'}."
        ) from error
    file.truncate(0)
    with suppress(OSError):  # if the disk is full, the migrations report it
        os.write(file.fileno(), f"{_build_address()}/ (process {os.getpid()})".encode())
    return file


def _refuse_port_in_use(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"Cannot listen on {host}:{port}: {error.strerror}. Choose another port, e.g. PORT={port + 1}"
            ) from error


def _build_address() -> str:
    host = LOOPBACK_OF.get(settings.GADGET_HOST, settings.GADGET_HOST)
    return (
        f"http://[{host}]:{settings.GADGET_PORT}"
        if ":" in host
        else f"http://{host}:{settings.GADGET_PORT}"
    )


def _is_redis_ready() -> bool:
    try:
        with connect_redis() as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def _is_everything_ready() -> bool:
    wanted = {build_worker_name(number + 1) for number in range(settings.GADGET_WORKERS)}
    try:
        return wanted <= set(list_alive(WORKER)) and bool(list_alive(SWEEPER)) and _is_web_ready()
    except redis.RedisError:
        return False


def _is_web_ready() -> bool:
    """Return True if the web part passes a health check under a host name that it accepts."""
    host = LOOPBACK_OF.get(settings.GADGET_HOST, settings.GADGET_HOST)
    accepted = settings.ALLOWED_HOSTS[0].lstrip(".*") or "localhost"
    connection = http.client.HTTPConnection(host, settings.GADGET_PORT, timeout=5)
    try:
        connection.request("GET", "/api/health", headers={"Host": accepted})
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
