"""Write a line for each row that limits something, after a restore.

If the database before the restore was a newer one of the same organization, its values are stored
next to the restored ones: nothing else records the changes since the backup.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db import DatabaseError, transaction

from agents.accounts.models import Organization
from agents.restores.limits import KINDS, LimitKind, Values
from agents.restores.models import RestoredLimit

NAME_LENGTH = 200
_Rows = dict[int, tuple[str, Values]]
"""The name and the values of each row, by its id."""


@dataclass(frozen=True)
class NewerLimits:
    """The limits of a database before a restore replaces it.

    Attributes:
        organizations: the rows of each kind, by the organization's id and its time of creation. An
            organization of another installation may have the same id, but not the same time.
    """

    organizations: dict[tuple[int, str], dict[str, _Rows]] = field(default_factory=dict)


def read_newer_limits() -> NewerLimits:
    """Read the limits before a restore; return no limits if the database is empty, or has the
    tables of another version.

    Unconfirmed values from an earlier restore take precedence over the rows that it restored.
    """
    try:
        with transaction.atomic():
            return NewerLimits(dict(map(_read_organization, Organization.objects.order_by("pk"))))
    except DatabaseError:
        return NewerLimits()


def write_lines(newer: NewerLimits | None = None) -> None:
    """Replace all lines with new lines, which admins have to confirm."""
    RestoredLimit.objects.all().delete()
    for organization in Organization.objects.order_by("pk"):
        known = newer.organizations.get(_identify(organization)) if newer else None
        for kind in KINDS:
            theirs = known.get(kind.name, {}) if known is not None else None
            RestoredLimit.objects.bulk_create(
                _build_lines(organization, kind, theirs), batch_size=500
            )


def _read_organization(organization: Organization) -> tuple[tuple[int, str], dict[str, _Rows]]:
    found = {kind.name: _read_rows(organization, kind) for kind in KINDS}
    for line in RestoredLimit.objects.filter(organization=organization, is_compared=True):
        rows = found.setdefault(line.kind, {})
        if line.newer is None:
            rows.pop(line.row_id, None)
        else:
            rows[line.row_id] = line.name, line.newer
    return _identify(organization), found


def _identify(organization: Organization) -> tuple[int, str]:
    return organization.pk, organization.created_at.isoformat()


def _read_rows(organization: Organization, kind: LimitKind) -> _Rows:
    return {
        row.pk: (str(row)[:NAME_LENGTH], kind.read_values(row))
        for row in kind.list_rows(organization.pk)
    }


def _build_lines(
    organization: Organization, kind: LimitKind, theirs: _Rows | None
) -> Iterator[RestoredLimit]:
    """Build the lines of one kind. No line is built for a permitting row that is missing from the
    backup."""
    ours = _read_rows(organization, kind)
    newer = theirs or {}
    lost = {pk: row for pk, row in newer.items() if pk not in ours and kind.restricts}
    for pk, (name, values) in {**ours, **lost}.items():
        yield RestoredLimit(
            organization=organization,
            kind=kind.name,
            row_id=pk,
            name=name,
            restored=None if pk in lost else values,
            newer=newer[pk][1] if pk in newer else None,
            is_compared=theirs is not None,
        )
