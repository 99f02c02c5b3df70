"""Tickets: what an agent learns about its own calls while they wait for people, and after they have ended."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.approvals.models import Approval, ApprovalStatus
from agents.gateway.models import AgentKey
from agents.platform.refusals import NotFound
from agents.platform.row_ids import parse_row_id_or_none
from agents.runs.engine.ending import cancel_waiting_call
from agents.runs.engine.next_step import wake_if_possible
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import TERMINAL_CALLS, CallStatus, ToolCall
from tools.contract import ErrorCode, ToolResult

PREFIX = "t-"
_NO_TOOL = (ErrorCode.TOOL_NOT_FOUND, ErrorCode.NOT_PERMITTED)
_WAITING = {
    CallStatus.READY: "starting",
    CallStatus.AWAITING_APPROVAL: "waiting_for_approval",
    CallStatus.APPROVED: "approved",
    CallStatus.EXECUTING: "running",
    CallStatus.SUSPENDED: "waiting_for_people",
    CallStatus.OUTCOME_UNKNOWN: "outcome_unknown",
}
"""What the agent is told about a call that has not ended."""


@dataclass(frozen=True)
class Ticket:
    """A call of an agent as the agent sees it.

    Attributes:
        id: the ticket's id, which works with the agent's own key alone.
        status: `waiting_for_approval` and the like; for an ended call, the call's status.
        card_id, expires_at: those of the open card, if there is one.
        result: None until the call has ended.
        content: the result as a model reads it.
    """

    call: ToolCall
    status: str
    card_id: int | None = None
    expires_at: datetime | None = None

    @property
    def id(self) -> str:
        return f"{PREFIX}{self.call.pk}"

    @property
    def has_ended(self) -> bool:
        return self.call.status in TERMINAL_CALLS

    @property
    def ends_by_itself(self) -> bool:
        """True if nobody has to decide anything before the call ends."""
        return self.call.status in (CallStatus.READY, CallStatus.EXECUTING, CallStatus.APPROVED)

    @property
    def result(self) -> ToolResult | None:
        return ToolResult.from_json(self.call.result) if self.has_ended and self.call.result else None

    @property
    def is_unknown_tool(self) -> bool:
        """True if the call named no tool that the employee may use."""
        error = self.result.error if self.result is not None else None
        return self.call.status == CallStatus.REJECTED and error is not None and error.code in _NO_TOOL

    @property
    def content(self) -> str:
        return self.call.content

    def describe(self, address: str) -> dict[str, Any]:
        """Describe a call that has not ended.

        Args:
            address: the address of its card.
        """
        known = {"status": self.status, "ticket": self.id, "url": address}
        return {**known, "expires_at": self.expires_at.isoformat()} if self.expires_at else known


def load_ticket(call_id: int) -> Ticket:
    """Load a call as its agent sees it."""
    call = ToolCall.objects.select_related("run").get(pk=call_id)
    status = _WAITING.get(CallStatus(call.status), call.status)
    if call.status in TERMINAL_CALLS:
        return Ticket(call, status)
    cards = Approval.objects.filter(tool_call=call, status__in=(ApprovalStatus.PENDING, ApprovalStatus.APPROVED))
    card_id, expires_at = cards.order_by("-sequence").values_list("pk", "expires_at").first() or (None, None)
    return Ticket(call, status, card_id, expires_at if call.status == CallStatus.AWAITING_APPROVAL else None)


def find_ticket(key: AgentKey, ticket: str) -> Ticket:
    """Find a ticket of this key; a ticket of another key is not found.

    Raises:
        NotFound
    """
    return load_ticket(_find_call(key, ticket).pk)


def cancel_ticket(key: AgentKey, ticket: str) -> Ticket:
    """Cancel the call, if it has not started; whatever it is now, return it."""
    call = _find_call(key, ticket)
    with run_transaction(call.run_id) as tx:
        if cancel_waiting_call(tx, call, "The agent that asked for it cancelled it."):
            tx.audit(f"agent_key:{key.pk}", "ticket_cancelled", f"tool_call:{call.pk}", tool=call.tool)
            tx.inbox_changed = True
            wake_if_possible(tx, is_announced=True)
    return load_ticket(call.pk)


def _find_call(key: AgentKey, ticket: str) -> ToolCall:
    call_id = parse_row_id_or_none(ticket.removeprefix(PREFIX))
    own = ToolCall.objects.filter(run__agent_run__key=key, parent_call=None, pk=call_id or 0)
    found = own.only("pk", "run_id", "tool").first()
    if found is None or not ticket.startswith(PREFIX):
        raise NotFound("there is no such ticket for this key")
    return found
