"""`manage.py sweep`: the sweeper, as its own process."""

from __future__ import annotations

import os
import signal
import socket
import threading
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand

from agents.accounts.installation import confirm_at_start
from agents.platform.liveness import SWEEPER, SignOfLife, start_heartbeat
from agents.worker.sweeper import sweep_forever

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    """Sweeps until SIGTERM or Ctrl-C."""

    help = "Wake, expire and recover runs, also after lost hints and workers. Any number of sweepers may run."
    # The checks would load every page, which a sweeper does not need.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until a signal; a sweep that has begun is finished first."""
        start_heartbeat()
        confirm_at_start()
        settings.DEBUG = False  # or Django would keep every query
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        pulse = SignOfLife(SWEEPER, f"{socket.gethostname()}-{os.getpid()}")
        pulse.start()
        log.info("sweeper ready")
        try:
            sweep_forever(stop)
        finally:
            pulse.stop()
