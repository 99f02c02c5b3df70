"""`manage.py verify_audit` checks signatures and printed heads, and reports each fault."""

import logging
import threading
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import transaction
from pytest_django import Settings

from agents.accounts import audit
from agents.accounts.models import AuditEntry, AuditHead, Organization
from agents.platform import signatures
from agents.worker.sweeper import sweep_forever
from tools.contract import canonical_json, fingerprint

pytestmark = pytest.mark.django_db


@pytest.fixture
def organizations() -> tuple[Organization, Organization]:
    made = tuple(
        Organization.objects.create(name=slug.title(), slug=slug) for slug in ("acme", "globex")
    )
    for organization in made:
        append(organization)
    return made[0], made[1]


def append(organization: Organization, count: int = 3) -> None:
    for number in range(count):
        with transaction.atomic():
            entry = audit.NewEntry(
                "user:admin", "employee_changed", f"employee:{number}", {"number": number}
            )
            audit.append(organization.pk, [entry])


def fields_of(row: AuditEntry) -> dict[str, object]:
    """Return the fields that a signature covers, as an attacker with the source and the database
    can read them."""
    names = ("seq", "actor", "action", "subject", "payload")
    fields = {name: getattr(row, name) for name in names}
    at = row.at.isoformat(timespec="microseconds")
    return {"organization": row.organization_id, "previous": row.previous_hash, "at": at, **fields}


def forge(organization: Organization, key_id: str | None = None) -> None:
    """Rewrite the history from entry 2 on, as an attacker with only the database could: change the
    actors, and recompute all hashes."""
    previous = AuditEntry.objects.get(organization=organization, seq=1).hash
    for row in AuditEntry.objects.filter(organization=organization, seq__gte=2).order_by("seq"):
        row.actor, row.previous_hash = "user:somebody else", previous
        row.key_id = row.key_id if key_id is None else key_id
        row.hash = previous = fingerprint(fields_of(row))
        row.save()
    AuditHead.objects.filter(organization=organization).update(hash=previous)


def problems_of(*arguments: str) -> str:
    told = StringIO()
    with pytest.raises(CommandError):
        call_command("verify_audit", *arguments, stdout=told)
    return told.getvalue()


def head_of(organization: Organization) -> str:
    """Return the head as the command prints it."""
    (line,) = [
        line
        for line in verify("--organization", organization.slug).splitlines()
        if "head: " in line
    ]
    return line.split()[-1]


def verify(*arguments: str) -> str:
    told = StringIO()
    call_command("verify_audit", *arguments, stdout=told)
    return told.getvalue()


def test_untouched_chains_are_reported_as_intact(
    organizations: tuple[Organization, Organization],
) -> None:
    told = verify()
    assert "acme: the chain is intact" in told
    assert "globex: the chain is intact" in told


def test_a_changed_entry_is_reported_and_the_other_chains_stay_intact(
    organizations: tuple[Organization, Organization],
) -> None:
    AuditEntry.objects.filter(organization=organizations[0], seq=2).update(actor="somebody else")
    told = StringIO()
    with pytest.raises(CommandError, match="1 of 2"):
        call_command("verify_audit", stdout=told)
    assert "entry 2 was changed" in told.getvalue()
    assert "globex: the chain is intact" in told.getvalue()
    assert "globex: the chain is intact" in verify("--organization", "globex")


@pytest.mark.parametrize("seq", [1, 3])
def test_a_removed_first_or_last_entry_is_detected(
    organizations: tuple[Organization, Organization], seq: int
) -> None:
    AuditEntry.objects.filter(organization=organizations[0], seq=seq).delete()
    with pytest.raises(CommandError):
        verify("--organization", "acme")


def test_an_unknown_organization_is_an_error() -> None:
    with pytest.raises(CommandError, match="'nobody'"):
        verify("--organization", "nobody")


@pytest.mark.parametrize("key_id", [None, ""], ids=["as signed", "as unsigned"])
def test_a_chain_recomputed_without_the_key_is_invalid(
    organizations: tuple[Organization, Organization], key_id: str | None
) -> None:
    forge(organizations[0], key_id)
    told = problems_of("--organization", "acme")
    for seq in (2, 3):
        assert f"entry {seq} was changed" in told or f"entry {seq} is not signed" in told


def test_an_entry_added_without_the_key_is_invalid(
    organizations: tuple[Organization, Organization],
) -> None:
    last = AuditEntry.objects.get(organization=organizations[0], seq=3)
    added = AuditEntry(
        organization=organizations[0], seq=4, actor="a", action="b", subject="c", at=last.at
    )
    added.previous_hash = last.hash
    added.hash = fingerprint(fields_of(added))
    added.save()
    AuditHead.objects.filter(organization=organizations[0]).update(seq=4, hash=added.hash)
    assert "entry 4 is not signed" in problems_of("--organization", "acme")


def test_a_signature_for_another_purpose_is_not_accepted_in_the_audit(
    organizations: tuple[Organization, Organization],
) -> None:
    row = AuditEntry.objects.get(organization=organizations[0], seq=3)
    row.hash = signatures.sign("another purpose", canonical_json(fields_of(row)), row.key_id) or ""
    row.save()
    AuditHead.objects.filter(organization=organizations[0]).update(hash=row.hash)
    assert "entry 3 was changed" in problems_of("--organization", "acme")


class TestPrintedHeads:
    def test_a_chain_without_its_last_entries_is_detected_only_with_a_printed_head(
        self, organizations: tuple[Organization, Organization]
    ) -> None:
        acme, globex = organizations
        printed = head_of(acme), head_of(globex)
        append(acme)
        verify("--head", printed[0], "--head", printed[1])
        AuditEntry.objects.filter(organization=acme, seq__gte=3).delete()
        end = AuditEntry.objects.get(organization=acme, seq=2)
        AuditHead.objects.filter(organization=acme).update(seq=2, hash=end.hash)
        assert "acme: the chain is intact" in verify()
        told = problems_of("--head", printed[0], "--head", printed[1])
        assert "head: entry 3 of acme was printed as a head but no longer exists" in told
        assert "globex was printed" not in told
        append(acme)
        assert "head: entry 3 of acme differs from the printed head" in problems_of(
            "--head", printed[0]
        )

    def test_a_printed_head_of_a_deleted_organization_is_reported(
        self, organizations: tuple[Organization, Organization]
    ) -> None:
        printed = head_of(organizations[0])
        organizations[0].delete()
        assert "no longer exists" in problems_of("--head", printed)

    @pytest.mark.parametrize("text", ["acme", "acme:3", "acme:3:xyz", "acme:-3:" + "0" * 64, ""])
    def test_a_malformed_head_is_refused(self, text: str) -> None:
        with pytest.raises(CommandError, match="must be ORGANIZATION:NUMBER:HASH"):
            verify("--head", text)


class TestChangingTheKey:
    def test_old_entries_verify_with_the_old_key_and_new_entries_are_signed_with_the_first_key(
        self, organizations: tuple[Organization, Organization], settings: Settings
    ) -> None:
        (old,) = settings.GADGET_AUDIT_KEYS
        old_id = signatures.get_current_key_id()
        settings.GADGET_AUDIT_KEYS = [Fernet.generate_key().decode(), old]
        append(organizations[0], 2)
        told = verify("--organization", "acme")
        assert f"signed with the key {old_id}: 3 entries, from 1 to 3" in told
        assert (
            f"signed with the key {signatures.get_current_key_id()} (the current key): 2 entries, from 4"
            in told
        )

    def test_entries_signed_with_a_removed_key_do_not_verify(
        self, organizations: tuple[Organization, Organization], settings: Settings
    ) -> None:
        old_id = signatures.get_current_key_id()
        settings.GADGET_AUDIT_KEYS = [Fernet.generate_key().decode()]
        told = problems_of("--organization", "acme")
        assert (
            f"entry 1 is signed with the key {old_id}, which GADGET_AUDIT_KEYS does not hold"
            in told
        )


def test_the_sweeper_logs_the_head_of_every_audit_chain(
    organizations: tuple[Organization, Organization],
) -> None:
    stop, heads = threading.Event(), []

    class Reader(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heads.append(record.getMessage().removeprefix("audit head "))
            if len(heads) == len(organizations):
                stop.set()

    reader, log = Reader(), logging.getLogger("agents.accounts.audit")
    ended = threading.Timer(10, stop.set)
    log.addHandler(reader)
    ended.start()
    try:
        sweep_forever(stop)
    finally:
        ended.cancel()
        log.removeHandler(reader)
    assert heads == [head_of(organization) for organization in organizations]
