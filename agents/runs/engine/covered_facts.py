"""Recognize facts on a card that another call of the same decision has changed, as that call's card
announced.

For example, several cards may say that the call creates a list. The first call creates it, so the
other calls no longer create it. The person has approved exactly this, so there is no reason to ask
again.
"""

from dataclasses import replace
from typing import Any

from django.db.models import Q

from agents.runs.engine.cards import compute_digest
from agents.runs.models import Approval, ApprovalStatus, CallStatus
from tools.contract import Preview, Target

MAX_COMPARED = 200
"""The most started calls of one decision that are compared."""


def is_covered(card: Approval, effect: Preview) -> bool:
    """Return True if this effect differs from the effect on the card only in facts that other calls
    of the same decision have changed.

    A fact is a yes or no about something that another value of the target names, such as a list. It
    is never one of the target's own values, which have a value before. The same decision means the
    same bulk decision, or approvals by the same person in the same run.
    """
    shown = card.preview.get("targets") if isinstance(card.preview, dict) else None
    if effect.problem or not isinstance(shown, list) or len(shown) != effect.total:
        return False
    pairs = list(zip(shown, effect.targets, strict=True))
    as_shown = replace(
        effect, targets=tuple(_restore_facts(stored, target) for stored, target in pairs)
    )
    if compute_digest(card.tool_call, as_shown.as_json()) != card.digest:
        return False
    open_ = [stored["after"] for stored, target in pairs if stored["after"] != target.after]
    announced = _load_announced(card)
    return bool(open_) and all(after in announced for after in open_)


def _restore_facts(stored: dict[str, Any], target: Target) -> Target:
    """Return the target with the facts as the card shows them."""
    shown = stored.get("after") or {}
    facts = {
        name: shown[name]
        for name, value in target.after.items()
        if isinstance(value, bool)
        and isinstance(shown.get(name), bool)
        and name not in target.before
    }
    names_another = any(
        not isinstance(value, bool) for name, value in shown.items() if name not in target.before
    )
    return replace(target, after=target.after | facts) if names_another else target


def _load_announced(card: Approval) -> list[dict[str, Any]]:
    """Load the announced facts from cards of the same decision whose calls have succeeded since."""
    together = (
        Q(run_id=card.run_id)
        if card.bulk_id is None
        else Q(run_id=card.run_id) | Q(bulk_id=card.bulk_id)
    )
    started = Approval.objects.filter(
        together,
        organization_id=card.organization_id,
        status=ApprovalStatus.CONSUMED,
        decided_by_id=card.decided_by_id,
        consumed_at__gte=card.decided_at,
        tool_call__tool=card.tool_call.tool,
        tool_call__status=CallStatus.SUCCEEDED,
    )
    previews = started.order_by("pk").values_list("preview", flat=True)[:MAX_COMPARED]
    return [target["after"] for preview in previews for target in preview["targets"]]
