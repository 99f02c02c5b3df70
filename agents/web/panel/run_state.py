"""What a run's row says of itself: a status also changes without an event, and open pages follow that too."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime

from agents.platform.queries.runs import RUN_STATE
from agents.runs.models import ENDED, RunStatus
from agents.web.sockets.feeds import in_thread

DELAYED = "delayed"


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
    row = RUN_STATE.row(run_id)
    if row is None:
        return None
    next_try = delayed_until(row.status, row.patience_tries, row.next_wake_at)
    waits_for = DELAYED if next_try else row.waits_for.rpartition(" ")[2]
    return RunState(
        row.status,
        row.exit_reason if row.status in ENDED else waits_for,
        row.stopped_because,
        next_try.isoformat() if next_try else None,
        row.next_event_seq - 1,
    )


def delayed_until(status: str, tries: int, wake_at: datetime | None) -> datetime | None:
    """When a run asks its model again that has asked for patience; None if it does not wait for that."""
    return wake_at if status == RunStatus.QUEUED and tries else None
