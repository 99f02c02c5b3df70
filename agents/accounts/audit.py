"""The only door to the audit chain: each entry is signed, and its signature covers the one before it.

Write access to the database without an audit key allows nobody to change or add an entry unnoticed. They can still
remove the newest entries: only a head that was printed elsewhere shows that. See docs/audit.md.
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

from agents.accounts.models import AuditEntry, AuditHead, Organization
from agents.platform import signatures
from tools.contract import canonical_json

PART = 1000
_HEAD = re.compile(r"([-\w]+):(\d{1,18}):([0-9a-f]{64})")

logger = logging.getLogger(__name__)


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
    key_id = signatures.current_key_id()
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


@dataclass(frozen=True)
class Checked:
    """What became of looking at the entries from `first` to `last`: one sentence for each fault."""

    faults: list[str]
    first: int
    last: int


@dataclass
class Signed:
    """The entries that one key signed: their number, and the first and last of them."""

    first: int
    last: int = 0
    count: int = 0


@dataclass
class Chain:
    """A whole chain, as read.

    Attributes:
        faults: one sentence for each.
        keys: the entries of each key, by its id.
    """

    slug: str
    seq: int
    hash: str
    faults: list[str] = field(default_factory=list)
    keys: dict[str, Signed] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """The end of the chain, in the form that `PrintedHead.parse` reads."""
        return f"{self.slug}:{self.seq}:{self.hash}"


@dataclass(frozen=True)
class PrintedHead:
    """The end of an organization's chain, as printed at some time: `acme:812:9f3c…`."""

    slug: str
    seq: int
    hash: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a head as `verify_audit` and the sweeper print it.

        Raises:
            ValueError: it has another form.
        """
        found = _HEAD.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is not a head: it must be ORGANIZATION:NUMBER:HASH")
        return cls(found[1], int(found[2]), found[3])

    @property
    def fault(self) -> str:
        """The reason why the current chain does not contain this head; empty if it does."""
        entries = AuditEntry.objects.filter(organization__slug=self.slug)
        found = entries.filter(seq=self.seq).values_list("hash", flat=True).first()
        if found is None:
            return f"entry {self.seq} of {self.slug} was printed as a head but no longer exists"
        return "" if found == self.hash else f"entry {self.seq} of {self.slug} differs from the printed head"


def read_chain(organization: Organization) -> Chain:
    """Read and verify the whole chain of an organization."""
    end = _head(organization.pk)
    chain = Chain(organization.slug, end.seq, end.hash or "")
    chain.faults += _faults(organization.pk, 1, end, chain)
    return chain


def verify(organization_id: int) -> list[str]:
    """Read the whole chain; returns one sentence for each fault, an empty list if it holds."""
    return list(_faults(organization_id, 1, _head(organization_id)))


def log_heads() -> None:
    """Log the head of every chain: the log is outside the database that somebody may change."""
    heads = AuditHead.objects.exclude(seq=0).order_by("organization_id")
    for slug, seq, hash_ in heads.values_list("organization__slug", "seq", "hash"):
        logger.info("audit head %s:%s:%s", slug, seq, hash_)


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


def _faults(organization_id: int, first: int, end: _End, chain: Chain | None = None) -> Iterator[str]:
    """Yield a sentence for each fault; with `chain`, also note there which keys signed which entries."""
    entries = AuditEntry.objects.filter(organization_id=organization_id)
    expected, previous = first, _hash_before(entries, first)
    known = entries.filter(seq__gte=first, seq__lte=end.seq)  # what was appended since is not judged
    for row in _in_order(known):
        if row.seq != expected:
            yield f"entry {expected} is missing"
        if previous is not None and row.previous_hash != previous:
            yield f"entry {row.seq} does not follow the one before it"
        if fault := _signature_fault(row):
            yield fault
        elif chain is not None:
            _note(chain, row)
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


def _signature_fault(row: AuditEntry) -> str:
    if not row.key_id:
        return f"entry {row.seq} is not signed"
    signature = sign_entry(row)
    if signature is None:
        return f"entry {row.seq} is signed with the key {row.key_id}, which GADGET_AUDIT_KEYS does not hold"
    return "" if signature == row.hash else f"entry {row.seq} was changed"


def _note(chain: Chain, row: AuditEntry) -> None:
    signed = chain.keys.setdefault(row.key_id, Signed(row.seq))
    signed.last, signed.count = row.seq, signed.count + 1


def sign_entry(row: AuditEntry) -> str | None:
    """Return the signature over all fields of the entry; None if its key is not among ours."""
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
