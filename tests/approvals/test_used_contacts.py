"""*New here* names the contact in use that a new one resembles."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from agents.approvals.warnings import used_contacts
from agents.approvals.warnings.card_reading import read_card
from agents.approvals.warnings.new_contacts import find_new_contacts
from agents.runs.models import Approval, ApprovalStatus
from tests.deceptions.planting import call
from tests.world import World
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db


def approve(world: World, **params: Any) -> None:
    used = {
        "status": ApprovalStatus.APPROVED,
        "decided_by": world.users["approver"],
        "decided_at": Now(),
    }
    Approval.objects.filter(pk=call(**params)(world).pk).update(**used)


def find(world: World, **params: Any) -> str:
    """Return the text of *New here* on a card with these params."""
    card = call(**params)(world)
    found = find_new_contacts(world.acme.pk, {card.pk: read_card(card).contacts})
    return found[card.pk].text if card.pk in found else ""


def test_a_contact_in_an_approved_card_is_named(world: World) -> None:
    assert find(world, url="https://goldenharbor.co/x") == "host “goldenharbor.co”"
    approve(world, to="bob@goldenharbor.com", account="55779911")
    expected = "host “goldenharbor.co”, which has another ending than “goldenharbor.com”"
    assert find(world, url="https://goldenharbor.co/x") == expected
    expected = "account number “55779912”, which differs by one character from “55779911”"
    assert find(world, account="55779912") == expected
    assert find(world, to="bob@goldenharbor.com") == ""
    assert find(world, url="https://else.org") == "host “else.org”"


def test_a_contact_of_a_record_or_a_member_is_named_as_soon_as_it_is_stored(world: World) -> None:
    values = {"to": "eva@orbit-pay.net", "cc": "eva@zephyr-pay.net", "bcc": "eva@vesper-pay.net"}
    assert "contains" not in find(world, **values)
    Record.objects.create(organization=world.acme, name="Orbit", domain="Orbit.com")
    assert find(world, **values).count("contains the name of “orbit.com”") == 1
    Record.objects.filter(pk=world.records[0].pk).update(email="ann@zephyr.com", updated_at=Now())
    world.users["viewer"].email = "vera@vesper.org"
    world.users["viewer"].save()
    assert find(world, **values).count("contains the name of “") == 3


def test_a_contact_of_another_organization_is_not_named(world: World) -> None:
    record = Record.objects.create(organization=world.globex, name="Orbit", domain="orbit.com")
    assert find(world, url="https://orbit.co") == "host “orbit.co”"
    Record.objects.filter(pk=record.pk).update(organization=world.acme)
    assert "“orbit.com”" in find(world, url="https://orbit.co")


def test_similar_addresses_that_are_both_in_use_are_not_new(world: World) -> None:
    approve(world, to="ann@harbor.com", cc="anna@harbor.com", url="https://harbor.co")
    assert find(world, to="anna@harbor.com", url="https://harbor.co") == ""


def test_the_page_and_the_inbox_quote_the_contact(world: World) -> None:
    approve(world, to="bob@goldenharbor.com")
    card = call(to="bob@golden-harbor-pay.com")(world)
    client = world.client("approver")
    html = client.get(f"/approvals/{card.pk}/card/").content.decode()
    assert 'contains the name of <bdi class="value">goldenharbor.com</bdi>' in html
    marks = client.get(f"/api/approvals/{card.pk}").json()["marks"]
    (new,) = (mark["detail"] for mark in marks if mark["kind"] == "new")
    assert "which contains the name of “goldenharbor.com”" in new


def test_an_index_over_the_size_limit_is_rebuilt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    approve(world, to="bob@goldenharbor.com")
    find(world, to="bob@goldenharbor.co")
    assert used_contacts.get_used_contacts(world.acme.pk).digests
    monkeypatch.setattr(used_contacts, "MAX_INDEXED", 0)
    assert not used_contacts.get_used_contacts(world.acme.pk).digests
    assert "“goldenharbor.com”" in find(world, to="bob@goldenharbor.co")


def test_twenty_thousand_records_are_read_only_once(world: World) -> None:
    records = [
        Record(organization=world.acme, name=f"C{number}", email=f"office@company{number}.example")
        for number in range(20_000)
    ]
    Record.objects.bulk_create(records, batch_size=2_000)
    Record.objects.filter(organization=world.acme).update(updated_at="2020-01-01T00:00:00Z")
    Record.objects.filter(pk=world.records[0].pk).update(domain="orbit.com", updated_at=Now())
    card = call(to="eva@orbit-pay.net")(world)
    contacts = {card.pk: read_card(card).contacts}
    times = []
    for _ in range(2):
        start = time.process_time()
        with CaptureQueriesContext(connection) as queries:
            found = find_new_contacts(world.acme.pk, contacts)
        times.append(time.process_time() - start)
        assert "“orbit.com”" in found[card.pk].text
    print(f"20,000 records: {times[0] * 1000:.0f} ms at first, then {times[1] * 1000:.0f} ms")
    assert len(queries) <= 8
    assert times[1] < times[0] / 4
