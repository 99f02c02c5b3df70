"""What a run's row says of itself: a status also changes without an event, and open pages follow that too."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime

from agents.models import ENDED, Run, RunStatus
from agents.statements import Prepared

from .feeds import in_thread
from .run_pages import with_waits

DELAYED = "delayed"
COLUMNS = ("status", "exit_reason", "waits_for", "patience_tries", "next_wake_at", "stopped_because", "next_event_seq")
_ROW = Prepared(lambda run_id: with_waits(Run.objects.filter(pk=run_id)).order_by().values_list(*COLUMNS))


@dataclass(frozen=True)
class RunState:
    """The run as it is once its event `after` is shown.

    Attributes:
        reason: how it ended; or for what it waits: `decision`, `answer`, `colleague`, `delayed` for its model.
        stopped: why nothing of it may start now; empty if it may.
        next_try: when its model is asked again, if it waits for that; ISO 8601.
    """

    status: str
    reason: str
    stopped: str
    next_try: str | None
    after: int

    def as_text(self) -> str:
        """`{"seq": null, "type": "run_status", "payload": {…}}`"""
        return json.dumps({"seq": None, "type": "run_status", "payload": asdict(self)})


@in_thread
def read_state(run_id: int) -> RunState | None:
    """The run's state of now in one query; None if there is no such run."""
    for status, exit_reason, waits_for, tries, wake_at, stopped, next_seq in _ROW.rows(run_id):
        next_try = delayed_until(status, tries, wake_at)
        reason = exit_reason if status in ENDED else DELAYED if next_try else waits_for.rpartition(" ")[2]
        return RunState(status, reason, stopped, next_try.isoformat() if next_try else None, next_seq - 1)
    return None


def delayed_until(status: str, tries: int, wake_at: datetime | None) -> datetime | None:
    """When a run asks its model again that has asked for patience; None if it does not wait for that."""
    return wake_at if status == RunStatus.QUEUED and tries else None
