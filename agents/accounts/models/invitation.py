"""Links that can be used once: to join an organization, or to choose a new password."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from agents.accounts.models.organization import Membership, Organization, Role
from agents.platform.encrypted_fields import EncryptedTextField


class Invitation(models.Model):
    """An invitation whose link makes one person a member; only the link's SHA-256 is stored.

    Attributes:
        note: a description of the invited person, in the admin's words; it does not name an
            account.
        address: the person's e-mail address, for notices once they confirm it; empty if none was
            given.
        tries: the number of times that a username that was already taken was entered.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="invitations"
    )
    role = models.CharField(max_length=10, choices=Role)
    note = models.CharField(max_length=120, blank=True)
    address = EncryptedTextField(blank=True, default="", db_default="")
    hash = models.CharField(max_length=64, unique=True, editable=False)
    tries = models.PositiveSmallIntegerField(default=0)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="invitation_role_is_known"
            ),
            models.CheckConstraint(
                condition=models.Q(accepted_at__isnull=True) | models.Q(revoked_at__isnull=True),
                name="accepted_invitation_is_not_revoked",
            ),
        )

    def __str__(self) -> str:
        return self.note or f"invitation {self.pk}"

    @property
    def as_noun(self) -> str:
        """The role with its article: `a viewer`, `an operator`."""
        return Membership(role=self.role).as_noun


class PasswordReset(models.Model):
    """A one-time link for choosing a member's new password; only the link's SHA-256 is stored."""

    membership = models.ForeignKey(
        Membership, on_delete=models.CASCADE, related_name="password_resets"
    )
    hash = models.CharField(max_length=64, unique=True, editable=False)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"new password of {self.membership.user}"
