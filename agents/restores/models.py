"""The model of limits that a restore brought back and no admin has confirmed yet."""

from django.db import models

from agents.accounts.models.organization import Organization


class RestoredLimit(models.Model):
    """A restored limit that waits for an admin's confirmation; the page calls it a line.

    Attributes:
        kind: the name of a `LimitKind` (agents/restores/limits.py).
        row_id: the id of the limiting row.
        name: the description of the row, for people.
        restored: the values in the backup; None if the backup did not have the row.
        newer: the values in the database before the restore; None if that database did not have the
            row.
        is_compared: True if the database before the restore was a newer one of the same
            organization.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="restored_limits"
    )
    kind = models.CharField(max_length=20)
    row_id = models.BigIntegerField()
    name = models.CharField(max_length=200)
    restored = models.JSONField(null=True)
    newer = models.JSONField(null=True)
    is_compared = models.BooleanField(default=False)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("organization", "kind", "row_id"), name="one_line_per_restored_limit"
            ),
        )

    def __str__(self) -> str:
        return self.name
