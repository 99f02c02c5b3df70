"""Facts that do not belong to a run: webhooks read them from the organization's log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from agents.accounts.notice_facts import NoticeFact, NoticeKind, tell
from agents.notices.channels import add_known_email, forget_channel
from agents.readers.reading import read_logs
from agents.runs import schedules, stops
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.preapprovals import end_grants
from agents.triggers.receiving import Unproved, receive
from agents.webhooks.changes import switch_webhook
from agents.webhooks.models import WebhookDelivery, WebhookKind
from tests.features import feature
from tests.standing_grants.granting import equals, grant
from tests.triggers.conftest import add_trigger
from tests.webhooks.conftest import add_webhook, send_all
from tests.webhooks.receiver import Receiver
from tests.workshop import Workshop, build_workshop, read_everything
from tools.schedules.models import Schedule

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "canary-5e1f"


@pytest.fixture(autouse=True)
def nothing_is_given_up(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test in which a row could not be read, because the reader would skip the row and hide
    the reason."""
    yield
    assert not [each for each in caplog.get_records("call") if "given up" in each.getMessage()]


def do_what_ends_in_the_log(workshop: Workshop) -> None:
    """Cause events in the organization's log: a standing grant ends, a trigger refuses a message, a
    schedule fails, an address is removed, and an employee is stopped."""
    made = grant(workshop, "probe.effect", equals("name", CANARY))
    end_grants(StandingGrant.objects.filter(pk=made.pk), CANARY)
    trigger = add_trigger(workshop, name=CANARY)
    with pytest.raises(Unproved):
        receive(trigger.public_id, {}, b"{}")
    schedule = schedules.create(
        workshop.operator, workshop.employee.pk, CANARY, ("0 9 * * *", "UTC")
    )
    Schedule.objects.filter(pk=schedule.pk).update(next_at=Now(), made_by=None, employee=None)
    schedules.fire(schedule.pk)
    forget_channel(add_known_email(workshop.operator, "operator@example.com"))
    stops.stop_employee(workshop.operator, workshop.employee.pk)


class TestFactsOfTheOrganization:
    @feature(
        "Agents elsewhere",
        "Webhooks send facts that belong to no run, such as stops, ended grants and failing triggers",
        "agents/webhooks/outbox.py",
    )
    def test_are_sent_with_only_ids_and_without_a_run(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver)
        do_what_ends_in_the_log(workshop)
        send_all()
        assert receiver.kinds == [
            "grant.ended",
            "trigger.refused",
            "schedule.missed",
            "work.stopped",
        ]
        names = {name for one in receiver.received for name in one.data}
        assert names == {
            *("seq", "previous_seq", "standing_grant_id", "trigger_id", "schedule_id"),
            *("scheduled_for", "stopped", "employee_id"),
        }
        sent = b"".join(one.body for one in receiver.received).decode()
        for value in (CANARY, "probe.effect", "acme-", workshop.employee.name):
            assert value not in sent, value

    def test_have_a_sentence_and_a_reason_if_values_are_sent(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, sends_values=True)
        do_what_ends_in_the_log(workshop)
        send_all()
        ended, refused, missed, stopped = (one.data for one in receiver.received)
        assert ended["summary"].startswith("A standing grant ended: grant ")
        assert ended["reason"] == CANARY
        assert refused["summary"] == f"A trigger refuses messages: {CANARY}"
        assert missed["reason"] == "Its employee was deleted."
        assert stopped["summary"] == "Work was stopped: Dana, by acme-operator"

    def test_are_sent_with_the_number_of_the_webhooks_preceding_fact(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.GRANT_ENDED, WebhookKind.WORK_STOPPED])
        for send_after_each in (True, False):
            do_what_ends_in_the_log(workshop)
            stops.release_employee(workshop.admin, workshop.employee.pk)
            if send_after_each:
                send_all()
        send_all()
        chain = [(one.data["previous_seq"], one.data["seq"]) for one in receiver.received]
        assert len(chain) == 4
        assert [previous for previous, _ in chain] == [None, *(seq for _, seq in chain[:-1])]

    def test_go_to_active_webhooks_of_this_organization_that_chose_them(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_STARTED])
        off, _ = add_webhook(workshop, receiver)
        switch_webhook(workshop.admin, off.pk, is_active=False)
        add_webhook(build_workshop("other"), receiver)
        chosen, _ = add_webhook(workshop, receiver, kinds=[WebhookKind.WORK_STOPPED])
        stops.stop_everything(workshop.operator)
        read_everything()
        assert WebhookDelivery.objects.get().webhook_id == chosen.pk

    def test_need_a_constant_number_of_sql_statements(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver)
        counts = []
        for facts in (1, 1, 5):  # the first reading creates the cursor
            for key in range(facts):
                tell(NoticeFact(NoticeKind.QUARANTINE, workshop.organization.pk, str(key)))
            with CaptureQueriesContext(connection) as queries:
                read_logs()
            counts.append(len(queries))
        assert counts[1] == counts[2]
        assert WebhookDelivery.objects.count() == 7

    def test_from_before_the_webhook_are_not_sent(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        stops.stop_everything(workshop.operator)
        add_webhook(workshop, receiver)
        read_everything()
        assert not WebhookDelivery.objects.exists()
