"""Changes to webhooks: only admins can make them, they are checked and audited, and secrets are
shown only once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from agents.accounts.models import AuditEntry
from agents.deliveries.changes import send_again
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.webhooks import changes
from agents.webhooks.changes import KEPT, WebhookTerms
from agents.webhooks.models import (
    Webhook,
    WebhookDelivery,
    WebhookDeliveryStatus,
    WebhookKind,
    WebhookSecret,
)
from agents.webhooks.sending import KIND
from gadget_site.backup.restored import settle
from gadget_site.private_hosts import parse_private_hosts
from tests.webhooks.conftest import add_webhook, send_all
from tests.webhooks.receiver import Receiver
from tests.workshop import Workshop, asking, build_workshop, call, read_everything
from tools.contract import PrivateHosts

TERMS: dict[str, Any] = {
    "name": "Other system",
    "address": "https://example.com/x",
    "kinds": ["run.started"],
}


def make(workshop: Workshop, **more: Any) -> tuple[Webhook, str]:
    return changes.make_webhook(workshop.admin, WebhookTerms(**{**TERMS, **more}))


class TestAddingAWebhook:
    def test_stores_address_and_secret_encrypted(self, workshop: Workshop) -> None:
        webhook, secret = make(workshop)
        with connection.cursor() as cursor:
            cursor.execute("SELECT address, secret FROM webhooks_webhook, webhooks_webhooksecret")
            (stored,) = cursor.fetchall()
        assert "example.com" not in stored[0]
        assert secret not in stored[1]
        (entry,) = AuditEntry.objects.filter(action="webhook_created")
        assert secret not in str(entry.payload)
        assert webhook.address not in str(entry.payload)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"name": ""},
            {"name": "x" * 81},
            {"name": "\u202e"},
            {"kinds": []},
            {"kinds": ["run.started", "no.such"]},
            {"address": ""},
            {"address": "ftp://example.com/"},
            {"address": "javascript:alert(1)"},
            {"address": "http://example.com/"},
            {"address": "https://10.1.2.3/x"},
            {"address": "https://[fd00::1]/x"},
            {"address": "https://localhost/x"},
            {"address": "https://user:word@example.com/"},
            {"address": f"https://example.com/{'x' * 500}"},
        ],
    )
    def test_is_refused_if_a_field_is_invalid(
        self, workshop: Workshop, wrong: dict[str, Any], settings: Settings
    ) -> None:
        settings.ALLOWED_PRIVATE_HOSTS = PrivateHosts()
        with pytest.raises(Invalid):
            make(workshop, **wrong)
        assert not Webhook.objects.exists()

    def test_accepts_the_longest_name_and_address(self, workshop: Workshop) -> None:
        address = "https://example.com/".ljust(changes.MAX_ADDRESS, "x")
        webhook, _ = make(workshop, name="x" * 80, address=address)
        assert (webhook.name, webhook.address) == ("x" * 80, address)
        assert make(workshop, address="https://9.9.9.9/x")[0].address == "https://9.9.9.9/x", (
            "a public address"
        )

    def test_accepts_http_only_for_a_host_that_the_installation_lists(
        self, workshop: Workshop, settings: Settings
    ) -> None:
        settings.ALLOWED_PRIVATE_HOSTS = parse_private_hosts("hooks.internal")
        assert (
            make(workshop, address="http://hooks.internal/x")[0].address
            == "http://hooks.internal/x"
        )
        with pytest.raises(Invalid, match="https"):
            make(workshop, address="http://other.internal/x")

    def test_gives_each_webhook_its_own_id(self, workshop: Workshop) -> None:
        webhooks = [make(workshop)[0] for _ in range(2)]
        assert [changes.find_webhook(workshop.admin, each.pk) for each in webhooks] == webhooks

    def test_is_refused_if_there_are_too_many_webhooks(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(changes, "MAX_WEBHOOKS", 1)
        make(workshop)
        with pytest.raises(Conflict):
            make(workshop)

    @pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
    def test_does_not_let_anyone_but_its_organizations_admins_read_or_change_it(
        self, workshop: Workshop, role: str
    ) -> None:
        webhook, _ = make(workshop)
        member, stranger = workshop.members[role], build_workshop("globex").admin
        delivery = WebhookDelivery.objects.create(
            webhook=webhook,
            kind="run.started",
            run_id=1,
            seq=1,
            status="failed",
            ended_at=webhook.created_at,
        )
        acts: list[Any] = [
            lambda who: changes.find_webhook(who, webhook.pk),
            lambda who: changes.edit_webhook(who, webhook.pk, WebhookTerms(**TERMS)),
            lambda who: changes.switch_webhook(who, webhook.pk, is_active=False),
            lambda who: changes.rotate_secret(who, webhook.pk),
            lambda who: changes.remove_webhook(who, webhook.pk),
            lambda who: send_again(who, KIND, delivery.pk),
        ]
        before = list(Webhook.objects.values()) + list(WebhookDelivery.objects.values())
        for act in acts:
            with pytest.raises(Forbidden):
                act(member)
            with pytest.raises(NotFound):
                act(stranger)
        assert list(Webhook.objects.values()) + list(WebhookDelivery.objects.values()) == before
        assert not changes.list_webhooks(stranger).exists()


class TestChangingAWebhook:
    def test_sends_waiting_deliveries_to_the_new_address(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver, address="https://example.com/x")
        workshop.submit()
        terms = WebhookTerms(webhook.name, receiver.url, WebhookKind.values)
        changes.edit_webhook(workshop.admin, webhook.pk, terms)
        assert send_all() == 1
        assert receiver.kinds == ["run.started"]

    def test_limits_the_number_of_valid_secrets(self, workshop: Workshop) -> None:
        webhook, _ = make(workshop)
        ended = WebhookSecret.objects.exclude(valid_until=None)
        for _ in range(changes.MAX_SECRETS - 1):
            ended.update(valid_until=F("valid_until") - timedelta(hours=1))
            before = set(ended.values_list("pk", "valid_until"))
            changes.rotate_secret(workshop.admin, webhook.pk)
            assert before < set(ended.values_list("pk", "valid_until")), (
                "none becomes valid for longer"
            )
        with pytest.raises(Conflict, match="4 secrets are valid"):
            changes.rotate_secret(workshop.admin, webhook.pk)
        WebhookSecret.objects.exclude(valid_until=None).update(valid_until=Now())
        changes.rotate_secret(workshop.admin, webhook.pk)
        assert WebhookSecret.objects.count() == 2, "ended ones are deleted"

    def test_keeps_the_earlier_secret_valid_for_a_day(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver)
        changes.rotate_secret(workshop.admin, webhook.pk)
        earlier = WebhookSecret.objects.exclude(valid_until=None).get()
        assert earlier.valid_until is not None
        assert (
            timedelta(hours=23, minutes=58)
            < earlier.valid_until - timezone.now()
            <= timedelta(days=1)
        )

    def test_by_switching_it_off_makes_its_waiting_deliveries_fail(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver)
        workshop.submit()
        send_all()
        sent = WebhookDelivery.objects.get()
        workshop.submit()
        read_everything()
        changes.switch_webhook(workshop.admin, webhook.pk, is_active=False)
        assert send_all() == 0
        delivery = WebhookDelivery.objects.latest("pk")
        assert (delivery.status, delivery.problem) == ("failed", "the webhook was switched off")
        changes.forget_old_deliveries()
        assert WebhookDelivery.objects.get(pk=sent.pk).status == WebhookDeliveryStatus.SENT
        with pytest.raises(Conflict, match="switched off"):
            send_again(workshop.admin, KIND, delivery.pk)

    def test_by_switching_it_on_has_no_effect_if_it_is_active(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver)
        workshop.submit()
        changes.switch_webhook(workshop.admin, webhook.pk, is_active=True)
        assert not AuditEntry.objects.filter(action="webhook_switched_on").exists()
        assert send_all() == 1

    def test_by_removing_it_leaves_its_deliveries_to_the_next_cleanup(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver)
        other, _ = add_webhook(workshop, receiver)
        workshop.submit()
        read_everything()
        changes.remove_webhook(workshop.admin, webhook.pk)
        assert changes.forget_old_deliveries() == 1
        assert WebhookDelivery.objects.get().webhook == other
        assert send_all() == 1

    def test_keeps_the_reason_why_the_last_attempt_failed(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver)
        workshop.submit()
        receiver.status = 500
        send_all()
        changes.switch_webhook(workshop.admin, webhook.pk, is_active=False)
        assert WebhookDelivery.objects.get().problem == "the receiver responded with 500"

    @pytest.mark.parametrize("is_read", [False, True])
    def test_does_not_send_facts_from_before_it_was_switched_on_again(
        self, workshop: Workshop, receiver: Receiver, *, is_read: bool
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver)
        workshop.submit()
        if is_read:
            read_everything()
        Webhook.objects.update(is_active=False)
        changes.switch_webhook(workshop.admin, webhook.pk, is_active=True)
        assert send_all() == 0
        workshop.submit()
        read_everything()
        Webhook.objects.update(is_active=False)
        changes.forget_old_deliveries()
        assert not WebhookDelivery.objects.filter(status=WebhookDeliveryStatus.WAITING).exists()

    def test_to_a_new_address_resets_its_failures(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver)
        workshop.submit()
        receiver.status = 500
        send_all()
        terms = WebhookTerms(webhook.name, f"{receiver.url}/new", WebhookKind.values)
        changes.edit_webhook(workshop.admin, webhook.pk, terms)
        webhook.refresh_from_db()
        assert (webhook.failures, webhook.rests_until) == (0, None)
        assert AuditEntry.objects.get(action="webhook_changed").payload["has_new_address"] is True

    def test_does_not_allow_other_organizations_to_send_its_deliveries_again(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        for name in ("one", "two"):
            add_webhook(workshop, receiver, name=name)
        workshop.submit()
        send_all()
        for delivery in WebhookDelivery.objects.order_by("pk"):
            with pytest.raises(NotFound, match="There is no delivery"):
                send_again(build_workshop(f"globex-{delivery.pk}").admin, KIND, delivery.pk)
            send_again(workshop.admin, KIND, delivery.pk)
            delivery.refresh_from_db()
            assert delivery.status == WebhookDeliveryStatus.WAITING

    def test_does_not_change_the_id_of_a_delivery_that_is_sent_again(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver)
        workshop.submit()
        send_all()
        delivery = WebhookDelivery.objects.get()
        workshop.submit()
        send_all()
        send_again(workshop.admin, KIND, delivery.pk)
        with pytest.raises(Conflict, match="is already waiting"):
            send_again(workshop.admin, KIND, delivery.pk)
        assert AuditEntry.objects.get(action="webhook_delivery_repeated").payload[
            "delivery"
        ] == str(delivery.pk)
        send_all()
        first, _, third = (one.headers["webhook-id"] for one in receiver.received)
        assert first == third == delivery.message_id

    def test_is_audited_each_time(self, workshop: Workshop) -> None:
        webhook, _ = make(workshop)
        changes.edit_webhook(workshop.admin, webhook.pk, WebhookTerms(**TERMS))
        changes.switch_webhook(workshop.admin, webhook.pk, is_active=False)
        changes.switch_webhook(workshop.admin, webhook.pk, is_active=True)
        changes.rotate_secret(workshop.admin, webhook.pk)
        changes.remove_webhook(workshop.admin, webhook.pk)
        recorded = AuditEntry.objects.filter(subject=f"webhook:{webhook.pk}").order_by("pk")
        assert [one.action.removeprefix("webhook_") for one in recorded] == [
            "created",
            "changed",
            "switched_off",
            "switched_on",
            "secret_changed",
            "removed",
        ]


class TestKeepingDeliveries:
    def test_ends_thirty_days_after_their_end(self, workshop: Workshop) -> None:
        webhook, _ = make(workshop)
        for _ in range(4):
            workshop.submit()
        read_everything()
        *old, young, waiting = WebhookDelivery.objects.order_by("pk")
        ended = WebhookDelivery.objects.filter(webhook=webhook)
        ended.filter(pk__in=[each.pk for each in old]).update(
            status="sent", ended_at=Now() - KEPT * 1.01
        )
        ended.filter(pk=young.pk).update(status="sent", ended_at=Now() - KEPT * 0.99)
        assert changes.forget_old_deliveries(at_once=1) == 2
        left = dict(ended.values_list("pk", "status"))
        assert left == {
            young.pk: WebhookDeliveryStatus.SENT,
            waiting.pk: WebhookDeliveryStatus.WAITING,
        }

    def test_after_a_restore_does_not_send_them_automatically(self, workshop: Workshop) -> None:
        webhook, _ = make(workshop)
        other, _ = make(workshop)
        Webhook.objects.filter(pk=other.pk).update(
            is_active=False, off_reason="the receiver is gone"
        )
        workshop.play(asking(call("data.updateRecord", record_id="1", changes={"phone": "1"})))
        workshop.work()
        read_everything()
        sent = WebhookDelivery.objects.create(
            webhook=webhook,
            kind="run.started",
            run_id=1,
            seq=1,
            status="sent",
            ended_at=webhook.created_at,
        )
        settle()
        waited = WebhookDelivery.objects.exclude(pk=sent.pk)
        assert {one.problem for one in waited} == {"a backup was restored"}
        assert {one.status for one in waited} == {WebhookDeliveryStatus.FAILED}
        sent.refresh_from_db()
        assert sent.status == WebhookDeliveryStatus.SENT
        webhook.refresh_from_db()
        assert (webhook.is_active, webhook.off_reason) == (False, "a backup was restored")
        other.refresh_from_db()
        assert other.off_reason == "the receiver is gone"
