"""Names of configuration rows in the audit, and the person who last edited a row."""

from __future__ import annotations

from functools import reduce
from typing import Any

from django.db.models import Model

from agents.accounts.models import AuditEntry
from agents.admin.scope import PATH_TO_ORGANIZATION


def get_organization_id(row: Model) -> int:
    """Return the id of the organization that the row belongs to."""
    *owners, organization = PATH_TO_ORGANIZATION[type(row)].split("__")
    owner: Any = reduce(getattr, owners, row)
    return int(owner.pk if organization == "pk" else owner.organization_id)


def format_kind(row: Model) -> str:
    """Return the row's kind as the audit's actions spell it, e.g. `tool_rule`."""
    return str(row._meta.verbose_name).lower().replace(" ", "_")


def format_subject(row: Model) -> str:
    """Return the row as the audit names it, e.g. `employee:7`."""
    return f"{format_kind(row)}:{row.pk}"


def describe_last_editor(row: Model) -> str:
    """Return ` by NAME`, for a sentence about a change; empty if the audit has no entry about the
    row."""
    entries = AuditEntry.objects.filter(
        organization_id=get_organization_id(row), subject=format_subject(row)
    )
    actor = entries.order_by("-seq").values_list("actor", flat=True).first() or ""
    return f" by {actor.removeprefix('user:')}" if actor else ""
