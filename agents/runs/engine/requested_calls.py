"""Plan requested calls, find duplicates, record the calls with their cards, and start them (steps 5
and 6 of a run)."""

from collections.abc import Set
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Max, Q

from agents.employees.toolboxes import load_toolbox
from agents.platform.queries.writes import insert_rows
from agents.providers.base import RequestedCall
from agents.runs.call_history import NOW, Occasion
from agents.runs.engine.card_sentences import CallEffect
from agents.runs.engine.cards import (
    approve_by_grant,
    build_card,
    compute_effect,
    publish_card,
    publish_decision,
    seal,
)
from agents.runs.engine.context import RunContext, has_same_verdict
from agents.runs.engine.planned_order import find_holding_calls, hold
from agents.runs.engine.preapprover import AskingCard, Preapproval, get_preapprover
from agents.runs.engine.timing import MAX_OPEN_CARDS, MAX_OPEN_TICKETS
from agents.runs.engine.transaction import Transaction
from agents.runs.events import ToolRejected, ToolSkipped, ToolStarted
from agents.runs.models import (
    Approval,
    ApprovalStatus,
    CallStatus,
    Event,
    EventType,
    Origin,
    Run,
    ToolCall,
)
from agents.runs.models.tool_call import new_idempotency_key
from tools.contract import (
    REPEATABLE_CODES,
    ErrorCode,
    Level,
    Tool,
    ToolError,
    ToolResult,
    fingerprint,
    format_error,
)
from tools.toolbox.isolation import run_isolated
from tools.toolbox.permissions import Permission, Verdict

MAX_CALL_DEPTH = 3
"""The maximum depth of nested calls; a call that the model requested has depth 0."""
_MAX_REPEATS = 2
"""The maximum number of times that a call is repeated after a temporary failure."""
_WAITS = (EventType.RUN_WAITING, EventType.RUN_NEEDS_ATTENTION)
_REPEATABLE_STATUSES = (CallStatus.EXPIRED, CallStatus.CANCELLED, CallStatus.DUPLICATE)
_REPEATABLE_ERRORS = (ErrorCode.LIMIT_EXCEEDED, ErrorCode.RATE_LIMITED, ErrorCode.OUTCOME_UNKNOWN)
"""The errors after which an identical call is never a duplicate, so it may be requested again at
any time."""
_WITH_CARDS = (CallStatus.AWAITING_APPROVAL, CallStatus.APPROVED)
_WRITES = (Level.WRITE, Level.DESTRUCTIVE)


@dataclass(frozen=True)
class CallRequest:
    """A call that a tool or a recipe requests."""

    tool: str
    arguments: dict[str, Any]
    provider_call_id: str = ""


@dataclass
class PlannedCall:
    """A requested call before it is recorded.

    Attributes:
        permission, error: the verdict's permission and error, unless something else forbids the
            call.
        effect: the effect for the call's card; None if it needs no card.
        preapproval: the comparison of the card with standing grants; None if the tool has no
            standing grants.
    """

    row: ToolCall
    verdict: Verdict
    permission: Permission
    error: ToolError | None = None
    effect: CallEffect | None = None
    preapproval: Preapproval | None = None

    @property
    def is_duplicate(self) -> bool:
        """True if the call repeats an identical call of the run, whose result it shares."""
        return self.row.duplicate_of is not None

    @property
    def grant(self) -> Any:
        """The standing grant that approves the call; None if a person must decide."""
        return self.preapproval.grant if self.preapproval else None

    def refuse(self, error: ToolError) -> None:
        """Forbid the call, with this error for the model."""
        self.permission, self.error = Permission.FORBIDDEN, error

    def judge_again(self, verdict: Verdict) -> None:
        """Replace the verdict with a later verdict on the same call."""
        self.verdict, self.permission, self.error = verdict, verdict.permission, verdict.error
        self.row.why, self.row.judgment = verdict.reason, verdict.as_json()

    def replace_if_changed(self, current: "PlannedCall") -> "PlannedCall":
        """Return the current plan if its verdict differs; otherwise this plan, which already has
        its effect.

        Either way, the call gets the facts that the current verdict used.
        """
        if not has_same_verdict(self.verdict, current.verdict):
            return current
        self.row.judgment = current.row.judgment
        self.row.provenance = current.row.provenance or self.row.provenance
        return self

    def replace_without_preview(self, current: "PlannedCall") -> "PlannedCall":
        """Return the current plan if its verdict differs, but refuse the call if it would need
        another preview."""
        plan = self.replace_if_changed(current)
        if plan is not self and plan.permission == Permission.ASK:
            plan.refuse_without_preview()
        return plan

    def refuse_without_preview(self) -> None:
        """Refuse the call: it now needs a card, but there is no time for another preview."""
        message = "Permissions changed while this call was prepared."
        self.refuse(
            ToolError(
                ErrorCode.LIMIT_EXCEEDED,
                message,
                recovery_hint="Ask for it again.",
                attempted=False,
            )
        )


def plan_call(
    context: RunContext,
    index: int,
    requested: RequestedCall | CallRequest,
    occasion: Occasion = NOW,
) -> PlannedCall:
    """Judge a requested call, and return it with its verdict, or with an error if it may not
    run."""
    tool, verdict = context.judge(requested.tool, requested.arguments, occasion)
    row = ToolCall(
        organization_id=context.run.organization_id,
        run_id=context.run.pk,
        index=index,
        provider_call_id=requested.provider_call_id,
        tool=(tool.name if tool else requested.tool)[:120],
        level=str(verdict.level),
        why=verdict.reason,
        judgment=verdict.as_json(),
        provenance=verdict.provenance.as_json() if verdict.provenance else None,
        idempotency_key=new_idempotency_key(),
    )
    row.params_hash = row.signature = fingerprint([requested.tool, requested.arguments])
    if tool is None or verdict.error is not None:
        return PlannedCall(row, verdict, Permission.FORBIDDEN, verdict.error)
    seal(row, tool, verdict.params)
    return PlannedCall(row, verdict, verdict.permission)


def preview_card(context: RunContext, plan: PlannedCall) -> None:
    """Compute the effect, the origins of values and the preapproval for the card of a call; refuse
    the call if its preview does.

    This takes at most `timing().preview_s` seconds.
    """
    tool = context.find_tool(plan.row)
    if tool is None:
        message = f"{plan.row.tool} is no longer installed."
        plan.refuse(ToolError(ErrorCode.TOOL_NOT_FOUND, message, attempted=False))
        return
    if plan.row.provenance is None:
        plan.row.provenance = context.values.trace(tool, plan.row.params).as_json()
    try:
        plan.effect = compute_effect(tool, plan.row.params, context.build_tool_context(plan.row))
    except ToolError as error:
        plan.refuse(error)
        return
    card = build_card(plan.row, plan.effect, plan.row.why, context.run.organization.card_days)
    asking = AskingCard(card, context.run, tool, plan.verdict.causes)
    preapprover = get_preapprover()
    plan.preapproval = preapprover.find_preapproval(
        asking, context.standing_grants.load(context.run)
    )
    if plan.preapproval is not None:
        preapprover.end(plan.preapproval.ended)


def make_limit_error(message: str) -> ToolError:
    """Return the error for a call that exceeds a limit on simultaneous calls."""
    return ToolError(
        ErrorCode.LIMIT_EXCEEDED,
        message,
        recovery_hint="Ask again after these have ended.",
        attempted=False,
    )


def attach_to_parent(parent: ToolCall, planned: PlannedCall, context: RunContext) -> ToolCall:
    """Make a planned call the child of the calling call, in the same pass; call this under the
    run's lock."""
    rows = ToolCall.objects.filter(run_id=parent.run_id, pass_number=parent.pass_number)
    number = int(rows.aggregate(last=Max("index"))["last"]) + 1
    row = planned.row
    row.parent_call_id, row.pass_number, row.index = parent.pk, parent.pass_number, number
    row.provider_call_id = f"of-{parent.pk}-{number}"
    row.judgment = {**(row.judgment or {}), "snapshot": context.keep_snapshot()}
    return row


def insert_calls(
    tx: Transaction, planned: list[PlannedCall], free_slots: int, seen: Set[str] | None = None
) -> list[ToolCall]:
    """Insert the calls with their cards and events, start calls that need no approval, and return
    the started calls.

    Args:
        free_slots: the number of calls that may start.
        seen: the signatures of the run's earlier calls, to find duplicates; None if duplicates are
            impossible.
    """
    if not planned:
        return []
    if seen is not None:
        _mark_duplicates(tx.run.pk, planned, seen)
    _limit_cards(tx.run, planned)
    _reserve_preapprovals(tx, planned)
    for plan in planned:
        _set_status(tx, plan)
    started = [plan.row for plan in planned if plan.row.status == CallStatus.READY][:free_slots]
    for row in started:
        begin_execution(tx, row)
    insert_rows([plan.row for plan in planned if plan.row.duplicate_of is None])
    _insert_duplicates([plan.row for plan in planned if plan.row.duplicate_of is not None])
    _insert_cards(tx, [plan for plan in planned if plan.row.status in _WITH_CARDS])
    for plan in planned:
        if plan.row.status == CallStatus.REJECTED and plan.error is not None:
            tx.publish(ToolRejected.of(plan.row, plan.error))
        elif plan.row.status == CallStatus.DUPLICATE:
            tx.publish(ToolSkipped(str(plan.row.pk), plan.row.tool, str(plan.row.duplicate_of_id)))
    for row in started:
        publish_call_start(tx, row)
    tx.step_continues = bool(started)
    return started


def make_cards_error(most: int) -> ToolError:
    """Return the error for a call whose card would exceed the limit of open cards."""
    return make_limit_error(f"At most {most} cards may wait at a time.")


def _limit_cards(run: Run, planned: list[PlannedCall]) -> None:
    asking = [
        plan
        for plan in planned
        if plan.permission == Permission.ASK and plan.row.duplicate_of is None
    ]
    if not asking:
        return
    most = MAX_OPEN_TICKETS if run.origin == Origin.MCP else MAX_OPEN_CARDS
    room = most - Approval.objects.filter(run_id=run.pk, status=ApprovalStatus.PENDING).count()
    for plan in asking[max(room, 0) :]:
        plan.refuse(make_cards_error(most))


def _reserve_preapprovals(tx: Transaction, planned: list[PlannedCall]) -> None:
    """Reserve a use of the standing grant for each call that it approves; if no use is left, a
    person must decide."""
    asking = [
        plan
        for plan in planned
        if plan.preapproval and plan.permission == Permission.ASK and not plan.is_duplicate
    ]
    preapprovals = [
        (plan.preapproval, Approval(run_id=tx.run.pk, tool_call_id=plan.row.parent_call_id or 0))
        for plan in asking
        if plan.preapproval is not None
    ]
    for plan, preapproval in zip(
        asking, get_preapprover().reserve_uses(tx.run, preapprovals), strict=True
    ):
        plan.preapproval = preapproval
        plan.row.judgment = {**(plan.row.judgment or {}), "answer": preapproval.as_json()}


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
    elif plan.permission == Permission.AUTO:
        row.status = CallStatus.READY
    else:
        row.status = CallStatus.APPROVED if plan.grant else CallStatus.AWAITING_APPROVAL


def _insert_duplicates(rows: list[ToolCall]) -> None:
    """Insert duplicates, after their originals, because they need the originals' ids."""
    for row in rows:
        row.duplicate_of_id = row.duplicate_of.pk if row.duplicate_of else None
    insert_rows(rows)


def _insert_cards(tx: Transaction, planned: list[PlannedCall]) -> None:
    days = tx.run.organization.card_days if planned else 0
    cards = [
        build_card(plan.row, plan.effect, plan.row.why, days)
        for plan in planned
        if plan.effect is not None
    ]
    granted = [(card, plan) for plan, card in zip(planned, cards, strict=True) if plan.grant]
    earlier = find_holding_calls(tx.run, [plan.row for _, plan in granted])
    for (card, plan), (awaited, _) in zip(granted, earlier, strict=True):
        approve_by_grant(card, plan.grant, tx.now)
        hold(card, awaited)
    Approval.objects.bulk_create(cards)
    for plan, card in zip(planned, cards, strict=True):
        publish_card(tx, plan.row, card, days)
        if card.standing_grant_id is not None:
            _publish_preapproval(tx, card)


def _publish_preapproval(tx: Transaction, card: Approval) -> None:
    """Publish and audit that a standing grant approved the card."""
    publish_decision(tx, card, "")
    tx.audit(
        f"standing_grant:{card.standing_grant_id}",
        "card_approved",
        f"approval:{card.pk}",
        tool=card.tool_call.tool,
        digest=card.digest,
        by=card.decider,
    )


def begin_execution(tx: Transaction, call: ToolCall) -> None:
    """Mark the call as executing from now on; the caller saves it."""
    call.status = CallStatus.EXECUTING
    call.exec_epoch = tx.run.lease_epoch
    call.attempts += 1
    call.started_at = tx.now
    call.deadline_at = tx.now + timedelta(seconds=find_call_timeout(call))


def publish_call_start(tx: Transaction, call: ToolCall) -> None:
    """Publish the start of a call, with the tool's summary of what it does."""
    tool = find_call_tool(call)
    tx.publish(ToolStarted.of(call, tool, _summarize_start(tool, call)))


def _summarize_start(tool: Tool | None, call: ToolCall) -> str:
    if tool is None:
        return call.tool
    try:
        return run_isolated(
            tool, "running_summary", lambda: tool.running_summary(tool.load_params(call.params))
        )
    except ToolError:
        return tool.title


def find_call_tool(call: ToolCall) -> Tool | None:
    """Return the call's tool in the version that was judged; None if it is no longer installed."""
    return load_toolbox(call.organization_id).get_tool(f"{call.tool}@{call.version}")


def find_call_timeout(call: ToolCall) -> float:
    """Return the timeout of the call in seconds."""
    toolbox, tool = load_toolbox(call.organization_id), find_call_tool(call)
    return toolbox.get_timeout(tool) if tool else toolbox.limits.timeout_s


def _mark_duplicates(run_id: int, planned: list[PlannedCall], seen: Set[str]) -> None:
    """Set `duplicate_of` on each call that repeats an earlier call of the run or another call of
    the same response."""
    calls = [plan.row for plan in planned if not is_volatile(plan.row)]
    earlier = find_earlier_calls(
        run_id, {call.signature for call in calls if call.signature} & seen
    )
    first = {call.signature: call for call in reversed(calls)}
    for call in calls:
        original = earlier.get(call.signature, first[call.signature])
        call.duplicate_of = original if original is not call else None


def find_earlier_calls(run_id: int, wanted: Set[str]) -> dict[str, ToolCall]:
    """Find the earlier calls whose results new identical calls share, by signature."""
    if not wanted:
        return {}
    seen: dict[str, list[ToolCall]] = {}
    equal = ToolCall.objects.filter(run_id=run_id, signature__in=wanted).exclude(
        status__in=_REPEATABLE_STATUSES
    )
    for call in equal.order_by("finished_seq"):
        if _get_error_code(call) not in _REPEATABLE_ERRORS:
            seen.setdefault(call.signature, []).append(call)
    return {signature: found[-1] for signature, found in seen.items() if _is_still_valid(found)}


def _is_still_valid(found: list[ToolCall]) -> bool:
    """Return True if a new call may share the result of the last of these identical calls."""
    last = found[-1]
    if last.finished_seq is None:
        return True
    if _is_outdated(last):
        return False
    if last.status == CallStatus.FAILED and _get_error_code(last) in REPEATABLE_CODES:
        failures = [
            call for call in found if call.status == CallStatus.FAILED and not _is_outdated(call)
        ]
        return len(failures) > _MAX_REPEATS
    return True


def _is_outdated(call: ToolCall) -> bool:
    """Return True if an identical call may now have a different result, because a message, a wait
    or a write has followed since this call ended."""
    if _has_event_after(call, (EventType.MESSAGE_ADDED,)):
        return True
    if call.status == CallStatus.DENIED:
        return False
    if _has_write_after(call):
        return True
    succeeded_write = call.status == CallStatus.SUCCEEDED and call.level in _WRITES
    return not succeeded_write and _has_event_after(call, _WAITS)


def _has_event_after(call: ToolCall, types: tuple[EventType, ...]) -> bool:
    return Event.objects.filter(
        run_id=call.run_id, seq__gt=call.finished_seq, type__in=types
    ).exists()


def _has_write_after(call: ToolCall) -> bool:
    later = Q(finished_seq__gt=call.finished_seq) | Q(status=CallStatus.OUTCOME_UNKNOWN)
    writes = ToolCall.objects.filter(later, run_id=call.run_id, level__in=_WRITES, attempts__gt=0)
    return writes.exclude(pk=call.pk).exists()


def _get_error_code(call: ToolCall) -> str:
    error = (call.result or {}).get("error") or {}
    return str(error.get("code", ""))


def is_volatile(call: ToolCall) -> bool:
    """Return True if the call's tool is volatile. Identical calls of a volatile tool are never
    duplicates."""
    tool = find_call_tool(call)
    return tool is not None and tool.volatile
