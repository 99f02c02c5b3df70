"""A clock that was ahead does not delay anything forever: a wait that is longer than the code can
produce is recomputed and logged."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db.models import DateTimeField, Model
from django.utils import timezone

from agents.accounts.notice_facts import NoticeKind
from agents.approvals.attention import take
from agents.approvals.models import Claim, Snooze
from agents.approvals.snoozes import snooze
from agents.insight.models import FiguresHead
from agents.notices.due_times import LONGEST_DELAY
from agents.notices.models import Delivery, Notice, NoticeChoices
from agents.platform.bounded_waits import CLOCK_SLACK, BoundedWait
from agents.runs.engine.timing import MAX_GRACE_S, timing
from agents.runs.models import Approval, ApprovalStatus, Origin, Run, RunStatus
from agents.webhooks.models import Webhook, WebhookDelivery
from agents.worker.clock_watch import BOUNDED_WAITS, correct_waits
from agents.worker.sweeper import sweep_once
from tests.notices.conftest import add_address
from tests.recorder import Recorder
from tests.workshop import Workshop, again, asking, call, statuses
from tools.connections.models import Source

pytestmark = pytest.mark.django_db(transaction=True)
AHEAD = timedelta(days=90)
NEAR = timedelta(seconds=30)
OTHER_WAITS = {
    "schedules.Schedule.next_at": "correct_times",
    "notices.Delivery.due_at": "correct_due_times",
    "approvals.Approval.start_after": "correct_waits",
    "approvals.Approval.valid_until": "corrected with start_after",
    "insight.DecisionHead.until": "counting begins again",
    "webhooks.WebhookSecret.valid_until": "a right that ends later, no wait",
    "policy.PolicyDraft.shadow_until": "a period that an admin chose",
}
"""Columns that look like waits but are not in `BOUNDED_WAITS`, each with the reason: the wait is
bounded by another correction, or nothing waits until that time."""
WAITING_NAME = re.compile(r"(^|_)(until|due_at|next_at|wake_at|start_after)$")


def add_card(workshop: Workshop) -> Approval:
    workshop.play(asking(call("probe.effect", name="a")))
    return workshop.card(workshop.work())


def add_session(workshop: Workshop) -> Run:
    run = workshop.submit()
    Run.objects.filter(pk=run.pk).update(status=RunStatus.WAITING, origin=Origin.MCP)
    return run


def add_webhook(workshop: Workshop) -> Webhook:
    return Webhook.objects.create(
        organization=workshop.organization, name="Other", address="https://other.example/"
    )


def add_webhook_delivery(workshop: Workshop) -> WebhookDelivery:
    return WebhookDelivery.objects.create(
        webhook=add_webhook(workshop), kind="run.started", run_id=1, seq=1
    )


def add_claim(workshop: Workshop) -> Claim:
    return take(workshop.approver, add_card(workshop).pk)


def add_snooze(workshop: Workshop) -> Snooze:
    return snooze(workshop.approver, add_card(workshop).pk, "hour")


def add_source(workshop: Workshop) -> Source:
    return Source.objects.create(
        organization=workshop.organization, kind="mcp_http", name="s", is_active=False
    )


def add_figures(workshop: Workshop) -> FiguresHead:
    FiguresHead.objects.all().delete()
    return FiguresHead.objects.create(
        pk=FiguresHead.ONLY, looked_at=timezone.now(), due_at=timezone.now()
    )


MAKERS: dict[str, Callable[[Workshop], Model]] = {
    "queued runs": lambda workshop: workshop.submit(),
    "resting sessions": add_session,
    "sources": add_source,
    "claims": add_claim,
    "snoozes": add_snooze,
    "figures": add_figures,
    "webhook deliveries": add_webhook_delivery,
    "failing webhooks": add_webhook,
    "sending webhooks": add_webhook,
}


def set_time(row: Model, column: str, time: datetime) -> datetime | None:
    """Set the row's time, let the watch run, and return the time afterwards."""
    rows = type(row)._default_manager.filter(pk=row.pk)
    rows.update(**{column: time})
    correct_waits()
    found: datetime | None = rows.values_list(column, flat=True).get()
    return found


@pytest.mark.parametrize("wait", BOUNDED_WAITS, ids=lambda wait: wait.name.replace(" ", "_"))
class TestEachWait:
    def test_is_recomputed_and_logged_if_it_exceeds_its_maximum(
        self, workshop: Workshop, caplog: pytest.LogCaptureFixture, wait: BoundedWait
    ) -> None:
        found = set_time(MAKERS[wait.name](workshop), wait.column, timezone.now() + AHEAD)
        assert found is None or found <= timezone.now() + wait.longest() + CLOCK_SLACK
        assert f"the clock was ahead: corrected the wait of 1 {wait.name}" in caplog.text

    def test_stays_unchanged_up_to_its_maximum(
        self, workshop: Workshop, caplog: pytest.LogCaptureFixture, wait: BoundedWait
    ) -> None:
        time = (timezone.now() + wait.longest()).replace(microsecond=0)
        assert set_time(MAKERS[wait.name](workshop), wait.column, time) == time
        assert "the clock was ahead" not in caplog.text


class TestWaitingDeliveries:
    def add(self, workshop: Workshop, **columns: Any) -> Delivery:
        notice = Notice.objects.create(
            organization=workshop.organization,
            kind=NoticeKind.STOPPED,
            key=f"stop:{timezone.now()}",
            detail="Dana",
        )
        delivery = Delivery.objects.create(
            notice=notice, channel=add_address(workshop.approver), due_at=timezone.now()
        )
        Delivery.objects.filter(pk=delivery.pk).update(**columns)
        return delivery

    def choose(self, workshop: Workshop, pace: str) -> None:
        NoticeChoices.objects.create(
            membership=workshop.approver, paces={NoticeKind.STOPPED.value: pace}
        )

    def test_are_retried_soon_if_they_were_attempted_before(self, workshop: Workshop) -> None:
        found = set_time(self.add(workshop, tries=1), "due_at", timezone.now() + AHEAD)
        assert found is not None
        assert found < timezone.now() + NEAR

    def test_stay_unchanged_within_their_pause(self, workshop: Workshop) -> None:
        time = (timezone.now() + timedelta(hours=1) * timing().scale).replace(microsecond=0)
        assert set_time(self.add(workshop, tries=5), "due_at", time) == time

    def test_follow_the_preferences_if_created_while_the_clock_was_ahead(
        self, workshop: Workshop
    ) -> None:
        self.choose(workshop, "at_once")
        ahead = timezone.now() + timedelta(hours=20)
        found = set_time(self.add(workshop, created_at=ahead), "due_at", ahead)
        assert found is not None
        assert found < timezone.now() + NEAR

    def test_are_sent_with_the_next_daily_digest_if_created_while_the_clock_was_ahead(
        self, workshop: Workshop
    ) -> None:
        self.choose(workshop, "daily")
        ahead = timezone.now() + timedelta(days=3)
        found = set_time(
            self.add(workshop, created_at=ahead), "due_at", ahead + timedelta(hours=20)
        )
        assert found is not None
        assert timezone.now() < found <= timezone.now() + timedelta(days=1)
        assert (found.hour, found.minute) == (8, 0)

    def test_stay_unchanged_if_they_are_due_with_the_next_daily_digest(
        self, workshop: Workshop
    ) -> None:
        self.choose(workshop, "daily")
        time = (timezone.now() + LONGEST_DELAY).replace(microsecond=0)
        assert set_time(self.add(workshop), "due_at", time) == time


class TestApprovedCall:
    def test_starts_after_at_most_the_longest_grace_period_if_the_clock_was_ahead(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        card = add_card(workshop)
        workshop.approve(card, grace_s=MAX_GRACE_S)
        ahead = timezone.now() + AHEAD
        Approval.objects.filter(pk=card.pk).update(
            start_after=ahead, valid_until=ahead + timing().approval_validity
        )
        sweep_once()
        card.refresh_from_db()
        start = card.start_after
        assert start is not None
        assert card.valid_until == start + timing().approval_validity
        assert start <= timezone.now() + timedelta(seconds=MAX_GRACE_S)
        Approval.objects.filter(pk=card.pk).update(
            start_after=timezone.now() - timedelta(seconds=1)
        )
        sweep_once()
        run = workshop.drive(card.run)
        assert statuses(run) == ["succeeded"]
        assert list(recorder.effects.values()) == [1]

    def test_stays_unchanged_within_its_grace_period(self, workshop: Workshop) -> None:
        card = add_card(workshop)
        workshop.approve(card, grace_s=MAX_GRACE_S)
        before = Approval.objects.get(pk=card.pk)
        sweep_once()
        after = Approval.objects.get(pk=card.pk)
        assert (after.start_after, after.valid_until) == (before.start_after, before.valid_until)
        assert after.status == ApprovalStatus.APPROVED


def test_a_run_queued_while_the_clock_was_ahead_is_driven(workshop: Workshop) -> None:
    workshop.play(asking(call("utility.calculate", operation="add", a=1, b=2)))
    run = workshop.submit()
    Run.objects.filter(pk=run.pk).update(next_wake_at=timezone.now() + AHEAD)
    sweep_once()
    assert again(run).next_wake_at is None
    assert workshop.drive(run).status == RunStatus.SUCCEEDED


@pytest.mark.django_db
def test_every_column_with_the_end_of_a_wait_is_bounded_or_listed_with_a_reason() -> None:
    bounded = {f"{wait.select().model._meta.label}.{wait.column}" for wait in BOUNDED_WAITS}
    found = {
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, DateTimeField) and WAITING_NAME.search(field.name)
    }
    assert found == bounded | set(OTHER_WAITS)
