"""The state of a run from its row, for open pages, because a status can also change without an event."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from agents.platform.queries.runs import RUN_STATE
from agents.runs.models import ENDED, RunStatus
from agents.web.panel.page_parts import PageParts
from agents.web.text.run_status import DELAYED


@dataclass(frozen=True)
class RunState:
    """The state of a run after its event number `after`.

    Attributes:
        reason: the exit reason, or the reason for waiting: `decision`, `answer`, `colleague`, or `delayed` (the model).
        stopped: the reason of a stop that holds the run back; empty without one.
        next_try: the time of the next request to the model, in ISO 8601; None if the run does not wait for one.
    """

    status: str
    reason: str
    stopped: str
    next_try: str | None
    after: int

    @property
    def parts(self) -> PageParts:
        """The parts of the page that show this state."""
        next_try = datetime.fromisoformat(self.next_try) if self.next_try else None
        return PageParts(self.status, self.reason, "" if self.status in ENDED else self.stopped, next_try)

    def to_json(self) -> str:
        """Build the message: `{"seq": null, "type": "run_status", "payload": {…}, "html": "…"}`."""
        message = {"seq": None, "type": "run_status", "payload": asdict(self), "html": self.parts.render()}
        return json.dumps(message, ensure_ascii=False)


def read_state(run_id: int) -> RunState | None:
    """Read the run's current state, with one query; None if there is no such run."""
    row = RUN_STATE.fetch_one(run_id)
    return None if row is None else build_state(row)


def build_state(row: Any) -> RunState:
    """Build the state from a `RunStateRow`, or from a run that `annotate_waits` has loaded."""
    next_try = row.next_wake_at if row.status == RunStatus.QUEUED and row.patience_tries else None
    reason = DELAYED if next_try else row.waits_for
    return RunState(
        row.status,
        row.exit_reason if row.status in ENDED else reason,
        row.stopped_because,
        next_try.isoformat() if next_try else None,
        row.next_event_seq - 1,
    )
