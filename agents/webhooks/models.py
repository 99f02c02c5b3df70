"""The models of webhooks, their secrets and their deliveries."""

from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from typing_extensions import override

from agents.accounts.models.organization import Organization
from agents.deliveries.models import ENDED_HAS_A_TIME, DeliveryBase, ReceiverBase
from agents.platform.encrypted_fields import EncryptedTextField
from agents.runs.event_facts import FactKind
from tools.contract import ToolError
from tools.network import read_url


class WebhookKind(models.TextChoices):
    """The kinds of facts sent to other systems."""

    RUN_STARTED = FactKind.RUN_STARTED.value, "A run started"
    RUN_FINISHED = FactKind.RUN_FINISHED.value, "A run finished or was cancelled"
    RUN_FAILED = FactKind.RUN_FAILED.value, "A run failed"
    CARD_OPENED = FactKind.CARD_OPENED.value, "A card waits for a person"
    CARD_DECIDED = FactKind.CARD_DECIDED.value, "A card was decided or closed"
    CARD_EXPIRED = FactKind.CARD_EXPIRED.value, "A card expired"
    CALL_EXECUTED = FactKind.CALL_EXECUTED.value, "A call ended"
    ASK_ANSWERED = FactKind.ASK_ANSWERED.value, "An agent’s ask was answered"
    WORK_STOPPED = FactKind.WORK_STOPPED.value, "Someone used Stop"
    TOOLS_CHANGED = FactKind.TOOLS_CHANGED.value, "Tools changed: review needed"
    SCHEDULE_MISSED = FactKind.SCHEDULE_MISSED.value, "A schedule did not start"
    GRANT_ENDED = FactKind.GRANT_ENDED.value, "A standing grant ended"
    TRIGGER_REFUSED = FactKind.TRIGGER_REFUSED.value, "A trigger refuses messages"
    WEBHOOK_DISABLED = FactKind.WEBHOOK_DISABLED.value, "Another webhook was switched off"


class Webhook(ReceiverBase):
    """An address of another system that receives facts of the organization.

    Attributes:
        address: encrypted, because some addresses are secrets; only admins see it.
        kinds: values of WebhookKind.
        sends_values: True if deliveries also contain values, not only ids, kinds and times.
        busy_until: the time until which a worker may be sending a delivery; only one delivery is
            sent at a time.
        rests_until: the time until which Gadget pauses sending, because the receiver failed.
        failures: the number of failures since the last success.
        is_slow: True if the last response took more than two seconds.
        off_reason: the reason why Gadget switched it off; empty otherwise.
        told_from: the time from which it gets facts: when it was added or last switched on.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="webhooks", db_index=False
    )
    name = models.CharField(max_length=80)
    address = EncryptedTextField()
    kinds = models.JSONField(default=list)
    sends_values = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    busy_until = models.DateTimeField(null=True)
    rests_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    is_slow = models.BooleanField(default=False)
    off_reason = models.CharField(max_length=300, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    told_from = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("organization", "-id"), name="webhooks_newest"),
            models.Index(
                fields=("organization",), name="webhooks_active", condition=Q(is_active=True)
            ),
        )

    def __str__(self) -> str:
        return self.name

    @override
    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the webhook; if this switches the webhook on, it gets only facts from then on."""
        if self.is_active and Webhook.objects.filter(pk=self.pk, is_active=False).exists():
            self.told_from = Now()
        super().save(*args, **kwargs)

    @property
    def host(self) -> str:
        """The host of the address, with its port, for lists; empty if the address cannot be
        read."""
        try:
            return read_url(self.address).netloc.decode("ascii")
        except ToolError:
            return ""


class WebhookSecret(models.Model):
    """A secret that signs the deliveries of a webhook.

    Attributes:
        valid_until: the time until which a replaced secret is valid; None for the newest secret.
    """

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="secrets")
    secret = EncryptedTextField()
    valid_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"secret {self.pk} of webhook {self.webhook_id}"


class WebhookDeliveryStatus(models.TextChoices):
    """The states of a delivery; an ended delivery can be sent again."""

    WAITING = "waiting", "Waiting"
    SENT = "sent", "Delivered"
    FAILED = "failed", "Failed"
    DROPPED = "dropped", "No longer needed"


class WebhookDelivery(DeliveryBase):
    """A fact on its way to one webhook, written after the commit of its event.

    The database does not check that its run and its webhook exist, because both may be removed
    meanwhile.

    Attributes:
        public_id: a random id, which is unique across installations and restores.
        run_id: the run's id; None for a fact of the organization, which does not belong to a run.
        seq: the number of the run's event, or the id of the organization's event, that it reports.
        previous_seq: the `seq` of the previous event that was sent to this webhook about the same
            run, or about no run; None for the first such event.
        payload: ids, kinds and times.
        values: everything else that a receiver may read; empty unless the webhook sent values when
            the fact was read. The values are sent only if the webhook still sends values.
        wanted_at: the start of the three days for retries: the time of the fact, or of *Send
            again*.
        answer_status, duration_ms: the HTTP status and the duration of the last attempt.
    """

    public_id = models.UUIDField(default=uuid4, editable=False)
    webhook = models.ForeignKey(
        Webhook,
        on_delete=models.DO_NOTHING,
        related_name="deliveries",
        db_index=False,
        db_constraint=False,
    )
    kind = models.CharField(max_length=20, choices=WebhookKind)
    run_id = models.BigIntegerField(null=True)
    seq = models.PositiveIntegerField()
    previous_seq = models.PositiveIntegerField(null=True)
    payload = models.JSONField(default=dict)
    values = models.JSONField(default=dict)
    status = models.CharField(
        max_length=10, choices=WebhookDeliveryStatus, default=WebhookDeliveryStatus.WAITING
    )
    due_at = models.DateTimeField(db_default=Now())
    wanted_at = models.DateTimeField(db_default=Now())
    answer_status = models.PositiveSmallIntegerField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(
                fields=("webhook", "due_at", "id"),
                name="webhook_deliveries_due",
                condition=Q(status="waiting"),
            ),
            models.Index(fields=("webhook", "-id"), name="deliveries_of_webhook"),
            models.Index(fields=("run_id", "webhook", "-seq"), name="webhook_deliveries_of_run"),
            models.Index(
                fields=("ended_at",),
                name="webhook_deliveries_ended",
                condition=Q(ended_at__isnull=False),
            ),
        )
        constraints = (
            models.CheckConstraint(
                condition=ENDED_HAS_A_TIME, name="ended_webhook_delivery_has_a_time"
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} to webhook {self.webhook_id}"

    @property
    def message_id(self) -> str:
        """The id by which a receiver recognizes a repeat: the same for each attempt."""
        return f"msg_{self.public_id.hex}"
