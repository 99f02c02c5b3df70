"""The people who are notified: those who can act, through confirmed channels, according to their
preferences."""

from __future__ import annotations

import pytest
from django.utils import timezone

from agents.accounts.models import Membership, Role
from agents.accounts.notice_facts import NoticeKind
from agents.approval_rules.models import ApprovalRule, ApproverGroup
from agents.approvals.decisions import Decision, deny
from agents.deliveries.models import DeliveryStatus
from agents.notices.choices import ChosenTimes, save_choices
from agents.notices.following import follow_run
from agents.notices.models import Channel, Delivery, Notice
from agents.notices.outbox import add_notice, build_card_notice, build_run_notice
from agents.notices.spreading import spread_notices
from agents.runs.models import Approval, ApprovalKind, Run, RunStatus
from tests.features import feature
from tests.notices.conftest import add_address
from tests.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def addresses(world: World) -> None:
    """Give everybody an address."""
    for member in Membership.objects.select_related("user"):
        add_address(member)


def tell(kind: NoticeKind, about: Approval | Run) -> list[str]:
    """Spread a notice; return the names of the notified people."""
    assert add_notice(
        build_run_notice(kind, about, 1)
        if isinstance(about, Run)
        else build_card_notice(kind, about)
    )
    assert spread_notices() == 1
    rows = Delivery.objects.filter(notice=Notice.objects.latest("pk"))
    return sorted(rows.values_list("channel__membership__user__username", flat=True))


def test_a_card_notifies_those_who_can_decide_it(world: World) -> None:
    assert tell(NoticeKind.CARD, world.card()) == ["admin", "approver"]


def test_a_card_does_not_notify_its_requester_under_the_two_person_rule(world: World) -> None:
    world.acme.four_eyes = True
    world.acme.save()
    run = world.run()
    Run.objects.filter(pk=run.pk).update(created_by=world.users["approver"])
    assert tell(NoticeKind.CARD, world.card(run)) == ["admin"]


def test_a_card_with_a_rule_notifies_only_the_rules_group(world: World) -> None:
    group = ApproverGroup.objects.create(organization=world.acme, name="Finance")
    group.members.add(world.member("approver"))
    ApprovalRule.objects.create(organization=world.acme, name="payments", group=group)
    assert tell(NoticeKind.CARD, world.card()) == ["approver"]


def test_a_question_notifies_those_who_can_answer(world: World) -> None:
    card = world.card()
    Approval.objects.filter(pk=card.pk).update(kind=ApprovalKind.QUESTION)
    assert tell(NoticeKind.QUESTION, Approval.objects.get(pk=card.pk)) == [
        "admin",
        "approver",
        "operator",
    ]


def test_a_failed_run_notifies_the_person_who_started_it(world: World) -> None:
    assert tell(NoticeKind.RUN_FAILED, world.run(RunStatus.FAILED)) == ["operator"]


def test_an_ended_run_notifies_its_followers(world: World) -> None:
    run = world.run(RunStatus.RUNNING, lease_owner="worker", lease_expires_at=timezone.now())
    follow_run(world.member("viewer"), run.pk)
    follow_run(world.member("viewer"), run.pk)
    assert tell(NoticeKind.RUN_ENDED, run) == ["viewer"]


def test_inactive_people_and_unconfirmed_addresses_are_not_notified(world: World) -> None:
    world.users["admin"].is_active = False
    world.users["admin"].save()
    Channel.objects.filter(membership=world.member("approver")).update(confirmed_at=None)
    assert tell(NoticeKind.CARD, world.card()) == []


def test_a_card_closed_before_its_notice_is_spread_notifies_nobody(world: World) -> None:
    card = world.card()
    deny(world.member("approver"), card.pk, Decision(card.digest))
    assert tell(NoticeKind.CARD, Approval.objects.get(pk=card.pk)) == []


def test_an_expired_card_notifies_those_who_could_have_decided_it(world: World) -> None:
    card = world.card()
    Approval.objects.filter(pk=card.pk).update(status="expired")
    assert tell(NoticeKind.CARD_EXPIRED, Approval.objects.get(pk=card.pk)) == ["admin", "approver"]


@feature(
    "The gate",
    "Members choose their notices and how soon these come; none come during quiet hours",
    "agents/notices/pace.py",
)
def test_preferences_determine_the_time_of_delivery(world: World) -> None:
    save_choices(world.member("admin"), {"card": "never"}, ChosenTimes())
    save_choices(world.member("approver"), {"card": "daily"}, ChosenTimes(digest_at="08:00"))
    assert tell(NoticeKind.CARD, world.card()) == ["approver"]
    due = Delivery.objects.get().due_at
    assert (due.hour, due.minute) == (8, 0)
    assert due > timezone.now()


def test_each_notice_is_spread_once(world: World) -> None:
    card = world.card()
    assert tell(NoticeKind.CARD, card)
    assert not add_notice(build_card_notice(NoticeKind.CARD, card))
    assert spread_notices() == 0
    assert Delivery.objects.count() == 2


def test_notices_of_a_hundred_cards_are_spread_with_at_most_20_queries(
    world: World, django_assert_max_num_queries: object, django_assert_num_queries: object
) -> None:
    ApprovalRule.objects.create(organization=world.acme, name="all", needed=2)
    run = world.run()
    for _ in range(100):
        add_notice(build_card_notice(NoticeKind.CARD, world.card(run)))
    with django_assert_max_num_queries(20):  # type: ignore[operator]
        assert spread_notices() == 100
    assert Delivery.objects.filter(status=DeliveryStatus.WAITING).count() == 200


def test_a_card_does_not_notify_people_whose_role_cannot_decide_it(world: World) -> None:
    Membership.objects.filter(user=world.users["approver"]).update(role=Role.OPERATOR)
    assert tell(NoticeKind.CARD, world.card()) == ["admin"]
