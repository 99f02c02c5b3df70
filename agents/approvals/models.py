"""Votes, claims, snoozes and saved views: acts of people on cards besides their decisions."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.accounts.models.organization import DECIDERS, Organization
from agents.runs.models.approval import Approval
from agents.runs.models.tool_call import ToolCall


class Vote(models.Model):
    """A person's approval of a card for which an approval rule needs certain people; a single approver casts none.

    Attributes:
        deputy_for: the person in whose stead it was cast.
        decision_id: repeating it by the same person casts no second vote.
        withdrawn_at: the time from which it does not count any more.
    """

    approval = models.ForeignKey(Approval, on_delete=models.CASCADE, related_name="votes", db_index=False)
    voter = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    deputy_for = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    decision_id = models.CharField(max_length=200, blank=True)
    cast_at = models.DateTimeField(db_default=Now())
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=("approval", "id"), name="votes_of_approval"),)
        constraints = (
            models.UniqueConstraint(
                fields=("approval", "voter"), condition=Q(withdrawn_at__isnull=True), name="one_vote_per_person"
            ),
            models.UniqueConstraint(
                fields=("approval", "deputy_for"),
                condition=Q(withdrawn_at__isnull=True, deputy_for__isnull=False),
                name="one_vote_for_each_person",
            ),
        )

    def __str__(self) -> str:
        return f"{self.voter} on {self.approval_id}"


class Claim(models.Model):
    """A person's claim on a card: for a while, others are warned before they decide it.

    It belongs to the call, so that it also holds for a card that replaces this one.
    """

    tool_call = models.OneToOneField(ToolCall, on_delete=models.CASCADE, related_name="claim")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    until = models.DateTimeField(db_index=True)

    @classmethod
    def by_deciders(cls, organization_id: int) -> models.QuerySet["Claim"]:
        """Select the claims of people who may decide cards of this organization now."""
        member = {"organization_id": organization_id, "role__in": DECIDERS}
        ours = {f"user__memberships__{name}": value for name, value in member.items()}
        return cls._default_manager.filter(user__is_active=True, **ours)

    def __str__(self) -> str:
        return f"{self.user} until {self.until:%Y-%m-%d %H:%M}"


class Snooze(models.Model):
    """A person's wish not to see a card before a certain time; others still see it.

    It belongs to the call, so that it also holds for a card that replaces this one.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    tool_call = models.ForeignKey(ToolCall, on_delete=models.CASCADE, related_name="snoozes")
    until = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "tool_call"), name="one_snooze_per_person_and_call"),)

    def __str__(self) -> str:
        return f"{self.user} until {self.until:%Y-%m-%d %H:%M}"


class SavedView(models.Model):
    """A member's named filter of the inbox.

    Attributes:
        query: the query string of the page, without `?`.
    """

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=500)

    class Meta:
        ordering = ("name", "id")
        constraints = (
            models.UniqueConstraint(fields=("organization", "user", "name"), name="saved_view_names_are_unique"),
        )

    def __str__(self) -> str:
        return self.name
