"""Shadow mode of approval rules: compare decisions on cards with the rules of policy drafts, which
are never applied.

Each decision is compared once, the oldest first, with the groups that were recorded with it, or
else with the current groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from agents.policy.models import PolicyDraft, ShadowCard
from agents.policy.policy_drafts import PolicyChange
from agents.policy.recorded_cards import CardRow, find_cards, read_cards
from agents.policy.rule_simulation import CardCounts, CardJudge, CardOutcome, JudgedCard
from agents.runs.models import APPROVED_STATES, ApprovalStatus

STUCK = "stuck"
UNSURE = "unsure"
_DECIDED = (*APPROVED_STATES, ApprovalStatus.DENIED)
_EARLY = timedelta(seconds=1)
"""The amount of time by which the search starts earlier, so that no decision is missed: SQLite
compares times as texts, whose lengths differ."""


def compare_decisions(
    policy_draft: PolicyDraft, changes: Iterable[PolicyChange], age: timedelta, most: int
) -> int:
    """Judge the next decisions of at least this age by the policy draft, and record the outcomes
    that it changes. Return the number of decisions.

    If two sweepers compare the same decisions, only one of them counts the decisions.
    """
    rows = _list_next(policy_draft, age, most)
    if not rows:
        return 0
    judged = CardJudge(policy_draft.organization, changes).judge(rows)
    different = [
        ShadowCard(
            draft=policy_draft,
            card_id=each.row.pk,
            outcome=each.outcome,
            needs=each.needs,
            is_stuck=each.is_stuck,
        )
        for each in judged
        if each.is_changed
    ]
    with transaction.atomic():
        mine = PolicyDraft.objects.filter(
            pk=policy_draft.pk, last_card_id=policy_draft.last_card_id
        )
        newest = {"last_decided_at": rows[-1].decided_at, "last_card_id": rows[-1].pk}
        if not mine.update(**newest, card_counts=_add_counts(policy_draft, judged)):
            return 0
        ShadowCard.objects.bulk_create(different)
    return len(rows)


def count_cards(policy_draft: PolicyDraft) -> CardCounts:
    """Return the counts of the compared cards that the policy draft concerns."""
    known = {outcome: policy_draft.card_counts.get(outcome.value, 0) for outcome in CardOutcome}
    stored = policy_draft.card_counts
    return CardCounts(Counter(known), stored.get(STUCK, 0), stored.get(UNSURE, 0))


def _add_counts(policy_draft: PolicyDraft, judged: Iterable[JudgedCard]) -> dict[str, int]:
    counts = count_cards(policy_draft)
    for each in judged:
        counts.add(each)
    found = {outcome.value: number for outcome, number in counts.outcomes.items()} | {
        STUCK: counts.stuck,
        UNSURE: counts.unsure,
    }
    return {name: number for name, number in found.items() if number}


def _list_next(policy_draft: PolicyDraft, age: timedelta, most: int) -> Sequence[CardRow]:
    found: list[CardRow] = []
    for row in _read_since(policy_draft, age):
        found.append(row)
        if len(found) >= most:
            break
    return found


def _read_since(policy_draft: PolicyDraft, age: timedelta) -> Iterator[CardRow]:
    """Read the decisions after the newest one that was compared, oldest first."""
    since = policy_draft.last_decided_at or policy_draft.shadow_from
    assert since is not None, "a policy draft in shadow mode has a beginning"
    cards = find_cards(policy_draft.organization_id).filter(
        status__in=_DECIDED, decided_at__gte=since - _EARLY
    )
    settled = cards.filter(decided_at__lte=Now() - age).filter(
        decided_at__lte=policy_draft.shadow_until
    )
    for rows in read_cards(settled.order_by("decided_at", "pk")):
        for row in rows:
            assert row.decided_at is not None, "a decision has its time"
            if (row.decided_at, row.pk) > (since, policy_draft.last_card_id):
                yield row
