"""A Celery worker that does not exchange messages with other workers, because Gadget does not use
these messages."""

from __future__ import annotations

from typing import Any

from celery.apps.worker import Worker


class QuietWorker(Worker):  # type: ignore[misc]
    """A worker that never sends messages to other workers (gossip, mingle, heartbeat), whatever
    options it has."""

    def __init__(self, *args: Any, **options: Any) -> None:
        silent = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
        super().__init__(*args, **{**options, **silent})
