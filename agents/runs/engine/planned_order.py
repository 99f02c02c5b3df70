"""Hold a call that a standing grant approved until the earlier writes, and the earlier calls that
wait for people or other calls, have succeeded (step 3 of a run).

The earlier calls are the calls of its own pass and, in a delegated run, also the calls before the
delegation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Coalesce

from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.timing import timing
from agents.runs.engine.transaction import Transaction
from agents.runs.models import TERMINAL_CALLS, Approval, ApprovalStatus, CallStatus, Run, ToolCall
from tools.contract import ErrorCode, Level

_WRITES = (Level.WRITE, Level.DESTRUCTIVE)
_WAITS = (CallStatus.AWAITING_APPROVAL, CallStatus.APPROVED, CallStatus.SUSPENDED)
_FAILURES = {
    CallStatus.DENIED: "was denied",
    CallStatus.EXPIRED: "expired",
    CallStatus.FAILED: "failed",
    CallStatus.REJECTED: "was refused",
    CallStatus.CANCELLED: "was cancelled",
}
"""The ways in which a call can end without its effect, in words."""


class _PassCall(NamedTuple):
    """A call of a pass; a duplicate has the status of the call whose result it shares."""

    pk: int
    place: int
    parent_call_id: int | None
    organization_id: int
    tool: str
    version: str
    level: str
    status: str
    had_nothing_to_do: bool | None
    has_card: bool

    @property
    def holds_later_calls(self) -> bool:
        """True for writes, for calls that a person decides or answers, and for calls that wait for
        other calls, which may be writes: delegations and recipes."""
        if self.level in _WRITES or self.has_card or self.status in _WAITS:
            return True
        tool = load_toolbox(self.organization_id).get_tool(f"{self.tool}@{self.version}")
        return tool is not None and tool.suspends

    @property
    def has_ended(self) -> bool:
        return self.status in TERMINAL_CALLS

    @property
    def failure(self) -> str:
        """The way in which the call ended without its effect, in words; empty for any other
        call."""
        is_done = self.status == CallStatus.REJECTED and self.had_nothing_to_do
        return "" if is_done else _FAILURES.get(CallStatus(self.status), "")


class HoldingCalls(NamedTuple):
    """The earlier calls that hold a call.

    Attributes:
        awaited: the id of the first call that has not ended; None if all of them have ended, or if
            one failed.
        failed: the `failure` of the first call that has one; empty if there is none.
    """

    awaited: int | None = None
    failed: str = ""


def find_holding_calls(run: Run, calls: Sequence[ToolCall]) -> list[HoldingCalls]:
    """Find the calls that hold each of these calls of a run. Makes one query for each pass from
    which a call other than the first is given, and two for each delegation above the run."""
    numbers = {call.pass_number for call in calls if call.index > 0}
    loaded = {number: _load_pass(run.pk, number) for number in numbers}
    above = _list_before_delegations(run) if calls else []
    return [
        _judge_order(
            [*above, *_list_earlier(loaded[call.pass_number], call.pk)] if call.index > 0 else above
        )
        for call in calls
    ]


def hold(card: Approval, awaited: int | None) -> None:
    """Let an approved card wait until the call `awaited` has ended; the card's validity begins only
    then. The caller saves the card."""
    if awaited is not None:
        card.after_id, card.valid_until = awaited, None


def release_held_calls(tx: Transaction) -> bool:
    """Release the run's held calls whose earlier calls have ended, and let the others wait for the
    next one; return True if a call was released.

    A call is also released if an earlier call failed: when it starts, a person is asked.
    """
    approved = Approval.objects.filter(run_id=tx.run.pk, status=ApprovalStatus.APPROVED)
    held = list(approved.filter(after__isnull=False).select_related("tool_call"))
    released = False
    earlier = find_holding_calls(tx.run, [card.tool_call for card in held])
    for card, (awaited, _) in zip(held, earlier, strict=True):
        if awaited is None:
            validity = Coalesce("valid_until", tx.now + timing().approval_validity)
            approved.filter(pk=card.pk).update(after=None, start_after=tx.now, valid_until=validity)
            released = True
        elif awaited != card.after_id:
            approved.filter(pk=card.pk).update(after_id=awaited)
    return released


def _load_pass(run_id: int, number: int) -> Mapping[int, _PassCall]:
    rows = ToolCall.objects.filter(run_id=run_id, pass_number=number).order_by()
    columns = rows.values_list(
        "pk", "index", "parent_call_id", "organization_id", "tool", "version", "level"
    )
    cards = Approval.objects.filter(tool_call=Coalesce(OuterRef("duplicate_of"), OuterRef("pk")))
    found = columns.annotate(
        outcome=Coalesce("duplicate_of__status", "status"),
        had_nothing_to_do=Q(result__error__code=ErrorCode.NOTHING_TO_DO),
        has_card=Exists(cards),
    )
    return {row[0]: _PassCall(*row) for row in found}


def _judge_order(earlier: Sequence[_PassCall]) -> HoldingCalls:
    failed = next((each.failure for each in earlier if each.failure), "")
    awaited = next((each.pk for each in earlier if not each.has_ended), None)
    return HoldingCalls(None if failed else awaited, failed)


def _list_before_delegations(run: Run) -> list[_PassCall]:
    """List the calls planned before the delegations that led to this run; those of the first run
    come first. A delegation that has succeeded is ignored, because a person continued the run."""
    found: list[_PassCall] = []
    above = run.parent_call_id
    while above is not None:
        delegations = ToolCall.objects.exclude(status=CallStatus.SUCCEEDED).filter(pk=above)
        delegation = delegations.select_related("run").first()
        if delegation is None:
            break
        calls = _load_pass(delegation.run_id, delegation.pass_number)
        found = [*_list_earlier(calls, delegation.pk), *found]
        above = delegation.run.parent_call_id
    return found


def _list_earlier(calls: Mapping[int, _PassCall], pk: int) -> list[_PassCall]:
    """List the calls that hold this one, in the order in which they were planned, except the
    recipes of which it is a step."""
    mine = _build_path(calls, pk)
    paths = {each: _build_path(calls, each) for each in calls}
    return [
        calls[each]
        for each, path in sorted(paths.items(), key=lambda item: item[1])
        if path < mine and path != mine[: len(path)] and calls[each].holds_later_calls
    ]


def _build_path(calls: Mapping[int, _PassCall], pk: int | None) -> tuple[int, ...]:
    """Return the indexes of the calls that lead to this one, beginning with the model's own call.
    Calls sorted by these paths are in the order in which they were planned."""
    path: tuple[int, ...] = ()
    while pk is not None:
        found = calls[pk]
        path, pk = (found.place, *path), found.parent_call_id
    return path
