"""If several standing grants match a call, the oldest one that may approve it does so; grants of
other organizations are ignored."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import transaction

from agents.approval_rules.models import ApprovalRule, ApproverGroup
from agents.runs.engine.preapprover import GrantsInForce
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, ToolCall
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.preapprovals import (
    NOT_AVAILABLE,
    GrantPreapproval,
    lock_in_force,
    reserve_uses,
)
from tests.recorder import Recorder
from tests.standing_grants.granting import (
    answered,
    die_after_responses,
    equals,
    grant,
    is_waiting,
    resume,
)
from tests.tools.toolbox.test_standing_grants import CALL
from tests.workshop import Workshop, asking, build_workshop, call, statuses
from tools.contract import Level
from tools.toolbox.approval_rules import RuledCard
from tools.toolbox.conditions import Condition, Rule

pytestmark = pytest.mark.django_db(transaction=True)

EFFECT = call("probe.effect", name="a")
A = equals("name", "a")
NAMES = Condition("name", Rule.ONE_OF, ["a", "b", "c", "d"])


def list_approving(run: Run) -> list[int | None]:
    return [card.standing_grant_id for card in answered(run)]


class TestSeveralMatchingGrants:
    def test_let_the_oldest_approve(self, workshop: Workshop, recorder: Recorder) -> None:
        first, _ = grant(workshop, "probe.effect", A), grant(workshop, "probe.effect", A)
        workshop.play(asking(EFFECT))
        assert list_approving(workshop.work()) == [first.pk]

    def test_skip_a_grant_that_is_used_up(self, workshop: Workshop, recorder: Recorder) -> None:
        first, second = (grant(workshop, "probe.effect", A, max_uses=1) for _ in range(2))
        workshop.play(asking(EFFECT))
        assert [list_approving(workshop.work()) for _ in range(3)] == [[first.pk], [second.pk], []]

    def test_skip_a_grant_whose_creator_requested_the_call(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        first, second = (
            grant(workshop, "probe.effect", A),
            grant(workshop, "probe.effect", A, by=workshop.admin),
        )
        workshop.members["operator"] = workshop.approver
        workshop.play(asking(EFFECT))
        assert list_approving(workshop.work()) == [first.pk]
        workshop.organization.four_eyes = True
        workshop.organization.save()
        assert list_approving(workshop.work()) == [second.pk]

    def test_share_the_calls_of_one_response(self, workshop: Workshop, recorder: Recorder) -> None:
        first = grant(workshop, "probe.effect", NAMES, max_uses=2)
        second = grant(workshop, "probe.effect", NAMES, max_uses=1)
        workshop.play(asking(*(call("probe.effect", name=name) for name in "abcd")))
        run = workshop.work()
        assert list_approving(run) == [first.pk, first.pk, second.pk]
        assert statuses(run) == [CallStatus.SUCCEEDED] * 3 + [CallStatus.AWAITING_APPROVAL]
        assert is_waiting(run)
        kept = [(row.judgment or {})["answer"] for row in ToolCall.objects.order_by("pk")]
        assert [each["fitting"] for each in kept] == [[first.pk, second.pk]] * 4
        assert kept[3]["withheld"] == NOT_AVAILABLE


class TestApprovalRulesAndGrants:
    """A standing grant never approves a call that its creator could not approve alone."""

    @pytest.fixture
    def finance(self, workshop: Workshop) -> ApproverGroup:
        return ApproverGroup.objects.create(organization=workshop.organization, name="Finance")

    def test_a_rule_that_needs_another_group_or_more_people_leaves_the_card_to_people(
        self, workshop: Workshop, recorder: Recorder, finance: ApproverGroup
    ) -> None:
        grant(workshop, "probe.effect", A)
        rule = ApprovalRule.objects.create(
            organization=workshop.organization, name="all", group=finance
        )
        workshop.play(asking(EFFECT))
        assert is_waiting(workshop.work())
        finance.members.add(workshop.approver)
        assert not is_waiting(workshop.work())
        ApprovalRule.objects.filter(pk=rule.pk).update(needed=2)
        assert is_waiting(workshop.work())

    def test_a_rule_that_became_stricter_applies_at_the_start(
        self, workshop: Workshop, recorder: Recorder, finance: ApproverGroup
    ) -> None:
        grant(workshop, "probe.effect", A)
        run = die_after_responses(workshop, EFFECT)
        ApprovalRule.objects.create(organization=workshop.organization, name="all", group=finance)
        resume(workshop, run)
        assert is_waiting(run)
        assert not recorder.effects

    def test_a_rule_for_other_calls_does_not_affect_the_grant(
        self, workshop: Workshop, recorder: Recorder, finance: ApproverGroup
    ) -> None:
        grant(workshop, "probe.effect", A)
        ApprovalRule.objects.create(
            organization=workshop.organization, name="b", group=finance, tool="probe.knock"
        )
        workshop.play(asking(EFFECT))
        assert not is_waiting(workshop.work())


RULED = RuledCard("probe.effect", "probe", Level.WRITE, 1)


class TestGrantsOfAnotherOrganization:
    """A grant for every employee of another organization, which must not affect the run."""

    @pytest.fixture
    def foreign(self, workshop: Workshop) -> StandingGrant:
        other = build_workshop("globex")
        return grant(other, "probe.effect", A, employee_id=None, by=other.admin)

    @pytest.fixture
    def run(self, workshop: Workshop, foreign: StandingGrant) -> Run:
        return workshop.submit()

    def test_are_not_loaded(self, workshop: Workshop, foreign: StandingGrant, run: Run) -> None:
        mine = grant(workshop, "probe.effect", A, employee_id=None, by=workshop.admin)
        assert [row.pk for row, _ in GrantsInForce().load(run)] == [mine.pk]

    def test_are_not_locked(self, workshop: Workshop, foreign: StandingGrant, run: Run) -> None:
        mine = grant(workshop, "probe.effect", A)
        with transaction.atomic():
            assert list(lock_in_force(run, [foreign.pk, mine.pk]).usable) == [mine.pk]

    def test_are_not_used(self, workshop: Workshop, foreign: StandingGrant, run: Run) -> None:
        mine, card = (
            grant(workshop, "probe.effect", A),
            Approval(run=run, status=ApprovalStatus.PENDING),
        )
        answer = GrantPreapproval(replace(CALL, tool="probe.effect"), RULED, (foreign,), foreign)
        both = replace(answer, fitting=(foreign, mine))
        with transaction.atomic():
            found = reserve_uses(run, [(answer, card), (both, card)])
        assert [(each.grant, each.withheld) for each in found] == [
            (None, NOT_AVAILABLE),
            (mine, ""),
        ]
