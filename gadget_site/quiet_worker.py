"""The queue's worker: Celery's, without the messages between workers that nothing here reads."""

from __future__ import annotations

from typing import Any

from celery.apps.worker import Worker


class QuietWorker(Worker):  # type: ignore[misc]
    """A worker without gossip and mingle, however it was started."""

    def __init__(self, *args: Any, **options: Any) -> None:
        silent = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
        super().__init__(*args, **{**options, **silent})
