"""Claims on cards: other people see who has claimed a card, and are warned before they decide it,
but can still do so."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agents.accounts.models import Membership, Role
from agents.approvals import attention, decisions
from agents.approvals.models import Claim
from agents.platform.refusals import Claimed, Conflict, Forbidden, NotFound
from agents.runs.models import Approval, ApprovalStatus
from tests.features import feature
from tests.source_tree import ROOT, assert_none
from tests.world import World, change

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def card(world: World) -> Approval:
    """A card that the approver has claimed."""
    card = world.card()
    attention.take(world.member("approver"), card.pk)
    return card


def decide_as_admin(world: World, card: Approval, action: str, known: str = "") -> Approval:
    decision = decisions.Decision(card.digest, despite_claim_of=known)
    if action == "edit":
        return decisions.edit(
            world.member("admin"), card.pk, decision, change(world.records[0], "+1 555 0199")
        )
    act = decisions.approve if action == "approve" else decisions.deny
    return act(world.member("admin"), card.pk, decision)


def end_time() -> None:
    Claim.objects.update(until=timezone.now() - timedelta(seconds=1))


@feature(
    "The inbox",
    "Everybody sees who has taken a card, and others are warned before they decide it",
    "agents/approvals/attention.py",
)
@pytest.mark.parametrize("action", ["approve", "deny", "edit"])
def test_another_person_can_decide_only_after_a_warning(
    world: World, card: Approval, action: str
) -> None:
    for known in ("", "operator"):
        with pytest.raises(Claimed, match="approver has taken this card") as refused:
            decide_as_admin(world, card, action, known)
    assert refused.value.extra["claimed_by"] == "approver"
    assert Approval.objects.get().status == ApprovalStatus.PENDING
    decide_as_admin(world, card, action, "approver")
    assert Approval.objects.get(pk=card.pk).status != ApprovalStatus.PENDING


@pytest.mark.parametrize("action", ["approve", "deny", "edit"])
def test_nobody_is_warned_without_a_claim(world: World, action: str) -> None:
    card = world.card()
    decide_as_admin(world, card, action)
    assert Approval.objects.get(pk=card.pk).status != ApprovalStatus.PENDING


def test_checking_a_card_loaded_without_its_claim_raises_an_error(card: Approval) -> None:
    with pytest.raises(AttributeError, match="claimed_by"):
        attention.refuse_claimed(Approval.objects.get(pk=card.pk))


def test_an_expired_card_cannot_be_claimed(world: World) -> None:
    card = world.card()
    assert (
        "Take for 15 min" in world.client("approver").get(f"/approvals/{card.pk}/").content.decode()
    )
    Approval.objects.filter(pk=card.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(Conflict, match="the card has expired"):
        attention.take(world.member("approver"), card.pk)
    assert (
        "Take for 15 min"
        not in world.client("approver").get(f"/approvals/{card.pk}/").content.decode()
    )


def test_the_claimant_is_not_warned(world: World, card: Approval) -> None:
    decided = decisions.approve(world.member("approver"), card.pk, decisions.Decision(card.digest))
    assert decided.status == ApprovalStatus.APPROVED


def test_a_claim_ends_after_15_minutes(world: World, card: Approval) -> None:
    left = Claim.objects.get().until - timezone.now()
    assert timedelta(minutes=14) < left <= timedelta(minutes=15)
    end_time()
    assert attention.find_claims(world.acme.pk) == {}
    assert decide_as_admin(world, card, "approve").status == ApprovalStatus.APPROVED


@pytest.mark.parametrize("folder", ["templates", "static/js"])
def test_the_duration_of_a_claim_is_defined_only_once(folder: str) -> None:
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in {".html", ".js"}]
    repeated = [
        str(path)
        for path in files
        if f"{attention.CLAIM_MINUTES} min" in path.read_text(encoding="utf-8")
    ]
    assert len(files) > 20
    assert_none(repeated, "pages take the minutes of a claim from `agents.approvals.attention`")
    assert f"for {attention.CLAIM_MINUTES} minutes" in (ROOT / "docs" / "inbox.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    "content", [None, 7, [], {}, {"looking_at": "7"}, {"looking_at": True}, {"looking_at": 0}]
)
def test_a_view_report_without_a_card_id_is_ignored(content: object) -> None:
    assert attention.Look.read("ada", content) is None
    assert attention.Look.read("ada", {"looking_at": 7}) == attention.Look("ada", "7")


def test_a_claim_carries_over_to_the_replacing_card(world: World, card: Approval) -> None:
    edited = decide_as_admin(world, card, "edit", "approver")
    with pytest.raises(Claimed):
        decide_as_admin(world, edited, "approve")


def test_a_claimed_card_cannot_be_claimed_by_another_person_until_it_is_released(
    world: World, card: Approval
) -> None:
    admin = world.member("admin")
    with pytest.raises(Claimed):
        attention.take(admin, card.pk)
    attention.release(admin, card.pk)
    assert Claim.objects.get().user.get_username() == "approver"
    attention.release(world.member("approver"), card.pk)
    attention.take(admin, card.pk)
    assert Claim.objects.get().user.get_username() == "admin"


def test_releasing_a_card_keeps_other_claims_and_other_organizations_see_no_claims(
    world: World, card: Approval
) -> None:
    other = world.card()
    attention.take(world.member("approver"), other.pk)
    attention.release(world.member("approver"), card.pk)
    assert list(attention.find_claims(world.acme.pk)) == [other.tool_call_id]
    assert attention.find_claims(world.globex.pk) == {}


def test_the_claim_of_a_person_who_can_no_longer_decide_does_not_warn_anybody(
    world: World, card: Approval
) -> None:
    Membership.objects.filter(pk=world.member("approver").pk).update(role=Role.OPERATOR)
    assert attention.find_claims(world.acme.pk) == {}
    assert decide_as_admin(world, card, "approve").status == ApprovalStatus.APPROVED


def test_claiming_again_renews_the_claim(world: World, card: Approval) -> None:
    Claim.objects.update(until=timezone.now() + timedelta(seconds=5))
    attention.take(world.member("approver"), card.pk)
    assert Claim.objects.get().until > timezone.now() + timedelta(minutes=14)


def test_only_approvers_can_claim_waiting_cards_of_their_organization(world: World) -> None:
    card = world.card()
    with pytest.raises(Forbidden):
        attention.take(world.member("operator"), card.pk)
    with pytest.raises(NotFound):
        attention.take(world.member("outsider"), card.pk)
    decide_as_admin(world, card, "deny")
    with pytest.raises(Conflict):
        attention.take(world.member("approver"), card.pk)
    assert not Claim.objects.exists()


def test_a_bulk_decision_skips_a_claimed_card(world: World, card: Approval) -> None:
    free = world.card()
    body = {
        "decisions": [
            {"approval_id": str(each.pk), "action": "deny", "digest": each.digest}
            for each in (card, free)
        ]
    }
    outcomes = (
        world.client("admin")
        .post("/api/approvals/decide", body, "application/json")
        .json()["outcomes"]
    )
    assert [(each["status"], each["code"]) for each in outcomes] == [(409, "claimed"), (200, "")]


def test_rest_names_the_claimant_and_accepts_the_decision_with_that_name(
    world: World, card: Approval
) -> None:
    client = world.client("admin")
    address = f"/api/approvals/{card.pk}"
    assert client.get(address).json()["claimed_by"] == "approver"
    body = {"digest": card.digest}
    refused = client.post(f"{address}/deny", body, "application/json")
    assert (refused.status_code, refused.json()["code"], refused.json()["claimed_by"]) == (
        409,
        "claimed",
        "approver",
    )
    assert (
        client.post(
            f"{address}/deny", body | {"despite_claim_of": "approver"}, "application/json"
        ).status_code
        == 200
    )
    assert client.get(address).json()["claimed_by"] == ""


class TestClaimsOnPages:
    def test_are_made_and_released_by_plain_forms(self, world: World) -> None:
        card, client = world.card(), world.client("approver")
        assert client.post(f"/approvals/{card.pk}/take/")["Location"] == f"/approvals/{card.pk}/"
        assert b"has taken this card" in client.get(f"/approvals/{card.pk}/").content
        client.post(f"/approvals/{card.pk}/release/")
        assert b"has taken this card" not in client.get(f"/approvals/{card.pk}/").content

    def test_block_a_form_that_was_loaded_before_the_claim_until_it_is_sent_again(
        self, world: World
    ) -> None:
        card, client = world.card(), world.client("admin")
        attention.take(world.member("approver"), card.pk)
        refused = client.post(f"/approvals/{card.pk}/approve/", {"digest": card.digest})
        assert refused.status_code == 409
        assert 'name="despite_claim_of" value="approver"' in refused.content.decode()
        client.post(
            f"/approvals/{card.pk}/approve/",
            {"digest": card.digest, "despite_claim_of": "approver"},
        )
        assert Approval.objects.get().status == ApprovalStatus.APPROVED

    def test_are_named_in_the_list_until_they_end(self, world: World, card: Approval) -> None:
        assert self._count_taken(world.client("admin")) == 1
        end_time()
        assert self._count_taken(world.client("admin")) == 0

    def _count_taken(self, client: Client) -> int:
        return client.get("/approvals/").content.decode().count('data-taken="approver"')
