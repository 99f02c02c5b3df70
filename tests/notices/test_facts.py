"""The events of runs and organizations about which people are notified."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.accounts.models import Membership, OrganizationEvent
from agents.accounts.notice_facts import NoticeKind
from agents.approval_rules.models import ApprovalRule, ApproverGroup
from agents.employees.models import Employee, Grant
from agents.notices import rule_watch
from agents.notices.following import follow_run
from agents.notices.models import Delivery, Notice
from agents.notices.outbox import EventRows
from agents.notices.rule_watch import RuleWatch
from agents.notices.spreading import spread_notices
from agents.notices.texts import describe
from agents.runs import actions, schedules, stops
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import LateEffect
from agents.runs.models import Approval, Event, EventType, ExitReason, Run, RunStatus, ToolCall
from agents.standing_grants.making import revoke_grant
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.preapprovals import end_grants
from agents.triggers.models import Trigger
from agents.triggers.receiving import Unproved, receive
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.notices.conftest import add_address
from tests.standing_grants.granting import equals, grant
from tests.triggers.conftest import add_trigger
from tests.workshop import Workshop, asking, call, expire_card, read_everything
from tests.workshop.colleagues import ASK
from tools.schedules.models import Schedule

pytestmark = pytest.mark.django_db(transaction=True)


def list_kinds() -> list[str]:
    read_everything()
    return list(Notice.objects.order_by("pk").values_list("kind", flat=True))


def list_receivers(workshop: Workshop) -> list[str]:
    """Give everybody an address, and list the receivers of the newest notice."""
    for member in Membership.objects.select_related("user"):
        add_address(member)
    read_everything()
    while spread_notices():
        pass
    rows = Delivery.objects.filter(notice=Notice.objects.latest("pk"))
    return sorted(rows.values_list("channel__membership__user__username", flat=True))


def add_group(workshop: Workshop, name: str, *members: Membership) -> ApproverGroup:
    group = ApproverGroup.objects.create(organization=workshop.organization, name=name)
    group.members.set(members)
    return group


def make_card(workshop: Workshop) -> Approval:
    workshop.play(asking(call("probe.effect", name="a")))
    card = workshop.card(workshop.work())
    read_everything()
    return card


def age(card: Approval, *, lived: timedelta, left: timedelta) -> None:
    Approval.objects.filter(pk=card.pk).update(requested_at=Now() - lived, expires_at=Now() + left)


def test_a_card_creates_a_notice_that_names_its_run(workshop: Workshop) -> None:
    card = make_card(workshop)
    read_everything()
    notice = Notice.objects.get()
    assert (notice.kind, notice.approval_id, notice.run_id) == (
        NoticeKind.CARD,
        card.pk,
        card.run_id,
    )
    assert notice.organization_id == card.organization_id


def test_an_event_of_a_type_without_a_notice_is_refused(workshop: Workshop) -> None:
    card = make_card(workshop)
    rows = EventRows({card.pk: card}, {}, frozenset())
    voted = Event(type=EventType.APPROVAL_VOTED, payload={"approval_id": str(card.pk)})
    with pytest.raises(KeyError):
        list(rows.list_notices(voted))


def test_a_rolled_back_fact_does_not_create_a_notice(workshop: Workshop) -> None:
    card = make_card(workshop)

    def fail() -> None:
        with run_transaction(card.run_id) as tx:
            tx.publish(LateEffect(str(card.tool_call_id), str(card.pk), "", "", []))
            tx.write()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list_kinds() == ["card"]


def test_an_unknown_outcome_creates_a_notice(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    workshop.drive(run)
    assert list_kinds() == ["card", "unknown"]


def test_a_question_creates_a_notice(workshop: Workshop) -> None:
    Grant.objects.create(employee=workshop.employee, tool=ASK)
    workshop.play(asking(call(ASK, question="Which one?")))
    workshop.work()
    assert list_kinds() == ["question"]


@feature(
    "The gate",
    "People are notified once more of a card that expires soon",
    "agents/notices/reminders.py",
)
def test_a_card_that_expires_soon_creates_one_notice(workshop: Workshop) -> None:
    card = make_card(workshop)
    age(card, lived=timedelta(days=6, minutes=1), left=timedelta(hours=23))
    sweep_once()
    sweep_once()
    assert list_kinds() == ["card", "card_expiring"]


@pytest.mark.parametrize(
    ("lived", "left"),
    [(timedelta(days=5), timedelta(days=2)), (timedelta(hours=1), timedelta(hours=23))],
    ids=["there is time", "it lives for a day and is new"],
)
def test_a_card_that_is_new_or_not_near_expiry_does_not_create_an_expiry_notice(
    workshop: Workshop, lived: timedelta, left: timedelta
) -> None:
    age(make_card(workshop), lived=lived, left=left)
    sweep_once()
    assert list_kinds() == ["card"]


def test_an_expired_card_creates_a_notice(workshop: Workshop) -> None:
    expire_card(make_card(workshop))
    sweep_once()
    assert list_kinds() == ["card", "card_expired"]


def test_a_failed_run_creates_a_notice(workshop: Workshop) -> None:
    run = workshop.submit("Do it")
    Run.objects.filter(pk=run.pk).update(deadline_at=Now() - timedelta(seconds=1))
    sweep_once()
    assert Run.objects.get(pk=run.pk).status == RunStatus.FAILED
    assert list_kinds() == ["run_failed"]


def test_a_notice_of_a_failed_run_does_not_mention_a_later_success(workshop: Workshop) -> None:
    workshop.play()
    run = workshop.submit("Do it")
    Run.objects.filter(pk=run.pk).update(deadline_at=Now() - timedelta(seconds=1))
    sweep_once()
    Run.objects.filter(pk=run.pk).update(deadline_at=Now() + timedelta(hours=1))
    actions.continue_run(workshop.operator, run.pk)
    follow_run(workshop.operator, run.pk)
    assert workshop.drive(run).status == RunStatus.SUCCEEDED
    read_everything()
    channel = add_address(workshop.operator)
    assert [describe(each, channel).sentence for each in Notice.objects.order_by("pk")] == [
        f"A run failed: run {run.pk} of Dana",
        f"A run that you follow has ended: run {run.pk} of Dana, and it succeeded",
    ]


@feature(
    "The gate",
    "The groups before and after are notified of a card that escalates, and admins of one that nobody can approve",
    "agents/notices/rule_watch.py",
)
def test_an_escalated_card_notifies_both_groups_once(workshop: Workshop) -> None:
    first, second = (
        add_group(workshop, "First", workshop.approver),
        add_group(workshop, "Second", workshop.admin),
    )
    ApprovalRule.objects.create(
        organization=workshop.organization,
        name="pay",
        group=first,
        escalate_hours=4,
        second_group=second,
    )
    card = make_card(workshop)
    watch = RuleWatch()
    assert watch.tell_if_due() == 0, "it is new"
    ToolCall.objects.filter(pk=card.tool_call_id).update(created_at=Now() - timedelta(hours=5))
    assert [RuleWatch().tell_if_due(), RuleWatch().tell_if_due()] == [1, 0]
    for member in (workshop.approver, workshop.admin):
        add_address(member)
    read_everything()
    Notice.objects.filter(kind=NoticeKind.CARD).delete()
    spread_notices()
    assert Delivery.objects.filter(notice__kind=NoticeKind.ESCALATED).count() == 2


def test_a_card_that_nobody_can_approve_notifies_admins_once(workshop: Workshop) -> None:
    group = add_group(workshop, "Finance", workshop.approver)
    ApprovalRule.objects.create(organization=workshop.organization, name="pay", group=group)
    make_card(workshop)
    assert RuleWatch().tell_if_due() == 0
    group.members.clear()
    assert [RuleWatch().tell_if_due(), RuleWatch().tell_if_due()] == [1, 0]
    assert list_receivers(workshop) == ["acme-admin"]


def test_successive_sweeps_cover_all_cards(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_watch, "MAX_CARDS", 1)
    monkeypatch.setattr(rule_watch, "EVERY_S", 0.0)
    group = add_group(workshop, "Finance")
    ApprovalRule.objects.create(organization=workshop.organization, name="pay", group=group)
    workshop.play(asking(call("probe.effect", name="a"), call("probe.effect", name="b")))
    workshop.work()
    watch = RuleWatch()
    assert sum(watch.tell_if_due() for _ in range(4)) == 2


@feature(
    "The gate",
    "Admins are notified of stops, used budgets and changed tools; people of their schedules that do not start",
    "agents/notices/outbox.py",
)
def test_stopping_an_employee_notifies_admins(workshop: Workshop) -> None:
    stops.stop_employee(workshop.operator, workshop.employee.pk)
    read_everything()
    notice = Notice.objects.get()
    assert (notice.kind, notice.detail) == (NoticeKind.STOPPED, "Dana, by acme-operator")
    assert list_receivers(workshop) == ["acme-admin"]


def test_a_used_up_budget_notifies_once_a_month(workshop: Workshop) -> None:
    runs = [workshop.submit(), workshop.submit()]
    Employee.objects.filter(pk=workshop.employee.pk).update(month_tokens=0)
    assert {workshop.drive(run).exit_reason for run in runs} == {ExitReason.BUDGET_EXHAUSTED}
    assert sorted(list_kinds()) == ["budget", "run_failed", "run_failed"]
    assert Notice.objects.get(kind=NoticeKind.BUDGET).detail == "runs of Dana"


def test_a_schedule_that_does_not_start_notifies_its_creator(workshop: Workshop) -> None:
    schedule = schedules.create(
        workshop.operator, workshop.employee.pk, "Look", ("0 9 * * *", "UTC")
    )
    Schedule.objects.filter(pk=schedule.pk).update(next_at=Now() - timedelta(minutes=1))
    Employee.objects.filter(pk=workshop.employee.pk).update(is_active=False)
    sweep_once()
    read_everything()
    notice = Notice.objects.get()
    assert (notice.kind, notice.user, notice.detail) == (
        NoticeKind.SCHEDULE,
        workshop.operator.user,
        f"schedule {schedule.pk}",
    )
    assert list_receivers(workshop) == ["acme-operator"]


def test_a_schedule_that_skips_the_same_start_twice_notifies_its_creator_twice(
    workshop: Workshop,
) -> None:
    schedule = schedules.create(
        workshop.operator, workshop.employee.pk, "Look", ("0 9 * * *", "UTC")
    )
    assert schedules.pause_after_restore("A backup was restored.") == 1
    read_everything()
    schedules.resume(workshop.operator, schedule.pk)
    schedule.refresh_from_db()
    assert schedules.pause_after_restore("A backup was restored.") == 1
    times = {event.payload["ids"]["scheduled_for"] for event in OrganizationEvent.objects.all()}
    assert len(times) == 1
    assert list_kinds() == ["schedule", "schedule"]


def test_a_schedule_without_a_creator_that_does_not_start_notifies_admins(
    workshop: Workshop,
) -> None:
    schedule = schedules.create(
        workshop.operator, workshop.employee.pk, "Look", ("0 9 * * *", "UTC")
    )
    Schedule.objects.filter(pk=schedule.pk).update(
        next_at=Now() - timedelta(minutes=1), made_by=None
    )
    Employee.objects.filter(pk=workshop.employee.pk).update(is_active=False)
    sweep_once()
    assert list_kinds() == ["schedule"]
    notice, channel = Notice.objects.get(), add_address(workshop.admin)
    assert describe(notice, channel).sentence == (
        f"A schedule without an owner did not start: schedule {schedule.pk}"
    )
    channel.delete()
    assert list_receivers(workshop) == ["acme-admin"]


@feature(
    "The gate",
    "Owners are notified of standing grants that end early, and with the admins of triggers that refuse messages",
    "agents/notices/audience.py",
)
def test_an_ended_standing_grant_notifies_its_owner_once(workshop: Workshop) -> None:
    made = grant(workshop, "probe.effect", equals("name", "a"))
    ended = StandingGrant.objects.filter(pk=made.pk)
    assert [end_grants(ended, "Its tool changed."), end_grants(ended, "Again.")] == [1, 0]
    event = OrganizationEvent.objects.get()
    assert (event.type, event.payload["reason"]) == ("grant_ended", "Its tool changed.")
    assert list_receivers(workshop) == ["acme-approver"]
    assert Notice.objects.get().detail == f"grant {made.pk} for “probe.effect”"


def test_a_standing_grant_revoked_by_another_person_notifies_its_owner(
    workshop: Workshop,
) -> None:
    made = grant(workshop, "probe.effect", equals("name", "a"))
    revoke_grant(workshop.admin, made.pk)
    assert OrganizationEvent.objects.get().payload["reason"] == "acme-admin revoked it."
    assert list_receivers(workshop) == ["acme-approver"]


def test_a_standing_grant_revoked_by_its_owner_creates_an_event_but_no_notice(
    workshop: Workshop,
) -> None:
    revoke_grant(workshop.approver, grant(workshop, "probe.effect", equals("name", "a")).pk)
    assert OrganizationEvent.objects.get().type == "grant_ended"
    assert list_kinds() == []


def test_a_trigger_that_refuses_messages_notifies_its_owner_and_admins_once_a_day(
    workshop: Workshop,
) -> None:
    trigger = add_trigger(workshop)
    for _ in range(2):
        with pytest.raises(Unproved):
            receive(trigger.public_id, {}, b"{}")
        Trigger.objects.update(refusal_told_at=Now() - timedelta(hours=1))
    assert OrganizationEvent.objects.filter(type="trigger_refused").count() == 2
    assert list_receivers(workshop) == ["acme-admin", "acme-operator"]
    assert Notice.objects.get().detail == "Issues"


@feature(
    "The gate",
    "A member is notified when a run that they follow has ended",
    "agents/notices/following.py",
)
def test_an_ended_run_notifies_its_followers(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    add_address(workshop.operator)
    follow_run(workshop.operator, run.pk)
    workshop.deny(workshop.card(run))
    assert workshop.drive(run).status == RunStatus.SUCCEEDED
    assert list_kinds() == ["card", "run_ended"]
