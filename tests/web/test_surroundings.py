"""A card shows the facts around its call that a person must know: new contacts, other cards, stale
targets, outliers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.approvals.warnings import new_contacts
from agents.approvals.warnings.odd_targets import order_outliers_first, summarize_outliers
from agents.employees.models import Grant
from agents.runs.models import Approval, ApprovalStatus
from tests.features import feature
from tests.world import World, change
from tools.office.files.changes import write_file
from tools.office.records.models import Record, RecordList

pytestmark = pytest.mark.django_db


def read(world: World, card: Approval) -> str:
    return world.client("approver").get(f"/approvals/{card.pk}/card/").content.decode()


def update(world: World, **changes: Any) -> Approval:
    return world.card(params={"record_id": str(world.records[0].pk), "changes": changes})


class TestNewContacts:
    def approve(self, world: World, notes: str) -> None:
        used = {
            "status": ApprovalStatus.APPROVED,
            "decided_by": world.users["approver"],
            "decided_at": Now(),
        }
        Approval.objects.filter(pk=update(world, notes=notes).pk).update(**used)

    def find(self, world: World, **changes: Any) -> str:
        html = read(world, update(world, **changes))
        return html.split('class="new-here"')[1].split("</p>")[0] if "new-here" in html else ""

    @feature(
        "The gate",
        "Contacts that the organization has not used before are named",
        "agents/approvals/warnings/new_contacts.py",
    )
    def test_include_an_address_that_is_unknown_to_the_organization(self, world: World) -> None:
        found = self.find(world, email="Ann@else.org", notes="See https://other.net/x")
        assert "ann@else.org" in found
        assert "other.net" in found

    def test_exclude_an_address_of_a_record_or_a_member(self, world: World) -> None:
        Record.objects.filter(pk=world.records[1].pk).update(
            email="Ann@Else.org", domain="Other.net"
        )
        assert self.find(world, email="ann@else.org", notes="See https://www.other.net/x") == ""
        world.users["viewer"].email = "vera@acme.com"
        world.users["viewer"].save()
        assert self.find(world, email="vera@acme.com") == ""

    @pytest.mark.parametrize("address", ["ann@else.org", "b\u00fccher.example"])
    def test_exclude_an_address_that_was_approved_before(self, world: World, address: str) -> None:
        assert address in self.find(world, notes=f"to {address}")
        self.approve(world, f"also {address}")
        assert self.find(world, notes=f"again {address}") == ""

    @feature(
        "The gate", "A part of a known address is new", "agents/approvals/warnings/new_contacts.py"
    )
    @pytest.mark.parametrize(
        ("used", "new"),
        [
            ("https://acme-corp.com/x", "corp.com"),
            ("https://goldenharbor.com/x", "goldenharbor.co"),
            ("bob@goldenharbor.com", "b@goldenharbor.com"),
            ("bob@goldenharbor.com", "harbor.com"),
            ("DE8937040044053201300012", "DE89370400440532013000"),
        ],
    )
    def test_include_a_part_of_an_approved_address(self, world: World, used: str, new: str) -> None:
        self.approve(world, f"also {used}")
        assert f">{new}<" in self.find(world, notes=f"to {new}")
        assert self.find(world, notes=f"to {used}") == ""

    @pytest.mark.parametrize("used", ["ann@else.org", "https://www.else.org/x", "https://else.org"])
    def test_exclude_the_host_of_an_approved_address(self, world: World, used: str) -> None:
        self.approve(world, f"also {used}")
        assert self.find(world, notes="See https://else.org/y and www.else.org") == ""

    @pytest.mark.parametrize(
        ("used", "written"),
        [
            ("DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
            ("+44 (0)20 7946 0000", "+44 20 79460000"),
            ("our bank is DEUTDEFF", "SWIFT: DEUTDEFF"),
        ],
    )
    def test_exclude_an_approved_number_that_is_grouped_differently(
        self, world: World, used: str, written: str
    ) -> None:
        assert self.find(world, notes=f"to {written}")
        self.approve(world, f"also {used}")
        assert self.find(world, notes=f"to {written}") == ""

    def test_exclude_the_phone_number_of_a_record(self, world: World) -> None:
        Record.objects.filter(pk=world.records[1].pk).update(phone="+44 (0)20 7946 00 00")
        assert self.find(world, notes="Call +44 20 7946 0000") == ""
        assert "+442079460001" in self.find(world, notes="Call +44 20 7946 0001")

    def test_include_an_approved_address_that_is_too_old_to_be_read(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(new_contacts, "MAX_READ", 2)
        for used in ("https://harbor.co/x", "https://harbor.com/x", "https://harbor.com/y"):
            self.approve(world, used)
        assert "harbor.co<" in self.find(world, notes="See https://harbor.co/y")
        monkeypatch.setattr(new_contacts, "MAX_READ", 3)
        assert self.find(world, notes="See https://harbor.co/y") == ""

    def test_say_how_many_contacts_were_not_checked(self, world: World) -> None:
        hosts = [f"host{number}.example" for number in range(22)]
        for host in hosts:
            self.approve(world, host)
        assert self.find(world, notes=" ".join(hosts[:20])) == ""
        found = self.find(world, notes=" ".join(hosts))
        assert "2 more contacts" in found
        assert "New here" not in found
        many = self.find(world, notes=" ".join(f"host{number}.example" for number in range(300)))
        assert "At least 180 more contacts" in many

    def test_include_an_address_known_only_to_another_organization(self, world: World) -> None:
        Record.objects.create(organization=world.globex, name="X", email="ann@else.org")
        assert "ann@else.org" in self.find(world, email="ann@else.org")


class TestSharedTargets:
    @feature(
        "The gate",
        "Cards name other open cards on their target, and say if it has changed since",
        "agents/approvals/warnings/same_targets.py",
    )
    def test_link_two_open_cards_to_each_other(self, world: World) -> None:
        first, second = world.card(), update(world, status="inactive")
        for card, other in ((first, second), (second, first)):
            assert f'href="/approvals/{other.pk}/">card {other.pk}</a>' in read(world, card)
        Approval.objects.filter(pk=second.pk).update(status=ApprovalStatus.CANCELLED)
        assert "same-target" not in read(world, first)

    def test_are_not_reported_for_cards_on_other_targets(self, world: World) -> None:
        first = world.card()
        world.card(params=change(world.records[1], "+1"))
        assert "same-target" not in read(world, first)


class TestStaleTargets:
    def test_a_changed_or_deleted_record_is_shown_before_the_decision(self, world: World) -> None:
        card = world.card()
        assert "Cannot run as shown" not in read(world, card)
        Record.objects.filter(pk=world.records[0].pk).update(version=2)
        assert "“Acme Corp”</bdi> has changed since the request" in read(world, card)
        world.records[0].delete()
        assert "“Acme Corp”</bdi> no longer exists" in read(world, card)

    def test_a_list_that_was_new_and_now_exists_is_shown_before_the_decision(
        self, world: World
    ) -> None:
        Grant.objects.create(employee=world.employee, tool="data.addToList")
        params = {"list_name": "Leads", "record_ids": [str(world.records[0].pk)]}
        card = world.card(tool="data.addToList", params=params)
        RecordList.objects.create(organization=world.acme, name="Others")
        assert "Cannot run as shown" not in read(world, card)
        RecordList.objects.create(organization=world.acme, name="Leads")
        assert "The target has changed since the request" in read(world, card)

    def test_a_changed_file_is_shown_before_the_decision(self, world: World) -> None:
        Grant.objects.create(employee=world.employee, tool="files.write")
        card = world.card(tool="files.write", params={"path": "a.md", "text": "new"})
        assert "Cannot run as shown" not in read(world, card)
        write_file(world.acme.pk, ("a.md",), [b"other"], lambda _: None)
        assert "The target has changed since the request" in read(world, card)


class TestOutliers:
    def targets(self, count: int, **odd: str) -> list[dict[str, Any]]:
        found = [
            {"id": str(n), "label": f"C{n}", "before": {"status": "inactive", "name": f"C{n}"}}
            for n in range(count)
        ]
        found[count // 2]["before"] = {"status": "active", "name": "odd", **odd}
        return found

    @feature(
        "The gate",
        "The objects that differ from most others in a list come first",
        "agents/approvals/warnings/odd_targets.py",
    )
    def test_are_counted_named_and_listed_first(self) -> None:
        targets = self.targets(61)
        (summary,) = summarize_outliers(targets)
        assert [(value.value, value.count, value.names) for value in summary.values] == [
            ("inactive", 60, ()),
            ("active", 1, ("C30",)),
        ]
        assert order_outliers_first(targets)[0]["label"] == "C30"
        assert [one["label"] for one in order_outliers_first(targets)[1:3]] == ["C0", "C1"]

    @pytest.mark.parametrize("count", [4, 5])
    def test_in_a_short_list_are_reported_only_if_all_other_values_are_equal(
        self, count: int
    ) -> None:
        (summary,) = summarize_outliers(targets := self.targets(count))
        assert [(value.value, value.count) for value in summary.values] == [
            ("inactive", count - 1),
            ("active", 1),
        ]
        assert order_outliers_first(targets)[0]["label"] == f"C{count // 2}"
        targets[0]["before"] = {"status": "pending"}
        assert summarize_outliers(targets) == []

    def test_are_not_reported_in_a_very_short_list_or_in_a_list_of_mixed_values(self) -> None:
        assert summarize_outliers(self.targets(3)) == []
        mixed = [{"id": str(n), "label": "", "before": {"status": "ab"[n % 2]}} for n in range(20)]
        assert summarize_outliers(mixed) == []
        assert order_outliers_first(mixed) == mixed

    @pytest.mark.parametrize(
        ("same", "line"),
        [({"score": 10}, []), ({}, ["1 more field, in the objects at the top"])],
        ids=["three", "four"],
    )
    def test_in_more_than_three_fields_are_shown_for_three_fields_and_counted_for_the_others(
        self, world: World, same: dict[str, Any], line: list[str]
    ) -> None:
        usual = {"region": "EU", "category": "Retail", "status": "active", "score": 10}
        odd = {"region": "US", "category": "Bank", "status": "inactive", "score": 20, **same}
        ids = [
            str(
                Record.objects.create(
                    organization=world.acme, name=f"R{number}", **(odd if number == 4 else usual)
                ).pk
            )
            for number in range(8)
        ]
        changes = {"region": "UK", "category": "Press", "status": "pending", "score": 30}
        params = {"record_ids": ids, "changes": changes}
        html = read(world, world.card(tool="data.bulkUpdate", params=params))
        outliers = html.split('class="outliers"')[1].split("</ul>")[0]
        assert outliers.count('class="name"') == 3
        assert re.findall(r"<li>([^<]+)</li>", outliers) == line


def test_a_card_shows_the_share_of_all_records_that_it_affects(world: World) -> None:
    for number in range(12):
        Record.objects.create(organization=world.acme, name=f"R{number}")
    ids = [str(record.pk) for record in world.records]
    html = read(
        world,
        world.card(tool="data.bulkUpdate", params={"record_ids": ids, "changes": {"region": "US"}}),
    )
    assert "3 of 15 records, 20%" in html


def test_an_emptied_value_is_shown_as_removed(world: World) -> None:
    world.records[0].phone = "+1"
    world.records[0].save()
    assert '<span class="emptied">removed</span>' in read(world, update(world, phone=""))
