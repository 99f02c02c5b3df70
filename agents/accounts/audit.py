"""The only module that writes to the audit chain: each entry is signed, and its signature covers
the signature of the previous entry.

Somebody with write access to the database, but without an audit key, cannot change or add an entry
unnoticed. They can still remove the newest entries; only a head that was printed and kept outside
the database reveals this. See docs/audit.md.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry, AuditHead, Membership, Organization
from agents.platform import signatures
from tools.contract import canonical_json

BATCH = 1000
_HEAD = re.compile(r"([-\w]+):(\d{1,18}):([0-9a-f]{64})")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NewEntry:
    """An entry to append: who did what to which subject."""

    actor: str
    action: str
    subject: str
    payload: dict[str, Any] = field(default_factory=dict)


def append(organization_id: int, entries: Sequence[NewEntry]) -> None:
    """Append entries in order.

    Raises:
        RuntimeError: the caller is outside a transaction, so the chain could differ from the facts.
    """
    if not connection.in_atomic_block:
        raise RuntimeError(
            "audit entries must be written in the transaction of the change that they record"
        )
    heads = AuditHead.objects.select_for_update()
    head = heads.filter(organization_id=organization_id).annotate(now=Now()).first()
    if head is None:
        AuditHead.objects.bulk_create(
            [AuditHead(organization_id=organization_id)], ignore_conflicts=True
        )
        head = heads.annotate(now=Now()).get(organization_id=organization_id)
    rows = []
    key_id = signatures.get_current_key_id()
    for entry in entries:
        row = AuditEntry(
            organization_id=organization_id,
            seq=head.seq + 1,
            actor=entry.actor[:200],
            action=entry.action,
            subject=entry.subject[:200],
            payload=entry.payload,
            previous_hash=head.hash,
            key_id=key_id,
            at=head.now,
        )
        row.hash = sign_entry(row) or ""
        head.seq, head.hash = row.seq, row.hash
        rows.append(row)
    AuditEntry.objects.bulk_create(rows)
    AuditHead.objects.filter(pk=head.pk).update(seq=head.seq, hash=head.hash)


def record(member: Membership, action: str, subject: str, /, **payload: Any) -> None:
    """Append an entry about a member's action; call this in the transaction of that action."""
    append(member.organization_id, [NewEntry(member.actor, action, subject, payload)])


@dataclass(frozen=True)
class PartCheck:
    """The result of verifying the entries from `first` to `last`: a sentence for each fault."""

    faults: list[str]
    first: int
    last: int


@dataclass
class KeyUse:
    """The number of entries that one audit key signed, and the first and last of these entries."""

    first: int
    last: int = 0
    count: int = 0


@dataclass
class AuditChain:
    """A whole chain that was read and verified.

    Attributes:
        faults: a sentence for each fault.
        keys: the use of each key, by its id.
    """

    slug: str
    seq: int
    hash: str
    faults: list[str] = field(default_factory=list)
    keys: dict[str, KeyUse] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """The newest entry of the chain, in the form that `PrintedHead.parse` reads."""
        return f"{self.slug}:{self.seq}:{self.hash}"


@dataclass(frozen=True)
class PrintedHead:
    """The newest entry of an organization's chain at the time when it was printed:
    `acme:812:9f3c…`."""

    slug: str
    seq: int
    hash: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a head in the form that `verify_audit` and the sweeper print.

        Raises:
            ValueError: the text does not have this form.
        """
        found = _HEAD.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is not a head: it must be ORGANIZATION:NUMBER:HASH")
        return cls(found[1], int(found[2]), found[3])

    @property
    def fault(self) -> str | None:
        """The reason why the current chain does not contain this head; None if it does."""
        entries = AuditEntry.objects.filter(organization__slug=self.slug)
        found = entries.filter(seq=self.seq).values_list("hash", flat=True).first()
        if found is None:
            return f"entry {self.seq} of {self.slug} was printed as a head but no longer exists"
        return (
            None
            if found == self.hash
            else f"entry {self.seq} of {self.slug} differs from the printed head"
        )


def read_chain(organization: Organization) -> AuditChain:
    """Read and verify the whole chain of an organization."""
    end = _load_end(organization.pk)
    chain = AuditChain(organization.slug, end.seq, end.hash or "")
    chain.faults += _find_faults(organization.pk, 1, end, chain)
    return chain


def log_heads() -> None:
    """Log the head of every chain, because a log outside the database can reveal that entries were
    removed."""
    heads = AuditHead.objects.exclude(seq=0).order_by("organization_id")
    for slug, seq, hash_ in heads.values_list("organization__slug", "seq", "hash"):
        logger.info("audit head %s:%s:%s", slug, seq, hash_)


def verify_part(organization_id: int, most: int, before: int | None = None) -> PartCheck:
    """Verify the last `most` entries of the chain, or the last `most` before entry `before`."""
    end = _load_end(organization_id) if before is None else _ChainEnd(before - 1)
    first = max(1, end.seq - most + 1)
    return PartCheck(list(_find_faults(organization_id, first, end)), first, end.seq)


@dataclass(frozen=True)
class _ChainEnd:
    """The last entry of a part of the chain. `hash` is None if more entries follow, because the
    hash is then checked with the next part."""

    seq: int
    hash: str | None = None


def _load_end(organization_id: int) -> _ChainEnd:
    head = AuditHead.objects.filter(organization_id=organization_id).first()
    if head is not None:
        return _ChainEnd(head.seq, head.hash)
    last = AuditEntry.objects.filter(organization_id=organization_id).order_by("-seq").first()
    return _ChainEnd(last.seq if last else 0, "")


def _find_faults(
    organization_id: int, first: int, end: _ChainEnd, chain: AuditChain | None = None
) -> Iterator[str]:
    """Yield a sentence for each fault; if `chain` is given, count each key's entries in it."""
    entries = AuditEntry.objects.filter(organization_id=organization_id)
    expected, previous = first, _load_hash_before(entries, first)
    # Leave out entries appended after the head was read: they would look like faults.
    known = entries.filter(seq__gte=first, seq__lte=end.seq)
    for row in _read_in_order(known):
        if row.seq != expected:
            yield f"entry {expected} is missing"
        if previous is not None and row.previous_hash != previous:
            yield f"entry {row.seq} does not follow the one before it"
        if (fault := _find_signature_fault(row)) is not None:
            yield fault
        elif chain is not None:
            _count_key(chain, row)
        expected, previous = row.seq + 1, row.hash
    if end.hash is None and expected <= end.seq:
        yield f"entry {expected} is missing"
    elif end.hash is not None and (end.seq, end.hash) != (expected - 1, previous or ""):
        yield f"the chain ends at entry {expected - 1}, but its head says {end.seq if end.hash else 0}"


def _load_hash_before(entries: QuerySet[AuditEntry], first: int) -> str | None:
    """Return the hash of the entry before entry `first`; empty if `first` is 1. Return None if that
    earlier entry is missing; this is reported when the part that contains it is verified."""
    return (
        "" if first == 1 else entries.filter(seq=first - 1).values_list("hash", flat=True).first()
    )


def _read_in_order(entries: QuerySet[AuditEntry]) -> Iterator[AuditEntry]:
    """Yield all entries, read in batches, so that no transaction stays open while a long chain is
    read."""
    read = -1
    while part := list(entries.filter(seq__gt=read).order_by("seq")[:BATCH]):
        yield from part
        read = part[-1].seq


def _find_signature_fault(row: AuditEntry) -> str | None:
    if not row.key_id:
        return f"entry {row.seq} is not signed"
    signature = sign_entry(row)
    if signature is None:
        return f"entry {row.seq} is signed with the key {row.key_id}, which GADGET_AUDIT_KEYS does not hold"
    return None if signature == row.hash else f"entry {row.seq} was changed"


def _count_key(chain: AuditChain, row: AuditEntry) -> None:
    use = chain.keys.setdefault(row.key_id, KeyUse(row.seq))
    use.last, use.count = row.seq, use.count + 1


def sign_entry(row: AuditEntry) -> str | None:
    """Return the signature over all fields of the entry; None if its key is not configured."""
    at: datetime = row.at
    fields = {
        "organization": row.organization_id,
        "seq": row.seq,
        "actor": row.actor,
        "action": row.action,
        "subject": row.subject,
        "payload": row.payload,
        "previous": row.previous_hash,
        "at": at.astimezone(UTC).isoformat(timespec="microseconds"),
    }
    return signatures.sign("audit", canonical_json(fields), row.key_id)
