"""The models of approvals, which people see as cards, and of the votes on them."""

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Coalesce, Now

from agents.accounts.models.organization import Organization
from agents.runs.models.run import Run
from agents.runs.models.tool_call import ToolCall

IS_PENDING = models.Func(
    "status", template="%(expressions)s = 'pending'", output_field=models.BooleanField()
)
"""Selects the waiting cards with a constant status: with the status as a parameter, a prepared
statement could not use the partial indexes."""


class ApprovalStatus(models.TextChoices):
    """The states of a card: `pending` can become any other state; `approved` can become consumed,
    cancelled or superseded."""

    PENDING = "pending", "Waiting"
    APPROVED = "approved", "Approved"
    DENIED = "denied", "Denied"
    ANSWERED = "answered", "Answered"
    EXPIRED = "expired", "Expired"
    CANCELLED = "cancelled", "Cancelled"
    SUPERSEDED = "superseded", "Replaced"
    CONSUMED = "consumed", "Approved and started"


APPROVED_STATES = (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)
"""The states of approved cards: the call may start, or has started."""


class ApprovalKind(models.TextChoices):
    """The kinds of cards."""

    APPROVAL = "approval", "Approval"
    QUESTION = "question", "Question"
    UNKNOWN = "unknown", "Outcome unknown"


def name_decider(username: str, standing_grant_id: int | None) -> str:
    """Return the name of the person who decided a card, or of the standing grant that decided it in
    this person's name."""
    return (
        f"standing grant {standing_grant_id}, made by {username}" if standing_grant_id else username
    )


class Approval(models.Model):
    """A card: it shows the effect that a call would have, sealed by a digest, and records the
    decision.

    Attributes:
        sequence: the number of this card among the cards of its call, from 1.
        sentence: the sentence about the effect, written by the server from the params, never by the
            model.
        preview: the sealed effect, see `tools.contract.Preview.as_json`.
        level, params: the call's level and params on this card; a later card of the call may have
            other values.
        why: the changes since the replaced card, if any, and the reason why a person is asked.
        words: the other system's own words about an unknown outcome, unverified; empty for other
            cards.
        shape: a hash of the tool, its definition, the level and the names of the params; the inbox
            groups cards of the same shape.
        bulk_id: the bulk decision that this decision belongs to; None if the card was decided on
            its own.
        digest: SHA-256 over organization, run, call, tool, definition, level, params and preview.
        standing_grant: the standing grant that approved the card in the name of its creator, who is
            `decided_by`.
        ruling: the approval rules and votes by which the card was approved, see
            `tools.toolbox.rulings`; None if there were no rules.
        broke_glass: True if an admin approved the card alone in an emergency, although approval
            rules needed other people.
        shown_marks: the marks on the card when a person decided it or when it expired; see
            `agents.approvals.warnings.marks.Mark`. The card of an unknown outcome has the same
            marks as the decided card. None for other cards.
        start_after: the end of the grace period, until which the decision can be undone.
        valid_until: the time by which an approved call must start; None while it waits for
            `after`.
        after: the earlier call that must end before this call starts, because a standing grant
            approved this call; it may be in the delegating run. None if this call need not wait.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="approvals", db_index=False
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="approvals", db_index=False)
    tool_call = models.ForeignKey(
        ToolCall, on_delete=models.CASCADE, related_name="approvals", db_index=False
    )
    sequence = models.PositiveSmallIntegerField(default=1)
    kind = models.CharField(max_length=10, choices=ApprovalKind, default=ApprovalKind.APPROVAL)
    status = models.CharField(max_length=12, choices=ApprovalStatus, default=ApprovalStatus.PENDING)
    level = models.CharField(max_length=12)
    params = models.JSONField(default=dict)
    sentence = models.TextField()
    preview = models.JSONField()
    why = models.TextField(blank=True)
    words = models.TextField(blank=True, default="", db_default="")
    digest = models.CharField(max_length=64)
    shape = models.CharField(max_length=64, blank=True)
    requested_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)
    standing_grant = models.ForeignKey(
        "standing_grants.StandingGrant",
        on_delete=models.RESTRICT,
        null=True,
        related_name="answered",
        db_index=False,
    )
    ruling = models.JSONField(null=True)
    broke_glass = models.BooleanField(default=False, db_default=False)
    shown_marks = models.JSONField(null=True)
    reason = models.TextField(blank=True)
    decision_id = models.CharField(max_length=200, blank=True)
    bulk_id = models.UUIDField(null=True)
    start_after = models.DateTimeField(null=True)
    valid_until = models.DateTimeField(null=True)
    after = models.ForeignKey(
        ToolCall, on_delete=models.CASCADE, null=True, related_name="+", db_index=False
    )
    consumed_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "approvals"
        ordering = ("id",)
        indexes = (
            models.Index(fields=("organization", "status", "id"), name="approvals_by_status"),
            models.Index(
                fields=("organization", "decided_at"),
                name="decisions_by_time",
                condition=Q(decided_at__isnull=False),
            ),
            models.Index(
                fields=("organization", "decided_by", "decided_at", "id"),
                name="decisions_by_person",
                condition=Q(decided_at__isnull=False, standing_grant__isnull=True),
            ),
            models.Index(
                fields=("organization", "-decided_at"),
                name="denials_by_time",
                condition=Q(status="denied"),
            ),
            models.Index(fields=("organization", "-id"), name="approvals_newest"),
            models.Index(
                "organization",
                Coalesce("decided_at", "requested_at"),
                "id",
                name="approvals_by_end",
                condition=~Q(status="pending"),
            ),
            models.Index(
                fields=("organization", "shape", "-decided_at", "-id"),
                name="decisions_by_shape",
                condition=Q(decided_at__isnull=False),
            ),
            models.Index(fields=("run", "id"), name="approvals_of_run"),
            models.Index(
                fields=("organization", "tool_call", "id"),
                name="approvals_waiting",
                condition=Q(status="pending"),
            ),
            models.Index(
                fields=("expires_at",), name="approvals_expiring", condition=Q(status="pending")
            ),
            models.Index(
                fields=("start_after",), name="approvals_starting", condition=Q(status="approved")
            ),
            models.Index(
                fields=("after",), name="approvals_held", condition=Q(after__isnull=False)
            ),
            models.Index(
                fields=("standing_grant", "-id"),
                name="approvals_of_grants",
                condition=Q(standing_grant__isnull=False),
            ),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("tool_call", "sequence"), name="approval_sequence_of_call"
            ),
            models.UniqueConstraint(
                fields=("tool_call",),
                condition=Q(status__in=("pending", "approved")),
                name="one_open_approval_per_call",
            ),
            models.UniqueConstraint(
                fields=("tool_call",),
                condition=Q(status="consumed"),
                name="one_consumed_approval_per_call",
            ),
            models.CheckConstraint(
                condition=Q(status__in=ApprovalStatus.values), name="approval_status_is_known"
            ),
            models.CheckConstraint(
                condition=(
                    ~Q(status__in=("approved", "denied", "answered", "consumed"))
                    | Q(decided_by__isnull=False, decided_at__isnull=False)
                ),
                name="decision_names_its_person",
            ),
            models.CheckConstraint(
                condition=(
                    Q(status="consumed", consumed_at__isnull=False)
                    | ~Q(status="consumed") & Q(consumed_at__isnull=True)
                ),
                name="consumed_approval_has_a_time",
            ),
        )

    def __str__(self) -> str:
        return self.sentence[:120]

    @property
    def decider(self) -> str:
        """The name of the person who decided, or of the standing grant with its creator; empty if
        nobody has decided."""
        return name_decider(
            self.decided_by.get_username() if self.decided_by else "", self.standing_grant_id
        )


class WithheldBulk(models.Model):
    """A bulk approval that was undone, so that none of its calls starts.

    Every start of a call reads this row under the run's lock, so the approvals need not be changed
    immediately; their cards are then renewed one by one. The row is kept, so that a late approval
    of the same bulk does not start a call either.

    Attributes:
        user: the person who approved the bulk and has undone it.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    bulk_id = models.UUIDField()
    withheld_at = models.DateTimeField(db_default=Now())

    class Meta:
        app_label = "approvals"
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("organization", "bulk_id", "user"), name="bulk_is_withheld_once"
            ),
        )

    @classmethod
    def find_for_approval(cls) -> Q:
        """Return the condition that an approval, or a vote that it needed, belongs to a withheld
        bulk.

        Its negation selects the approvals that may start.
        """
        votes = Vote.select_undone().filter(approval_id=OuterRef("pk"))
        return Q(_find_withheld("organization_id", "decided_by_id")) | Q(Exists(votes.order_by()))

    def __str__(self) -> str:
        return f"{self.bulk_id}, undone by {self.user}"


class Vote(models.Model):
    """A person's approval of a card under an approval rule; a single approver does not cast a vote.

    Attributes:
        deputy_for: the person on whose behalf the vote was cast; None if it is the voter's own.
        decision_id: the id of the voter's request; if the voter repeats the request, the vote is
            not cast twice.
        bulk_id: the bulk approval that the vote is part of; undoing the bulk withdraws the vote.
        withdrawn_at: the time from which the vote no longer counts; None while it counts.
    """

    approval = models.ForeignKey(
        Approval, on_delete=models.CASCADE, related_name="votes", db_index=False
    )
    voter = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    deputy_for = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    decision_id = models.CharField(max_length=200, blank=True)
    bulk_id = models.UUIDField(null=True)
    cast_at = models.DateTimeField(db_default=Now())
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "approvals"
        ordering = ("id",)
        indexes = (models.Index(fields=("approval", "id"), name="votes_of_approval"),)
        constraints = (
            models.UniqueConstraint(
                fields=("approval", "voter"),
                condition=Q(withdrawn_at__isnull=True),
                name="one_vote_per_person",
            ),
            models.UniqueConstraint(
                fields=("approval", "deputy_for"),
                condition=Q(withdrawn_at__isnull=True, deputy_for__isnull=False),
                name="one_vote_for_each_person",
            ),
        )

    @classmethod
    def select_cast(cls) -> models.QuerySet["Vote"]:
        """Select the votes that were not withdrawn, separately or with their bulk, oldest first."""
        withheld = _find_withheld("approval__organization_id", "voter_id")
        return cls._default_manager.filter(~withheld, withdrawn_at=None).order_by("pk")

    @classmethod
    def select_undone(cls) -> models.QuerySet["Vote"]:
        """Select the votes that still have to be withdrawn, because the voter has undone the
        bulk."""
        return cls._default_manager.filter(
            _find_withheld("approval__organization_id", "voter_id"), withdrawn_at=None
        )

    def __str__(self) -> str:
        return f"{self.voter} on {self.approval_id}"


def _find_withheld(organization: str, person: str) -> Exists:
    """Return the condition that this person has undone the row's bulk."""
    same = {
        "organization_id": OuterRef(organization),
        "bulk_id": OuterRef("bulk_id"),
        "user_id": OuterRef(person),
    }
    return Exists(WithheldBulk._default_manager.filter(**same).order_by())
