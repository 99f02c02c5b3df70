"""Employees, the providers of their models, and their allowed tools."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now

from agents.accounts.models.organization import Organization
from agents.platform.encrypted_fields import EncryptedTextField
from tools.contract import Level, storable_json

NOT_IN_BODY = ("messages", "tools", "model", "stream")
"""The fields of a request to a model that only the engine sets."""
LONGEST_BODY = 10_000


class ProviderKind(models.TextChoices):
    """The protocol of a model provider."""

    OPENAI = "openai", "OpenAI or compatible"
    OLLAMA = "ollama", "Ollama"
    SCRIPTED = "scripted", "Script (no model)"


LONGEST_RESPONSE_S = 1_800
"""The default time limit, in seconds, for one whole response of a model."""


class ModelProvider(models.Model):
    """A server that runs models, with its address and key, or the scripts that replace a model.

    Attributes:
        prices: the prices per million tokens in the organization's currency, by model, or "*" for
            all other models: {"*": {"input": "2.5", "output": "10"}}.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="model_providers"
    )
    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=10, choices=ProviderKind, default=ProviderKind.OPENAI)
    base_url = models.CharField(
        "address",
        max_length=300,
        validators=[
            RegexValidator(
                r"^https?://[^\s/?#]+(/[^\s?#]*)?$", "an address such as http://localhost:8080/v1"
            )
        ],
        blank=True,
        help_text="Address of the model server, e.g. http://localhost:8080/v1, or http://localhost:11434 for Ollama. "
        "Leave empty for the default.",
    )
    api_key = EncryptedTextField(
        blank=True, default="", help_text="Stored encrypted and never shown again."
    )
    prices = models.JSONField(
        default=dict,
        blank=True,
        help_text="Prices per million tokens by model. Use * for all other models.",
    )
    timeout_s = models.PositiveSmallIntegerField(
        "longest silence (seconds)",
        default=120,
        help_text="Time in which the server must send the next part of a response, including the first.",
    )
    answer_timeout_s = models.PositiveSmallIntegerField(
        "longest response (seconds)",
        default=LONGEST_RESPONSE_S,
        db_default=LONGEST_RESPONSE_S,
        help_text="Time limit for one whole response. A slow model needs a long one.",
    )
    is_active = models.BooleanField("active", default=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("organization", "name"), name="one_provider_per_name"),
            models.CheckConstraint(
                condition=models.Q(kind__in=ProviderKind.values), name="provider_kind_is_known"
            ),
        )

    def __str__(self) -> str:
        return self.name


class Employee(models.Model):
    """A configured AI worker."""

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="employees"
    )
    name = models.CharField(max_length=80)
    job_title = models.CharField(max_length=120, blank=True)
    instructions = models.TextField(
        blank=True, help_text="Instructions that the employee gets before every task."
    )
    mode = models.CharField(
        max_length=40, default="general", help_text="The set of tools that the employee works with."
    )
    provider = models.ForeignKey(ModelProvider, on_delete=models.PROTECT, related_name="employees")
    model = models.CharField(
        max_length=120, blank=True, help_text="Name of the model at its provider, or of its script."
    )
    max_passes = models.PositiveSmallIntegerField(
        "pass limit",
        default=10,
        validators=[
            MinValueValidator(1, "Enter a number from 1 to 100."),
            MaxValueValidator(100, "Enter a number from 1 to 100."),
        ],
        help_text="Model calls per task, 1 to 100.",
    )
    temperature = models.FloatField(
        null=True,
        blank=True,
        validators=[
            MinValueValidator(0, "Enter a number from 0 to 2."),
            MaxValueValidator(2, "Enter a number from 0 to 2."),
        ],
        help_text="0 = precise, 2 = creative. Empty: the model's default. Not all models support it.",
    )
    max_tokens = models.PositiveIntegerField(
        "longest response (tokens)",
        null=True,
        blank=True,
        validators=[MinValueValidator(1, "Allow at least 1 token, or leave this empty.")],
        help_text="Maximum length of a response in tokens. Includes reasoning. Empty: the model's default.",
    )
    num_ctx = models.PositiveIntegerField(
        "Ollama context (tokens)",
        null=True,
        blank=True,
        validators=[MinValueValidator(256, "Allow at least 256 tokens.")],
        help_text="Only for Ollama: the context in tokens. More tokens need more memory. "
        "Empty: context window, or 16,384.",
    )
    extra_body = models.JSONField(
        "extra request fields",
        default=dict,
        blank=True,
        help_text='Advanced: a JSON object that is added to every model request, e.g. {"top_p": 0.9}. '
        'For Ollama: {"think": false, "keep_alive": "30m"}.',
    )
    run_minutes = models.PositiveIntegerField(
        "time limit (min)",
        null=True,
        blank=True,
        help_text="Time limit for a run, in minutes. Empty means no limit.",
    )
    run_tokens = models.PositiveIntegerField(
        "token limit per run",
        null=True,
        blank=True,
        help_text="Token limit for a run. Empty means no limit.",
    )
    run_cost = models.DecimalField(
        "cost limit per run",
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Cost limit for a run. Empty means no limit.",
    )
    month_tokens = models.PositiveBigIntegerField(
        "monthly token limit",
        null=True,
        blank=True,
        help_text="Token limit for a month. Empty means no limit.",
    )
    month_cost = models.DecimalField(
        "monthly cost limit",
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Cost limit for a month. Empty means no limit.",
    )
    month_minutes = models.PositiveIntegerField(
        "monthly model time limit (min)",
        null=True,
        blank=True,
        help_text="Limit for the minutes in which the model responds in a month. Empty means no limit.",
    )
    context_tokens = models.PositiveIntegerField(
        "context window (tokens)",
        null=True,
        blank=True,
        validators=[MinValueValidator(1000, "Allow at least 1,000 tokens.")],
        help_text="Context window of the model, in tokens. Older results are shortened before it is full. "
        "Empty: the model's known size, or 128,000.",
    )
    stopped_at = models.DateTimeField(null=True, editable=False)
    stopped_by = models.CharField(max_length=150, blank=True, editable=False)
    capabilities = models.JSONField(
        default=list, blank=True, help_text="Capabilities that tools can require."
    )
    example_tasks = models.JSONField(
        default=list, blank=True, help_text="Tasks suggested on the start page."
    )
    is_active = models.BooleanField("active", default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("organization", "name"), name="one_employee_per_name"),
            models.CheckConstraint(
                condition=models.Q(max_passes__gte=1, max_passes__lte=100),
                name="employee_passes_1_to_100",
            ),
            models.CheckConstraint(
                condition=models.Q(temperature__gte=0, temperature__lte=2),
                name="employee_temperature_0_to_2",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if (fault := _find_body_fault(self.extra_body)) is not None:
            raise ValidationError({"extra_body": fault})


class Grant(models.Model):
    """An employee's permission to use one tool, by its exact name.

    Attributes:
        version: the version that the employee is pinned to; empty for the newest.
        delegates: for employee.delegate, the ids of the employees that it may delegate to; by
            default, there are none.
    """

    employee = models.ForeignKey(Employee, on_delete=models.CASCADE, related_name="grants")
    tool = models.CharField(max_length=120)
    level = models.CharField(
        max_length=11,
        blank=True,
        help_text="A higher level than the tool's own. Empty: the tool's own.",
    )
    conditions = models.JSONField(default=list, help_text="JSON of tools.toolbox.Condition.")
    delegates = models.JSONField(default=list)
    version = models.CharField(max_length=40, blank=True, default="", db_default="")

    class Meta:
        ordering = ("tool",)
        verbose_name = "allowed tool"
        constraints = (
            models.UniqueConstraint(fields=("employee", "tool"), name="one_grant_per_tool"),
            models.CheckConstraint(
                condition=models.Q(level__in=("", *(each.value for each in Level))),
                name="grant_level_is_known",
            ),
        )

    def __str__(self) -> str:
        return self.tool


def _find_body_fault(value: Any) -> str | None:
    """Return the reason why these fields cannot be added to model requests; None if they can."""
    if not isinstance(value, dict):
        return 'Write a JSON object, such as {"top_p": 0.9}.'
    if taken := [name for name in NOT_IN_BODY if name in value]:
        return f"Leave out {', '.join(taken)}, which Gadget sets in every request."
    try:
        text = storable_json(value)
    except (ValueError, TypeError, RecursionError) as error:
        return f"This cannot be sent as JSON: {error}."
    return (
        f"This has {len(text)} characters; at most {LONGEST_BODY} are allowed."
        if len(text) > LONGEST_BODY
        else None
    )
