"""The credentials that an organization has for services."""

from django.db import models
from django.db.models.functions import Now

from agents.accounts.models.organization import Organization
from agents.platform.encrypted_fields import EncryptedTextField


class Credential(models.Model):
    """An organization's credentials for one service, which replace those of `gadget.yaml` for that
    service.

    Attributes:
        service: the service as tools name it, e.g. `github`.
        fields: a JSON object of texts, e.g. {"token": "…"}; encrypted, and never shown again.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="credentials", db_index=False
    )
    service = models.CharField(max_length=80)
    fields = EncryptedTextField()
    changed_by = models.CharField(max_length=150, blank=True)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("service",)
        constraints = (
            models.UniqueConstraint(
                fields=("organization", "service"), name="one_credential_per_service"
            ),
        )

    def __str__(self) -> str:
        return self.service
