"""Notices, the channels by which they reach people, and their deliveries.

A notice is one fact. Spreading a notice creates a delivery for each person and channel; the engine
of deliveries sends them.
"""

from datetime import time

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.accounts.models.organization import Membership, Organization
from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.models import ENDED_HAS_A_TIME, DeliveryBase, DeliveryStatus, ReceiverBase
from agents.platform.encrypted_fields import EncryptedTextField
from agents.runs.models import Approval
from agents.runs.models.run import Run

CARD_KINDS = (
    *(NoticeKind.CARD, NoticeKind.QUESTION, NoticeKind.UNKNOWN, NoticeKind.CARD_EXPIRING),
    *(NoticeKind.ESCALATED, NoticeKind.STUCK),
)
"""The kinds of notices that are no longer needed once their card is closed."""
SHARED_KINDS = (
    *(
        *CARD_KINDS,
        NoticeKind.CARD_EXPIRED,
        NoticeKind.BREAK_GLASS,
        NoticeKind.STOPPED,
        NoticeKind.BUDGET,
    ),
    *(NoticeKind.QUARANTINE, NoticeKind.WEBHOOK_OFF, NoticeKind.TRIGGER_REFUSED),
)
"""The kinds of notices that an organization's shared channels get."""
KNOWN_KINDS = NoticeKind.values
"""The kinds that this version can put into words. During an update, this version leaves all other
kinds to newer processes."""
RUN_KINDS = (NoticeKind.RUN_FAILED, NoticeKind.RUN_ENDED)
ADMIN_KINDS = (
    *(
        NoticeKind.STUCK,
        NoticeKind.BREAK_GLASS,
        NoticeKind.STOPPED,
        NoticeKind.BUDGET,
        NoticeKind.QUARANTINE,
    ),
    NoticeKind.WEBHOOK_OFF,
)
"""The kinds of notices that only admins get."""


class Notice(models.Model):
    """A fact that people are notified of, written after the commit of its event.

    Attributes:
        key: unique in the organization, such as `card:17`.
        user: the only person to notify; None if the notice's kind decides who is notified.
        detail: the notice's subject, in addition to the run and the card: a name given by a person,
            never a text written by a model. For the end of a run, the run's final status.
        spread_at: the time at which the notice's deliveries were created; None before that.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="notices", db_index=False
    )
    key = models.CharField(max_length=80)
    kind = models.CharField(max_length=16, choices=NoticeKind)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="notices")
    approval = models.ForeignKey(
        Approval, on_delete=models.CASCADE, null=True, related_name="notices", db_index=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    detail = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    spread_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        indexes = (
            models.Index(
                fields=("id",), name="notices_to_spread", condition=Q(spread_at__isnull=True)
            ),
            models.Index(fields=("approval", "kind"), name="notices_of_approval"),
        )
        constraints = (
            models.UniqueConstraint(fields=("organization", "key"), name="one_notice_per_fact"),
            models.CheckConstraint(
                condition=Q(kind__in=NoticeKind.values), name="notice_kind_is_known"
            ),
        )

    def __str__(self) -> str:
        return self.key


class ChannelKind(models.TextChoices):
    """The ways to reach a person."""

    EMAIL = "email", "E-mail"
    PUSH = "push", "Browser"
    CHAT = "chat", "Chat service"


class Channel(ReceiverBase):
    """A person's address, which is used once the code that was sent to it has been entered.

    Attributes:
        address: encrypted, because addresses of some kinds are secrets.
        label: the text that pages show to people other than its owner.
        fingerprint: a keyed hash of the address, which prevents adding an address twice.
        host: the server that receives its notifications, such as a push service; empty if unknown.
        is_shared: True if the channel belongs to the whole organization, for as long as its member
            is an admin.
        code: the code that was sent to the address, while the channel is unconfirmed.
        wrong_codes: the number of wrong codes that were entered.
        gone_answers: the number of consecutive responses that say that the address is gone.
    """

    membership = models.ForeignKey(Membership, on_delete=models.CASCADE, related_name="channels")
    kind = models.CharField(max_length=10, choices=ChannelKind)
    address = EncryptedTextField()
    label = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    host = models.CharField(max_length=200, blank=True, default="", db_default="")
    is_shared = models.BooleanField(default=False)
    code = EncryptedTextField(blank=True)
    wrong_codes = models.PositiveSmallIntegerField(default=0)
    gone_answers = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    confirmed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("membership", "fingerprint"), name="one_channel_per_address"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=ChannelKind.values), name="channel_kind_is_known"
            ),
        )

    def __str__(self) -> str:
        return self.label

    @property
    def organization_id(self) -> int:
        return self.membership.organization_id

    @property
    def own_name(self) -> str:
        """The channel's name for its owner, who sees a whole e-mail address."""
        return self.address if self.kind == ChannelKind.EMAIL else self.label


class Delivery(DeliveryBase):
    """A notice on its way to one person by one channel.

    Attributes:
        is_on_screen: True from the time when a browser receives the notice until the notice is
            withdrawn. During that time, `due_at` and `tries` refer to the withdrawal.
    """

    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    status = models.CharField(max_length=8, choices=DeliveryStatus, default=DeliveryStatus.WAITING)
    is_on_screen = models.BooleanField(default=False)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "deliveries"
        indexes = (
            models.Index(
                fields=("due_at", "id"), name="deliveries_due", condition=Q(status="waiting")
            ),
            models.Index(fields=("id",), name="deliveries_failed", condition=Q(status="failed")),
            models.Index(
                fields=("id",), name="deliveries_on_screens", condition=Q(is_on_screen=True)
            ),
            models.Index(fields=("channel", "-id"), name="deliveries_of_channel"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("notice", "channel"), name="one_delivery_per_notice_and_channel"
            ),
            models.CheckConstraint(
                condition=Q(status__in=DeliveryStatus.values), name="delivery_status_is_known"
            ),
            models.CheckConstraint(condition=ENDED_HAS_A_TIME, name="ended_delivery_has_a_time"),
        )

    def __str__(self) -> str:
        return f"{self.notice_id} by {self.channel_id}"


class NoticeChoices(models.Model):
    """A member's preferences: which kinds of notices are sent immediately, in a digest or never. If
    there is no row, the defaults apply.

    Attributes:
        paces: the pace for each kind of notice, by the kind's value; a kind that is missing has its
            default pace.
        quiet_from, quiet_until: the hours during which no notice is sent, in `time_zone`; None if
            there are no quiet hours.
        digest_at: the time of the daily digest.
    """

    membership = models.OneToOneField(
        Membership, on_delete=models.CASCADE, related_name="notice_choices"
    )
    paces = models.JSONField(default=dict)
    quiet_from = models.TimeField(null=True)
    quiet_until = models.TimeField(null=True)
    digest_at = models.TimeField(default=time(8))
    time_zone = models.CharField(max_length=60, default="UTC")

    def __str__(self) -> str:
        return f"choices of {self.membership}"


class FollowedRun(models.Model):
    """A member's subscription to the end of a run."""

    membership = models.ForeignKey(
        Membership, on_delete=models.CASCADE, related_name="followed_runs"
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="followers")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("membership", "run"), name="a_run_is_followed_once"),
        )

    def __str__(self) -> str:
        return f"{self.membership} follows {self.run_id}"
