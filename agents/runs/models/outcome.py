"""Judge the outcome of a run from its calls, when it ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from agents.runs.models.run import Outcome
from agents.runs.models.tool_call import CallStatus

READ = "read"
REFUSED = (CallStatus.DENIED, CallStatus.EXPIRED)


class CallKind(NamedTuple):
    """The properties that calls of one kind in a pass share; `child_outcome` is set for delegated
    tasks."""

    pass_number: int
    level: str
    status: str
    child_outcome: str | None


CALL_KIND_COLUMNS = ("pass_number", "level", "status", "child_run__outcome")


def judge_outcome(kinds: Iterable[CallKind]) -> Outcome:
    """Return the outcome of a run with these calls. A denied change does not count as denied if a
    later pass requested changes again."""
    calls = list(kinds)
    changes = [call for call in calls if _asks_for_change(call)]
    is_changed = any(_has_changed_something(call) for call in changes)
    last = max((call.pass_number for call in changes), default=0)
    if any(_was_denied(call) for call in changes if call.pass_number == last):
        return Outcome.PARTLY_DENIED if is_changed else Outcome.DENIED
    if is_changed:
        return Outcome.DONE
    has_looked = any(call.status == CallStatus.SUCCEEDED for call in calls)
    return Outcome.ANSWERED if has_looked and not changes else Outcome.UNCHANGED


def _asks_for_change(call: CallKind) -> bool:
    """Return True if the call requested a change; this is always assumed if its card was denied or
    expired."""
    return call.status in REFUSED or (call.level != READ and call.child_outcome != Outcome.ANSWERED)


def _was_denied(call: CallKind) -> bool:
    return call.status in REFUSED or call.child_outcome in (Outcome.DENIED, Outcome.PARTLY_DENIED)


def _has_changed_something(call: CallKind) -> bool:
    """Return True if the call changed something; for a delegated task, if its run did."""
    if call.status != CallStatus.SUCCEEDED:
        return False
    return call.child_outcome in (None, "", Outcome.DONE, Outcome.PARTLY_DENIED)
