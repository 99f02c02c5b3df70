"""Read recorded calls with their stored facts, in batches, and judge them again."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import NamedTuple, Protocol

from django.db.models import OuterRef, QuerySet, Subquery, TextField
from django.db.models.functions import Cast

from agents.runs.models import Pass, ToolCall
from agents.runs.snapshots import UnreadableSnapshot, load_snapshot
from agents.standing_grants.past_calls import GrantMatcher, PastCall
from agents.standing_grants.run_facts import PastFacts, RunResults
from tools.toolbox.conditions import need_history
from tools.toolbox.history import ToolHistory
from tools.toolbox.permissions import Permission, Verdict
from tools.toolbox.provenance import Provenance
from tools.toolbox.recorded_facts import MissingFact, RecordedCall
from tools.toolbox.snapshots import RecordedRules, judge_recorded, list_differences
from tools.toolbox.value_readings import TODAY

ROWS_AT_ONCE = 2_000
MAX_REMEMBERED = 10_000
"""The maximum number of entries in the cache of judged calls, and in the cache of rules. A full
cache is cleared."""


@dataclass(frozen=True)
class CallFilter:
    """A filter of recorded calls.

    Attributes:
        organization_id: the organization whose calls are selected; None for all organizations.
        first_id, last_id: the first and last id, inclusive; without an upper bound if `last_id` is
            None.
    """

    organization_id: int | None
    first_id: int = 0
    last_id: int | None = None
    since: datetime | None = None

    def find(self) -> QuerySet[ToolCall]:
        """Return the calls that the filter selects, oldest first."""
        calls = ToolCall.objects.filter(pk__gte=self.first_id)
        if self.organization_id is not None:
            calls = calls.filter(organization_id=self.organization_id)
        if self.last_id is not None:
            calls = calls.filter(pk__lte=self.last_id)
        if self.since is not None:
            calls = calls.filter(created_at__gte=self.since)
        return calls.order_by("pk")


class CallRow(NamedTuple):
    """A tool call as a database row, with its JSON columns as unparsed text.

    Attributes:
        snapshot: the hash of the policy snapshot of the call's pass; empty if there is none.
    """

    pk: int
    organization_id: int
    run_id: int
    employee_id: int
    tool: str
    level: str
    why: str
    status: str
    snapshot: str
    params: str
    judgment: str | None
    provenance: str | None
    created_at: datetime
    pass_number: int = 0
    parent_call_id: int | None = None


def read_calls(chosen: CallFilter, newest_first: bool = False) -> Iterator[CallRow]:
    """Yield the calls that the filter selects, read in batches, oldest first unless `newest_first`
    is True."""
    found = Pass.objects.filter(run_id=OuterRef("run_id"), number=OuterRef("pass_number"))
    texts = {name: Cast(name, TextField()) for name in ("params", "judgment", "provenance")}
    columns = (
        "pk",
        "organization_id",
        "run_id",
        "run__employee_id",
        "tool",
        "level",
        "why",
        "status",
    )
    calls = chosen.find()
    rows = calls.reverse() if newest_first else calls
    values = rows.values_list(
        *columns,
        Subquery(found.values("snapshot")[:1]),
        *texts.values(),
        *("created_at", "pass_number", "parent_call_id"),
    )
    for row in values.iterator(ROWS_AT_ONCE):
        yield CallRow._make(row)


class ReplayOutcome(StrEnum):
    """The outcomes of judging a recorded call again."""

    JUDGED = "judged"
    ERASED = "erased"
    """The values of the call were erased."""
    PRUNED = "pruned"
    """No facts or no snapshot were stored for the call."""
    MISSING = "missing"
    """The named snapshot does not exist."""
    UNREADABLE = "unreadable"
    """The snapshot or the facts are damaged."""
    UNKNOWN = "unknown"
    """The rules need a fact that is not stored with the call."""


@dataclass(frozen=True)
class Judged:
    """The result of judging a recorded call again.

    Attributes:
        before: the recorded verdict; empty if there is none.
        after: the new verdict; empty unless the kind is JUDGED.
        reason: the reason of the new verdict, or why there is none.
        differences: the differences between the verdicts, in words.
    """

    kind: ReplayOutcome
    before: str = ""
    after: str = ""
    reason: str = ""
    differences: tuple[str, ...] = ()


class RuleChange(Protocol):
    """A change to the rules under which calls are judged."""

    def find_scope(self, employee_id: int) -> Hashable:
        """Return the changes that apply to the employee's calls, in hashable form. Calls with the
        same scope can share verdicts."""

    def apply(self, rules: RecordedRules, scope: Hashable) -> RecordedRules:
        """Return the changed rules for calls of this scope."""

    def find_grants(self, tool: str, scope: Hashable) -> Sequence[GrantMatcher]:
        """Return the proposed standing grants for the tool in this scope."""

    def rebuild_history(self, row: CallRow) -> ToolHistory | None:
        """Return the history before the call, in case the history was not recorded; None if the
        change needs no history."""


PREAPPROVED = "answered"
"""The verdict about a call for which the gate requires approval, and which a standing grant
approves."""


class _Reach(Enum):
    """The other calls to which a verdict applies: calls that differ only in their params, identical
    calls, or no calls."""

    ANY_PARAMS = auto()
    SAME_PARAMS = auto()
    NONE = auto()
    """The verdict depends on earlier calls, or on their results."""


class RecordedJudge:
    """Judges recorded calls by their own snapshots and facts. If a change is given, it is applied
    to the rules first.

    Identical calls are judged only once. The params of calls matter only where the rules limit
    them.
    """

    def __init__(self, change: RuleChange | None = None) -> None:
        self._change = change
        self._rules: dict[Hashable, RecordedRules | UnreadableSnapshot] = {}
        self._judged: dict[Hashable, Judged] = {}
        self._results = RunResults()

    def judge(self, row: CallRow) -> Judged:
        """Judge a call again. A damaged record leads to an outcome, not to an exception."""
        scope = self._change.find_scope(row.employee_id) if self._change else None
        short = (
            row.organization_id,
            row.snapshot,
            scope,
            row.tool,
            row.level,
            row.why,
            row.judgment,
        )
        found = self._judged.get(short)
        if found is not None:
            return found
        exact = (short, row.params, row.provenance)
        if (found := self._judged.get(exact)) is not None:
            return found
        judged, reach = self._judge(row, scope)
        if len(self._judged) >= MAX_REMEMBERED:
            self._judged.clear()
        if reach is not _Reach.NONE:
            self._judged[exact if reach is _Reach.SAME_PARAMS else short] = judged
        return judged

    def _judge(self, row: CallRow, scope: Hashable) -> tuple[Judged, _Reach]:
        try:
            judgment = json.loads(row.judgment) if row.judgment else None
            if judgment is None:
                return Judged(ReplayOutcome.PRUNED, reason="no facts were kept"), _Reach.ANY_PARAMS
            if judgment.get("erased"):
                return Judged(
                    ReplayOutcome.ERASED, reason="its values were erased"
                ), _Reach.ANY_PARAMS
            before = str(judgment["verdict"])
            snapshot = judgment.get("snapshot", row.snapshot) or ""
            rules = self._load_rules(row.organization_id, snapshot, scope)
            if isinstance(rules, UnreadableSnapshot):
                kind = ReplayOutcome.MISSING if rules.is_missing else ReplayOutcome.UNREADABLE
                kind = kind if snapshot else ReplayOutcome.PRUNED
                return Judged(kind, before, reason=str(rules)), _Reach.ANY_PARAMS
            params, provenance = json.loads(row.params), json.loads(row.provenance or "null")
            call = RecordedCall(row.tool, params, provenance, judgment, row.level, row.why)
            return self._compare(row, call, rules, scope), self._find_reach(row, call, rules, scope)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            damaged = Judged(
                ReplayOutcome.UNREADABLE, reason=f"its stored facts cannot be read: {error!r}"
            )
            return damaged, _Reach.SAME_PARAMS

    def _find_reach(
        self, row: CallRow, call: RecordedCall, rules: RecordedRules, scope: Hashable
    ) -> _Reach:
        traits = rules.find_traits(call)
        limits = rules.grants.conditions.get(traits.name, ()) if traits is not None else ()
        if self._change is None:
            return _Reach.SAME_PARAMS if limits else _Reach.ANY_PARAMS
        if need_history(limits) and self._change.rebuild_history(row) is not None:
            return _Reach.NONE
        granted = self._change.find_grants(row.tool, scope)
        if any(grant.depends_on_run for grant in granted):
            return _Reach.NONE
        return _Reach.SAME_PARAMS if limits or granted else _Reach.ANY_PARAMS

    def _compare(
        self, row: CallRow, call: RecordedCall, rules: RecordedRules, scope: Hashable
    ) -> Judged:
        before = str(call.judgment["verdict"])
        grants = self._change.find_grants(row.tool, scope) if self._change else ()
        try:
            verdict = judge_recorded(
                call, rules, self._change.rebuild_history(row) if self._change else None
            )
            asks = verdict.permission is Permission.ASK and bool(grants)
            is_preapproved = asks and _is_preapproved(
                self._read_past_call(row, call, verdict), grants
            )
        except MissingFact as missing:
            return Judged(
                ReplayOutcome.UNKNOWN, before, reason=str(missing), differences=(str(missing),)
            )
        after = PREAPPROVED if is_preapproved else verdict.permission.value
        return Judged(
            ReplayOutcome.JUDGED,
            before,
            after,
            verdict.reason,
            tuple(list_differences(call, verdict)),
        )

    def _read_past_call(self, row: CallRow, call: RecordedCall, verdict: Verdict) -> PastCall:
        is_nested = row.parent_call_id is not None
        return PastCall(
            row.tool,
            verdict.level,
            row.employee_id,
            row.run_id,
            verdict.params,
            verdict.causes,
            Provenance.from_json(call.provenance) if call.provenance else None,
            PastFacts(row.run_id, row.pass_number, row.created_at, is_nested, self._results),
        )

    def _load_rules(
        self, organization_id: int, name: str, scope: Hashable
    ) -> RecordedRules | UnreadableSnapshot:
        key = (organization_id, name, scope)
        if key not in self._rules:
            if len(self._rules) >= MAX_REMEMBERED:
                self._rules.clear()
            self._rules[key] = self._read_rules(organization_id, name, scope)
        return self._rules[key]

    def _read_rules(
        self, organization_id: int, name: str, scope: Hashable
    ) -> RecordedRules | UnreadableSnapshot:
        try:
            rules = load_snapshot(organization_id, name)
        except UnreadableSnapshot as error:
            return error
        return self._change.apply(rules.read_as(TODAY), scope) if self._change else rules


def _is_preapproved(past: PastCall, grants: Sequence[GrantMatcher]) -> bool:
    """Return True if one of these standing grants approves a call for which the gate requires
    approval.

    Raises:
        MissingFact: the result depends on the origin of values, which was not recorded.
    """
    if any(grant.covers(past) for grant in grants):
        return True
    if past.provenance is None and any(
        grant.covers(replace(past, provenance=Provenance())) for grant in grants
    ):
        raise MissingFact("provenance")
    return False
