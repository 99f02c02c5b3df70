"""The bar that stays in view on a run's page: the run's current activity, and what it needs from
people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

from agents.employees.toolboxes import load_toolbox
from agents.runs.models import ENDED, RunStatus
from agents.runs.status_labels import StatusLabel, label_status
from agents.web.text.safe_text import quote_outside
from tools.contract import name_tool
from tools.contract.outside_text import OutsideText

RESULT = "#end"
PARTICIPLES = {
    "Add": "adding",
    "Archive": "archiving",
    "Ask": "asking",
    "Calculate": "calculating",
    "Cancel": "cancelling",
    "Check": "checking",
    "Continue": "continuing",
    "Count": "counting",
    "Create": "creating",
    "Cross-reference": "cross-referencing",
    "Delegate": "delegating",
    "Delete": "deleting",
    "Draft": "drafting",
    "List": "listing",
    "Preview": "previewing",
    "Qualify": "qualifying",
    "Read": "reading",
    "Score": "scoring",
    "Search": "searching",
    "Update": "updating",
    "Write": "writing",
}
"""The participle of each verb with which titles of built-in tools begin."""


@dataclass(frozen=True)
class StatusBar:
    """The content of the bar.

    Attributes:
        look, icon: as in `StatusLabel`.
        doing: the run's activity or reason to wait; empty if the run only waits for people.
        since: the start of the activity; None if it does not matter.
        until: the time of the next attempt; None if there is none.
        needs: the needed actions, such as `2 approvals needed`; empty if no action is needed.
        link, link_text: the address to go to and its text; an address that begins with `#` is on
            this page.
    """

    look: str
    icon: str
    doing: str = ""
    since: datetime | None = None
    until: datetime | None = None
    needs: str = ""
    link: str = ""
    link_text: str = ""

    @property
    def leads_to_card(self) -> bool:
        """True if the link leads to a pending decision, which may be on this page."""
        return bool(self.needs)


def build_status_bar(row: Any, reason: str, next_try: datetime | None) -> StatusBar:
    """Build the bar from a `RunStateRow`, or from a run that `annotate_activity` has loaded.

    Args:
        reason: as in `RunState`.
    """
    label = label_status(row.status, reason, row.outcome)
    if row.status in ENDED:
        return _build_end(row.status, label)
    needs = describe_needs(row.decisions, row.answers, row.unknowns)
    if needs:
        link, link_text = reverse("approvals"), "Review"
    elif row.status == RunStatus.WAITING and row.colleague_run:
        link, link_text = reverse("run", args=[row.colleague_run]), "View"
    else:
        link = link_text = ""
    doing, since = _describe_activity(row, next_try)
    look = "wait" if needs else label.look
    icon = "inbox" if needs and not doing else label.icon
    return StatusBar(look, icon, doing, since, next_try, needs, link, link_text)


def describe_needs(decisions: int, answers: int, unknowns: int) -> str:
    """Describe the needed actions: `2 approvals and 1 answer needed`, `1 answer needed`; empty if
    no action is needed."""
    counts = ((decisions, "approval"), (answers, "answer"), (unknowns, "outcome check"))
    open_ones = [(number, noun) for number, noun in counts if number]
    if not open_ones:
        return ""
    *most, last = [f"{number:,} {noun}{'' if number == 1 else 's'}" for number, noun in open_ones]
    return f"{', '.join(most)} and {last} needed" if most else f"{last} needed"


def _build_end(status: str, label: StatusLabel) -> StatusBar:
    text = "Finished" if label.look == "good" else label.text
    link_text = f"Read the {'answer' if status == RunStatus.SUCCEEDED else 'result'} ↑"
    return StatusBar(label.look, label.icon, text, link=RESULT, link_text=link_text)


def _describe_activity(row: Any, next_try: datetime | None) -> tuple[str, datetime | None]:
    """Describe the run's current activity and its start; empty if only people need to act."""
    if row.cancel_requested_at is not None:
        return "Cancelling: running calls end first", row.cancel_requested_at
    if row.status == RunStatus.RUNNING and row.running_calls:
        return _describe_calls(row), row.running_since
    if row.stopped_because:
        return "On hold until an admin lifts the stop", None
    if row.status == RunStatus.RUNNING:
        return f"{row.employee_name} is thinking", row.last_event_at
    if row.status == RunStatus.QUEUED:
        return (
            ("Waiting for the model", None)
            if next_try
            else ("Waiting for a worker", row.last_event_at)
        )
    return _describe_wait(row), row.last_event_at


def _describe_wait(row: Any) -> str:
    if row.decisions or row.answers or row.unknowns:
        return ""
    if row.status == RunStatus.NEEDS_ATTENTION:
        return "Outcome unknown"
    if row.waits_for == "agent":
        return "Waiting for the agent"
    if row.colleague is None:
        return "Starting in a moment: the approval can still be undone"
    others = row.colleagues - 1
    more = f" and {others} more colleague{'' if others == 1 else 's'}" if others else ""
    return f"Waiting for {row.colleague}{more}"


def _describe_calls(row: Any) -> str:
    """Describe the running calls: `Dana is searching records`, `Dana is running 3 calls`."""
    if row.running_calls > 1:
        return f"{row.employee_name} is running {row.running_calls:,} calls"
    tool = load_toolbox(row.organization_id).get_tool(row.running_tool)
    title = name_tool(tool, row.running_tool)
    verb, _, rest = title.partition(" ")
    if isinstance(title, OutsideText) or verb not in PARTICIPLES:
        return f"{row.employee_name} is using {quote_outside(title)}"
    return f"{row.employee_name} is {PARTICIPLES[verb]} {rest}".rstrip()
