"""Employees: who works, on which model, with which tools."""

from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now

from .encrypted import EncryptedTextField
from .organization import Organization


class ProviderKind(models.TextChoices):
    """How a model is reached."""

    OPENAI = "openai", "OpenAI or compatible"
    SCRIPTED = "scripted", "Script (no model)"


class ModelProvider(models.Model):
    """Runs the model: an address and a key, or a script that is played instead."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="model_providers")
    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=10, choices=ProviderKind, default=ProviderKind.OPENAI)
    base_url = models.CharField(
        max_length=300,
        validators=[RegexValidator(r"^https?://[^\s/?#]+(/[^\s?#]*)?$", "an address such as http://localhost:8080/v1")],
        blank=True,
        help_text="Where the model is, e.g. http://localhost:8080/v1. Empty: the provider's own address.",
    )
    api_key = EncryptedTextField(blank=True, default="", help_text="Kept encrypted and never shown again.")
    script = models.TextField(blank=True, help_text="For a scripted provider: the YAML that it plays.")
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
    run_minutes = models.PositiveIntegerField(
        null=True, blank=True, help_text="Minutes after which an unfinished run is ended; empty: never."
    )
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
        )

    def __str__(self) -> str:
        return self.name


class Grant(models.Model):
    """An employee's permission to use one tool, by its exact name."""

    employee = models.ForeignKey(Employee, on_delete=models.CASCADE, related_name="grants")
    tool = models.CharField(max_length=120)

    class Meta:
        ordering = ("tool",)
        verbose_name = "allowed tool"
        constraints = (models.UniqueConstraint(fields=("employee", "tool"), name="one_grant_per_tool"),)

    def __str__(self) -> str:
        return self.tool
