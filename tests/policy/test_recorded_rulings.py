"""Replay checks approvals under approval rules again, against the rules and votes that were
recorded with the approvals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agents.accounts.models import Membership, Organization, Role
from agents.approval_rules.models import ApprovalRule, ApproverGroup
from agents.policy.recorded_calls import CallFilter
from agents.policy.replay import find_bounds, replay
from agents.runs.models import Approval, ApprovalStatus, ToolCall
from tests.features import feature
from tests.recorder import Recorder
from tests.standing_grants.granting import equals, grant
from tests.workshop import Workshop, asking, call

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approved(workshop: Workshop, recorder: Recorder) -> Approval:
    """A card that the approver and the admin, both members of Finance, have approved under a rule
    that needs two people."""
    group = ApproverGroup.objects.create(organization=workshop.organization, name="Finance")
    group.members.set([workshop.approver, workshop.admin])
    ApprovalRule.objects.create(
        organization=workshop.organization,
        name="payments",
        needed=2,
        group=group,
        excludes_requesters=True,
    )
    workshop.play(asking(call("probe.effect", name="pay")))
    card = workshop.card(workshop.work())
    workshop.approve(card)
    return workshop.approve(card, by=workshop.admin)


def check() -> Counter[str]:
    bounded = find_bounds(CallFilter(None), None)
    assert bounded is not None
    return sum((part.rulings for part in replay(bounded)), Counter())


def test_a_sufficient_approval_stays_equal_no_matter_what_changes_later(
    workshop: Workshop, approved: Approval
) -> None:
    ApprovalRule.objects.all().delete()
    Membership.objects.filter(pk=workshop.admin.pk).update(role=Role.VIEWER)
    assert check() == {"equal": 1}
    output = StringIO()
    call_command("replay_policy", stdout=output)
    assert "1 of 1 approvals under approval rules are equal" in output.getvalue()


def test_a_ruling_contains_no_names_and_no_values(workshop: Workshop, approved: Approval) -> None:
    for word in ("acme", "Finance", "payments", '"pay"'):
        assert word not in str(Approval.objects.get(pk=approved.pk).ruling)


def remove_votes(ruling: dict[str, Any]) -> None:
    del ruling["votes"]


def demote_voter(ruling: dict[str, Any]) -> None:
    ruling["votes"][0][0]["may_approve"] = False


def leave_group(ruling: dict[str, Any]) -> None:
    ruling["person"]["groups"] = []


def make_requester(ruling: dict[str, Any]) -> None:
    ruling["requesters"] = [ruling["person"]["id"]]


def vote_twice(ruling: dict[str, Any]) -> None:
    ruling["votes"] = [[ruling["person"]]]


def need_more(ruling: dict[str, Any]) -> None:
    ruling["rules"][0]["needed"] = 3


def use_another_rule(ruling: dict[str, Any]) -> None:
    ruling["rules"][0]["tool"] = "probe.gate"


def damage(ruling: dict[str, Any]) -> None:
    del ruling["rules"]


@feature(
    "The gate",
    "Approvals under approval rules keep the rules and votes, and are judged again by `replay_policy`",
    "tools/toolbox/rulings.py",
)
@pytest.mark.parametrize(
    "spoil",
    [
        remove_votes,
        demote_voter,
        leave_group,
        make_requester,
        vote_twice,
        need_more,
        use_another_rule,
        damage,
    ],
)
def test_a_changed_ruling_is_reported_as_a_difference(
    approved: Approval, spoil: Callable[[dict[str, Any]], None]
) -> None:
    ruling = Approval.objects.get(pk=approved.pk).ruling
    assert ruling is not None
    spoil(ruling)
    Approval.objects.filter(pk=approved.pk).update(ruling=ruling)
    assert check() == {"different": 1}
    with pytest.raises(
        CommandError, match="1 approvals under approval rules do not match their records"
    ):
        call_command("replay_policy", stdout=StringIO())


def test_an_approval_with_erased_values_is_not_counted(approved: Approval) -> None:
    ToolCall.objects.update(judgment={"erased": True})
    assert check() == {}


def test_no_ruling_is_stored_without_a_rule(workshop: Workshop, recorder: Recorder) -> None:
    workshop.play(asking(call("probe.effect", name="pay")))
    card = workshop.approve(workshop.card(workshop.work()))
    assert (card.status, card.ruling) == (ApprovalStatus.APPROVED, None)
    assert check() == {}


def test_an_approval_by_a_standing_grant_records_why_its_creator_could_decide_alone(
    workshop: Workshop, recorder: Recorder
) -> None:
    Organization.objects.update(four_eyes=True)
    made = grant(workshop, "probe.effect", equals("name", "a"))
    workshop.play(asking(call("probe.effect", name="a")))
    workshop.work()
    one = ToolCall.objects.get(approvals__standing_grant=made)
    assert one.judgment is not None
    assert one.judgment["answer"]["ruling"]["requesters"] == [workshop.operator.user_id]
    bounded = find_bounds(CallFilter(None), None)
    assert bounded is not None
    assert sum((part.preapprovals for part in replay(bounded)), Counter()) == {"equal": 1}
    one.judgment["answer"]["ruling"]["requesters"] = [workshop.approver.user_id]
    one.save()
    assert sum((part.preapprovals for part in replay(bounded)), Counter()) == {"different": 1}
