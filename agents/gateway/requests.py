"""Judge the calls that a remote agent requests, and record each as a pass of its session's
run.

The calls are not executed here: a worker drives the run, as it drives an employee's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from agents.gateway.keys import lock_key
from agents.gateway.models import AgentKey, AgentSession
from agents.gateway.sessions import find_or_start_run
from agents.platform.queries.writes import insert_rows
from agents.platform.refusals import Conflict, Invalid
from agents.runs.engine.context import RunContext, load_context
from agents.runs.engine.judgment import PlannedCalls
from agents.runs.engine.next_step import rest, wake_if_possible
from agents.runs.engine.requested_calls import CallRequest, PlannedCall, insert_calls
from agents.runs.engine.timing import MAX_OPEN_TICKETS
from agents.runs.engine.transaction import Transaction, run_transaction
from agents.runs.events import PassStarted
from agents.runs.models import (
    TERMINAL_CALLS,
    Approval,
    ApprovalStatus,
    CallStatus,
    Origin,
    Pass,
    ToolCall,
)
from tools.contract import canonical_json, storable_json
from tools.toolbox.permissions import Permission

OPEN_TICKETS = (
    CallStatus.AWAITING_APPROVAL,
    CallStatus.APPROVED,
    CallStatus.EXECUTING,
    CallStatus.SUSPENDED,
    CallStatus.OUTCOME_UNKNOWN,
)
"""The states of a call in which an identical request gets the ticket of that call."""
MAX_NAME = 120
_MAX_RUNS = 3
"""The maximum number of runs to try, because a run may end while the request is prepared."""


@dataclass(frozen=True)
class ToolRequest:
    """A call that an agent requests.

    Attributes:
        arguments: the values as the agent sent them.
    """

    tool: str
    arguments: dict[str, Any]


def record_request(key: AgentKey, session: AgentSession | None, request: ToolRequest) -> ToolCall:
    """Judge the request and record it as a separate pass; return its call, or the open call of an
    identical request.

    Raises:
        Invalid: the name or the arguments cannot be stored as JSON.
        Conflict: the employee is inactive or stopped, a budget is used up, or each run that was
            tried ended in the meantime.
    """
    try:
        storable_json([request.tool, request.arguments])
    except (ValueError, RecursionError) as error:
        raise Invalid("arguments", f"the call is not valid JSON: {error}") from error
    if len(request.tool) > MAX_NAME:
        raise Invalid("name", f"no tool has a name of more than {MAX_NAME} characters")
    for _ in range(_MAX_RUNS):
        run_id = find_or_start_run(key, session)
        call = _record(key, load_context(run_id), request)
        if call is not None:
            return call
    raise Conflict("the session was ended while the call was prepared; try again")


def _record(key: AgentKey, context: RunContext, request: ToolRequest) -> ToolCall | None:
    """Record the request in the context's run; return its call, or the open call of an identical
    request. Return None if the run has ended."""
    judgment = PlannedCalls(context, [CallRequest(request.tool, request.arguments)])
    if (earlier := _find_open_ticket(key, judgment.only)) is not None:
        return earlier
    for _ in judgment.rounds():
        with _locked_tickets(key, judgment.only), run_transaction(context.run.pk) as tx:
            if tx.run.has_ended or tx.run.cancel_requested_at is not None:
                return None
            objection = judgment.judge_again(tx)
            if (earlier := _find_open_ticket(key, judgment.only)) is not None:
                return earlier
            if objection is None:
                _insert_pass(tx, judgment.only, judgment.snapshot)
                return judgment.only.row
    raise AssertionError("the last round records every request")


@contextmanager
def _locked_tickets(key: AgentKey, plan: PlannedCall) -> Iterator[None]:
    """Let requests of the key create tickets one at a time, in all its sessions; requests that do
    not need approval do not wait.

    Raises:
        Conflict: the key has too many open tickets, or no longer works.
    """
    if plan.permission is not Permission.ASK:
        yield
        return
    with transaction.atomic():
        lock_key(key)
        waiting = Approval.objects.filter(run__agent_run__key=key, status=ApprovalStatus.PENDING)
        if waiting.filter(
            run__origin=Origin.MCP
        ).count() >= MAX_OPEN_TICKETS and not _find_open_ticket(key, plan):
            raise Conflict(f"this key already has {MAX_OPEN_TICKETS} open tickets")
        yield


def _find_open_ticket(key: AgentKey, plan: PlannedCall) -> ToolCall | None:
    """Return the open call of an identical earlier request of the key; None if there is none, or if
    the call does not need approval."""
    if plan.permission is not Permission.ASK:
        return None
    calls = ToolCall.objects.filter(
        run__agent_run__key=key, status__in=OPEN_TICKETS, parent_call=None
    )
    return calls.filter(signature=plan.row.signature).order_by("pk").first()


def _insert_pass(tx: Transaction, plan: PlannedCall, snapshot: str) -> None:
    """Record the pass with its call, and let a worker start the call if it is allowed."""
    run, row = tx.run, plan.row
    run.pass_number += 1
    run.asked_pass = max(run.asked_pass, run.pass_number)
    run.crash_count = 0
    row.pass_number, row.provider_call_id = run.pass_number, f"call_{run.pass_number}"
    response = _build_response(plan)
    insert_rows(
        [
            Pass(
                run_id=run.pk,
                number=run.pass_number,
                response=response,
                messages_upto=1,
                snapshot=snapshot,
            )
        ]
    )
    tx.publish(PassStarted(run.pass_number))
    insert_calls(tx, [plan], free_slots=0)
    row.run = run
    if row.status not in TERMINAL_CALLS:
        if run.next_wake_at is not None and run.is_parked:
            run.next_wake_at = None
        wake_if_possible(tx, is_announced=True)
    elif run.is_parked and run.next_wake_at is not None:
        rest(tx)


def _build_response(plan: PlannedCall) -> dict[str, Any]:
    """Build the response with which a model would have requested this call, because the history
    needs a response for each pass."""
    function = {"name": plan.row.tool, "arguments": canonical_json(plan.row.params)}
    call = {"id": plan.row.provider_call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}
