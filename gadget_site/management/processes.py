"""The processes of a running Gadget, and the commands that start them."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass, field

from django.conf import settings

from gadget_site import redis_server


@dataclass(frozen=True)
class ProcessSpec:
    """A process to start; `name` prefixes its output. The output of a quiet process is shown only
    if the process dies."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    is_quiet: bool = False


def build_redis_process() -> ProcessSpec:
    """Return the process of the embedded Redis server for this data folder."""
    script = redis_server.__file__  # run by its path, so that no other module is loaded
    return ProcessSpec(
        "redis", (sys.executable, script, str(settings.GADGET_DATA_DIR)), is_quiet=True
    )


def build_web_process() -> ProcessSpec:
    """Return the web process, which serves pages, REST and sockets."""
    return ProcessSpec("web", (sys.executable, "-m", "gadget_site.web"))


def build_worker_process(number: int) -> ProcessSpec:
    """Return the worker with this number; its name in Redis is `build_worker_name(number)`."""
    command = (
        *(sys.executable, "-m", "celery", "--quiet", "--app", "gadget_site.celery", "worker"),
        *("--pool", "threads", "--hostname", build_worker_name(number)),
    )
    return ProcessSpec(f"worker{number}", command, {"CELERY_SKIP_CHECKS": "true"})


def build_worker_name(number: int) -> str:
    """Return the name that the worker with this number uses for its signs of life."""
    return f"worker{number}-{os.getpid()}@{socket.gethostname()}"


def build_sweeper_process() -> ProcessSpec:
    """Return the sweeper, which wakes, expires and recovers runs."""
    return ProcessSpec("sweeper", (sys.executable, "-m", "gadget_site", "sweep"))
