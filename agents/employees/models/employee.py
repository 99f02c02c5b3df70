"""Employees: who works, on which model, with which tools."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now

from agents.accounts.models.organization import Organization
from agents.platform.encrypted import EncryptedTextField
from tools.contract import Level, storable_json

NOT_IN_BODY = ("messages", "tools", "model", "stream")
"""Fields of a request that are the engine's."""
LONGEST_BODY = 10_000


class ProviderKind(models.TextChoices):
    """How a model is reached."""

    OPENAI = "openai", "OpenAI or compatible"
    OLLAMA = "ollama", "Ollama"
    SCRIPTED = "scripted", "Script (no model)"


class ModelProvider(models.Model):
    """Runs the model: an address and a key, or a script that is played instead.

    Attributes:
        prices: of a million tokens in the organisation's currency: {model or "*": {"input": "2.5", "output": "10"}}.
    """

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="model_providers")
    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=10, choices=ProviderKind, default=ProviderKind.OPENAI)
    base_url = models.CharField(
        max_length=300,
        validators=[RegexValidator(r"^https?://[^\s/?#]+(/[^\s?#]*)?$", "an address such as http://localhost:8080/v1")],
        blank=True,
        help_text="Where the model is, e.g. http://localhost:8080/v1, or for Ollama http://localhost:11434. "
        "Empty: the provider's own address.",
    )
    api_key = EncryptedTextField(blank=True, default="", help_text="Kept encrypted and never shown again.")
    script = models.TextField(blank=True, help_text="For a scripted provider: the YAML that it plays.")
    prices = models.JSONField(
        default=dict,
        blank=True,
        help_text="Of a million tokens, by model, * for every other one.",
    )
    timeout_s = models.PositiveSmallIntegerField(default=120, help_text="Seconds that one answer may take.")
    is_active = models.BooleanField(default=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("organization", "name"), name="one_provider_per_name"),
            models.CheckConstraint(condition=models.Q(kind__in=ProviderKind.values), name="provider_kind_is_known"),
        )

    def __str__(self) -> str:
        return self.name


class Employee(models.Model):
    """A configured AI worker."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="employees")
    name = models.CharField(max_length=80)
    job_title = models.CharField(max_length=120, blank=True)
    instructions = models.TextField(blank=True, help_text="What this employee is told before every task.")
    mode = models.CharField(max_length=40, default="general", help_text="The set of tools that it works with.")
    provider = models.ForeignKey(ModelProvider, on_delete=models.PROTECT, related_name="employees")
    model = models.CharField(max_length=120, blank=True, help_text="The model's name as its provider knows it.")
    max_passes = models.PositiveSmallIntegerField(
        default=5, help_text="How often it may ask the model for one task, 1 to 100."
    )
    temperature = models.FloatField(
        null=True,
        blank=True,
        validators=[
            MinValueValidator(0, "A temperature is a number from 0 to 2."),
            MaxValueValidator(2, "A temperature is a number from 0 to 2."),
        ],
        help_text="How freely the model chooses its words, 0 to 2. Empty: as its server does. Some models refuse it.",
    )
    max_tokens = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1, "Allow at least 1 token, or leave this empty.")],
        help_text="The longest answer, in tokens; what the model thinks may count. Empty: as its server does.",
    )
    num_ctx = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(256, "A context has at least 256 tokens.")],
        help_text="Only for Ollama: how many tokens it lets the model see at once; the more, the more memory it takes. "
        "Empty: the context in tokens, else 16,384. Older results are shortened before it is full.",
    )
    extra_body = models.JSONField(
        default=dict,
        blank=True,
        help_text="For experts: a JSON object that is merged into every request to the model, "
        'e.g. {"top_p": 0.9}, or for Ollama {"think": false, "keep_alive": "30m"}.',
    )
    run_minutes = models.PositiveIntegerField(
        null=True, blank=True, help_text="Minutes after which an unfinished run is ended; empty: never."
    )
    run_tokens = models.PositiveIntegerField(
        null=True, blank=True, help_text="Tokens that one run may use; empty: any number."
    )
    run_cost = models.DecimalField(
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="What the model may cost in one run; empty: any amount.",
    )
    month_tokens = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="Tokens that it may use in a month; empty: any number."
    )
    month_cost = models.DecimalField(
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="What its model may cost in a month; empty: any amount.",
    )
    month_minutes = models.PositiveIntegerField(
        null=True, blank=True, help_text="Minutes that its model may take to answer in a month; empty: any number."
    )
    context_tokens = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1000, "A context has at least 1,000 tokens.")],
        help_text="How many tokens the model can see at once. When a run fills most of it, older results are "
        "shortened. Empty: what Ollama is told, or what is known of another model, else 128,000.",
    )
    stopped_at = models.DateTimeField(null=True, editable=False)
    stopped_by = models.CharField(max_length=150, blank=True, editable=False)
    capabilities = models.JSONField(default=list, blank=True, help_text="Capabilities that tools may ask for.")
    example_tasks = models.JSONField(default=list, blank=True, help_text="Tasks that the start page offers.")
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("organization", "name"), name="one_employee_per_name"),
            models.CheckConstraint(
                condition=models.Q(max_passes__gte=1, max_passes__lte=100), name="employee_passes_1_to_100"
            ),
            models.CheckConstraint(
                condition=models.Q(temperature__gte=0, temperature__lte=2), name="employee_temperature_0_to_2"
            ),
        )

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if fault := _fault_of_body(self.extra_body):
            raise ValidationError({"extra_body": fault})


class Grant(models.Model):
    """An employee's permission to use one tool, by its exact name.

    Attributes:
        delegates: for employee.delegate, the ids of the employees to whom it may hand a task; nobody by default.
    """

    employee = models.ForeignKey(Employee, on_delete=models.CASCADE, related_name="grants")
    tool = models.CharField(max_length=120)
    level = models.CharField(max_length=11, blank=True, help_text="A higher level than the tool's own; empty: its own.")
    conditions = models.JSONField(default=list, help_text="Of tools.toolbox.Condition, as JSON.")
    delegates = models.JSONField(default=list)

    class Meta:
        ordering = ("tool",)
        verbose_name = "allowed tool"
        constraints = (
            models.UniqueConstraint(fields=("employee", "tool"), name="one_grant_per_tool"),
            models.CheckConstraint(
                condition=models.Q(level__in=("", *(each.value for each in Level))), name="grant_level_is_known"
            ),
        )

    def __str__(self) -> str:
        return self.tool


def _fault_of_body(value: Any) -> str:
    """Why the value cannot be merged into every request to a model; empty if it can."""
    if not isinstance(value, dict):
        return 'Write a JSON object, such as {"top_p": 0.9}.'
    if taken := [name for name in NOT_IN_BODY if name in value]:
        return f"Leave out {', '.join(taken)}: Gadget itself says that in every request."
    try:
        text = storable_json(value)
    except (ValueError, TypeError, RecursionError) as error:
        return f"This cannot be sent as JSON: {error}."
    return f"This has {len(text)} characters; at most {LONGEST_BODY} are allowed." if len(text) > LONGEST_BODY else ""
