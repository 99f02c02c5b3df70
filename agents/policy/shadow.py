"""Shadow mode: a saved policy draft judges new calls afterwards, in addition to the real rules, and
is never applied.

The sweeper compares the calls, so no pass waits for this. A call is compared once it is a minute
old: ids are assigned before the commit, so a younger call with a smaller id may not be visible yet.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from django.db import transaction
from django.db.models import Max, Min, Q
from django.db.models.functions import Now

from agents.accounts import audit
from agents.accounts.models import Membership, Role
from agents.platform.refusals import Conflict, Forbidden, Invalid
from agents.platform.row_ids import get_row
from agents.policy.changed_rules import ChangedRules
from agents.policy.models import MAX_SHADOW_DAYS, PolicyDraft, ShadowVerdict
from agents.policy.policy_drafts import OF_CARDS, PolicyChange
from agents.policy.recorded_calls import CallFilter, RecordedJudge, ReplayOutcome, read_calls
from agents.policy.recorded_cards import CARDS_AT_ONCE
from agents.policy.shadow_cards import compare_decisions
from agents.policy.typed_changes import name_rule_groups
from agents.runs.models import ToolCall

MAX_POLICY_DRAFTS = 50
MAX_SHADOWS = 5
"""The maximum number of policy drafts of an organization that may be in shadow mode at the same
time."""
MAX_NAME = 80
CALLS_AT_ONCE = 2_000
SETTLED_AFTER = timedelta(minutes=1)
_COMPARED_UNTIL = timedelta(days=1)
"""The time after the end of shadow mode during which a policy draft is still compared with calls
that were not settled when shadow mode ended."""


def list_policy_drafts(member: Membership) -> list[PolicyDraft]:
    """List the organization's policy drafts, newest first."""
    require_admin(member)
    return list(
        PolicyDraft.objects.filter(organization_id=member.organization_id).select_related(
            "created_by"
        )
    )


def find_policy_draft(member: Membership, policy_draft_id: int) -> PolicyDraft:
    """Return a policy draft of the member's organization.

    Raises:
        Forbidden, NotFound
    """
    require_admin(member)
    policy_drafts = PolicyDraft.objects.filter(
        organization_id=member.organization_id
    ).select_related("created_by")
    return get_row(policy_drafts, policy_draft_id, "policy draft")


def load_changes(policy_draft: PolicyDraft) -> tuple[PolicyChange, ...]:
    """Return the changes of a policy draft, with the current names of groups."""
    return name_rule_groups(
        policy_draft.organization_id, map(PolicyChange.from_json, policy_draft.changes)
    )


def require_admin(member: Membership) -> None:
    """Check that the member is an admin.

    Raises:
        Forbidden
    """
    if not member.may(Role.ADMIN):
        raise Forbidden("Only admins can use the simulator.")


def save_policy_draft(
    member: Membership, name: str, changes: tuple[PolicyChange, ...]
) -> PolicyDraft:
    """Save a policy draft under a name.

    Raises:
        Forbidden, Invalid
        Conflict: the organization has too many policy drafts.
    """
    require_admin(member)
    name = " ".join(name.replace("\0", "").split())
    if not 0 < len(name) <= MAX_NAME:
        raise Invalid("name", f"Give the policy draft a name of at most {MAX_NAME} characters.")
    if not changes:
        raise Invalid("changes", "Choose a change first.")
    if (
        PolicyDraft.objects.filter(organization_id=member.organization_id).count()
        >= MAX_POLICY_DRAFTS
    ):
        raise Conflict(f"There are {MAX_POLICY_DRAFTS} policy drafts. Delete one first.")
    with transaction.atomic():
        stored = [change.as_json() for change in changes]
        policy_draft = PolicyDraft.objects.create(
            organization_id=member.organization_id,
            name=name,
            changes=stored,
            created_by=member.user,
        )
        _audit(member, policy_draft, "policy_draft_saved")
    return policy_draft


def delete_policy_draft(member: Membership, policy_draft_id: int) -> None:
    """Delete a policy draft with its recorded verdicts.

    Raises:
        Forbidden, NotFound
    """
    policy_draft = find_policy_draft(member, policy_draft_id)
    with transaction.atomic():
        _audit(member, policy_draft, "policy_draft_deleted")
        policy_draft.delete()


def start_shadow(member: Membership, policy_draft_id: int, days: int) -> None:
    """Start shadow mode: for this many days, the policy draft also judges new calls.

    Raises:
        Forbidden, NotFound, Invalid
        Conflict: the policy draft has run in shadow mode before, or too many are in shadow mode.
    """
    policy_draft = find_policy_draft(member, policy_draft_id)
    if not 1 <= days <= MAX_SHADOW_DAYS:
        raise Invalid("days", f"Enter 1 to {MAX_SHADOW_DAYS} days.")
    own = PolicyDraft.objects.filter(organization_id=member.organization_id)
    if own.filter(shadow_until__gt=Now()).count() >= MAX_SHADOWS:
        raise Conflict(f"{MAX_SHADOWS} policy drafts are already in shadow mode. Stop one first.")
    newest = (
        ToolCall.objects.filter(organization_id=member.organization_id).aggregate(last=Max("pk"))[
            "last"
        ]
        or 0
    )
    with transaction.atomic():
        unused = own.filter(pk=policy_draft.pk, shadow_from__isnull=True)
        until = Now() + timedelta(days=days)
        if not unused.update(shadow_from=Now(), shadow_until=until, last_call_id=newest, counts={}):
            raise Conflict(
                "This policy draft has already run in shadow mode. To run it again, simulate and save it again."
            )
        _audit(member, policy_draft, "policy_shadow_started", days=days)


def stop_shadow(member: Membership, policy_draft_id: int) -> None:
    """End the shadow mode of a policy draft now; its recorded verdicts stay.

    Raises:
        Forbidden, NotFound
        Conflict: the policy draft is not in shadow mode.
    """
    policy_draft = find_policy_draft(member, policy_draft_id)
    with transaction.atomic():
        running = PolicyDraft.objects.filter(
            pk=policy_draft.pk, shadow_from__lt=Now(), shadow_until__gt=Now()
        )
        if not running.update(shadow_until=Now()):
            raise Conflict("This policy draft is not in shadow mode.")
        _audit(member, policy_draft, "policy_shadow_stopped")


def _audit(member: Membership, policy_draft: PolicyDraft, action: str, **more: object) -> None:
    payload = {"name": policy_draft.name, "changes": policy_draft.changes, **more}
    audit.record(member, action, f"policy_draft:{policy_draft.pk}", **payload)


def compare_all() -> int:
    """Compare the settled calls and decisions with every policy draft in shadow mode; return the
    number of comparisons."""
    running = PolicyDraft.objects.filter(shadow_until__gt=Now() - _COMPARED_UNTIL).order_by("pk")
    return sum(
        compare(policy_draft) + compare_cards(policy_draft)
        for policy_draft in running.select_related("organization")
    )


def compare(policy_draft: PolicyDraft, most: int = CALLS_AT_ONCE) -> int:
    """Judge the next settled calls by the policy draft, and record the verdicts that differ; return
    the number of calls.

    If two sweepers compare the same calls, only one of them counts the calls.
    """
    changes = load_changes(policy_draft)
    if not any(change.kind not in OF_CARDS for change in changes):
        return 0
    pending = _find_settled(policy_draft)
    counts, different, last = (
        Counter[str](policy_draft.counts),
        list[ShadowVerdict](),
        policy_draft.last_call_id,
    )
    rules = ChangedRules(policy_draft.organization_id, changes, pending.find()[:most])
    judge, compared = RecordedJudge(rules), 0
    for row in read_calls(pending):
        judged, last = judge.judge(row), row.pk
        if judged.kind is not ReplayOutcome.JUDGED:
            counts[judged.kind.value] += 1
        else:
            counts[f"{judged.before} {judged.after}"] += 1
            if judged.before != judged.after:
                different.append(
                    ShadowVerdict(
                        draft=policy_draft,
                        call_id=row.pk,
                        before=judged.before,
                        after=judged.after,
                        reason=judged.reason,
                    )
                )
        compared += 1
        if compared >= most:
            break
    if not compared:
        return 0
    with transaction.atomic():
        mine = PolicyDraft.objects.filter(
            pk=policy_draft.pk, last_call_id=policy_draft.last_call_id
        )
        if not mine.update(last_call_id=last, counts=dict(counts)):
            return 0
        ShadowVerdict.objects.bulk_create(different)
    return compared


def compare_cards(policy_draft: PolicyDraft, most: int = CARDS_AT_ONCE) -> int:
    """Compare the next settled decisions with the policy draft's approval rules; return the number
    of decisions."""
    changes = load_changes(policy_draft)
    if not any(change.kind in OF_CARDS for change in changes):
        return 0
    return compare_decisions(policy_draft, changes, SETTLED_AFTER, most)


def _find_settled(policy_draft: PolicyDraft) -> CallFilter:
    """Return a filter for the next settled calls. It ends before the first call that is too young
    or was recorded after shadow mode ended."""
    calls = ToolCall.objects.filter(
        organization_id=policy_draft.organization_id, pk__gt=policy_draft.last_call_id
    )
    later = calls.filter(
        Q(created_at__gt=Now() - SETTLED_AFTER) | Q(created_at__gt=policy_draft.shadow_until)
    )
    barrier = later.aggregate(first=Min("pk"))["first"]
    return CallFilter(
        policy_draft.organization_id,
        policy_draft.last_call_id + 1,
        None if barrier is None else barrier - 1,
    )
