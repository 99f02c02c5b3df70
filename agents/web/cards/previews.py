"""Access to the sealed preview of a card."""

from __future__ import annotations

from typing import Any

from agents.approvals.models import Approval


def get_preview(approval: Approval) -> dict[str, Any]:
    """Return the card's preview; empty if somebody changed it in the database to anything but an object."""
    return approval.preview if isinstance(approval.preview, dict) else {}
