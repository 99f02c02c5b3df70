"""Marks of cards: they are loaded for many cards at once, and an approval over REST names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.marks import MARK_LABELS, MEANINGS, SIGNS, Mark, build_marks
from agents.runs.models import Approval, ApprovalStatus, ToolCall
from tests.features import feature
from tests.world import World, change, post, problem
from tools.office.records.models import Record
from tools.toolbox.provenance import Provenance, SeenIn, Sighting

pytestmark = pytest.mark.django_db

MIXED = "Call H\u0430rbor"


def update(world: World, **changes: Any) -> Approval:
    return world.card(params={"record_id": str(world.records[0].pk), "changes": changes})


def load(*cards: Approval) -> dict[int, tuple[Mark, ...]]:
    rows = Approval.objects.filter(pk__in=[card.pk for card in cards])
    return load_marks(rows.select_related("tool_call", "run__organization"))


def find_kinds(card: Approval) -> list[str]:
    return [mark.kind for mark in load(card).get(card.pk, ())]


def find_detail(card: Approval, kind: str) -> str:
    return next(mark.detail for mark in load(card)[card.pk] if mark.kind == kind)


def bring_from_outside(card: Approval, path: str, value: str) -> None:
    seen = Sighting(path, path, value, SeenIn.OUTSIDE, stands_out=True)
    ToolCall.objects.filter(pk=card.tool_call_id).update(provenance=Provenance((seen,)).as_json())


class TestMarks:
    def test_are_absent_from_a_plain_card(self, world: World) -> None:
        assert load(world.card()) == {}

    @feature(
        "The gate",
        "One function finds the marks of cards for pages, REST and messages",
        "agents/approvals/warnings/card_marks.py",
    )
    def test_name_the_values_and_their_places(self, world: World) -> None:
        Record.objects.create(organization=world.acme, name="Acrne Corp")
        card = update(world, email="ann@new.example", notes=MIXED)
        bring_from_outside(card, "changes.email", "ann@new.example")
        assert find_kinds(card) == ["alphabets", "name", "outside", "new"]
        assert find_detail(card, "alphabets") == f"in “notes”: “{MIXED}”"
        assert find_detail(card, "name") == "“Acme Corp” looks like the record “Acrne Corp”"
        assert find_detail(card, "outside") == "in “changes.email”: “ann@new.example”"
        assert find_detail(card, "new").startswith("email address “ann@new.example”")

    def test_name_other_cards_with_the_same_target_and_values_that_differ_from_other_cards(
        self, world: World
    ) -> None:
        cards = [
            world.card(params={"record_id": str(world.records[0].pk), "changes": {"email": email}})
            for email in (*(f"p{number}@acme.com" for number in range(4)), "p9@other.example")
        ]
        assert find_detail(cards[0], "conflict").startswith(f"card {cards[1].pk}, ")
        assert find_detail(cards[4], "odd") == "different domain in “email”"
        assert "odd" not in find_kinds(cards[0])

    def test_of_a_decided_card_are_those_of_its_sealed_content(self, world: World) -> None:
        card = update(world, email="ann@new.example", notes=MIXED)
        assert find_kinds(card) == ["alphabets", "new"]
        Approval.objects.filter(pk=card.pk).update(status=ApprovalStatus.CANCELLED, decided_by=None)
        assert find_kinds(card) == ["alphabets"]

    def test_of_many_cards_are_loaded_with_as_many_queries_as_marks_of_two_cards(
        self, world: World
    ) -> None:
        cards = [
            world.card(params=change(record, f"+1 555 {number}"))
            for number, record in enumerate(world.records)
        ]
        cards += [update(world, email=f"ann@new{number}.example") for number in range(8)]
        counts = []
        for some in (cards[2:4], cards):
            load(*some)
            with CaptureQueriesContext(
                connection,
            ) as queries:
                load(*some)
            counts.append(len(queries))
        assert counts[0] == counts[1] <= 14

    def test_are_the_same_on_the_page_of_the_card(self, world: World) -> None:
        card = update(world, email="ann@new.example", notes=MIXED)
        html = world.client("approver").get(f"/approvals/{card.pk}/").content.decode()
        assert 'data-seen-marks="alphabets new"' in html
        assert all(mark.label in html for mark in load(card)[card.pk])


def approve(world: World, card: Approval, **more: Any) -> Any:
    path = f"/api/approvals/{card.pk}/approve"
    return post(world.client("approver"), path, {"digest": card.digest, **more})


def approve_in_bulk(world: World, card: Approval, **more: Any) -> dict[str, Any]:
    item = {"approval_id": str(card.pk), "action": "approve", "digest": card.digest, **more}
    response = post(world.client("approver"), "/api/approvals/decide", {"decisions": [item]})
    return dict(response.json()["outcomes"][0])


class TestApprovalsOverRest:
    def test_show_the_marks_in_the_list_and_on_the_card(self, world: World) -> None:
        card = update(world, email="ann@new.example", notes=MIXED)
        client = world.client("viewer")
        listed = client.get("/api/approvals?status=pending").json()["items"][0]
        single = client.get(f"/api/approvals/{card.pk}").json()
        expected = [("alphabets", "Mixed alphabets"), ("new", "New here")]
        for each in (listed, single):
            assert [(mark["kind"], mark["label"]) for mark in each["marks"]] == expected

    @feature(
        "The gate",
        "An approval names the marks that its sender has seen",
        "agents/approvals/seen_marks.py",
    )
    def test_must_name_each_mark_as_seen(self, world: World) -> None:
        card = update(world, email="ann@new.example", notes=MIXED)
        for seen in ([], ["alphabets"], ["new", "name"]):
            refused = problem(approve(world, card, seen_marks=seen), 409)
            assert refused["code"] == "marks_not_seen"
            missing = [kind for kind in ("alphabets", "new") if kind not in seen]
            assert [mark["kind"] for mark in refused["marks"]] == missing
        assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
        assert approve(world, card, seen_marks=["alphabets", "new"]).status_code == 200

    def test_of_a_plain_card_need_not_name_any_mark(self, world: World) -> None:
        assert approve(world, world.card()).status_code == 200

    def test_of_a_destructive_or_far_reaching_card_need_only_the_confirmation(
        self, world: World
    ) -> None:
        card = world.destructive_card()
        assert find_kinds(card) == ["destructive"]
        assert problem(approve(world, card), 422)["field"] == "confirm"
        assert approve(world, card, confirm="Acme Corp").status_code == 200

    def test_are_refused_for_a_missing_right_or_a_stale_digest_rather_than_missing_marks(
        self, world: World
    ) -> None:
        card = update(world, notes=MIXED)
        path, body = f"/api/approvals/{card.pk}/approve", {"digest": card.digest}
        assert problem(post(world.client("viewer"), path, body), 403)["code"] == "forbidden"
        assert problem(post(world.client("outsider"), path, body), 404)["code"] == "not_found"
        stale = {"digest": "0" * 64}
        assert problem(post(world.client("approver"), path, stale), 412)["code"] == "stale_digest"

    def test_in_bulk_refuse_a_new_destination_that_is_not_named_as_seen(self, world: World) -> None:
        card = update(world, email="ann@new.example")
        refused = approve_in_bulk(world, card)
        assert refused["status"] == 422
        assert "New here" in refused["detail"]
        assert approve_in_bulk(world, card, seen_marks=["new"])["status"] == 200

    def test_in_bulk_refuse_an_emptied_value_that_is_not_named_as_seen(self, world: World) -> None:
        Record.objects.filter(pk=world.records[0].pk).update(phone="+1 555 0107")
        card = update(world, phone="")
        assert find_detail(card, "emptied") == "“phone”"
        assert "Empties values" in approve_in_bulk(world, card)["detail"]
        assert approve_in_bulk(world, card, seen_marks=["emptied"])["status"] == 200

    def test_in_bulk_accept_a_destination_that_is_known(self, world: World) -> None:
        Record.objects.create(organization=world.acme, name="X", email="ann@known.example")
        assert approve_in_bulk(world, update(world, email="ann@known.example"))["status"] == 200

    @pytest.mark.parametrize("seen", [["destructive"], list(MARK_LABELS)])
    def test_in_bulk_never_accept_a_destructive_card(
        self, world: World, seen: Sequence[str]
    ) -> None:
        assert approve_in_bulk(world, world.destructive_card(), seen_marks=seen)["status"] == 422


def test_marks_are_built_in_the_order_of_their_labels_and_never_left_out_silently() -> None:
    kinds = list(MARK_LABELS)
    assert kinds[: len(SIGNS | MEANINGS)] == [kind for kind in kinds if kind in SIGNS | MEANINGS]
    found = {kind: ["detail"] for kind in reversed(kinds)}
    assert [mark.kind for mark in build_marks(found)] == kinds
    with pytest.raises(KeyError):
        build_marks({"unknown": ["detail"]})
