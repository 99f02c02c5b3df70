"""What the audit calls the rows of the configuration, and whom it names as the last who changed one."""

from __future__ import annotations

from django.db.models import Model

from agents.accounts.models import ApiToken, AuditEntry, Organization
from tools.records.models import ListEntry


def organization_id_of(row: Model) -> int:
    """The organisation that the row belongs to."""
    if isinstance(row, Organization):
        return int(row.pk)
    if isinstance(row, ApiToken):
        return row.membership.organization_id
    if isinstance(row, ListEntry):
        return row.list.organization_id
    return int(row.organization_id)  # type: ignore[attr-defined]


def kind_of(row: Model) -> str:
    """As in the audit's actions, e.g. `tool_rule`."""
    return str(row._meta.verbose_name).lower().replace(" ", "_")


def subject_of(row: Model) -> str:
    """As in the audit, e.g. `employee:7`."""
    return f"{kind_of(row)}:{row.pk}"


def last_changed_by(row: Model) -> str:
    """` by NAME`, to stand behind what was changed; empty if the audit does not say."""
    entries = AuditEntry.objects.filter(organization_id=organization_id_of(row), subject=subject_of(row))
    actor = entries.order_by("-seq").values_list("actor", flat=True).first() or ""
    return f" by {actor.removeprefix('user:')}" if actor else ""
