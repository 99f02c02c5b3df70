"""The models of triggers and of the messages that they received."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.accounts.models.organization import Organization
from agents.employees.models.employee import Employee
from agents.platform.encrypted_fields import EncryptedTextField
from agents.runs.models.run import Run


class Scheme(models.TextChoices):
    """The ways in which other systems prove that a message is theirs."""

    STANDARD = "standard", "Standard Webhooks"
    GITHUB = "github", "GitHub"
    GITLAB = "gitlab", "GitLab"
    SLACK = "slack", "Slack"
    ALERTMANAGER = "alertmanager", "Alertmanager, or any bearer token"
    HMAC = "hmac", "HMAC-SHA256 in a header"


PARTS = {
    "employee": ("employee_id",),
    "filters": ("filters",),
    "sender": ("scheme", "header"),
    "limits": ("repeat_hours", "max_queued"),
}
"""The parts of a trigger whose last author is recorded, with their columns."""


class Trigger(models.Model):
    """An address at which messages of another system start runs of an employee, on behalf of a
    person.

    Attributes:
        public_id: the unguessable part of the address.
        header: the name of the header with the signature; only for the scheme HMAC.
        secret: encrypted, and never shown again.
        task: the template of the task, with placeholders such as `{{ payload.issue.title }}`.
        filters: conditions on the payload, as `tools.toolbox.conditions.Condition.as_json`; all
            must match.
        repeat_hours: the number of hours during which identical bodies start only one run, for
            schemes without message ids.
        max_queued: the maximum number of runs that may wait for a worker at a time.
        created_by: the person on whose behalf the trigger works, who last created it, saved it or
            switched it on.
        made_by, task_by, secret_by: the people who created it, last wrote its task, and last set or
            saw its secret; they count as requesters of the runs.
        part_authors: the id of the person who last changed each of PARTS; they count as requesters,
            too, whoever switches it on later. None if an older version created it.
        refusal_told_at: when a refusal was last written to the log of the organization.
        removed_at: the time since which it is hidden; its messages are kept, because they name
            requesters.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="triggers", db_index=False
    )
    employee = models.ForeignKey(
        Employee, on_delete=models.SET_NULL, null=True, related_name="triggers"
    )
    name = models.CharField(max_length=80)
    public_id = models.CharField(max_length=40, unique=True)
    scheme = models.CharField(max_length=16, choices=Scheme)
    header = models.CharField(max_length=80, blank=True)
    secret = EncryptedTextField()
    task = models.TextField()
    filters = models.JSONField(default=list)
    repeat_hours = models.PositiveSmallIntegerField(default=24)
    max_queued = models.PositiveSmallIntegerField(default=100)
    is_active = models.BooleanField(default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    task_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    secret_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    part_authors = models.JSONField(null=True)
    refusal_told_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("organization", "-id"), name="triggers_newest"),)

    def __str__(self) -> str:
        return self.name


class ReceivedStatus(models.TextChoices):
    """The outcome of a received message."""

    STARTED = "started", "Started a run"
    FILTERED = "filtered", "Filtered out"
    ANSWERED = "answered", "Connection test"
    """A test of the address by the sender's system, which was answered."""
    REFUSED = "refused", "Refused"


class ReceivedMessage(models.Model):
    """A message received by a trigger.

    Attributes:
        key: the sender's id of the message, or the digest of its body; repeats of a message that
            started a run are not stored.
        run: the run that the message started.
        requesters: (user id, username, act) for each person behind the run, except the person on
            whose behalf it acts.
        payload: the body; empty if the message was refused because its sender did not prove who
            they are.
        template: the trigger's task when the run started.
        replay_of, by: for a message sent again, the original message and the person who sent it
            again.
    """

    trigger = models.ForeignKey(
        Trigger, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    key = models.CharField(max_length=80, blank=True)
    status = models.CharField(max_length=10, choices=ReceivedStatus)
    reason = models.CharField(max_length=300, blank=True)
    run = models.OneToOneField(
        Run, on_delete=models.SET_NULL, null=True, related_name="started_by_message"
    )
    requesters = models.JSONField(default=list)
    payload = models.TextField(blank=True)
    template = models.TextField(blank=True)
    replay_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    received_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("trigger", "-id"), name="messages_of_trigger"),
            models.Index(
                fields=("trigger", "key", "-id"),
                name="messages_by_key",
                condition=Q(status="started"),
            ),
            models.Index(
                fields=("trigger", "-id"),
                name="messages_without_run",
                condition=~Q(status="started"),
            ),
        )

    def __str__(self) -> str:
        return f"message {self.pk} of trigger {self.trigger_id}"
