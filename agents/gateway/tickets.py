"""Tickets: an agent's view of its own calls, while they wait for people and after they have
ended."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.gateway.models import AgentKey
from agents.gateway.queries import CALL_OF_KEY, CARD_END, CARD_ID
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
"""The statuses that agents see for calls that have not ended yet."""


@dataclass(frozen=True)
class Ticket:
    """A call of an agent as the agent sees it.

    Attributes:
        id: the ticket's id, which works only with the agent's own key.
        status: the status as the agent sees it, such as `waiting_for_approval`; for an ended call,
            the call's own status.
        card_id, expires_at: the id and expiry of the open card; None if there is none.
        result: the result; None until the call has ended.
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
        """True if the call will end without a further decision by a person."""
        return self.call.status in (CallStatus.READY, CallStatus.EXECUTING, CallStatus.APPROVED)

    @property
    def result(self) -> ToolResult | None:
        return (
            ToolResult.from_json(self.call.result) if self.has_ended and self.call.result else None
        )

    @property
    def is_unknown_tool(self) -> bool:
        """True if the call named no tool that the employee may use."""
        return self.call.status == CallStatus.REJECTED and self._error_code in _NO_TOOL

    @property
    def has_crashed(self) -> bool:
        """True if the call failed unexpectedly, rather than with an error that the tool
        reported."""
        return self._error_code == ErrorCode.TOOL_EXECUTION_FAILED

    @property
    def _error_code(self) -> ErrorCode | None:
        error = self.result.error if self.result is not None else None
        return error.code if error is not None else None

    @property
    def content(self) -> str:
        return self.call.content

    def describe(self, address: str) -> dict[str, Any]:
        """Return the fields about the call that its agent gets: status, ticket, address, and the
        expiry if the call waits.

        Args:
            address: the address of the call's card or run.
        """
        known = {"status": self.status, "ticket": self.id, "url": address}
        return {**known, "expires_at": self.expires_at.isoformat()} if self.expires_at else known


def load_ticket(call_id: int) -> Ticket:
    """Load a call as its agent sees it.

    Raises:
        ToolCall.DoesNotExist
    """
    call = (
        ToolCall.objects.select_related("run")
        .annotate(card_id=CARD_ID, expires_at=CARD_END)
        .get(pk=call_id)
    )
    return _build_ticket(call, call.card_id, call.expires_at)


def find_ticket(key: AgentKey, ticket: str) -> Ticket:
    """Find a ticket of this key; a ticket of another key is not found.

    Raises:
        NotFound
    """
    call_id = (
        parse_row_id_or_none(ticket.removeprefix(PREFIX)) if ticket.startswith(PREFIX) else None
    )
    row = CALL_OF_KEY.fetch_one(call_id, key.pk) if call_id is not None else None
    if row is None:
        raise NotFound("there is no such ticket for this key")
    row.call.run = row.run
    return _build_ticket(row.call, row.card_id, row.expires_at)


def _build_ticket(call: ToolCall, card_id: int | None, expires_at: datetime | None) -> Ticket:
    status = _WAITING.get(CallStatus(call.status), call.status)
    if call.status in TERMINAL_CALLS:
        return Ticket(call, status)
    return Ticket(
        call, status, card_id, expires_at if call.status == CallStatus.AWAITING_APPROVAL else None
    )


def cancel_ticket(key: AgentKey, ticket: str) -> Ticket:
    """Cancel the call, if it has not started; return its current state."""
    call = find_ticket(key, ticket).call
    with run_transaction(call.run_id) as tx:
        if cancel_waiting_call(tx, call, "The agent that asked for it cancelled it."):
            tx.audit(
                f"agent_key:{key.pk}", "ticket_cancelled", f"tool_call:{call.pk}", tool=call.tool
            )
            tx.inbox_changed = True
            wake_if_possible(tx, is_announced=True)
    return load_ticket(call.pk)
