"""`manage.py verify_audit` proves that a chain holds, and names what was done to one that does not."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from agents import audit
from agents.models import AuditEntry, Organization

pytestmark = pytest.mark.django_db


@pytest.fixture
def organizations() -> tuple[Organization, Organization]:
    made = tuple(Organization.objects.create(name=slug.title(), slug=slug) for slug in ("acme", "globex"))
    for organization in made:
        for number in range(3):
            with transaction.atomic():
                entry = audit.Entry("user:admin", "employee_changed", f"employee:{number}", {"number": number})
                audit.append(organization.pk, [entry])
    return made[0], made[1]


def verify(*arguments: str) -> str:
    told = StringIO()
    call_command("verify_audit", *arguments, stdout=told)
    return told.getvalue()


def test_untouched_chains_hold(organizations: tuple[Organization, Organization]) -> None:
    told = verify()
    assert "acme: the chain holds" in told
    assert "globex: the chain holds" in told


def test_a_changed_entry_is_named_and_the_others_still_hold(organizations: tuple[Organization, Organization]) -> None:
    AuditEntry.objects.filter(organization=organizations[0], seq=2).update(actor="somebody else")
    told = StringIO()
    with pytest.raises(CommandError, match="1 of 2"):
        call_command("verify_audit", stdout=told)
    assert "entry 2 was changed" in told.getvalue()
    assert "globex: the chain holds" in told.getvalue()
    assert "globex: the chain holds" in verify("--organization", "globex")


@pytest.mark.parametrize("seq", [1, 3])
def test_a_removed_entry_is_noticed_at_either_end(organizations: tuple[Organization, Organization], seq: int) -> None:
    AuditEntry.objects.filter(organization=organizations[0], seq=seq).delete()
    with pytest.raises(CommandError):
        verify("--organization", "acme")


def test_an_unknown_organisation_is_an_error() -> None:
    with pytest.raises(CommandError, match="'nobody'"):
        verify("--organization", "nobody")
