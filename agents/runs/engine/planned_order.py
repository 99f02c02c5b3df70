"""Hold a call that a standing grant approved until the earlier writes of its pass have succeeded,
because it was planned after them (step 3 of a run)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from django.db.models import Q
from django.db.models.functions import Coalesce

from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.timing import timing
from agents.runs.engine.transaction import Transaction
from agents.runs.models import TERMINAL_CALLS, Approval, ApprovalStatus, CallStatus, ToolCall
from tools.contract import ErrorCode, Level, Recipe

_WRITES = (Level.WRITE, Level.DESTRUCTIVE)
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

    @property
    def is_write(self) -> bool:
        """True for writes and recipes, whose steps may be writes."""
        if self.level in _WRITES:
            return True
        tool = load_toolbox(self.organization_id).get_tool(f"{self.tool}@{self.version}")
        return isinstance(tool, Recipe)

    @property
    def has_ended(self) -> bool:
        return self.status in TERMINAL_CALLS

    @property
    def failure(self) -> str:
        """The call's end in words, if it lacks the effect on which later calls were planned;
        otherwise empty."""
        is_done = self.status == CallStatus.REJECTED and self.had_nothing_to_do
        return "" if is_done else _FAILURES.get(CallStatus(self.status), "")


class EarlierWrites(NamedTuple):
    """The writes that a pass planned before a call.

    Attributes:
        awaited: the id of the first write that has not ended; None if all have, or if one failed.
        failed: the end of the first write without its effect, in words; empty if there is none.
    """

    awaited: int | None = None
    failed: str = ""


def find_earlier_writes(calls: Sequence[ToolCall]) -> list[EarlierWrites]:
    """Find the earlier writes of each of these calls of one pass; costs a query, unless there is
    only the pass's first call."""
    later = next((call for call in calls if call.index > 0), None)
    loaded = {} if later is None else _load_pass(later)
    return [_judge_order(loaded, call) if call.index > 0 else EarlierWrites() for call in calls]


def hold(card: Approval, awaited: int | None) -> None:
    """Let an approved card wait until this call has ended, and be valid from then on; the caller
    saves it."""
    if awaited is not None:
        card.after_id, card.valid_until = awaited, None


def release_held_calls(tx: Transaction) -> bool:
    """Release the run's held calls whose earlier writes have ended, and let the others wait for the
    next one; return True if a call was released.

    A call is released after a failure too: its start then asks a person.
    """
    approved = Approval.objects.filter(run_id=tx.run.pk, status=ApprovalStatus.APPROVED)
    held = list(approved.filter(after__isnull=False).select_related("tool_call"))
    released = False
    earlier = find_earlier_writes([card.tool_call for card in held])
    for card, (awaited, _) in zip(held, earlier, strict=True):
        if awaited is None:
            validity = Coalesce("valid_until", tx.now + timing().approval_validity)
            approved.filter(pk=card.pk).update(after=None, start_after=tx.now, valid_until=validity)
            released = True
        elif awaited != card.after_id:
            approved.filter(pk=card.pk).update(after_id=awaited)
    return released


def _load_pass(call: ToolCall) -> Mapping[int, _PassCall]:
    rows = ToolCall.objects.filter(run_id=call.run_id, pass_number=call.pass_number).order_by()
    columns = rows.values_list(
        "pk", "index", "parent_call_id", "organization_id", "tool", "version", "level"
    )
    statuses = Coalesce("duplicate_of__status", "status")
    nothing_to_do = Q(result__error__code=ErrorCode.NOTHING_TO_DO)
    found = columns.annotate(outcome=statuses, had_nothing_to_do=nothing_to_do)
    return {row[0]: _PassCall(*row) for row in found}


def _judge_order(calls: Mapping[int, _PassCall], call: ToolCall) -> EarlierWrites:
    earlier = sorted(_list_earlier(calls, call), key=lambda found: _build_path(calls, found.pk))
    failed = next((each.failure for each in earlier if each.failure), "")
    awaited = next((each.pk for each in earlier if not each.has_ended), None)
    return EarlierWrites(None if failed else awaited, failed)


def _list_earlier(calls: Mapping[int, _PassCall], call: ToolCall) -> Iterator[_PassCall]:
    """Yield the writes planned before the call, other than the recipes that it is a step of."""
    mine = _build_path(calls, call.pk)
    for found in calls.values():
        path = _build_path(calls, found.pk)
        if path < mine and path != mine[: len(path)] and found.is_write:
            yield found


def _build_path(calls: Mapping[int, _PassCall], pk: int | None) -> tuple[int, ...]:
    """Return the indexes of the calls that lead to this one, from the model's own; sorted, they are
    the order in which the calls were planned."""
    path: tuple[int, ...] = ()
    while pk is not None:
        found = calls[pk]
        path, pk = (found.place, *path), found.parent_call_id
    return path
