"""Permissions to decide: a role includes all lower roles, and the two-person rule keeps requesters
from deciding their own cards."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from agents.accounts.models import Membership, Role
from agents.platform.refusals import Forbidden
from agents.runs import actions
from agents.runs.models import ApprovalStatus, CallStatus, Run
from tests.features import feature
from tests.workshop import Workshop, asking, call, calls, statuses

pytestmark = pytest.mark.django_db(transaction=True)


def start_own_run(workshop: Workshop) -> Run:
    """Create a waiting run that the approver started."""
    workshop.play(asking(call("probe.effect", name="a")))
    run, _ = actions.submit(
        workshop.approver, actions.Submission(workshop.employee.pk, "My own work")
    )
    return workshop.drive(run)


class TestTheTwoPersonRule:
    @pytest.fixture(autouse=True)
    def _four_eyes(self, workshop: Workshop) -> None:
        workshop.organization.four_eyes = True
        workshop.organization.save()

    def test_prevents_approval_by_the_person_who_started_the_run(self, workshop: Workshop) -> None:
        run = start_own_run(workshop)
        card = workshop.card(run)
        with pytest.raises(Forbidden) as refused:
            workshop.approve(card)
        assert "two-person rule" in refused.value.detail
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL]
        assert workshop.deny(card).status == ApprovalStatus.DENIED

    def test_allows_approval_by_another_person(self, workshop: Workshop) -> None:
        run = start_own_run(workshop)
        assert (
            workshop.approve(workshop.card(run), by=workshop.admin).status
            == ApprovalStatus.APPROVED
        )

    def test_lets_approvers_decide_cards_of_runs_that_other_people_started(
        self, workshop: Workshop
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        assert workshop.deny(workshop.card(run)).status == ApprovalStatus.DENIED

    def test_applies_to_admins(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run, _ = actions.submit(
            workshop.admin, actions.Submission(workshop.employee.pk, "My own work")
        )
        workshop.drive(run)
        with pytest.raises(Forbidden):
            workshop.approve(workshop.card(run), by=workshop.admin)


def test_without_the_two_person_rule_approvers_can_decide_cards_of_runs_they_started(
    workshop: Workshop,
) -> None:
    run = start_own_run(workshop)
    assert workshop.approve(workshop.card(run)).status == ApprovalStatus.APPROVED


@pytest.mark.parametrize(
    ("role", "may"), [("viewer", False), ("operator", True), ("approver", True), ("admin", True)]
)
def test_only_operators_and_above_can_start_runs(workshop: Workshop, role: str, may: bool) -> None:
    submission = actions.Submission(workshop.employee.pk, "Work")
    if may:
        assert actions.submit(workshop.members[role], submission)[1]
        return
    with pytest.raises(Forbidden):
        actions.submit(workshop.members[role], submission)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("role", "may"), [("viewer", False), ("operator", False), ("approver", True), ("admin", True)]
)
def test_only_approvers_and_above_can_decide(workshop: Workshop, role: str, may: bool) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    card = workshop.card(workshop.work())
    if may:
        assert (
            workshop.approve(card, by=workshop.members[role]).decided_by
            == workshop.members[role].user
        )
        return
    with pytest.raises(Forbidden):
        workshop.approve(card, by=workshop.members[role])


def test_each_role_includes_itself_and_all_roles_below_it() -> None:
    order = [Role.VIEWER, Role.OPERATOR, Role.APPROVER, Role.ADMIN]
    for higher, role in enumerate(order):
        assert [role.includes(needed) for needed in order] == [
            lower <= higher for lower in range(4)
        ]


def test_a_user_who_joined_as_a_viewer_cannot_approve(workshop: Workshop) -> None:
    """The user has no other membership."""
    user = User.objects.create_user("guest")
    guest = Membership.objects.create(
        organization=workshop.organization, user=user, role=Role.VIEWER
    )
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    with pytest.raises(Forbidden):
        workshop.approve(workshop.card(run), by=guest)
    assert calls(run)[0].status == CallStatus.AWAITING_APPROVAL


def demote(member: Membership) -> None:
    Membership.objects.filter(pk=member.pk).update(role=Role.OPERATOR)


def switch_off(member: Membership) -> None:
    User.objects.filter(pk=member.user_id).update(is_active=False)


def remove(member: Membership) -> None:
    Membership.objects.filter(pk=member.pk).delete()


@feature(
    "The gate",
    "Who lost the right to decide while their request waited decides nothing",
    "agents/approvals/own_cards.py",
)
@pytest.mark.parametrize("lose", [demote, switch_off, remove])
def test_a_person_who_loses_the_right_to_decide_while_their_request_waits_cannot_decide(
    workshop: Workshop, lose: Callable[[Membership], None]
) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    card = workshop.card(workshop.work())
    lose(workshop.approver)
    decisions: list[Callable[[], object]] = [
        lambda: workshop.approve(card),
        lambda: workshop.deny(card),
        lambda: workshop.edit(card, {"name": "b"}),
    ]
    for decide in decisions:
        with pytest.raises(Forbidden, match="you can no longer decide cards"):
            decide()
    assert workshop.card(card.run).status == ApprovalStatus.PENDING
