"""Requested calls: judged, previewed, compared with earlier ones, recorded with their cards, and started."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Max, Q

from agents.approvals.models import Approval, ApprovalStatus
from agents.employees.toolboxes import toolbox_of
from agents.platform.statements import insert
from agents.providers.base import RequestedCall
from agents.runs.engine.cards import Effect, effect_of, new_card, publish_card, seal
from agents.runs.engine.context import RunContext, has_same_verdict
from agents.runs.engine.lease import Lease
from agents.runs.engine.timing import OPEN_CARDS, timing
from agents.runs.engine.transaction import Transaction
from agents.runs.events import ToolRejected, ToolSkipped, ToolStarted
from agents.runs.models import CallStatus, Event, EventType, ToolCall
from agents.runs.models.tool_call import new_idempotency_key
from tools.contract import REPEATABLE_CODES, ErrorCode, Level, Tool, ToolError, ToolResult, fingerprint, format_error
from tools.toolbox.isolation import isolated
from tools.toolbox.permissions import Permission, Verdict

_REPEATS = 2
_WAITS = (EventType.RUN_WAITING, EventType.RUN_NEEDS_ATTENTION)
_NEVER_COUNT = (CallStatus.EXPIRED, CallStatus.CANCELLED, CallStatus.DUPLICATE)
_ASK_AGAIN = (ErrorCode.LIMIT_EXCEEDED, ErrorCode.RATE_LIMITED, ErrorCode.OUTCOME_UNKNOWN)
_WRITES = (Level.WRITE, Level.DESTRUCTIVE)


def earlier_calls(run_id: int, calls: Iterable[ToolCall]) -> dict[str, ToolCall]:
    """By signature, the earlier call whose result answers an equal new one.

    Args:
        calls: those whose signature the run has seen before.
    """
    wanted = {call.signature for call in calls if call.signature and not is_volatile(call)}
    if not wanted:
        return {}
    seen: dict[str, list[ToolCall]] = {}
    past = ToolCall.objects.filter(run_id=run_id, signature__in=wanted).exclude(status__in=_NEVER_COUNT)
    for call in past.order_by("finished_seq"):
        if _code_of(call) not in _ASK_AGAIN:
            seen.setdefault(call.signature, []).append(call)
    return {signature: found[-1] for signature, found in seen.items() if _still_counts(found)}


def is_volatile(call: ToolCall) -> bool:
    """True for a call of a tool whose equal calls never count as duplicates."""
    tool = toolbox_of(call.organization_id).get_tool(call.tool)
    return tool is not None and tool.volatile


def _code_of(call: ToolCall) -> str:
    error = (call.result or {}).get("error") or {}
    return str(error.get("code", ""))


def _still_counts(found: list[ToolCall]) -> bool:
    last = found[-1]
    if last.finished_seq is None:
        return True
    if _is_forgotten(last):
        return False
    if last.status == CallStatus.FAILED and _code_of(last) in REPEATABLE_CODES:
        fresh = [call for call in found if call.status == CallStatus.FAILED and not _is_forgotten(call)]
        return len(fresh) > _REPEATS
    return True


def _is_forgotten(call: ToolCall) -> bool:
    """The world may have changed since the call ended."""
    if _happened_after(call, (EventType.MESSAGE_ADDED,)):
        return True
    if call.status == CallStatus.DENIED:
        return False
    if _written_after(call):
        return True
    succeeded_write = call.status == CallStatus.SUCCEEDED and call.level in _WRITES
    return not succeeded_write and _happened_after(call, _WAITS)


def _happened_after(call: ToolCall, types: tuple[EventType, ...]) -> bool:
    return Event.objects.filter(run_id=call.run_id, seq__gt=call.finished_seq, type__in=types).exists()


def _written_after(call: ToolCall) -> bool:
    later = Q(finished_seq__gt=call.finished_seq) | Q(status=CallStatus.OUTCOME_UNKNOWN)
    writes = ToolCall.objects.filter(later, run_id=call.run_id, level__in=_WRITES, attempts__gt=0)
    return writes.exclude(pk=call.pk).exists()


MOST_CALL_DEPTH = 3
"""A call that a model asked for has depth 0."""
ROUNDS = 3
"""How often calls are judged and previewed while permissions change."""


@dataclass
class PlannedCall:
    """A requested call as it will be recorded.

    Attributes:
        verdict: of the gate.
        permission, error: those of the verdict, unless something else forbids the call.
        effect: computed where a card will show it.
    """

    row: ToolCall
    verdict: Verdict
    permission: Permission
    error: ToolError | None = None
    effect: Effect | None = None

    def refuse(self, error: ToolError) -> None:
        """Forbid the call."""
        self.permission, self.error = Permission.FORBIDDEN, error

    def keep_if_same(self, current: "PlannedCall") -> "PlannedCall":
        """Return this plan, with its effect, if the current one has the same verdict; else the current one."""
        return self if has_same_verdict(self.verdict, current.verdict) else current

    def finish(self, current: "PlannedCall") -> "PlannedCall":
        """Do the same when it is too late for another preview: a call that would need a new card is refused."""
        plan = self.keep_if_same(current)
        if plan is not self and plan.permission == Permission.ASK:
            message = "What is permitted changed while this call was prepared."
            hint = "Ask for it again."
            plan.refuse(ToolError(ErrorCode.LIMIT_EXCEEDED, message, recovery_hint=hint, attempted=False))
        return plan


@dataclass(frozen=True)
class CallRequest:
    """A call that a tool or a recipe asks for."""

    tool: str
    arguments: dict[str, Any]
    provider_call_id: str = ""


def plan_call(context: RunContext, index: int, requested: RequestedCall | CallRequest) -> PlannedCall:
    """Judge a requested call; one that may not run gets its error."""
    tool, verdict = context.judge(requested.tool, requested.arguments)
    row = ToolCall(
        organization_id=context.run.organization_id,
        run_id=context.run.pk,
        index=index,
        provider_call_id=requested.provider_call_id,
        tool=requested.tool[:120],
        level=str(verdict.level),
        why=verdict.reason[:300],
        idempotency_key=new_idempotency_key(),
    )
    row.params_hash = row.signature = fingerprint([requested.tool, requested.arguments])
    if tool is None or verdict.error is not None:
        return PlannedCall(row, verdict, Permission.FORBIDDEN, verdict.error)
    seal(row, tool, verdict.params)
    return PlannedCall(row, verdict, verdict.permission)


def preview_card(lease: Lease, context: RunContext, plan: PlannedCall) -> None:
    """Compute the effect that the card of a call will show; a call whose preview refuses it may not run."""
    tool = context.find_tool(plan.row)
    if tool is None:
        message = f"{plan.row.tool} is not installed any more."
        plan.refuse(ToolError(ErrorCode.TOOL_NOT_FOUND, message, attempted=False))
        return
    lease.expect_step(timing().preview_s)
    try:
        plan.effect = effect_of(tool, plan.row.params, context.tool_context(plan.row))
    except ToolError as error:
        plan.refuse(error)


def make_limit_error(message: str) -> ToolError:
    """Return the refusal of a call that is one more than may be asked for at a time."""
    return ToolError(ErrorCode.LIMIT_EXCEEDED, message, recovery_hint="Ask again after these.", attempted=False)


def make_child(parent: ToolCall, planned: PlannedCall) -> ToolCall:
    """Make a planned call the child of the call that asks for it, in the same pass; needs the run's lock."""
    rows = ToolCall.objects.filter(run_id=parent.run_id, pass_number=parent.pass_number)
    number = int(rows.aggregate(last=Max("index"))["last"]) + 1
    row = planned.row
    row.parent_call_id, row.pass_number, row.index = parent.pk, parent.pass_number, number
    row.provider_call_id = f"of-{parent.pk}-{number}"
    return row


def begin_execution(tx: Transaction, call: ToolCall) -> None:
    """Let the call execute from now on; the caller saves it."""
    call.status = CallStatus.EXECUTING
    call.exec_epoch = tx.run.lease_epoch
    call.attempts += 1
    call.started_at = tx.now
    call.deadline_at = tx.now + timedelta(seconds=timeout_of(call))


def publish_start(tx: Transaction, call: ToolCall) -> None:
    """Publish that the call starts, with the tool's own summary."""
    tool = tool_of(call)
    tx.publish(ToolStarted.of(call, tool, _running_summary(tool, call)))


def _running_summary(tool: Tool | None, call: ToolCall) -> str:
    if tool is None:
        return call.tool
    try:
        return isolated(tool, "running_summary", lambda: tool.running_summary(tool.load_params(call.params)))
    except ToolError:
        return tool.title


def tool_of(call: ToolCall) -> Tool | None:
    """Return the tool in the version that was judged; None if it is no longer installed."""
    return toolbox_of(call.organization_id).get_tool(f"{call.tool}@{call.version}")


def timeout_of(call: ToolCall) -> float:
    """Return how many seconds the call may take."""
    toolbox, tool = toolbox_of(call.organization_id), tool_of(call)
    return toolbox.timeout_of(tool) if tool else toolbox.limits.timeout_s


CARDS_ARE_FULL = f"At most {OPEN_CARDS} cards may wait at a time."


def insert_calls(tx: Transaction, planned: list[PlannedCall], slots: int) -> list[ToolCall]:
    """Insert the calls with their cards and events; start those that need no approval, as many as have a slot.

    Returns the started ones.
    """
    if not planned:
        return []
    _limit_cards(tx.run.pk, planned)
    for plan in planned:
        _set_status(tx, plan)
    started = [plan.row for plan in planned if plan.row.status == CallStatus.READY][:slots]
    for row in started:
        begin_execution(tx, row)
    insert([plan.row for plan in planned if plan.row.duplicate_of is None])
    _insert_doubles([plan.row for plan in planned if plan.row.duplicate_of is not None])
    _insert_cards(tx, [plan for plan in planned if plan.row.status == CallStatus.AWAITING_APPROVAL])
    for plan in planned:
        if plan.row.status == CallStatus.REJECTED and plan.error is not None:
            tx.publish(ToolRejected.of(plan.row, plan.error))
        elif plan.row.status == CallStatus.DUPLICATE:
            tx.publish(ToolSkipped(str(plan.row.pk), plan.row.tool, str(plan.row.duplicate_of_id)))
    for row in started:
        publish_start(tx, row)
    tx.is_midway = bool(started)
    return started


def _limit_cards(run_id: int, planned: list[PlannedCall]) -> None:
    asking = [plan for plan in planned if plan.permission == Permission.ASK and plan.row.duplicate_of is None]
    if not asking:
        return
    room = OPEN_CARDS - Approval.objects.filter(run_id=run_id, status=ApprovalStatus.PENDING).count()
    for plan in asking[max(room, 0) :]:
        plan.error = make_limit_error(CARDS_ARE_FULL)


def _set_status(tx: Transaction, plan: PlannedCall) -> None:
    row = plan.row
    if row.duplicate_of is not None:
        row.status, row.finished_at = CallStatus.DUPLICATE, tx.now
        row.finished_seq = tx.run.next_event_seq
    elif plan.error is not None:
        row.status, row.finished_at = CallStatus.REJECTED, tx.now
        row.finished_seq = tx.run.next_event_seq
        row.result = ToolResult.failed(plan.error).as_json()
        row.content = format_error(plan.error)
    else:
        row.status = CallStatus.READY if plan.permission == Permission.AUTO else CallStatus.AWAITING_APPROVAL


def _insert_doubles(rows: list[ToolCall]) -> None:
    """Insert duplicates after the calls that they repeat, whose ids they name."""
    for row in rows:
        row.duplicate_of_id = row.duplicate_of.pk if row.duplicate_of else None
    insert(rows)


def _insert_cards(tx: Transaction, planned: list[PlannedCall]) -> None:
    days = tx.run.organization.card_days if planned else 0
    cards = [new_card(plan.row, plan.effect, plan.row.why, days) for plan in planned if plan.effect is not None]
    Approval.objects.bulk_create(cards)
    for plan, card in zip(planned, cards, strict=True):
        publish_card(tx, plan.row, card, days)
