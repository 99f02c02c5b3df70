"""A decision stores the marks on its card, so they remain after a contact is no longer new."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from agents.approvals import bulk, decisions
from agents.approvals.decisions import Decision
from agents.approvals.warnings.card_marks import load_call_marks, load_marks
from agents.approvals.warnings.marks import Mark
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus
from tests.features import feature
from tests.workshop import Workshop, asking, call
from tests.world import World, post

pytestmark = pytest.mark.django_db

MIXED = "Call H\u0430rbor"
Decide = Callable[[World, Approval], None]


def ask(world: World, email: str = "ann@new.example", **changes: str) -> Approval:
    changes = {"email": email, **changes}
    return world.card(params={"record_id": str(world.records[0].pk), "changes": changes})


def load(card: Approval) -> tuple[Mark, ...]:
    rows = Approval.objects.filter(pk=card.pk).select_related("tool_call", "run__organization")
    return load_marks(rows).get(card.pk, ())


def find_kinds(card: Approval) -> list[str]:
    return [mark.kind for mark in load(card)]


def decide_together(world: World, card: Approval, action: str) -> None:
    """Decide the card together with an honest card of the same run."""
    second = world.card(
        card.run, params={"record_id": str(world.records[1].pk), "changes": {"phone": "2"}}
    )
    kinds = frozenset({"alphabets", "new"})
    items = [(each.pk, action, Decision(each.digest, seen_marks=kinds)) for each in (card, second)]
    outcomes = bulk.decide_many(world.member("approver"), items)
    assert [each.status for each in outcomes] == [200, 200]
    assert Approval.objects.get(pk=second.pk).shown_marks == []


def deny(world: World, card: Approval) -> None:
    decisions.deny(world.member("approver"), card.pk, Decision(card.digest))


def deny_over_rest(world: World, card: Approval) -> None:
    path = f"/api/approvals/{card.pk}/deny"
    assert post(world.client("approver"), path, {"digest": card.digest}).status_code == 200


def approve(world: World, card: Approval) -> None:
    decisions.approve(world.member("approver"), card.pk, Decision(card.digest))


def approve_over_rest(world: World, card: Approval) -> None:
    sent = {"digest": card.digest, "seen_marks": ["alphabets", "new"]}
    path = f"/api/approvals/{card.pk}/approve"
    assert post(world.client("approver"), path, sent).status_code == 200


def approve_on_the_page(world: World, card: Approval) -> None:
    form = {"digest": card.digest}
    assert world.client("approver").post(f"/approvals/{card.pk}/approve/", form).status_code == 302


def expire(world: World, card: Approval) -> None:
    Approval.objects.filter(pk=card.pk).update(expires_at=Now())
    assert decisions.expire(card.pk)


def approve_together(world: World, card: Approval) -> None:
    decide_together(world, card, "approve")


def deny_together(world: World, card: Approval) -> None:
    decide_together(world, card, "deny")


@feature(
    "The gate",
    "A decided card keeps the marks that stood on it when it was decided",
    "agents/approvals/decisions.py",
)
@pytest.mark.parametrize(
    "decide",
    [
        approve,
        approve_on_the_page,
        approve_over_rest,
        approve_together,
        deny,
        deny_over_rest,
        deny_together,
        expire,
    ],
)
def test_each_decision_stores_the_marks_of_the_card(world: World, decide: Decide) -> None:
    card = ask(world, notes=MIXED)
    stood = load(card)
    assert [mark.kind for mark in stood] == ["alphabets", "new"]
    decide(world, card)
    world.records[1].email = "ann@new.example"
    world.records[1].save()
    assert load(card) == stood
    assert "new" not in find_kinds(ask(world))


def test_an_honest_card_has_no_marks_after_its_decision(world: World) -> None:
    card = world.card()
    approve(world, card)
    assert Approval.objects.get(pk=card.pk).shown_marks == []
    assert load(card) == ()


def test_a_card_that_nobody_decided_has_the_marks_of_its_sealed_content(world: World) -> None:
    card = ask(world, notes=MIXED)
    Approval.objects.filter(pk=card.pk).update(status=ApprovalStatus.CANCELLED)
    assert find_kinds(card) == ["alphabets"]


def test_an_approval_that_is_undone_leaves_its_marks(world: World) -> None:
    card = ask(world)
    decisions.approve(world.member("approver"), card.pk, Decision(card.digest, grace_s=30))
    again = decisions.undo(world.member("approver"), card.pk)
    assert (find_kinds(card), find_kinds(again)) == (["new"], ["new"])
    assert again.shown_marks is None


@pytest.mark.django_db(transaction=True)
def test_an_edited_card_keeps_its_marks_and_the_new_one_has_its_own(world: World) -> None:
    card = ask(world, notes=MIXED)
    params = {"record_id": str(world.records[0].pk), "changes": {"notes": "Call Harbor"}}
    edited = decisions.edit(world.member("approver"), card.pk, Decision(card.digest), params)
    assert (find_kinds(card), find_kinds(edited)) == (["alphabets", "new"], [])
    # The call still shows the replaced params.
    call_ = Approval.objects.get(pk=edited.pk).tool_call
    assert [mark.kind for mark in load_call_marks([call_])[call_.pk]] == ["alphabets"]


@pytest.mark.django_db(transaction=True)
def test_the_card_of_an_unknown_outcome_has_the_marks_of_the_decided_card(
    workshop: Workshop,
) -> None:
    workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")))
    run = workshop.work()
    (card,) = workshop.cards(run)
    workshop.approve(card)
    stood = [{"kind": "new", "label": "New here", "detail": "host new.example"}]
    Approval.objects.filter(pk=card.pk).update(shown_marks=stood)
    workshop.drive(run)
    unknown = Approval.objects.get(kind=ApprovalKind.UNKNOWN)
    assert find_kinds(unknown) == ["new"]


class TestCallsWithoutCards:
    def test_have_the_marks_of_their_params(self, world: World) -> None:
        planted = world.call(world.run(), params={"query": MIXED})
        honest = world.call(planted.run, params={"query": "Call Harbor, ann@new.example"})
        found = load_call_marks([planted, honest])
        assert [(mark.kind, mark.detail) for mark in found[planted.pk]] == [
            ("alphabets", f"in “query”: “{MIXED}”")
        ]
        assert found[honest.pk] == ()

    def test_need_no_more_queries_if_there_are_many(self, world: World) -> None:
        run = world.run()
        calls = [world.call(run, params={"query": f"Harbor {number}"}) for number in range(5)]
        calls += [ask(world, f"ann@new{number}.example").tool_call for number in range(5)]
        counts = []
        for some in (calls[:1] + calls[-1:], calls):
            load_call_marks(some)
            with CaptureQueriesContext(connection) as queries:
                load_call_marks(some)
            counts.append(len(queries))
        assert counts[0] == counts[1] <= 11
