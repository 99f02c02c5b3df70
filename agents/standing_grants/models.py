"""The model of standing grants."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.accounts.models.organization import Organization
from agents.employees.models.employee import Employee
from agents.runs.models.run import Run
from tools.contract import Level
from tools.toolbox.grant_sources import read_grant_condition
from tools.toolbox.standing_grants import GrantTerms

MAX_USES = 1_000
MAX_DAYS = 7
MAX_CLIENT_ID = 200


class StandingGrant(models.Model):
    """A person's permission that approves cards of one shape in their name, for a limited time and
    number of calls; its terms never change.

    Each card that it approved refers to it, and counts as a use if the call has started or may
    still start.

    Attributes:
        definition_hash: the hash of the tool's definition when the standing grant was created.
        account: a hash of the account that the tool used then; empty if the tool acts within
            Gadget.
        employee: the only employee whose cards it approves; None for all employees of the
            organization.
        run: the only run whose cards it approves; None for all runs.
        params: the paths of the params that a call may have; without a condition, a param may have
            any value.
        conditions: JSON of `tools.toolbox.conditions.Condition`.
        client_grant_id: the maker's own id for the standing grant, so that a repeated request does
            not create a second standing grant.
        ended_at, ended_because: when and why it ended without being revoked, for example after a
            change of the tool.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="standing_grants"
    )
    tool = models.CharField(max_length=120)
    definition_hash = models.CharField(max_length=64)
    level = models.CharField(max_length=12)
    account = models.CharField(max_length=64, blank=True)
    employee = models.ForeignKey(
        Employee, on_delete=models.CASCADE, null=True, related_name="standing_grants"
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="+")
    params = models.JSONField(default=list)
    conditions = models.JSONField(default=list)
    max_uses = models.PositiveSmallIntegerField()
    expires_at = models.DateTimeField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    made_at = models.DateTimeField(db_default=Now())
    client_grant_id = models.CharField(
        max_length=MAX_CLIENT_ID, blank=True, default="", db_default=""
    )
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    revoked_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    ended_because = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(
                fields=("organization", "tool", "expires_at"),
                name="grants_in_force",
                condition=Q(revoked_at__isnull=True, ended_at__isnull=True),
            ),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("organization", "made_by", "client_grant_id"),
                condition=~Q(client_grant_id=""),
                name="grant_client_id_of_maker",
            ),
            models.CheckConstraint(
                condition=Q(max_uses__gte=1, max_uses__lte=MAX_USES), name="grant_uses_1_to_1000"
            ),
            models.CheckConstraint(
                condition=Q(level__in=(Level.READ.value, Level.DRAFT.value, Level.WRITE.value)),
                name="standing_grant_is_not_destructive",
            ),
            models.CheckConstraint(
                condition=Q(revoked_at__isnull=True, revoked_by__isnull=True)
                | Q(revoked_at__isnull=False, revoked_by__isnull=False),
                name="revocation_names_its_person",
            ),
        )

    def __str__(self) -> str:
        return f"standing grant {self.pk}"

    def as_terms(self) -> GrantTerms:
        """Return the terms in the form that calls are compared with.

        Raises:
            ValueError: the stored terms are invalid.
        """
        if not all(isinstance(each, list) for each in (self.params, self.conditions)):
            raise ValueError("its params and its conditions must be lists")
        return GrantTerms(
            pk=self.pk,
            tool=self.tool,
            definition=self.definition_hash,
            level=Level(self.level),
            account=self.account,
            params=frozenset(map(str, self.params)),
            conditions=tuple(map(read_grant_condition, self.conditions)),
            employee_id=self.employee_id,
            run_id=self.run_id,
        )
