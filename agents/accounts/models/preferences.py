"""A member's preferences, which tools can read."""

from django.db import models

from agents.accounts.models.organization import Membership


class Units(models.TextChoices):
    """The systems of units that a member can prefer."""

    METRIC = "metric", "Metric (km, kg, °C)"
    IMPERIAL = "imperial", "Imperial (mi, lb, °F)"


class Preferences(models.Model):
    """A member's language and units, each empty if the member has chosen none. The time zone is
    stored with the preferences for notices."""

    membership = models.OneToOneField(
        Membership, on_delete=models.CASCADE, related_name="preferences"
    )
    language = models.CharField(max_length=35, blank=True)
    units = models.CharField(max_length=10, choices=Units, blank=True)

    class Meta:
        verbose_name_plural = "preferences"
        constraints = (
            models.CheckConstraint(
                condition=models.Q(units__in=("", *Units.values)), name="preferred_units_are_known"
            ),
        )

    def __str__(self) -> str:
        return f"preferences of {self.membership}"
