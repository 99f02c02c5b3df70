"""Serve pages, REST and WebSockets with Daphne and our limits: `python -m gadget_site.web`."""

from __future__ import annotations

import os
import sys
import threading
import time

os.environ.setdefault("ASGI_THREADS", "16")  # read once, when daphne.server is imported

import daphne.server
import structlog
from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.conf import settings
from django.db import connection
from django.urls import get_resolver
from twisted.internet import reactor

from agents.platform.liveness import start_heartbeat
from gadget_site.asgi import application
from gadget_site.edge.connections import BoundedFactory
from gadget_site.edge.start_gate import CLOSED
from gadget_site.garbage_collection import freeze_loaded_objects
from gadget_site.open_files import allow_open_files

# gadget_site.asgi has set Django up, so modules that need models can be imported from here on.
# isort: split
from agents.accounts.installation import WrongInstallationError, try_to_confirm
from agents.platform.database_server import RETRY_S, WaitingLine
from gadget_site.demo.accounts import OpenDemoAccountsError, check_before_listening

log = structlog.get_logger(__name__)

HTTP_TIMEOUT_S = 900  # with a shorter timeout, a long export to a slow client would be cut off
CLOSE_TIMEOUT_S = 5
PING_INTERVAL_S = 20
PING_TIMEOUT_S = 30
LARGEST_MESSAGE = 64 * 1024
BACKLOG = 2048
"""The number of connections that may wait to be accepted while the process is busy; the kernel's
own limit may be lower.

With Twisted's default of 50, many simultaneous connections are reset.
"""


def serve() -> None:
    """Listen on HOST and PORT until SIGTERM or SIGINT. Every page is loaded before the first
    request.

    While the database is not ready, the process already listens, but responds only to health checks
    and metrics.
    """
    start_heartbeat()
    start = _Start()
    allow_open_files()
    get_resolver().check()
    freeze_loaded_objects()
    daphne.server.HTTPFactory = BoundedFactory  # Daphne has no setting for the factory
    server = Server(
        application=application,
        endpoints=[f"{each}:backlog={BACKLOG}" for each in _list_endpoints()],
        http_timeout=HTTP_TIMEOUT_S,
        application_close_timeout=CLOSE_TIMEOUT_S,
        ping_interval=PING_INTERVAL_S,
        ping_timeout=PING_TIMEOUT_S,
        websocket_max_message_size=LARGEST_MESSAGE,
        websocket_max_frame_size=LARGEST_MESSAGE,
        server_name="",
        ready_callable=start.continue_in_background,
    )
    server.run()
    if start.failure:
        sys.exit(start.failure)
    if not server.listening_addresses:
        sys.exit(
            f"Cannot listen on {settings.GADGET_HOST}:{settings.GADGET_PORT}; the lines above say why."
        )


def _list_endpoints() -> list[str]:
    endpoints: list[str] = build_endpoint_description_strings(
        host=settings.GADGET_HOST, port=settings.GADGET_PORT
    )
    return endpoints


class _Start:
    """Confirms the installation: immediately if the database is ready, otherwise in a thread while
    the process listens.

    Attributes:
        failure: the sentence to print when the process must exit; empty while nothing has failed.
    """

    def __init__(self) -> None:
        self.failure = ""
        self._line = WaitingLine()
        CLOSED.set()
        self._try()
        if self.failure:
            sys.exit(self.failure)

    def continue_in_background(self) -> None:
        """Log that the web part is ready, or wait in a thread until it is."""
        if CLOSED.is_set():
            threading.Thread(target=self._wait, name="start", daemon=True).start()
        else:
            self._log_ready()

    def _wait(self) -> None:
        while CLOSED.is_set() and not self.failure:
            time.sleep(RETRY_S)
            self._try()
        if self.failure:
            reactor.callFromThread(reactor.stop)  # type: ignore[misc]
        else:
            self._log_ready()

    def _try(self) -> None:
        """Open the gate if the database is ready; set `failure` if Gadget must not start."""
        try:
            if not try_to_confirm(self._line):
                return
            if warning := check_before_listening():
                log.warning("demo accounts are open", warning=warning)
            CLOSED.clear()
        except (WrongInstallationError, OpenDemoAccountsError) as error:
            self.failure = f"Gadget cannot start. {error}"
        finally:
            connection.close()

    def _log_ready(self) -> None:
        log.info("web ready", address=f"http://{settings.GADGET_HOST}:{settings.GADGET_PORT}/")


if __name__ == "__main__":
    serve()
