"""Names that the audit gives to configuration rows, and the last editor of a row."""

from __future__ import annotations

from django.db.models import Model

from agents.accounts.models import ApiToken, AuditEntry, Organization
from agents.approval_rules.models import Deputy
from tools.records.models import ListEntry


def get_organization_id(row: Model) -> int:
    """Return the id of the organization that the row belongs to."""
    if isinstance(row, Organization):
        return int(row.pk)
    if isinstance(row, ApiToken):
        return row.membership.organization_id
    if isinstance(row, Deputy):
        return row.member.organization_id
    if isinstance(row, ListEntry):
        return row.list.organization_id
    return int(row.organization_id)  # type: ignore[attr-defined]


def format_kind(row: Model) -> str:
    """Return the kind as the audit's actions spell it, e.g. `tool_rule`."""
    return str(row._meta.verbose_name).lower().replace(" ", "_")


def format_subject(row: Model) -> str:
    """Return the subject as the audit spells it, e.g. `employee:7`."""
    return f"{format_kind(row)}:{row.pk}"


def describe_last_editor(row: Model) -> str:
    """Return ` by NAME` for a sentence about a change; empty if the audit does not name the editor."""
    entries = AuditEntry.objects.filter(organization_id=get_organization_id(row), subject=format_subject(row))
    actor = entries.order_by("-seq").values_list("actor", flat=True).first() or ""
    return f" by {actor.removeprefix('user:')}" if actor else ""
