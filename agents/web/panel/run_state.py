"""The state of a run from its row, for open pages, because a status can also change without an
event."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.runs.models import ENDED, RunStatus
from agents.runs.queries.runs import RUN_STATE
from agents.runs.status_labels import DELAYED
from agents.web.panel.page_parts import PageParts
from agents.web.panel.status_bar import StatusBar, build_status_bar

PAYLOAD = ("status", "reason", "stopped", "next_try", "after")


@dataclass(frozen=True)
class RunState:
    """The state of a run after its event number `after`.

    Attributes:
        reason: the exit reason, or the reason for waiting: `decision`, `answer`, `colleague`, or
            `delayed` (the model).
        stopped: the reason for a stop that holds the run back; empty if there is none.
        next_try: the time of the next request to the model, in ISO 8601; None if the run does not
            wait for one.
        outcome: the outcome of an ended run.
        bar: the content of the status bar.
    """

    status: str
    reason: str
    stopped: str
    next_try: str | None
    after: int
    outcome: str
    bar: StatusBar

    @property
    def parts(self) -> PageParts:
        """The parts of the page that show this state."""
        next_try = datetime.fromisoformat(self.next_try) if self.next_try else None
        stopped = "" if self.status in ENDED else self.stopped
        return PageParts(
            self.status, self.reason, stopped, next_try, outcome=self.outcome, bar=self.bar
        )

    @property
    def payload(self) -> dict[str, Any]:
        """The part of the state that other software may rely on."""
        return {name: getattr(self, name) for name in PAYLOAD}

    def to_json(self) -> str:
        """Build the message: `{"seq": null, "type": "run_status", "payload": {…}, "html": "…"}`."""
        message = {
            "seq": None,
            "type": "run_status",
            "payload": self.payload,
            "html": self.parts.render(),
        }
        return json.dumps(message, ensure_ascii=False)


def read_state(run_id: int) -> RunState | None:
    """Read the run's current state, with one query; None if there is no such run."""
    row = RUN_STATE.fetch_one(run_id)
    return None if row is None else build_state(row)


def build_state(row: Any) -> RunState:
    """Build the state from a `RunStateRow`, or from a run that `annotate_activity` has loaded."""
    next_try = row.next_wake_at if row.status == RunStatus.QUEUED and row.patience_tries else None
    reason = row.exit_reason if row.status in ENDED else DELAYED if next_try else row.waits_for
    return RunState(
        row.status,
        reason,
        row.stopped_because,
        next_try.isoformat() if next_try else None,
        row.next_event_seq - 1,
        row.outcome,
        build_status_bar(row, reason, next_try),
    )
