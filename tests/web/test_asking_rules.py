"""A card names and links the rules that require it, and says which calls would run without
approval."""

from __future__ import annotations

import pytest

from agents.approval_rules.models import ApprovalRule
from agents.runs.models import Approval, ToolCall
from agents.web.cards.asking_rules import CallToExplain, describe_rules, find_notice
from tests.features import feature
from tests.world import UPDATE, World, make_world
from tools.contract import Level
from tools.toolbox.permissions import Cause, CauseKind, Permission, Verdict

pytestmark = [pytest.mark.django_db, pytest.mark.once]

CHANGES = Cause(CauseKind.LEVEL, "this changes data")
LIMITED = Cause(CauseKind.LIMIT, "changes.score is 200, but must be at most 100", "changes.score")
RAISED = Cause(CauseKind.RAISED_LEVEL, "an admin raised the level from read to write")
HOSTS = Cause(CauseKind.HOSTS, "contacts evil.example.com, not on the list of allowed hosts")


@pytest.fixture
def world() -> World:
    world = make_world()
    world.users["admin"].is_staff = True
    world.users["admin"].save()
    return world


def card_with(world: World, *causes: Cause) -> Approval:
    card = world.card()
    reason = "; ".join(cause.text for cause in causes)
    verdict = Verdict(Permission.ASK, Level.WRITE, reason, causes=causes)
    ToolCall.objects.filter(pk=card.tool_call_id).update(judgment=verdict.as_json(), why=reason)
    Approval.objects.filter(pk=card.pk).update(why=reason)
    return card


def show(world: World, card: Approval, username: str) -> str:
    response = world.client(username).get(f"/approvals/{card.pk}/")
    assert response.status_code == 200
    return response.content.decode()


@feature(
    "The gate",
    "A card names each rule that makes it necessary, links to it, and says when it would not apply",
    "agents/web/cards/asking_rules.py",
)
def test_each_rule_is_explained_with_its_remedy(world: World) -> None:
    page = show(world, card_with(world, CHANGES, LIMITED), "approver")
    for text in (
        "This changes data.",
        "Changes.score is 200, but must be at most 100.",
        "The call would be within the limit if changes.score were at most 100.",
    ):
        assert text in page


def test_a_standing_grant_is_named_only_if_it_could_approve_the_call(world: World) -> None:
    says = "You can pre-approve calls like this."
    assert says in show(world, card_with(world, CHANGES), "approver")
    assert says not in show(world, card_with(world, CHANGES, LIMITED), "approver")


def test_no_standing_grant_is_offered_if_two_people_must_approve(world: World) -> None:
    rule = ApprovalRule.objects.create(organization=world.acme, name="Two people", needed=1)
    card = card_with(world, CHANGES)
    offers = ("You can pre-approve calls like this.", "Allow more like this")
    assert all(offer in show(world, card, "approver") for offer in offers)
    rule.needed = 2
    rule.save()
    assert not any(offer in show(world, card, "approver") for offer in offers)


def test_only_people_who_can_open_a_rule_get_its_link(world: World) -> None:
    card = card_with(world, CHANGES, LIMITED, HOSTS)
    limits = f'href="/admin/employees/employee/{world.employee.pk}/change/#id_limits"'
    admin, approver = show(world, card, "admin"), show(world, card, "approver")
    for link in (limits, 'href="/admin/connections/allowedhost/"'):
        assert link in admin
        assert link not in approver
    for label in ("Employee limits", "Allowed hosts"):
        assert label in approver
    assert f'href="/tools/?q={UPDATE}"' in approver


def test_every_link_of_a_rule_opens_a_page(world: World) -> None:
    card = card_with(world, CHANGES, RAISED, LIMITED, HOSTS)
    call = ToolCall.objects.get(pk=card.tool_call_id)
    client = world.client("admin")
    rules = describe_rules(CallToExplain(call, world.employee.pk, None))
    addresses = {link.address.partition("#")[0] for rule in rules for link in rule.links}
    assert len(addresses) == 4
    for address in addresses:
        assert client.get(address).status_code == 200, address


def test_a_card_shows_its_reason_if_its_call_has_no_causes(world: World) -> None:
    page = show(world, world.card(), "viewer")
    assert "<b>Why approval is needed:</b> this changes data" in page


def test_a_change_since_the_earlier_card_stays_visible(world: World) -> None:
    card = card_with(world, CHANGES)
    call = ToolCall.objects.get(pk=card.tool_call_id)
    why = "The target changed since this was approved.\nThis changes data."
    assert find_notice(why, call) == "The target changed since this was approved."
    assert find_notice("this changes data", call) == ""
    assert find_notice("Something else.", call) == "Something else."


def test_hostile_texts_are_escaped(world: World) -> None:
    hostile = Cause(
        CauseKind.LIMIT, 'text is "<script>alert(1)</script>\u202e", but must be "a"', "text"
    )
    page = show(world, card_with(world, hostile), "admin")
    assert "<script>alert(1)" not in page
    assert "\u202e" not in page


def test_a_card_says_what_would_happen_without_a_raised_level(world: World) -> None:
    card = card_with(world, RAISED)
    page = show(world, card, "admin")
    assert "At the tool&#x27;s own level" in page or "At the tool&#39;s own level" in page
    assert "Levels for all employees" in page
