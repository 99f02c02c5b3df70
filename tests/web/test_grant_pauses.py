"""A standing grant that currently leaves its calls to people: the page of standing grants and REST
name the rule that causes this."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models.functions import Now

from agents.accounts.models import Organization
from agents.approval_rules.models import ApprovalRule
from agents.runs.models import Message, Run
from agents.standing_grants.making import make_grant
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.proposals import ProposedGrant
from tests.features import feature
from tests.web.granting import answer, read_page
from tests.world import UPDATE, World
from tools.toolbox.conditions import Condition, Rule

pytestmark = [pytest.mark.django_db, pytest.mark.once]


class TestThePauseOfAGrant:
    def grant(self, world: World, run: Run) -> StandingGrant:
        """Create a standing grant for this run only."""
        terms = (Condition("record_id", Rule.EQUALS, "0"),)
        return make_grant(
            world.member("approver"),
            ProposedGrant(UPDATE, world.employee.pk, run.pk, ("record_id",), terms),
        )

    def read_both(self, world: World) -> tuple[str, list[tuple[str, str]]]:
        """Return the page, and the status and the pause of each grant over REST."""
        client = world.client("approver")
        items = client.get("/api/standing_grants").json()["items"]
        return read_page(client, "/grants/"), [
            (each["status"], each["paused_because"]) for each in items
        ]

    def test_is_partial_under_the_two_person_rule(self, world: World) -> None:
        world.standing_grant()
        page, states = self.read_both(world)
        assert "Two-person rule" not in page
        assert states == [("active", "")]
        Organization.objects.update(four_eyes=True)
        says = "Two-person rule: this standing grant never approves calls that approver requested."
        page, states = self.read_both(world)
        assert says in page
        assert "In force" in page
        assert states == [("active", says)]

    def test_is_total_under_an_approval_rule_that_the_creator_cannot_meet_alone(
        self, world: World
    ) -> None:
        world.standing_grant()
        rule = ApprovalRule.objects.create(organization=world.acme, name="Two for all", needed=2)
        says = "Approval rule “Two for all”: approver cannot approve these calls alone."
        page, states = self.read_both(world)
        assert says in page
        assert states == [("paused", says)]
        ApprovalRule.objects.filter(pk=rule.pk).update(tool="data.getStats")
        assert self.read_both(world)[1] == [("active", "")]

    @feature(
        "Figures and metrics",
        "A standing grant says which calls it leaves to a person under the two-person rule",
        "agents/standing_grants/pauses.py",
    )
    def test_is_total_for_a_run_that_the_grants_creator_requested(self, world: World) -> None:
        Organization.objects.update(four_eyes=True)
        others, own = world.run(), world.run()
        Message.objects.create(run=own, number=2, author=world.users["approver"], text="Go on")
        self.grant(world, others)
        assert self.read_both(world)[1][0][0] == "active"
        self.grant(world, own)
        page, states = self.read_both(world)
        says = (
            "Two-person rule: approver requested this run, so someone else must approve its calls."
        )
        assert states[0] == ("paused", says)
        assert says in page
        assert ">Paused</span>" in page

    def test_is_not_shown_once_the_grant_has_ended_or_is_used_up(self, world: World) -> None:
        Organization.objects.update(four_eyes=True)
        ended, used = world.standing_grant(), world.standing_grant()
        StandingGrant.objects.filter(pk=used.pk).update(max_uses=1)
        answer(world, used)
        StandingGrant.objects.filter(pk=ended.pk).update(ended_at=Now(), ended_because="Over.")
        page, states = self.read_both(world)
        assert states == [("used_up", ""), ("ended", "")]
        assert "Two-person rule" not in page
        assert ">Used up</span>" in page
        assert "No calls left. Calls that never start don’t count." in page
        assert "Two-person rule" not in read_page(world.client("approver"), "/grants/?ended=1")


@pytest.mark.parametrize("damage", [{"conditions": 5}, {"params": 5}, {"conditions": ["x"]}])
def test_a_damaged_grant_is_listed_and_can_be_revoked(world: World, damage: dict[str, Any]) -> None:
    made, client = world.standing_grant(), world.client("approver")
    StandingGrant.objects.filter(pk=made.pk).update(**damage)
    assert f'id="grant-{made.pk}"' in read_page(client, "/grants/")
    assert client.post(f"/grants/{made.pk}/revoke/").status_code == 302
