"""Confirm restored limits, as an admin does before lifting the stop."""

from __future__ import annotations

from agents.accounts.models import Membership
from agents.restores import confirming
from agents.restores.models import RestoredLimit


def confirm_all(admin: Membership) -> None:
    """Confirm each restored limit of the admin's organization with its preselected outcome."""
    lines = RestoredLimit.objects.filter(organization_id=admin.organization_id)
    confirming.confirm(admin, {line.pk: confirming.find_stricter(line) for line in lines})
