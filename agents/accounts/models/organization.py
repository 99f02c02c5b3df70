"""The tenant, its members and their keys to the API."""

from typing import Any, Self

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models.functions import Now

from agents.accounts.models.versions import take_note


class Organization(models.Model):
    """The tenant: nothing crosses it.

    Attributes:
        credentials_version: goes up with every change of its credentials, so that processes know theirs are old.
        tools_version: likewise with every change of its sources of tools and of the hosts that it allows.
        restored_at: when a backup was last restored; older cards may have been decided since.
        stopped_at, stopped_by: since when nothing of it runs, and the name of the person who stopped everything.
    """

    name = models.CharField(max_length=120)
    slug = models.SlugField(unique=True)
    four_eyes = models.BooleanField(
        default=False, help_text="Whoever started a run may not decide its cards; somebody else has to."
    )
    card_days = models.PositiveSmallIntegerField(default=7, help_text="Days after which an undecided card expires.")
    plan_features = models.JSONField(default=list, blank=True, help_text="Features of the plan, a list of names.")
    currency = models.CharField(max_length=3, default="USD", help_text="Of all prices and budgets, e.g. USD.")
    month_tokens = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="Tokens that all employees together may use in a month; empty: any number."
    )
    month_cost = models.DecimalField(
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="What the models may cost in a month; empty: any amount.",
    )
    credentials_version = models.PositiveIntegerField(default=0, editable=False)
    tools_version = models.PositiveIntegerField(default=0, editable=False)
    stopped_at = models.DateTimeField(null=True, editable=False)
    stopped_by = models.CharField(max_length=150, blank=True, editable=False)
    restored_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @classmethod
    def from_db(cls, *args: Any, **options: Any) -> Self:
        """Whoever reads the row sees which versions are the newest."""
        row = super().from_db(*args, **options)
        if {"tools_version", "credentials_version"} <= row.__dict__.keys():
            take_note(row.pk, row.tools_version, row.credentials_version)
        return row


class Role(models.TextChoices):
    """What a member may do; each may do what the ones before it may."""

    VIEWER = "viewer", "Viewer: reads"
    OPERATOR = "operator", "Operator: starts, messages, cancels"
    APPROVER = "approver", "Approver: also decides cards"
    ADMIN = "admin", "Admin: also configures"

    def includes(self, needed: "Role") -> bool:
        """True if somebody with this role may do what `needed` may."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


class Membership(models.Model):
    """A user's role in one organisation."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role, default=Role.VIEWER)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("organization", "user")
        constraints = (
            models.UniqueConstraint(fields=("organization", "user"), name="one_membership_per_organization"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_is_known"),
        )

    def __str__(self) -> str:
        return f"{self.user} in {self.organization} ({self.role})"

    @property
    def as_noun(self) -> str:
        """`a viewer`, `an operator`."""
        return f"{'an' if self.role[0] in 'aeiou' else 'a'} {self.role}"

    def may(self, needed: Role) -> bool:
        """True if this member's role includes the needed one."""
        return Role(self.role).includes(needed)


class ApiToken(models.Model):
    """A key to the API; only its SHA-256 is kept. It belongs to one membership and has its role."""

    membership = models.ForeignKey(Membership, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        verbose_name = "API token"

    def __str__(self) -> str:
        return self.name
