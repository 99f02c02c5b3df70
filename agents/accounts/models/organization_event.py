"""An organization's log: events that do not belong to a run."""

from django.db import models
from django.db.models.functions import Now

from agents.accounts.models.organization import Organization


class OrganizationEvent(models.Model):
    """A fact about an organization, such as a stop. The row is written in the transaction that
    makes the fact true, and is never changed."""

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="events", db_index=False
    )
    type = models.CharField(max_length=24)
    payload = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.type
