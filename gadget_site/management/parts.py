"""The parts of a running Gadget, as the commands that start them."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass, field

from django.conf import settings

from gadget_site import redis_server


@dataclass(frozen=True)
class Part:
    """One process of the installation; `name` prefixes its lines. Lines of a quiet part are shown only if it dies."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    is_quiet: bool = False


def build_redis_part() -> Part:
    """Return the embedded Redis of this data folder."""
    script = redis_server.__file__  # run by its path, it loads nothing else
    return Part("redis", (sys.executable, script, str(settings.GADGET_DATA_DIR)), is_quiet=True)


def build_web_part() -> Part:
    """Return the part that serves pages, REST and sockets."""
    return Part("web", (sys.executable, "-m", "gadget_site.web"))


def build_worker_part(number: int) -> Part:
    """Return the worker with this number; its name in Redis is `build_worker_name(number)`."""
    command = (
        *(sys.executable, "-m", "celery", "--quiet", "--app", "gadget_site.celery", "worker"),
        *("--pool", "threads", "--hostname", build_worker_name(number)),
    )
    return Part(f"worker{number}", command, {"CELERY_SKIP_CHECKS": "true"})


def build_worker_name(number: int) -> str:
    """Return the name that a worker of this process uses for its signs of life."""
    return f"worker{number}-{os.getpid()}@{socket.gethostname()}"


def build_sweeper_part() -> Part:
    """Return the part that wakes, expires and recovers runs."""
    return Part("sweeper", (sys.executable, "-m", "gadget_site", "sweep"))
