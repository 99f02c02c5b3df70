"""The models of approval rules, of the groups that they name, and of deputies."""

from datetime import timedelta

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from agents.accounts.models.organization import Membership, Organization
from agents.employees.models.employee import Employee
from tools.contract import Level
from tools.toolbox.approval_rules import Group, RuleTerms
from tools.toolbox.conditions import Condition

MAX_NEEDED = 10


class ApproverGroup(models.Model):
    """A group of members that approval rules can name."""

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="approver_groups"
    )
    name = models.CharField(max_length=60)
    members = models.ManyToManyField(Membership, blank=True, related_name="approver_groups")

    class Meta:
        ordering = ("name", "id")
        constraints = (
            models.UniqueConstraint(fields=("organization", "name"), name="group_names_are_unique"),
        )

    def __str__(self) -> str:
        return self.name

    def as_group(self) -> Group:
        """Return the group in the form that rules compare."""
        return Group(self.pk, self.name)


class ApprovalRule(models.Model):
    """A rule about the people who must approve the matching cards.

    Attributes:
        tool, category, level, employee, conditions: the scope of the rule; an empty scope covers
            every card.
        needed: the number of people.
        group: the group to which these people must belong; None for every approver.
        excludes_requesters: True if approvals by people who requested or edited the call do not
            count.
        escalate_hours: the number of hours after which approvals by people of `second_group` also
            count.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="approval_rules"
    )
    name = models.CharField(max_length=80)
    tool = models.CharField(max_length=120, blank=True)
    category = models.CharField(max_length=120, blank=True)
    level = models.CharField(max_length=12, blank=True)
    employee = models.ForeignKey(
        Employee, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    conditions = models.JSONField(default=list, blank=True)
    needed = models.PositiveSmallIntegerField(default=1)
    group = models.ForeignKey(
        ApproverGroup, on_delete=models.PROTECT, null=True, blank=True, related_name="rules"
    )
    excludes_requesters = models.BooleanField(default=False)
    escalate_hours = models.PositiveSmallIntegerField(null=True, blank=True)
    second_group = models.ForeignKey(
        ApproverGroup, on_delete=models.PROTECT, null=True, blank=True, related_name="second_rules"
    )
    is_active = models.BooleanField(default=True)

    class Meta:
        ordering = ("name", "id")
        constraints = (
            models.UniqueConstraint(fields=("organization", "name"), name="rule_names_are_unique"),
            models.CheckConstraint(
                condition=Q(needed__gte=1, needed__lte=MAX_NEEDED), name="rule_needs_1_to_10_people"
            ),
            models.CheckConstraint(
                condition=Q(level__in=("", *(each.value for each in Level))),
                name="level_of_approval_rule_is_known",
            ),
            models.CheckConstraint(
                condition=Q(escalate_hours__isnull=True, second_group__isnull=True)
                | Q(escalate_hours__isnull=False, second_group__isnull=False, group__isnull=False),
                name="escalation_has_a_time_and_two_groups",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def as_terms(self) -> RuleTerms:
        """Return the terms with which cards and votes are compared.

        Raises:
            TypeError, ValueError: the stored conditions cannot be read.
        """
        return RuleTerms(
            id=self.pk,
            name=self.name,
            tool=self.tool,
            category=self.category,
            level=Level(self.level) if self.level else None,
            employee_id=self.employee_id,
            conditions=tuple(map(Condition.from_json, self.conditions)),
            needed=self.needed,
            group=self.group.as_group() if self.group else None,
            excludes_requesters=self.excludes_requesters,
            escalates_after=timedelta(hours=self.escalate_hours)
            if self.escalate_hours is not None
            else None,
            second_group=self.second_group.as_group() if self.second_group else None,
        )


class Deputy(models.Model):
    """A member's deputy: another member, who may decide cards in this member's name during a
    period."""

    member = models.ForeignKey(Membership, on_delete=models.CASCADE, related_name="deputies")
    deputy = models.ForeignKey(Membership, on_delete=models.CASCADE, related_name="deputy_for")
    starts_at = models.DateTimeField(db_default=Now())
    ends_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "deputies"
        constraints = (
            models.CheckConstraint(
                condition=~Q(member=F("deputy")), name="nobody_is_their_own_deputy"
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="deputy_has_a_time"
            ),
        )

    def __str__(self) -> str:
        return f"{self.deputy.user} for {self.member.user}"
