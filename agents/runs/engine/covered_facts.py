"""Recognize changes that other calls of the same decision have made since a card was created: the
cards of these calls announced the changes, and the call still does what its own card shows.

For example, several cards may say that their call creates a list. The first call creates it, so the
others no longer do. Or two cards change different values of one record, so that the second finds a
newer version. The person has approved exactly this, so it is no reason to ask again.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from django.db.models import Q

from agents.runs.engine.cards import compute_digest
from agents.runs.models import Approval, ApprovalStatus, CallStatus
from tools.contract import Preview, Target

MAX_COMPARED = 200
"""The maximum number of started calls of one decision that are compared."""


def is_covered(card: Approval, effect: Preview) -> bool:
    """Return True if this effect differs from the card's only in facts and versions that calls of
    the same decision have changed.

    A fact is a yes-or-no value about something, such as a list, that another value of the target
    names. Values that `before` also has belong to the target itself and are not facts. A new
    version is covered if all writes since the card was created were made by these calls. The same
    decision means the same bulk decision, or approvals by the same person in the same run.
    """
    shown = card.preview.get("targets") if isinstance(card.preview, dict) else None
    if effect.problem or not isinstance(shown, list) or len(shown) != effect.total:
        return False
    pairs = list(zip(shown, effect.targets, strict=True))
    as_shown = tuple(
        replace(_restore_facts(stored, target), version=stored["version"])
        for stored, target in pairs
    )
    restored = replace(effect, targets=as_shown)
    if compute_digest(card.tool_call, restored.as_json()) != card.digest:
        return False
    announced = _load_announced(card)
    open_ = [stored["after"] for stored, target in pairs if stored["after"] != target.after]
    facts = [target["after"] for target in announced]
    writes = Counter(target["id"] for target in announced)
    return all(after in facts for after in open_) and all(
        stored["version"] == target.version or _is_explained(stored, target, writes[target.id])
        for stored, target in pairs
    )


def _is_explained(stored: dict[str, Any], target: Target, writes: int) -> bool:
    """Return True if this number of writes leads from the version on the card to the target's
    version."""
    was, is_now = stored["version"], target.version
    return bool(target.id) and was is not None and is_now is not None and was + writes == is_now


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
    """Load the targets on cards of the same decision whose calls have succeeded since this card was
    decided, or, if they are in the same bulk, since it was requested."""
    together = Q(run_id=card.run_id, consumed_at__gte=card.decided_at)
    if card.bulk_id is not None:
        together |= Q(bulk_id=card.bulk_id, consumed_at__gte=card.requested_at)
    started = Approval.objects.filter(
        together,
        organization_id=card.organization_id,
        status=ApprovalStatus.CONSUMED,
        decided_by_id=card.decided_by_id,
        tool_call__tool=card.tool_call.tool,
        tool_call__status=CallStatus.SUCCEEDED,
    )
    previews = started.order_by("pk").values_list("preview", flat=True)[:MAX_COMPARED]
    return [target for preview in previews for target in preview["targets"]]
