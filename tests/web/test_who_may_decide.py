"""The page that shows who may decide a tool's cards, for each rule and person."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from agents.approval_rules.models import ApprovalRule, ApproverGroup, Deputy
from tests.features import feature
from tests.world import UPDATE, World

pytestmark = pytest.mark.django_db


def read(client: Client, **query: Any) -> str:
    """Return the page's text without tags, with single spaces."""
    response = client.get("/approvals/who/", {"tool": UPDATE, **query})
    assert response.status_code == 200, response.content
    main = response.content.decode().partition("<main")[2].partition("</form>")[2]
    return re.sub(r"\s+([.,:])", r"\1", " ".join(unescape(re.sub("<[^>]*>", " ", main)).split()))


def make_rule(world: World, **more: Any) -> ApprovalRule:
    return ApprovalRule.objects.create(
        organization=world.acme, **{"name": "Refunds", "tool": UPDATE, **more}
    )


def make_group(world: World, *usernames: str) -> ApproverGroup:
    group = ApproverGroup.objects.create(organization=world.acme, name="Finance")
    group.members.set(world.member(name) for name in usernames)
    return group


def test_without_a_rule_every_approver_can_decide_alone(world: World) -> None:
    text = read(world.client("viewer"))
    assert "No approval rule matches. One approver decides." in text
    assert "approver may approve it alone." in text
    assert "operator can’t approve: needs the approver role." in text


@feature(
    "The gate",
    "A page shows who may decide the cards of a tool",
    "agents/approval_rules/who_may_decide.py",
)
def test_rules_say_what_they_need_and_who_counts(world: World) -> None:
    make_rule(world, needed=2, group=make_group(world, "approver", "viewer"))
    text = read(world.client("admin"))
    assert "Refunds: needs 2 people of Finance. Whose approval counts: approver." in text
    assert "No one can meet this rule." in text, "only one of the group has the role"
    assert "approver may approve it together with others." in text
    assert "admin can’t approve: 0 of 2: someone from Finance." in text


def test_a_rule_of_another_tool_or_employee_does_not_match(world: World) -> None:
    make_rule(world, tool="data.bulkDelete")
    make_rule(world, name="Dana", employee=world.employee)
    assert "No approval rule matches" in read(world.client("admin"))
    assert "Dana: needs 1 approver." in read(world.client("admin"), employee=world.employee.pk)
    assert "Refunds" in read(world.client("admin"), tool="data.bulkDelete")


def test_a_requester_is_left_out_where_a_rule_excludes_them(world: World) -> None:
    make_rule(world, excludes_requesters=True)
    assert "approver may approve it alone." in read(world.client("admin"))
    asked = read(world.client("admin"), requester=world.users["approver"].pk)
    assert "Refunds: needs 1 approver, not approver." in asked
    assert "approver can’t approve: needs an approver, not someone who asked for this." in asked
    assert "admin may approve it alone." in asked


def test_a_rule_with_a_condition_applies_only_if_the_condition_is_chosen_as_met(
    world: World,
) -> None:
    conditions = [{"param": "changes.score", "rule": "minimum", "value": 50, "otherwise": "ask"}]
    make_rule(world, group=make_group(world, "approver"), conditions=conditions)
    unmet, met = read(world.client("admin")), read(world.client("admin"), conditions="met")
    for text in (unmet, met):
        assert "Refunds, only if changes.score is at least 50: needs 1 person of Finance." in text
    assert "admin may approve it alone." in unmet
    assert "admin can’t approve: needs someone from Finance." in met


def test_a_deputy_is_shown_with_the_person_they_represent(world: World) -> None:
    make_rule(world, group=make_group(world, "approver"))
    Deputy.objects.create(
        member=world.member("approver"),
        deputy=world.member("admin"),
        ends_at="2100-01-01T00:00:00Z",
    )
    assert "admin may approve it alone, in the name of approver." in read(world.client("admin"))


def test_an_unknown_tool_and_invalid_choices_are_explained(world: World) -> None:
    client = world.client("viewer")
    assert "There is no tool no.tool." in read(client, tool="no.tool")
    assert "Choose a tool" in read(client, tool="")
    odd = read(client, level="x", employee="-1", requester="x", conditions="x")
    assert "approver may approve it alone." in odd


def test_rules_and_people_of_another_organization_do_not_appear(world: World) -> None:
    ApprovalRule.objects.create(organization=world.globex, name="Theirs")
    text = read(world.client("admin"))
    assert "Theirs" not in text
    assert "outsider" not in text
