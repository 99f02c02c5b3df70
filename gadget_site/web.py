"""Serve pages, REST and WebSockets with Daphne and our limits: `python -m gadget_site.web`."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("ASGI_THREADS", "16")  # read once, when daphne.server is imported

import daphne.server
import structlog
from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.conf import settings
from django.db import connection
from django.urls import get_resolver

from agents.platform.liveness import start_heartbeat
from gadget_site.asgi import application
from gadget_site.edge.connections import BoundedFactory
from gadget_site.garbage_collection import freeze_loaded_objects
from gadget_site.open_files import allow_open_files

# gadget_site.asgi has set Django up, so modules that need models can be imported from here on.
# isort: split
from agents.platform.identity import confirm_at_start
from gadget_site.demo.accounts import OpenDemoAccountsError, check_before_listening

log = structlog.get_logger(__name__)

HTTP_TIMEOUT_S = 900  # a shorter timeout would cut off a long export to a slow reader
CLOSE_TIMEOUT_S = 5
PING_INTERVAL_S = 20
PING_TIMEOUT_S = 30
LARGEST_MESSAGE = 64 * 1024
BACKLOG = 2048
"""Connections that may wait to be accepted while the process is busy; the kernel's own limit may be lower.

With Twisted's 50, many agents or messages that come at once are reset.
"""


def serve() -> None:
    """Listen on HOST and PORT until SIGTERM or SIGINT. Every page is loaded before the first request."""
    confirm_at_start()
    _refuse_demo_accounts()
    allow_open_files()
    start_heartbeat()
    get_resolver().check()
    freeze_loaded_objects()
    daphne.server.HTTPFactory = BoundedFactory  # Daphne has no setting for it
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
        ready_callable=_log_ready,
    )
    server.run()
    if not server.listening_addresses:
        sys.exit(f"Cannot listen on {settings.GADGET_HOST}:{settings.GADGET_PORT}; the lines above say why.")


def _list_endpoints() -> list[str]:
    endpoints: list[str] = build_endpoint_description_strings(host=settings.GADGET_HOST, port=settings.GADGET_PORT)
    return endpoints


def _log_ready() -> None:
    log.info("web ready", address=f"http://{settings.GADGET_HOST}:{settings.GADGET_PORT}/")


def _refuse_demo_accounts() -> None:
    try:
        warning = check_before_listening()
    except OpenDemoAccountsError as error:
        sys.exit(f"Gadget cannot start. {error}")
    finally:
        connection.close()
    if warning:
        log.warning("demo accounts are open", warning=warning)


if __name__ == "__main__":
    serve()
