"""Judge calls (steps 3 to 7 of a run): before the run's lock is taken, and again under it.

The order is always the same: judge the calls, compute their effects outside any transaction, lock
the run, read the current rules, lock the rows that limits count, judge again, and compare.
Subclasses say how to judge and what to compare. Their callers react to an objection: new calls are
judged and previewed again in further rounds; an approved call gets a new card, or is refused if the
objection has an error; a ready call or the edit of a card is refused. The verdict itself comes from
`tools/toolbox/permissions.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import datetime
from typing import ClassVar

from typing_extensions import override

from agents.providers.base import RequestedCall
from agents.runs.call_history import Occasion, lock_counts
from agents.runs.engine.context import RunContext
from agents.runs.engine.lease import Lease
from agents.runs.engine.requested_calls import (
    CallRequest,
    PlannedCall,
    find_earlier_calls,
    is_volatile,
    make_cards_error,
    make_limit_error,
    plan_call,
    preview_card,
)
from agents.runs.engine.timing import MAX_OPEN_CARDS, timing
from agents.runs.engine.transaction import Transaction
from agents.runs.models import ToolCall
from tools.toolbox.facts import HISTORY
from tools.toolbox.objections import Objection
from tools.toolbox.permissions import Permission

MAX_CALLS = 100
"""The maximum number of calls in one response."""
MAX_ROUNDS = 3
"""The maximum number of rounds of judging and previewing if permissions keep changing."""
RULES_CHANGED = Objection("Permissions changed while this call was prepared.")
LIMIT_REACHED = Objection("Another run used up a limit while this call was prepared.")


def lock_counted(tx: Transaction, context: RunContext, tools: Iterable[str]) -> set[str]:
    """Return the tools whose calls a limit counts, and lock these counts until the commit.

    Executes no SQL statement if there is no such tool, or if this transaction has already locked
    the counts.
    """
    counted = {tool for tool in tools if context.has_counted_limit(tool)}
    if counted - tx.locked_counts:
        lock_counts(tx.run.employee_id, counted)
        tx.locked_counts |= counted
    return counted


class Judgment(ABC):
    """The judgment of some calls, which is repeated under the run's lock by the current rules.

    Attributes:
        context: the run with the rules of the last judgment.
        counted: the tools whose calls a limit counts, which no other process can count until the
            transaction ends.
        is_outdated: True if the rules had changed when the run was locked.
        rounds_left: the number of rounds after the current one; 0 for calls that are judged only
            once more.
    """

    follows_rules_alone: ClassVar[bool] = True
    """True if calls are judged again only after the rules have changed; False for approved and
    ready calls, which are always judged again."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.counted: set[str] = set()
        self.is_outdated = False
        self.rounds_left = 0

    def judge_again(self, tx: Transaction, current: RunContext | None = None) -> Objection | None:
        """Judge again, under the run's lock; return an objection, or None if the calls may proceed.

        Args:
            current: the context with the rules that were read under this lock; None to read them
                now.
        """
        before, self.context = self.context, current or self.context.with_current_rules()
        self.is_outdated = not self.context.has_same_rules(before)
        if self.is_outdated and self.may_retry(tx):
            objection: Objection | None = RULES_CHANGED
        else:
            self.counted = lock_counted(tx, self.context, self.list_tools())
            if self.is_outdated or not self.follows_rules_alone:
                self.judge(tx.now)
            objection = self.compare(tx)
        if objection is not None and self.may_retry(tx):
            tx.step_continues = True
        return objection

    def may_retry(self, tx: Transaction) -> bool:
        """Return True if an objection leads to another round."""
        return self.rounds_left > 0 and tx.run.may_start

    @abstractmethod
    def list_tools(self) -> Iterable[str]:
        """List the names of the tools whose calls may be counted."""

    @abstractmethod
    def judge(self, now: datetime | None) -> None:
        """Judge the calls by the rules of `context`. `now` is the database's time if the run is
        locked, otherwise None."""

    @abstractmethod
    def compare(self, tx: Transaction) -> Objection | None:
        """Compare the calls with their earlier verdict or card; return an objection if they
        differ."""


class PlannedCalls(Judgment):
    """The judgment of calls that are not stored yet; a change leads to another round of judging and
    previewing.

    In the last round, or if the run must not start anything, the calls are judged under the lock by
    the current rules, and a call that would need another preview is refused.

    Attributes:
        planned: the calls with their last verdicts, and the effects for their cards.
        snapshot: the hash of the stored rules that judged them.
    """

    def __init__(
        self,
        context: RunContext,
        requests: Sequence[RequestedCall | CallRequest],
        seen: Set[str] = frozenset(),
    ) -> None:
        """Judge the requested calls.

        Args:
            seen: the signatures of the run's earlier calls; empty for calls that are never
                duplicates.
        """
        super().__init__(context)
        self._requests, self._seen = requests, seen
        self.planned = self._plan(None)
        self.snapshot = ""

    @property
    def only(self) -> PlannedCall:
        """The planned call, if there is exactly one."""
        (plan,) = self.planned
        return plan

    def rounds(self, lease: Lease | None = None, *, has_cards: bool = True) -> Iterator[None]:
        """Yield once per round. The caller then locks the run, judges again and, if there is no
        objection, records the calls.

        Args:
            lease: the driver's lease, which is renewed during the previews.
            has_cards: True to compute the effects for cards before each round.
        """
        for self.rounds_left in reversed(range(MAX_ROUNDS)):
            if has_cards:
                self._preview(lease)
            self.snapshot = self.context.keep_snapshot()
            yield
            self._plan_again()

    def prepare_cards(self, lease: Lease) -> None:
        """Compute the effects for cards by the current rules, which may have changed since the run
        was loaded."""
        before, self.context = self.context, self.context.with_current_rules()
        if not self.context.has_same_rules(before):
            self._plan_again()
        self._preview(lease)

    def _plan(self, now: datetime | None) -> list[PlannedCall]:
        planned: list[PlannedCall] = []
        starting: list[ToolCall] = []
        for index, request in enumerate(self._requests):
            plan = plan_call(self.context, index, request, Occasion(now, beside=starting))
            if index >= MAX_CALLS:
                plan.refuse(
                    plan.error or make_limit_error(f"At most {MAX_CALLS} calls in one response.")
                )
            planned.append(plan)
            if HISTORY in plan.verdict.facts:
                self._add_starting(starting, plan)
        return planned

    def _plan_again(self) -> None:
        pairs = zip(self.planned, self._plan(None), strict=True)
        self.planned = [before.replace_if_changed(current) for before, current in pairs]

    def _preview(self, lease: Lease | None) -> None:
        """Compute the effect for each card that has none, once for identical calls, and refuse
        calls beyond the limit of open cards.

        Calls whose signature the run has seen may be duplicates, so they do not count toward the
        limit.
        """
        previewed: set[str] = set()
        cards = 0
        for plan in self.planned:
            row = plan.row
            if plan.permission is not Permission.ASK or (
                row.signature in previewed and not is_volatile(row)
            ):
                continue
            if cards >= MAX_OPEN_CARDS:
                plan.refuse(make_cards_error(MAX_OPEN_CARDS))
                continue
            previewed.add(row.signature)
            if plan.effect is None:
                if lease is not None:
                    lease.expect_step(timing().preview_s)
                preview_card(self.context, plan)
            cards += plan.effect is not None and row.signature not in self._seen

    @override
    def list_tools(self) -> Iterable[str]:
        if self.is_outdated:
            return [plan.row.tool for plan in self.planned]
        return [
            plan.row.tool
            for plan in self.planned
            if plan.error is None and HISTORY in plan.verdict.facts
        ]

    @override
    def judge(self, now: datetime | None) -> None:
        pairs = zip(self.planned, self._plan(now), strict=True)
        self.planned = [before.replace_without_preview(current) for before, current in pairs]
        self.snapshot = self.context.keep_snapshot()

    @override
    def compare(self, tx: Transaction) -> Objection | None:
        """Judge again the calls to which a counting limit applies, because other runs may have
        started calls since; return an objection if another round is needed."""
        counted = [
            plan for plan in self.planned if plan.error is None and plan.row.tool in self.counted
        ]
        lacking = self._count_again(tx.now, counted)
        if lacking and self.may_retry(tx):
            return LIMIT_REACHED
        for plan in lacking:
            plan.refuse_without_preview()
        return None

    def _count_again(self, now: datetime, counted: list[PlannedCall]) -> list[PlannedCall]:
        """Judge again the calls to which a limit applies, while no other process can count; return
        the calls that now need a card."""
        starting: list[ToolCall] = []
        lacking = []
        for plan in counted:
            _, verdict = self.context.judge(
                plan.row.tool, plan.row.params, Occasion(now, beside=starting)
            )
            if plan.permission is Permission.AUTO and verdict.permission is Permission.ASK:
                lacking.append(plan)
            elif plan.permission is Permission.AUTO or verdict.error is not None:
                plan.judge_again(verdict)
                self._add_starting(starting, plan)
        return lacking

    def _add_starting(self, starting: list[ToolCall], plan: PlannedCall) -> None:
        """Add the call to `starting` if it will start without approval and is not a duplicate.

        Makes a query if the run has seen the signature before.
        """
        if plan.permission is Permission.AUTO and not self._is_repeated(plan.row, starting):
            starting.append(plan.row)

    def _is_repeated(self, row: ToolCall, starting: list[ToolCall]) -> bool:
        if is_volatile(row):
            return False
        is_equal = any(each.signature == row.signature for each in starting)
        return is_equal or bool(
            find_earlier_calls(self.context.run.pk, {row.signature} & self._seen)
        )
