"""Confirm restored limits line by line; if the newer values are known, the admin chooses between
outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import transaction

from agents.accounts import audit
from agents.accounts.models import Membership, Role
from agents.platform.refusals import Conflict, Invalid
from agents.restores.limits import BY_NAME, LimitKind, Values, bump_versions
from agents.restores.models import RestoredLimit


class LimitOutcome(StrEnum):
    """The values that an admin can choose for a line: the restored values, the newer values, or,
    for each field, the stricter of the two."""

    RESTORED = "restored"
    NEWER = "newer"
    STRICTER = "stricter"


@dataclass(frozen=True)
class ShownField:
    """A field of a line as the page shows it: the restored value, and the value before the restore
    if that differs."""

    label: str
    restored: str
    newer: str
    differs: bool


@dataclass(frozen=True)
class ShownLine:
    """A line of the page, about one row that the restore brought back or left out.

    Attributes:
        outcomes: the possible outcomes with their labels; the strictest comes first.
    """

    line: RestoredLimit
    label: str
    fields: tuple[ShownField, ...]
    outcomes: tuple[tuple[LimitOutcome, str], ...]

    @property
    def differs(self) -> bool:
        return len(self.outcomes) > 1


def list_lines(organization_id: int) -> list[ShownLine]:
    """List the lines that are not confirmed yet, lines with differences first."""
    rows = RestoredLimit.objects.filter(organization_id=organization_id)
    return sorted(map(_show, rows), key=lambda shown: (not shown.differs, shown.line.pk))


def refuse_unconfirmed(organization_id: int) -> Conflict | None:
    """Return the reason why the stop cannot be lifted; None if every line is confirmed."""
    count = RestoredLimit.objects.filter(organization_id=organization_id).count()
    if not count:
        return None
    lines = "1 line is" if count == 1 else f"{count} lines are"
    return Conflict(
        f"Confirm the restored limits first, at /stop/restored/: {lines} not confirmed."
    )


def confirm(member: Membership, outcomes: Mapping[int, str]) -> int:
    """Confirm lines with the chosen outcomes, all of them or none; return their number.

    Args:
        outcomes: the chosen outcome by line id. Lines that someone else has confirmed in the
            meantime are left out.

    Raises:
        Forbidden: the member is not an admin.
        Invalid: a line has no such outcome.
        Conflict: an outcome is impossible, or would take away the member's own rights.
    """
    member.require(Role.ADMIN, "confirm restored limits")
    with transaction.atomic():
        rows = RestoredLimit.objects.select_for_update().filter(
            organization_id=member.organization_id
        )
        lines = list(rows.filter(pk__in=outcomes).order_by("pk"))
        for line in lines:
            _apply(member, line, outcomes[line.pk])
        rows.filter(pk__in=[line.pk for line in lines]).delete()
        if lines:
            bump_versions(member.organization_id)
            entries = [_build_entry(member, line, outcomes[line.pk]) for line in lines]
            audit.append(member.organization_id, entries)
    return len(lines)


def find_stricter(line: RestoredLimit) -> LimitOutcome:
    """Return the strictest outcome, which the page preselects."""
    return _list_outcomes(line, BY_NAME[line.kind])[0][0]


def _apply(member: Membership, line: RestoredLimit, outcome: str) -> None:
    kind = BY_NAME[line.kind]
    if outcome not in [name for name, _ in _list_outcomes(line, kind)]:
        raise Invalid("outcome", f"Choose one of the outcomes of {line.name}.")
    if outcome == LimitOutcome.RESTORED:
        return
    row = kind.list_rows(line.organization_id).filter(pk=line.row_id).first()
    if line.newer is None:
        _refuse_own_loss(member, row, {})
        if row is not None:
            kind.end(row)
    elif line.restored is None:
        kind.write_values(kind.model(organization_id=line.organization_id), line.newer)
    elif row is not None:
        is_newer = outcome == LimitOutcome.NEWER
        values = line.newer if is_newer else kind.find_stricter(line.restored, line.newer)
        current = kind.read_values(row)
        # If the row was changed since the restore, confirming must not relax that change.
        if current != line.restored:
            values = {**values, **kind.find_stricter(values, current)}
        _refuse_own_loss(member, row, values)
        kind.write_values(row, values)


def _refuse_own_loss(member: Membership, row: Any, values: Values) -> None:
    """Raise Conflict if the admin would lose their own rights: there may be no other admin."""
    keeps_rights = values.get("role") == Role.ADMIN and values.get("is_active", True)
    if isinstance(row, Membership) and row.pk == member.pk and not keeps_rights:
        raise Conflict(
            "This would take away your own rights. Choose “as restored” for your own line, or ask an admin."
        )


def _build_entry(member: Membership, line: RestoredLimit, outcome: str) -> audit.NewEntry:
    payload = {"row": line.name, "outcome": str(outcome)}
    subject = f"{line.kind}:{line.row_id}"
    return audit.NewEntry(member.actor, "restored_limit_confirmed", subject, payload)


def _show(line: RestoredLimit) -> ShownLine:
    kind = BY_NAME[line.kind]
    restored, newer = line.restored or {}, line.newer or {}
    fields = []
    for field in kind.fields:
        before, after = restored.get(field.name), newer.get(field.name)
        differs = line.restored is not None and line.newer is not None and before != after
        words = "changed since" if field.is_secret else field.describe(after)
        shown = field.describe(before if line.restored is not None else after)
        fields.append(ShownField(field.label, shown, words if differs else "", differs))
    return ShownLine(line, kind.label, tuple(fields), _list_outcomes(line, kind))


def _list_outcomes(line: RestoredLimit, kind: LimitKind) -> tuple[tuple[LimitOutcome, str], ...]:
    """List the outcomes of a line, the strictest first."""
    keep = LimitOutcome.RESTORED, "As restored"
    if not line.is_compared or line.restored == line.newer:
        return (keep,)
    if line.newer is None:
        end = LimitOutcome.NEWER, "Remove it: it was not there before the restore"
        return (keep, end) if kind.restricts else (end, keep)
    if line.restored is None:
        return (LimitOutcome.NEWER, "Create it again: it was there before the restore"), (
            LimitOutcome.RESTORED,
            "Leave it out",
        )
    newer, stricter = (
        (LimitOutcome.NEWER, "As before the restore"),
        kind.find_stricter(line.restored, line.newer),
    )
    if stricter == line.newer:
        return newer, keep
    if stricter == line.restored:
        return keep, newer
    return (LimitOutcome.STRICTER, "The stricter of both, for each value"), keep, newer
