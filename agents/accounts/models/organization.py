"""Organizations, their members, and API tokens."""

from typing import Any, Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now

from agents.accounts.models.organization_languages import LearnedLanguages, record_languages
from agents.accounts.models.organization_versions import record_versions
from agents.platform.refusals import Forbidden
from tools.contract.languages import get_main_code


class Organization(models.Model):
    """A tenant: its data and employees are kept apart from those of all other organizations.

    Attributes:
        credentials_version: incremented whenever credentials change, so that each process reloads
            them.
        tools_version: incremented whenever sources of tools or allowed hosts change, so that each
            process reloads the tools.
        languages: the codes of the languages that an admin named, such as `fa`; see
            `written_languages`.
        learned_languages: a `LearnedLanguages` as JSON; None until languages have been learned for
            the first time.
        restored_at: the time of the last restore; older cards may have been decided after the
            backup was made.
        stopped_at, stopped_by: the time when everything was stopped, and the person who stopped it.
    """

    name = models.CharField(max_length=120)
    slug = models.SlugField(unique=True)
    four_eyes = models.BooleanField(
        "two-person rule",
        default=False,
        help_text="Two-person rule: whoever asked for a call cannot approve it.",
    )
    break_glass = models.BooleanField(
        "break-glass",
        default=False,
        help_text="In an emergency, an admin can approve a card alone, past the approval rules. "
        "All admins are notified.",
    )
    break_glass_address = models.EmailField(
        "break-glass address",
        blank=True,
        help_text="Also notified of every break-glass. Required with a single admin. Set by superusers.",
    )
    card_days = models.PositiveSmallIntegerField(
        "card lifetime (days)", default=7, help_text="Days until an undecided card expires."
    )
    confirm_count = models.PositiveSmallIntegerField(
        "confirm above (objects)",
        default=50,
        help_text="A card that affects more objects than this is confirmed by typing, whatever its level.",
    )
    confirm_percent = models.PositiveSmallIntegerField(
        "confirm above (percent)",
        default=20,
        validators=[MaxValueValidator(100)],
        help_text="The same for a share of all objects, from 0 to 100. Applies from 6 objects.",
    )
    plan_features = models.JSONField(
        default=list, blank=True, help_text="Features of the plan, as a list of names."
    )
    currency = models.CharField(
        max_length=3, default="USD", help_text="Currency of all prices and budgets, e.g. USD."
    )
    month_tokens = models.PositiveBigIntegerField(
        "monthly token limit",
        null=True,
        blank=True,
        help_text="Monthly token limit for all employees together. Empty means no limit.",
    )
    month_cost = models.DecimalField(
        "monthly cost limit",
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Monthly cost limit for all employees together. Empty means no limit.",
    )
    languages = models.JSONField(default=list, null=True, blank=True)
    learns_languages = models.BooleanField(
        "learn languages",
        default=True,
        db_default=True,
        help_text="Also count the languages that members chose and in which people type tasks.",
    )
    learned_languages = models.JSONField(null=True, editable=False)
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
        """Record the languages and versions of each row that is read, because they may be the
        newest."""
        row = super().from_db(*args, **options)
        if {"tools_version", "credentials_version"} <= row.__dict__.keys():
            record_versions(row.pk, row.tools_version, row.credentials_version)
        if {"languages", "learns_languages", "learned_languages"} <= row.__dict__.keys():
            record_languages(row.pk, row.written_languages)
        return row

    @property
    def written_languages(self) -> frozenset[str]:
        """The codes of the languages that the organization writes: those that an admin named, and
        those that were learned."""
        learned = LearnedLanguages.from_json(self.learned_languages)
        named = frozenset(map(get_main_code, self.languages or ()))
        return named | learned.languages if self.learns_languages else named


class Role(models.TextChoices):
    """The roles of members; each role has its own permissions and those of the roles before it."""

    VIEWER = "viewer", "Viewer: can read"
    OPERATOR = "operator", "Operator: can also start, message and cancel runs"
    APPROVER = "approver", "Approver: can also decide cards"
    ADMIN = "admin", "Admin: can also configure"

    def includes(self, needed: "Role") -> bool:
        """Return True if this role has all permissions of the needed role."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


DECIDERS = tuple(role.value for role in Role if role.includes(Role.APPROVER))
"""The roles whose members may decide cards."""


class Membership(models.Model):
    """A user's role in one organization."""

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="memberships"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=10, choices=Role, default=Role.VIEWER)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("organization", "user")
        constraints = (
            models.UniqueConstraint(
                fields=("organization", "user"), name="one_membership_per_organization"
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="membership_role_is_known"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} in {self.organization} ({self.role})"

    @property
    def as_noun(self) -> str:
        """The role with its article: `a viewer`, `an operator`."""
        return f"{'an' if self.role[0] in 'aeiou' else 'a'} {self.role}"

    @property
    def actor(self) -> str:
        """The member's name in the audit."""
        return f"user:{self.user.get_username()}"

    def may(self, needed: Role) -> bool:
        """Return True if this member's role includes the needed one."""
        return Role(self.role).includes(needed)

    def require(self, needed: Role, act: str) -> None:
        """Raise Forbidden if the member's role does not include the needed one."""
        if not self.may(needed):
            raise Forbidden(f"{self.as_noun} cannot {act}")


class ApiToken(models.Model):
    """A token for the API, of which only the SHA-256 is stored. It belongs to one membership and
    has its role."""

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
