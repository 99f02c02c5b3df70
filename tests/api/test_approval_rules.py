"""Approval rules and groups over REST: every member reads them, and cannot change them there."""

from __future__ import annotations

import pytest

from agents.approval_rules.models import ApprovalRule, ApproverGroup
from tests.features import feature
from tests.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def rule(world: World) -> ApprovalRule:
    finance = ApproverGroup.objects.create(organization=world.acme, name="Finance")
    finance.members.add(world.member("approver"))
    return ApprovalRule.objects.create(
        organization=world.acme, name="Payments", needed=2, group=finance, level="write"
    )


def test_rules_are_listed_with_the_people_of_their_groups(world: World, rule: ApprovalRule) -> None:
    client = world.client("viewer")
    (found,) = client.get("/api/approval_rules").json()["items"]
    assert (found["name"], found["needed"], found["level"], found["tool"]) == (
        "Payments",
        2,
        "write",
        "",
    )
    (group,) = client.get("/api/groups").json()["items"]
    assert (group["id"], group["name"], group["members"]) == (
        found["group_id"],
        "Finance",
        ["approver"],
    )


def test_another_organization_sees_neither_rules_nor_groups(
    world: World, rule: ApprovalRule
) -> None:
    for path in ("/api/approval_rules", "/api/groups"):
        assert world.client("outsider").get(path).json()["items"] == []


@feature(
    "The gate",
    "REST lists approval rules and groups, and changes neither",
    "agents/api/approval_rules.py",
)
@pytest.mark.parametrize("path", ["/api/approval_rules", "/api/groups"])
def test_rules_and_groups_cannot_be_changed_over_rest(
    world: World, rule: ApprovalRule, path: str
) -> None:
    assert (
        world.client("admin").post(path, {"name": "Weaker"}, "application/json").status_code == 405
    )
    assert ApprovalRule.objects.get().needed == 2


def test_many_groups_are_listed_with_at_most_8_queries(
    world: World, rule: ApprovalRule, django_assert_max_num_queries: pytest.FixtureRequest
) -> None:
    for number in range(20):
        ApproverGroup.objects.create(organization=world.acme, name=f"Group {number}").members.add(
            world.member("admin")
        )
    client = world.client("viewer")
    with django_assert_max_num_queries(8):  # type: ignore[operator]
        assert len(client.get("/api/groups").json()["items"]) == 21
