"""The models of policy drafts, and of the verdicts and cards for which shadow mode found a
difference."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.accounts.models.organization import Organization
from agents.runs.models import Approval
from agents.runs.models.tool_call import ToolCall

MAX_SHADOW_DAYS = 30


class PolicyDraft(models.Model):
    """Rule changes that are saved to observe their effect. A policy draft never changes a verdict.

    Attributes:
        changes: JSON of `agents.policy.policy_drafts.PolicyChange`.
        shadow_from, shadow_until: the period of shadow mode, in which the policy draft also judges
            new calls; None if shadow mode was never started.
        last_call_id: the newest call that was compared, or that existed when shadow mode started.
        counts: for each pair of real and new verdict, such as "auto ask", the number of compared
            calls; and for each reason, the number of calls that could not be judged.
        last_decided_at, last_card_id: the newest decision that was compared with these approval
            rules; None and 0 before the first comparison.
        card_counts: the number of compared cards that match these rules, by outcome; `stuck` counts
            the cards that nobody could have approved, `unsure` the cards that a rule may or may not
            match.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(max_length=80)
    changes = models.JSONField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    shadow_from = models.DateTimeField(null=True)
    shadow_until = models.DateTimeField(null=True)
    last_call_id = models.BigIntegerField(default=0)
    counts = models.JSONField(default=dict)
    last_decided_at = models.DateTimeField(null=True)
    last_card_id = models.BigIntegerField(default=0)
    card_counts = models.JSONField(default=dict)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("organization", "-id"), name="drafts_of_organization"),
            models.Index(
                fields=("shadow_until",),
                name="drafts_in_shadow",
                condition=Q(shadow_until__isnull=False),
            ),
        )
        constraints = (
            models.CheckConstraint(
                condition=(
                    Q(shadow_from__isnull=True, shadow_until__isnull=True)
                    | Q(shadow_from__isnull=False, shadow_until__gt=models.F("shadow_from"))
                ),
                name="shadow_has_a_beginning_and_an_end",
            ),
        )

    def __str__(self) -> str:
        return self.name


class ShadowVerdict(models.Model):
    """A verdict of a policy draft in shadow mode that differs from the call's real verdict. The
    verdict was never applied."""

    draft = models.ForeignKey(
        PolicyDraft, on_delete=models.CASCADE, related_name="verdicts", db_index=False
    )
    call = models.ForeignKey(ToolCall, on_delete=models.CASCADE, related_name="+")
    before = models.CharField(max_length=10)
    after = models.CharField(max_length=10)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ("-call_id",)
        constraints = (
            models.UniqueConstraint(fields=("draft", "call"), name="one_shadow_verdict_per_call"),
        )

    def __str__(self) -> str:
        return f"{self.before} → {self.after}"


class ShadowCard(models.Model):
    """A card that the approval rules of a policy draft in shadow mode would have treated
    differently.

    Attributes:
        outcome: a `CardOutcome` of `agents.policy.rule_simulation`.
        needs: the people whose approval the card would have needed.
        is_stuck: True if nobody could have approved the card at the time of the comparison.
    """

    draft = models.ForeignKey(
        PolicyDraft, on_delete=models.CASCADE, related_name="cards", db_index=False
    )
    card = models.ForeignKey(Approval, on_delete=models.CASCADE, related_name="+")
    outcome = models.CharField(max_length=10)
    needs = models.TextField(blank=True)
    is_stuck = models.BooleanField(default=False)

    class Meta:
        ordering = ("-card_id",)
        constraints = (
            models.UniqueConstraint(fields=("draft", "card"), name="one_shadow_outcome_per_card"),
        )

    def __str__(self) -> str:
        return self.outcome
