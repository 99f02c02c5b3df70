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
    """One process of the installation; `name` stands before each of its lines. A quiet one's are shown if it dies."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    is_quiet: bool = False


def redis_part() -> Part:
    """The embedded Redis of this data folder."""
    script = redis_server.__file__  # run by its path, it loads nothing else
    return Part("redis", (sys.executable, script, str(settings.GADGET_DATA_DIR)), is_quiet=True)


def web_part() -> Part:
    """Pages, REST and sockets."""
    return Part("web", (sys.executable, "-m", "gadget_site.web"))


def worker_part(number: int) -> Part:
    """The queue's worker of this number; its name in Redis is `worker_name(number)`."""
    command = (
        *(sys.executable, "-m", "celery", "--quiet", "--app", "gadget_site.celery", "worker"),
        *("--pool", "threads", "--hostname", worker_name(number)),
    )
    return Part(f"worker{number}", command, {"CELERY_SKIP_CHECKS": "true"})


def worker_name(number: int) -> str:
    """The name under which a worker started by this process leaves its signs of life."""
    return f"worker{number}-{os.getpid()}@{socket.gethostname()}"


def sweeper_part() -> Part:
    """What wakes, expires and recovers."""
    return Part("sweeper", (sys.executable, "-m", "gadget_site", "sweep"))
