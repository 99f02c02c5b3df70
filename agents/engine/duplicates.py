"""Which requested calls are equal to one that this run has made already, and whether that still counts."""

from collections.abc import Iterable

from django.db.models import Q

from agents.engine.connected import toolbox_of
from agents.models import CallStatus, Event, EventType, ToolCall
from tools.contract import REPEATABLE_CODES, ErrorCode, Level

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
