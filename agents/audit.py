"""The only door to the audit chain: each entry's hash covers its fields and the hash of the one before."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.models import AuditEntry, AuditHead, Organization
from tools.contract import fingerprint

PART = 1000


@dataclass(frozen=True)
class Entry:
    """What is to be recorded: who did what to which thing."""

    actor: str
    action: str
    subject: str
    payload: dict[str, Any] = field(default_factory=dict)


def append(organization_id: int, entries: Sequence[Entry]) -> None:
    """Append entries in order.

    Raises:
        RuntimeError: outside a transaction, where the chain could part from the fact.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("audit entries are written in the transaction of their fact")
    heads = AuditHead.objects.select_for_update()
    head = heads.filter(organization_id=organization_id).annotate(now=Now()).first()
    if head is None:
        AuditHead.objects.bulk_create([AuditHead(organization_id=organization_id)], ignore_conflicts=True)
        head = heads.annotate(now=Now()).get(organization_id=organization_id)
    rows = []
    for entry in entries:
        row = AuditEntry(
            organization_id=organization_id,
            seq=head.seq + 1,
            actor=entry.actor[:200],
            action=entry.action,
            subject=entry.subject[:200],
            payload=entry.payload,
            previous_hash=head.hash,
            at=head.now,
        )
        row.hash = _hash_of(row)
        head.seq, head.hash = row.seq, row.hash
        rows.append(row)
    AuditEntry.objects.bulk_create(rows)
    AuditHead.objects.filter(pk=head.pk).update(seq=head.seq, hash=head.hash)


@dataclass(frozen=True)
class Checked:
    """What became of looking at the entries from `first` to `last`: one sentence for each fault."""

    faults: list[str]
    first: int
    last: int


def verify(organization_id: int) -> list[str]:
    """Read the whole chain; returns one sentence for each fault, an empty list if it holds."""
    return list(_faults(organization_id, 1, _head(organization_id)))


def verify_part(organization_id: int, most: int, before: int | None = None) -> Checked:
    """Read the newest `most` entries, or those before the one given."""
    end = _head(organization_id) if before is None else _End(before - 1)
    first = max(1, end.seq - most + 1)
    return Checked(list(_faults(organization_id, first, end)), first, end.seq)


def verify_all() -> dict[str, list[str]]:
    """Faults of every organisation's chain, by slug."""
    return {slug: verify(pk) for pk, slug in Organization.objects.values_list("pk", "slug")}


@dataclass(frozen=True)
class _End:
    """Where a part ends; `hash` is None in the midst of the chain, where the next part has checked it."""

    seq: int
    hash: str | None = None


def _head(organization_id: int) -> _End:
    head = AuditHead.objects.filter(organization_id=organization_id).first()
    if head is not None:
        return _End(head.seq, head.hash)
    last = AuditEntry.objects.filter(organization_id=organization_id).order_by("-seq").first()
    return _End(last.seq if last else 0, "")


def _faults(organization_id: int, first: int, end: _End) -> Iterator[str]:
    entries = AuditEntry.objects.filter(organization_id=organization_id)
    expected, previous = first, _hash_before(entries, first)
    known = entries.filter(seq__gte=first, seq__lte=end.seq)  # what was appended since is not judged
    for row in _in_order(known):
        if row.seq != expected:
            yield f"entry {expected} is missing"
        if previous is not None and row.previous_hash != previous:
            yield f"entry {row.seq} does not follow the one before it"
        if row.hash != _hash_of(row):
            yield f"entry {row.seq} was changed"
        expected, previous = row.seq + 1, row.hash
    if end.hash is None and expected <= end.seq:
        yield f"entry {expected} is missing"
    elif end.hash is not None and (end.seq, end.hash) != (expected - 1, previous or ""):
        yield f"the chain ends at entry {expected - 1}, but its head says {end.seq if end.hash else 0}"


def _hash_before(entries: QuerySet[AuditEntry], first: int) -> str | None:
    """The hash that entry `first` names; None if the entry before it is gone, which its own part finds."""
    return "" if first == 1 else entries.filter(seq=first - 1).values_list("hash", flat=True).first()


def _in_order(entries: QuerySet[AuditEntry]) -> Iterator[AuditEntry]:
    """All of them, a part at a time, so that no transaction stays open while a long chain is read."""
    read = -1
    while part := list(entries.filter(seq__gt=read).order_by("seq")[:PART]):
        yield from part
        read = part[-1].seq


def _hash_of(row: AuditEntry) -> str:
    at: datetime = row.at
    return fingerprint(
        {
            "organization": row.organization_id,
            "seq": row.seq,
            "actor": row.actor,
            "action": row.action,
            "subject": row.subject,
            "payload": row.payload,
            "previous": row.previous_hash,
            "at": at.astimezone(UTC).isoformat(timespec="microseconds"),
        }
    )
