"""The parts of a run's page outside its lines, such as the status badge, rendered for pages and
live messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.template.loader import get_template

from agents.runs.models import ENDED, Event, EventType, RunStatus
from agents.runs.status_labels import DELAYED, StatusLabel, label_status
from agents.web.jinja_environment import JINJA
from agents.web.panel.status_bar import StatusBar
from agents.web.panel.timeline import DrawnSegment


@dataclass(frozen=True)
class PageParts:
    """The parts that a message changes; a field with its default value leaves its part unchanged.

    Attributes:
        status, reason: the run's status, and the reason for it.
        stopped_because: the reason for a stop; an empty text hides the notice.
        next_try: the time of the next request to the model.
        pass_number: the pass that the figures belong to.
        outcome: the outcome of an ended run.
        bar: the current activity and needs of the run.
        segments: the segments of the timeline that have changed.
    """

    status: str = ""
    reason: str = ""
    stopped_because: str | None = None
    next_try: datetime | None = None
    title: str = ""
    pass_number: int = 0
    figures: str = ""
    segments: Sequence[DrawnSegment] = ()
    outcome: str = ""
    bar: StatusBar | None = None

    @property
    def label(self) -> StatusLabel:
        return label_status(self.status, self.reason, self.outcome)

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED

    def render(self) -> str:
        """Render the HTML for a live message: a `template` for each part, with the id of the
        element to fill."""
        if self == NO_PARTS:
            return ""
        return get_template("panel/parts.html", using=JINJA).render({"parts": self}).strip()


NO_PARTS = PageParts()


def find_changes(event: Event) -> dict[str, Any]:
    """Find the fields of `PageParts` that follow from the event alone."""
    find = CHANGES.get(event.type)
    return find(event.payload) if find else {}


def _find_waiting(payload: dict[str, Any]) -> dict[str, Any]:
    """Find the changes for a run that waits; a stop only has a reason and leaves the status
    unchanged."""
    if payload.get("reason"):
        return {"stopped_because": payload["reason"]}
    waits = {
        "decision": payload.get("decisions"),
        "answer": payload.get("answers"),
        "colleague": payload.get("colleagues"),
    }
    return {
        "status": RunStatus.WAITING,
        "reason": next((reason for reason, is_open in waits.items() if is_open), ""),
    }


def _find_delay(payload: dict[str, Any]) -> dict[str, Any]:
    next_try = datetime.fromisoformat(payload["retry_at"])
    return {"status": RunStatus.QUEUED, "reason": DELAYED, "next_try": next_try}


def _find_end(payload: dict[str, Any]) -> dict[str, Any]:
    ended = {
        "status": payload["status"],
        "reason": payload["exit_reason"],
        "outcome": payload.get("outcome", ""),
    }
    return ended | {"stopped_because": ""}


CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    EventType.PASS_STARTED: lambda _: {"status": RunStatus.RUNNING},
    EventType.TOOL_START: lambda _: {"status": RunStatus.RUNNING},
    EventType.ASSISTANT_MESSAGE: lambda _: {"status": RunStatus.RUNNING},
    EventType.RUN_RESUMED: lambda _: {"status": RunStatus.QUEUED},
    EventType.RUN_NEEDS_ATTENTION: lambda _: {"status": RunStatus.NEEDS_ATTENTION},
    EventType.RUN_WAITING: _find_waiting,
    EventType.PROVIDER_DELAYED: _find_delay,
    EventType.RUN_FINISHED: _find_end,
    EventType.RUN_TITLED: lambda payload: {"title": payload.get("title") or ""},
}
"""The changes that each type of event makes on the page, besides its line."""
