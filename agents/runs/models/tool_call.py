"""The model of tool calls."""

import uuid

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.accounts.models.organization import Organization
from agents.runs.models.run import Run


class CallStatus(models.TextChoices):
    """The states of a call; docs/internals/engine.md lists the transitions."""

    READY = "ready", "Ready"
    AWAITING_APPROVAL = "awaiting_approval", "Waiting for approval"
    SUSPENDED = "suspended", "Suspended"
    APPROVED = "approved", "Approved"
    EXECUTING = "executing", "Executing"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    OUTCOME_UNKNOWN = "outcome_unknown", "Outcome unknown"
    DENIED = "denied", "Denied"
    EXPIRED = "expired", "Expired"
    CANCELLED = "cancelled", "Cancelled"
    REJECTED = "rejected", "Rejected"
    DUPLICATE = "duplicate", "Duplicate"


TERMINAL_CALLS = (
    CallStatus.SUCCEEDED,
    CallStatus.FAILED,
    CallStatus.DENIED,
    CallStatus.EXPIRED,
    CallStatus.CANCELLED,
    CallStatus.REJECTED,
    CallStatus.DUPLICATE,
)
NOT_STARTED = (CallStatus.READY, CallStatus.AWAITING_APPROVAL, CallStatus.APPROVED)


def new_idempotency_key() -> str:
    """Return a new random key of 32 hexadecimal digits, which all attempts at a call share."""
    return uuid.uuid4().hex


class ToolCall(models.Model):
    """A request to use a tool, with its verdict and its result.

    Every index is written twice for each call, at its start and at its end. So a foreign key has no
    index of its own if a constraint's index covers it.

    Attributes:
        model_params: the model's params, if a person edited them; otherwise None.
        params: the validated params with defaults: the card shows exactly the values with which the
            tool runs.
        params_hash: the hash of the params when they were sealed; only a record, which is never
            compared with anything.
        signature: SHA-256 of `toolName::canonical JSON of params`.
        content: the tool message for the model, set when the call ends.
        finished_seq: the number of the event that ended the call, for finding later events.
        drifts: the number of the call's cards that became outdated before the call started.
        why: the verdict's reason.
        judgment: the verdict with its causes and the facts that it used, as
            `tools.toolbox.Verdict.as_json`; `snapshot` is the hash of the verdict's policy snapshot
            if the call's pass has another one.
        provenance: the earlier places where the values of the params appeared, as
            `tools.toolbox.provenance.Provenance.as_json`; None if provenance was not needed,
            because the call needed no approval and no limit refers to provenance.
        late_effect: set if the call was marked as not done and its executor later reported a
            success: `reported_at`, the `result`, and `done_again_by`, the ids of later calls that
            may have done the same. A late effect changes nothing else in the row.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="tool_calls", db_index=False
    )
    pass_number = models.PositiveSmallIntegerField()
    index = models.PositiveSmallIntegerField()
    provider_call_id = models.CharField(max_length=200)
    tool = models.CharField(max_length=120)
    version = models.CharField(max_length=40, blank=True)
    definition_hash = models.CharField(max_length=64, blank=True)
    level = models.CharField(max_length=12)
    model_params = models.JSONField(null=True)
    params = models.JSONField(default=dict)
    params_hash = models.CharField(max_length=64)
    signature = models.CharField(max_length=64)
    duplicate_of = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, related_name="duplicates", db_index=False
    )
    parent_call = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, related_name="child_calls", db_index=False
    )
    idempotency_key = models.CharField(max_length=64, default=new_idempotency_key)
    status = models.CharField(max_length=20, choices=CallStatus, default=CallStatus.READY)
    why = models.TextField(blank=True)
    judgment = models.JSONField(null=True)
    provenance = models.JSONField(null=True)
    exec_epoch = models.PositiveIntegerField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    drifts = models.PositiveSmallIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    finished_seq = models.PositiveIntegerField(null=True)
    deadline_at = models.DateTimeField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)
    result = models.JSONField(null=True)
    content = models.TextField(blank=True)
    late_effect = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("run", "pass_number", "index")
        indexes = (
            models.Index(fields=("organization", "created_at"), name="calls_by_time"),
            models.Index(
                fields=("organization", "tool", "started_at"),
                name="calls_by_start",
                condition=Q(started_at__isnull=False),
            ),
            models.Index(
                fields=("duplicate_of",),
                name="calls_doubled",
                condition=Q(duplicate_of__isnull=False),
            ),
            models.Index(
                fields=("parent_call",),
                name="calls_of_calls",
                condition=Q(parent_call__isnull=False),
            ),
            models.Index(
                fields=("deadline_at",), name="calls_executing", condition=Q(status="executing")
            ),
            models.Index(
                fields=("run",), name="calls_open", condition=~Q(status__in=TERMINAL_CALLS)
            ),
        )
        constraints = (
            models.UniqueConstraint(fields=("idempotency_key",), name="idempotency_key_once"),
            models.UniqueConstraint(
                fields=("run", "pass_number", "index"), name="call_place_in_pass"
            ),
            models.UniqueConstraint(
                fields=("run", "provider_call_id", "pass_number"), name="call_id_in_pass"
            ),
            models.CheckConstraint(
                condition=Q(status__in=CallStatus.values), name="call_status_is_known"
            ),
            models.CheckConstraint(
                condition=Q(level__in=("read", "draft")) | Q(attempts__lte=1),
                name="write_starts_at_most_once",
            ),
            models.CheckConstraint(
                condition=Q(level__in=("read", "draft", "write", "destructive")),
                name="call_level_is_known",
            ),
            models.CheckConstraint(
                condition=~Q(status="executing")
                | Q(exec_epoch__isnull=False, deadline_at__isnull=False),
                name="executing_call_has_epoch_and_deadline",
            ),
            models.CheckConstraint(
                condition=(
                    Q(status__in=TERMINAL_CALLS, finished_at__isnull=False)
                    | ~Q(status__in=TERMINAL_CALLS) & Q(finished_at__isnull=True)
                ),
                name="terminal_call_has_an_end",
            ),
            models.CheckConstraint(
                condition=(
                    ~Q(status__in=TERMINAL_CALLS)
                    | ~Q(content="")
                    | Q(status="duplicate", duplicate_of__isnull=False)
                ),
                name="terminal_call_has_a_tool_message",
            ),
            models.CheckConstraint(
                condition=Q(late_effect__isnull=True) | Q(status="failed"),
                name="late_effect_of_a_failed_call",
            ),
        )

    def __str__(self) -> str:
        return f"{self.tool} ({self.status})"
