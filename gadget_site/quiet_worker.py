"""Celery's worker without the messages between workers, which nothing here reads."""

from __future__ import annotations

from typing import Any

from celery.apps.worker import Worker


class QuietWorker(Worker):  # type: ignore[misc]
    """A worker that sends other workers no messages (gossip, mingle, heartbeat), whatever its
    options."""

    def __init__(self, *args: Any, **options: Any) -> None:
        silent = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
        super().__init__(*args, **{**options, **silent})
