"""Claims, snoozes and saved views: what people can do with cards besides deciding them."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from agents.accounts.models.organization import DECIDERS, Organization
from agents.runs.models.tool_call import ToolCall


class Claim(models.Model):
    """A person's claim on a card: for a while, other people are warned before they decide the card.

    The claim belongs to the call, so that it also applies to a card that replaces this one.
    """

    tool_call = models.OneToOneField(ToolCall, on_delete=models.CASCADE, related_name="claim")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    until = models.DateTimeField(db_index=True)

    @classmethod
    def select_active(cls, organization_id: int) -> models.QuerySet["Claim"]:
        """Select the current claims of people who may decide cards of this organization."""
        member = {"organization_id": organization_id, "role__in": DECIDERS}
        ours = {f"user__memberships__{name}": value for name, value in member.items()}
        return cls._default_manager.filter(until__gt=Now(), user__is_active=True, **ours)

    def __str__(self) -> str:
        return f"{self.user} until {self.until:%Y-%m-%d %H:%M}"


class Snooze(models.Model):
    """A person's wish not to see a card before a certain time; other people still see it.

    The snooze belongs to the call, so that it also applies to a card that replaces this one.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    tool_call = models.ForeignKey(ToolCall, on_delete=models.CASCADE, related_name="snoozes")
    until = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("user", "tool_call"), name="one_snooze_per_person_and_call"
            ),
        )

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
            models.UniqueConstraint(
                fields=("organization", "user", "name"), name="saved_view_names_are_unique"
            ),
        )

    def __str__(self) -> str:
        return self.name
