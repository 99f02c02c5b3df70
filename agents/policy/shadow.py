"""Shadow mode: a saved draft judges new calls beside the real rules, after the fact, and is never applied.

The sweeper compares the calls, so no pass waits for it. A call is compared once it is a minute old: ids are assigned
before the commit, so among younger calls some ids may still be missing.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from django.db import transaction
from django.db.models import Max, Min, Q
from django.db.models.functions import Now

from agents.accounts import audit
from agents.accounts.models import Membership, Role
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.policy.drafted_rules import DraftedRules
from agents.policy.drafts import OF_CARDS, PolicyChange
from agents.policy.models import MAX_SHADOW_DAYS, PolicyDraft, ShadowVerdict
from agents.policy.recorded_calls import CallFilter, RecordedJudge, ReplayOutcome, read_calls
from agents.policy.recorded_cards import CARDS_AT_ONCE
from agents.policy.shadow_cards import compare_decisions
from agents.policy.typed_changes import name_rule_groups
from agents.runs.models import ToolCall

MAX_DRAFTS = 50
MAX_SHADOWS = 5
"""The most drafts of an organization that may be in shadow mode at a time."""
MAX_NAME = 80
CALLS_AT_ONCE = 2_000
SETTLED_AFTER = timedelta(minutes=1)
_COMPARED_UNTIL = timedelta(days=1)
"""After its end, a draft is still compared for this long, with calls that were not settled by then."""


def list_drafts(member: Membership) -> list[PolicyDraft]:
    """List the organization's drafts, newest first."""
    require_admin(member)
    return list(PolicyDraft.objects.filter(organization_id=member.organization_id).select_related("created_by"))


def find_draft(member: Membership, draft_id: int) -> PolicyDraft:
    """Return a draft of the member's organization.

    Raises:
        Forbidden, NotFound
    """
    require_admin(member)
    drafts = PolicyDraft.objects.filter(organization_id=member.organization_id).select_related("created_by")
    draft = drafts.filter(pk=draft_id).first()
    if draft is None:
        raise NotFound(f"There is no draft {draft_id}.")
    return draft


def load_changes(draft: PolicyDraft) -> tuple[PolicyChange, ...]:
    """Return the changes of a draft."""
    return name_rule_groups(draft.organization_id, map(PolicyChange.from_json, draft.changes))


def require_admin(member: Membership) -> None:
    """Refuse everybody but admins.

    Raises:
        Forbidden
    """
    if not member.may(Role.ADMIN):
        raise Forbidden("Only admins can use the simulator.")


def save_draft(member: Membership, name: str, changes: tuple[PolicyChange, ...]) -> PolicyDraft:
    """Save a draft under a name.

    Raises:
        Forbidden, Invalid
        Conflict: there are too many.
    """
    require_admin(member)
    name = " ".join(name.replace("\0", "").split())
    if not 0 < len(name) <= MAX_NAME:
        raise Invalid("name", f"Give the draft a name of at most {MAX_NAME} characters.")
    if not changes:
        raise Invalid("changes", "Choose a change first.")
    if PolicyDraft.objects.filter(organization_id=member.organization_id).count() >= MAX_DRAFTS:
        raise Conflict(f"There are {MAX_DRAFTS} drafts. Delete one first.")
    with transaction.atomic():
        stored = [change.as_json() for change in changes]
        draft = PolicyDraft.objects.create(
            organization_id=member.organization_id, name=name, changes=stored, created_by=member.user
        )
        _audit(member, draft, "policy_draft_saved")
    return draft


def delete_draft(member: Membership, draft_id: int) -> None:
    """Delete a draft with its recorded verdicts.

    Raises:
        Forbidden, NotFound
    """
    draft = find_draft(member, draft_id)
    with transaction.atomic():
        _audit(member, draft, "policy_draft_deleted")
        draft.delete()


def start_shadow(member: Membership, draft_id: int, days: int) -> None:
    """Let the draft judge new calls as well, for this many days.

    Raises:
        Forbidden, NotFound, Invalid
        Conflict: it has run in shadow mode before, or too many drafts are in shadow mode.
    """
    draft = find_draft(member, draft_id)
    if not 1 <= days <= MAX_SHADOW_DAYS:
        raise Invalid("days", f"Enter 1 to {MAX_SHADOW_DAYS} days.")
    own = PolicyDraft.objects.filter(organization_id=member.organization_id)
    if own.filter(shadow_until__gt=Now()).count() >= MAX_SHADOWS:
        raise Conflict(f"{MAX_SHADOWS} drafts already run in shadow mode. Stop one first.")
    newest = ToolCall.objects.filter(organization_id=member.organization_id).aggregate(last=Max("pk"))["last"] or 0
    with transaction.atomic():
        unused = own.filter(pk=draft.pk, shadow_from__isnull=True)
        until = Now() + timedelta(days=days)
        if not unused.update(shadow_from=Now(), shadow_until=until, last_call_id=newest, counts={}):
            raise Conflict("This draft has run in shadow mode before. Simulate it and save it again to run it again.")
        _audit(member, draft, "policy_shadow_started", days=days)


def stop_shadow(member: Membership, draft_id: int) -> None:
    """End the shadow mode of a draft now; its recorded verdicts stay.

    Raises:
        Forbidden, NotFound
        Conflict: the draft is not in shadow mode.
    """
    draft = find_draft(member, draft_id)
    with transaction.atomic():
        running = PolicyDraft.objects.filter(pk=draft.pk, shadow_from__lt=Now(), shadow_until__gt=Now())
        if not running.update(shadow_until=Now()):
            raise Conflict("This draft is not in shadow mode.")
        _audit(member, draft, "policy_shadow_stopped")


def _audit(member: Membership, draft: PolicyDraft, action: str, **more: object) -> None:
    payload = {"name": draft.name, "changes": draft.changes, **more}
    entry = audit.NewEntry(f"user:{member.user.get_username()}", action, f"policy_draft:{draft.pk}", payload)
    audit.append(member.organization_id, [entry])


def compare_all() -> int:
    """Compare the settled calls and decisions with every draft in shadow mode; return their number."""
    running = PolicyDraft.objects.filter(shadow_until__gt=Now() - _COMPARED_UNTIL).order_by("pk")
    return sum(compare(draft) + compare_cards(draft) for draft in running.select_related("organization"))


def compare(draft: PolicyDraft, most: int = CALLS_AT_ONCE) -> int:
    """Judge the next settled calls by the draft, and record different verdicts; return the number of calls.

    If two sweepers compare the same calls, only one of them counts these.
    """
    changes = load_changes(draft)
    if not any(change.kind not in OF_CARDS for change in changes):
        return 0
    pending = _find_settled(draft)
    counts, different, last = Counter[str](draft.counts), list[ShadowVerdict](), draft.last_call_id
    rules = DraftedRules(draft.organization_id, changes, pending.find()[:most])
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
                        draft=draft, call_id=row.pk, before=judged.before, after=judged.after, reason=judged.reason
                    )
                )
        compared += 1
        if compared >= most:
            break
    if not compared:
        return 0
    with transaction.atomic():
        mine = PolicyDraft.objects.filter(pk=draft.pk, last_call_id=draft.last_call_id)
        if not mine.update(last_call_id=last, counts=dict(counts)):
            return 0
        ShadowVerdict.objects.bulk_create(different)
    return compared


def compare_cards(draft: PolicyDraft, most: int = CARDS_AT_ONCE) -> int:
    """Compare the next settled decisions with the draft's approval rules; return their number, see `compare`."""
    changes = load_changes(draft)
    if not any(change.kind in OF_CARDS for change in changes):
        return 0
    return compare_decisions(draft, changes, SETTLED_AFTER, most)


def _find_settled(draft: PolicyDraft) -> CallFilter:
    """Return a filter for the settled calls, up to the first call that is too young or came after the end."""
    calls = ToolCall.objects.filter(organization_id=draft.organization_id, pk__gt=draft.last_call_id)
    later = calls.filter(Q(created_at__gt=Now() - SETTLED_AFTER) | Q(created_at__gt=draft.shadow_until))
    barrier = later.aggregate(first=Min("pk"))["first"]
    return CallFilter(draft.organization_id, draft.last_call_id + 1, None if barrier is None else barrier - 1)
