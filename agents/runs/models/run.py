"""The models of runs, messages and passes."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.accounts.models.organization import Organization
from agents.employees.models.employee import Employee
from tools.contract.correlation import OWN_PREFIX

TITLE_LENGTH = 80
MAX_CLIENT_ID = 200


class RunStatus(models.TextChoices):
    """The states of a run; docs/internals/engine.md lists the transitions."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    WAITING = "waiting", "Waiting"
    NEEDS_ATTENTION = "needs_attention", "Needs attention"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


PARKED = (RunStatus.WAITING, RunStatus.NEEDS_ATTENTION)
ENDED = (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED)
UNFINISHED = (RunStatus.QUEUED, RunStatus.RUNNING, *PARKED)
IS_UNFINISHED = models.Func(
    "status",
    template=f"%(expressions)s IN ({', '.join(repr(status.value) for status in UNFINISHED)})",
    output_field=models.BooleanField(),
)
"""Selects the runs that have not ended, in a form that uses their partial index: nearly all runs
have ended."""


class ExitReason(models.TextChoices):
    """The reasons why a run ended."""

    FINAL_ANSWER = "final_answer", "Answered"
    ALL_TOOLS_DUPLICATE = "all_tools_duplicate", "Repeated earlier calls"
    MAX_PASSES = "max_passes", "Out of passes"
    ANSWER_CUT = "answer_cut", "Answer cut off"
    ANSWER_FILTERED = "answer_filtered", "Answer withheld"
    CANCELLED = "cancelled", "Cancelled"
    DENIED_REPEATEDLY = "denied_repeatedly", "Denied repeatedly"
    BUDGET_EXHAUSTED = "budget_exhausted", "Budget used up"
    PROVIDER_ERROR = "provider_error", "Model did not respond"
    DEADLINE = "deadline", "Time limit reached"
    CRASH_LOOP = "crash_loop", "Worker crashed repeatedly"
    INTERNAL_ERROR = "internal_error", "Internal error"
    SESSION_ENDED = "session_ended", "Session ended"


class Outcome(models.TextChoices):
    """The result of a run in one word, so that a run that did nothing never looks successful."""

    DONE = "done", "Succeeded"
    """The run created or changed something, and its last changes were not denied."""
    ANSWERED = "answered", "Answered"
    """The run read data and requested no changes."""
    UNCHANGED = "unchanged", "Finished without changes"
    """No tool call of the run succeeded, or none of its changes were made."""
    PARTLY_DENIED = "partly_denied", "Partly denied"
    """The run changed something, but some of its last changes were denied or expired."""
    DENIED = "denied", "Denied"
    """The run changed nothing, and some of its last changes were denied or expired."""


SCHEDULE_REQUEST_PREFIX = "schedule:"
"""The prefix of the client request ids of runs that a schedule started."""
TRIGGER_REQUEST_PREFIX = "trigger:"
"""The prefix of the client request ids of runs that a trigger started."""
ASK_REQUEST_PREFIX = "ask:"
"""The prefix of the client request ids of asks."""


class Origin(models.TextChoices):
    """The causes that can start a run."""

    TASK = "task", "Task"
    SCHEDULE = "schedule", "Schedule"
    DELEGATE = "delegate", "Delegated"
    MCP = "mcp", "MCP"
    ASK = "ask", "Ask"
    TRIGGER = "trigger", "Trigger"
    MANUAL = "manual", "By hand"


WITHOUT_MODEL = (Origin.MCP, Origin.ASK, Origin.MANUAL)
"""The origins of runs whose calls do not come from the employee's model."""


class Run(models.Model):
    """The whole loop from task to answer. Only transactions (engine/transaction.py) and the lease
    (engine/lease.py) change its row.

    Attributes:
        correlation_id: the id of the request that started the run, or of the parent run; empty if
            there is none.
        parent, parent_call: for a delegated task, the delegating run and its suspended call.
        outcome: the outcome when the run last ended; empty before it ends for the first time.
        stopped_because: the reason why no call of the run may start, such as a stopped employee;
            empty if the run is not stopped.
        session: the data that the run's tools share.
        cost_micros: the cost of the model's responses, in millionths of the organization's
            currency.
        estimated_tokens: the tokens that are estimated, because the model server has not reported
            them.
        unusable_ms: the time that the model spent on unusable responses; the rows of passes have
            the time of usable ones.
        kept_answer: a response whose pass could not be recorded, for the next driver; its usage is
            already counted.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    employee = models.ForeignKey(Employee, on_delete=models.PROTECT, related_name="runs")
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.TASK)
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    parent_call = models.OneToOneField(
        "runs.ToolCall", on_delete=models.PROTECT, null=True, related_name="child_run"
    )
    depth = models.PositiveSmallIntegerField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    client_request_id = models.CharField(max_length=200, blank=True)
    correlation_id = models.CharField(max_length=64, blank=True, default="", db_default="")
    title = models.CharField(max_length=200, blank=True)
    task = models.TextField()
    mode = models.CharField(max_length=40, default="general")
    status = models.CharField(max_length=16, choices=RunStatus, default=RunStatus.QUEUED)
    exit_reason = models.CharField(max_length=24, choices=ExitReason, blank=True)
    outcome = models.CharField(max_length=16, choices=Outcome, blank=True)
    answer = models.TextField(blank=True)
    problem = models.TextField(blank=True, help_text="What went wrong, in words for a person.")
    stopped_because = models.CharField(max_length=300, blank=True)
    session = models.JSONField(default=dict)

    lease_owner = models.CharField(max_length=64, blank=True)
    lease_epoch = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    next_wake_at = models.DateTimeField(null=True)
    hinted_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    patience_since = models.DateTimeField(null=True)
    patience_tries = models.PositiveSmallIntegerField(default=0)
    crash_count = models.PositiveSmallIntegerField(default=0)

    pass_number = models.PositiveSmallIntegerField(default=0)
    asked_pass = models.PositiveSmallIntegerField(default=0)
    max_passes = models.PositiveSmallIntegerField(default=5)
    next_event_seq = models.PositiveIntegerField(default=1)
    messages_heard = models.PositiveIntegerField(default=0)
    message_count = models.PositiveIntegerField(default=1)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost_micros = models.PositiveBigIntegerField(default=0)
    estimated_tokens = models.PositiveIntegerField(default=0)
    unusable_ms = models.PositiveIntegerField(default=0, db_default=0)
    kept_answer = models.JSONField(null=True)

    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("organization", "-id"), name="runs_of_organization"),
            models.Index(fields=("organization", "created_at"), name="runs_by_time"),
            models.Index(fields=("organization", "status", "-id"), name="runs_by_status"),
            models.Index(fields=("organization", "employee", "-id"), name="runs_by_employee"),
            models.Index(
                fields=("organization", "employee"),
                name="runs_unfinished",
                condition=Q(status__in=UNFINISHED),
            ),
            models.Index(
                fields=("status", "next_wake_at"), name="runs_due", condition=Q(status="queued")
            ),
            models.Index(
                fields=("lease_expires_at",), name="runs_leased", condition=Q(status="running")
            ),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("organization", "client_request_id"),
                condition=~Q(client_request_id=""),
                name="one_run_per_client_request",
            ),
            models.CheckConstraint(
                condition=Q(status__in=RunStatus.values), name="run_status_is_known"
            ),
            models.CheckConstraint(
                condition=(
                    Q(status="running", lease_expires_at__isnull=False) & ~Q(lease_owner="")
                    | ~Q(status="running") & Q(lease_expires_at__isnull=True, lease_owner="")
                ),
                name="run_has_a_lease_while_running",
            ),
            models.CheckConstraint(
                condition=(
                    Q(status__in=ENDED, finished_at__isnull=False) & ~Q(exit_reason="")
                    | ~Q(status__in=ENDED) & Q(finished_at__isnull=True, exit_reason="")
                ),
                name="run_ends_with_a_reason",
            ),
        )

    def __str__(self) -> str:
        return self.title or self.task[:80]

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED

    @property
    def is_unnamed(self) -> bool:
        """True if the run has a model, and its title is only the beginning of its task."""
        return self.has_model and self.title == make_title(self.task) != " ".join(self.task.split())

    @property
    def is_parked(self) -> bool:
        """True if the run waits without a worker."""
        return self.status in PARKED

    @property
    def has_model(self) -> bool:
        """True if the employee's model requests the calls of the run."""
        return self.origin not in WITHOUT_MODEL

    @property
    def correlation(self) -> str:
        """The id that connects the run's log lines with its request and its outgoing requests."""
        return self.correlation_id or f"{OWN_PREFIX}{self.pk}"

    @property
    def may_start(self) -> bool:
        """False once the run is cancelled or stopped, so that none of its calls starts."""
        return self.cancel_requested_at is None and not self.stopped_because


def make_title(task: str) -> str:
    """Return the first line of a task, in at most 80 characters."""
    first = " ".join(task.splitlines()[0].split())
    return first if len(first) <= TITLE_LENGTH else f"{first[: TITLE_LENGTH - 1]}…"


class Message(models.Model):
    """A person's message to the run; the task is number 1.

    Attributes:
        client_message_id: the sender's own id for the message, so that a repeated request does not
            add the message twice.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="messages", db_index=False)
    number = models.PositiveIntegerField()
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    text = models.TextField()
    client_message_id = models.CharField(
        max_length=MAX_CLIENT_ID, blank=True, default="", db_default=""
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("run", "number")
        constraints = (
            models.UniqueConstraint(fields=("run", "number"), name="message_number_in_run"),
            models.UniqueConstraint(
                fields=("run", "client_message_id"),
                condition=~Q(client_message_id=""),
                name="message_client_id_in_run",
            ),
        )

    def __str__(self) -> str:
        return self.text[:80]


class Pass(models.Model):
    """A recorded model call, which is never requested again.

    Attributes:
        response: the model's message, verbatim except for its reasoning, with the flags of
            `engine.history.History`.
        thought: the text between <think> tags, which is never sent back.
        cut_off: the reason why the answer is incomplete; empty if it is complete.
        messages_upto: the number of the last message in the request.
        closing: True if the request asked for an answer without calls.
        snapshot: the hash of the policy snapshot by which the pass's calls were judged when they
            were recorded; calls that were judged again later, or that another call made, name their
            own snapshot in `ToolCall.judgment`.
        cached_tokens: the input tokens that the server had in its cache.
        usage_estimated: True until the model server reports the actual tokens; no other part of the
            row ever changes.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="passes", db_index=False)
    number = models.PositiveSmallIntegerField()
    response = models.JSONField()
    text = models.TextField(blank=True)
    thought = models.TextField(blank=True)
    cut_off = models.CharField(max_length=16, blank=True)
    messages_upto = models.PositiveIntegerField()
    closing = models.BooleanField(default=False)
    snapshot = models.CharField(max_length=64, blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0, db_default=0)
    cost_micros = models.PositiveBigIntegerField(default=0)
    usage_estimated = models.BooleanField(default=False)
    duration_ms = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("run", "number")
        verbose_name_plural = "passes"
        constraints = (
            models.UniqueConstraint(fields=("run", "number"), name="pass_number_in_run"),
        )

    def __str__(self) -> str:
        return f"Pass {self.number}"
