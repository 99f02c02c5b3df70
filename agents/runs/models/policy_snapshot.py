"""The model of policy snapshots."""

from django.db import models
from django.db.models.functions import Now

from agents.accounts.models.organization import Organization


class PolicySnapshot(models.Model):
    """The rules by which calls of an employee were judged; the same rules are stored only once.

    Attributes:
        hash: the SHA-256 of `rules`, by which passes name the snapshot.
        rules: canonical JSON of `tools.toolbox.snapshots.RecordedRules`, stored as text, because a
            database might change numbers in JSON.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    hash = models.CharField(max_length=64)
    rules = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        app_label = "policy"
        constraints = (
            models.UniqueConstraint(fields=("organization", "hash"), name="one_snapshot_per_hash"),
        )

    def __str__(self) -> str:
        return self.hash[:12]
