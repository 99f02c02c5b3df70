"""The columns that all tables of deliveries share, those that all tables of receivers share, and
the key for push."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.platform.encrypted_fields import EncryptedTextField

MAX_PROBLEM = 300


class DeliveryStatus(models.TextChoices):
    """The states of a delivery. A waiting delivery may change to any other state; a failed delivery
    may change to waiting again."""

    WAITING = "waiting", "Waiting"
    SENT = "sent", "Sent"
    SHOWN = "shown", "Not sent"
    """The installation does not have a server for the delivery, so it is only shown on the page of
    notices."""
    DROPPED = "dropped", "No longer needed"
    FAILED = "failed", "Failed"


ENDED_HAS_A_TIME = Q(status="waiting", ended_at__isnull=True) | ~Q(status="waiting") & Q(
    ended_at__isnull=False
)
"""The constraint of each table of deliveries: a delivery has an end time if and only if it no
longer waits."""


class DeliveryBase(models.Model):
    """A notice or an event on its way to one receiver.

    Attributes:
        due_at: the time from which to send it; during an attempt, the time at which another sender
            may retry.
        tries: the number of started attempts.
        problem: the reason why the last attempt failed, or why the delivery was dropped.
        taken_at: the database's time when the engine took it; only set on rows read by the engine.
    """

    status = models.CharField(max_length=10, choices=DeliveryStatus, default=DeliveryStatus.WAITING)
    due_at = models.DateTimeField()
    tries = models.PositiveSmallIntegerField(default=0)
    problem = models.CharField(max_length=MAX_PROBLEM, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    taken_at: datetime

    class Meta:
        abstract = True


class ReceiverBase(models.Model):
    """An address to which deliveries go. Each receiver has an `organization_id` and a `host`, which
    may be empty.

    Attributes:
        failing_since, problem: the time since which sending has failed, and the reason for the last
            failure.
    """

    failing_since = models.DateTimeField(null=True)
    problem = models.CharField(max_length=MAX_PROBLEM, blank=True)

    class Meta:
        abstract = True


class PushKey(models.Model):
    """The installation's key pair for browser push, in a single row; a new key pair would end all
    subscriptions."""

    private_key = EncryptedTextField()

    class Meta:
        app_label = "notices"
        constraints = (models.CheckConstraint(condition=Q(pk=1), name="there_is_one_push_key"),)

    def __str__(self) -> str:
        return "push key"
