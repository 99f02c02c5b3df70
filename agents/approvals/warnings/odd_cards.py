"""Compare a card with the other waiting cards of its shape, to find its odd values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from agents.approvals.warnings.odd_values import find_oddities
from agents.runs.models import IS_PENDING, Approval, ApprovalKind

MIN_ALIKE = 3
"""The minimum number of waiting cards of one shape that a comparison needs."""
MAX_ALIKE = 1_000
"""The maximum number of waiting cards that are compared, beginning with the newest."""


def find_card_oddities(cards: Collection[Approval]) -> dict[int, str]:
    """Name the odd values of these waiting cards of one organization, by card id, in one query;
    cards without odd values are left out."""
    shapes = {card.shape for card in cards}
    if not shapes:
        return {}
    found: dict[int, str] = {}
    for params in load_alike(next(iter(cards)).organization_id, shapes).values():
        oddities = find_oddities(list(map(flatten_params, params.values())))
        found |= dict(zip(params, oddities, strict=True))
    return {card.pk: oddity for card in cards if (oddity := found.get(card.pk))}


def load_alike(organization_id: int, shapes: Collection[str]) -> dict[str, dict[int, Any]]:
    """Load the params of all waiting cards of each shape by card id, newest first; shapes of fewer
    than three cards are left out."""
    waiting = Approval.objects.filter(
        IS_PENDING, organization_id=organization_id, kind=ApprovalKind.APPROVAL, shape__in=shapes
    )
    rows = waiting.order_by("-tool_call_id", "-pk").values_list("shape", "pk", "params")
    found: dict[str, dict[int, Any]] = defaultdict(dict)
    for shape, pk, params in rows[:MAX_ALIKE]:
        found[shape][pk] = params
    return {shape: params for shape, params in found.items() if len(params) >= MIN_ALIKE}


def flatten_params(params: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Name the values of nested objects by their whole path, such as `values.phone`."""
    flat: dict[str, Any] = {}
    for name, value in params.items():
        flat |= (
            flatten_params(value, f"{prefix}{name}.")
            if isinstance(value, dict)
            else {f"{prefix}{name}": value}
        )
    return flat
