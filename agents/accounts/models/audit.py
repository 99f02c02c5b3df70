"""The rows of the audit chain."""

from django.db import models

from agents.accounts.models.organization import Organization


class AuditHead(models.Model):
    """The head of an organization's audit chain: the number and hash of its newest entry. Every
    transaction locks this row last, to avoid deadlocks."""

    organization = models.OneToOneField(Organization, on_delete=models.CASCADE, primary_key=True)
    seq = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return f"{self.seq}"


class AuditEntry(models.Model):
    """An entry of the audit chain: a decision, an execution or a configuration change.

    Attributes:
        hash: HMAC-SHA256 over the fields and the previous entry's hash.
        key_id: the short id of the audit key that signed the entry.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="audit_entries", db_index=False
    )
    seq = models.PositiveBigIntegerField(
        "number",
    )
    actor = models.CharField(max_length=200)
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    payload = models.JSONField(default=dict)
    previous_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64)
    key_id = models.CharField(max_length=8, default="", blank=True)
    at = models.DateTimeField(
        "time",
    )

    class Meta:
        ordering = ("-seq",)
        verbose_name_plural = "audit entries"
        indexes = (
            models.Index(fields=("organization", "actor", "seq"), name="audit_by_actor"),
            models.Index(fields=("organization", "action", "seq"), name="audit_by_action"),
            models.Index(fields=("organization", "at", "seq"), name="audit_by_time"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("organization", "seq"), name="audit_seq_in_organization"
            ),
        )

    def __str__(self) -> str:
        return f"{self.seq} {self.action}"
