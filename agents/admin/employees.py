"""Employees: who they are, on which model they run, and the tools that they may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelectWidget

from agents.accounts.models import Organization
from agents.employees.models import Employee, Grant, ModelProvider, ProviderKind
from tools.connections.unusable import why_unusable
from tools.contract import Level
from tools.toolbox.toolbox import MODES

from .catalog import not_of, offered_in
from .configuration import ConfigurationAdmin
from .confirming import ConfirmingForm
from .delegates import check_delegates, delegates_field, names_of, set_delegates
from .fields import AllowedToolsField, LinesField, ObjectField
from .limits import Limits, LimitsField, lines_of, with_limits
from .prices import without_price
from .scope import ScopedRelatedFilter

EXAMPLE_MODELS = {ProviderKind.OPENAI: "gpt-5-mini", ProviderKind.OLLAMA: "qwen3"}
MOST_TOOLS = 128
"""Of one request, by the protocol of Chat Completions."""

BUDGETS = ("run_tokens", "run_cost", "month_tokens", "month_cost", "month_minutes")

MODE_CHOICES = tuple((mode, mode.capitalize()) for mode in MODES)


class EmployeeForm(ConfirmingForm):
    """One employee with the exact names of the tools that it may use."""

    mode = forms.ChoiceField(
        choices=MODE_CHOICES,
        initial="general",
        help_text="Of the tools ticked below, the employee gets those that are made for this mode. "
        "Most tools are made for every mode, so choose General unless a tool's description names another.",
        widget=UnfoldAdminSelectWidget,
    )
    allowed_tools = AllowedToolsField(
        help_text="Nothing is allowed unless it is ticked. Read and draft tools run by themselves; "
        "every call of a write or destructive tool waits for a person."
    )
    extra_body = ObjectField(
        label="Extra fields of every request",
        help_text='For experts: a JSON object, e.g. {"top_p": 0.9}, or for Ollama {"think": false, '
        '"keep_alive": "30m"}. It cannot replace the conversation, the tools or the model.',
    )
    limits = LimitsField()
    delegates = delegates_field()
    capabilities = LinesField(help_text="Capabilities that tools may ask for, one per line.", longest=60)
    example_tasks = LinesField(help_text="Tasks that the start page offers, one per line.", longest=1_000)

    class Meta:
        model = Employee
        fields = (
            "organization",
            "name",
            "job_title",
            "instructions",
            "mode",
            "provider",
            "model",
            "max_passes",
            "run_minutes",
            "temperature",
            "max_tokens",
            "num_ctx",
            "context_tokens",
            "extra_body",
            *BUDGETS,
            "capabilities",
            "example_tasks",
            "is_active",
        )
        labels = {
            "max_tokens": "Longest answer in tokens",
            "num_ctx": "Context in tokens, for Ollama",
            "context_tokens": "Context in tokens",
            "run_tokens": "Tokens a run",
            "run_cost": "Cost of a run",
            "month_tokens": "Tokens a month",
            "month_cost": "Cost a month",
            "month_minutes": "Minutes a month",
        }
        help_texts = {"month_minutes": "Minutes that its model may take to answer in a month; empty: any number."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        granted = list(self.instance.grants.values_list("tool", flat=True)) if self.instance.pk else []
        self.initial["allowed_tools"] = granted
        self.catalog = catalog = offered_in(self)
        field = self.fields.get("allowed_tools")
        if isinstance(field, AllowedToolsField):
            absent = set(granted) - {tool.name for tool in catalog}
            field.offer(catalog, granted, why_unusable(self.instance.organization_id, absent) if absent else {})
        kept = lines_of(self.instance.grants.all()) if self.instance.pk else []
        limits = self.fields.get("limits")
        if isinstance(limits, LimitsField):
            limits.catalog = {tool.name: tool for tool in catalog}
            limits.known = frozenset(kept)
        self.initial["limits"] = kept
        self.initial["delegates"] = names_of(self.instance)

    def clean(self) -> dict[str, Any]:
        """The provider must be the organisation's own, and a real model needs its name."""
        cleaned = super().clean() or {}
        self._check_tools(cleaned.get("allowed_tools", ()), cleaned.get("limits", {}))
        self._check_delegates(cleaned)
        provider = cleaned.get("provider")
        organization = cleaned.get("organization") or getattr(self.instance, "organization", None)
        if organization is not None:
            self._check_owner(organization, cleaned.get("allowed_tools", ()))
        if isinstance(provider, ModelProvider) and organization is not None:
            if provider.organization_id != organization.pk:
                self.add_error("provider", f"The provider {provider.name!r} belongs to another organisation.")
            elif provider.kind != ProviderKind.SCRIPTED and not cleaned.get("model"):
                example = EXAMPLE_MODELS[ProviderKind(provider.kind)]
                self.add_error("model", f"Say which model of {provider.name!r} the employee runs on, e.g. {example}.")
            else:
                self._check_price(provider, cleaned)
        return cleaned

    def _check_owner(self, organization: Organization, allowed: Sequence[str]) -> None:
        """What is granted anew is the organisation's own; what is gone meanwhile may stay until it is unticked."""
        if strangers := not_of(organization, set(allowed) - set(self.initial["allowed_tools"])):
            self.add_error("allowed_tools", f"{organization} has no tool {', '.join(strangers)}.")

    def _check_price(self, provider: ModelProvider, cleaned: dict[str, Any]) -> None:
        """A budget of money needs a price, or it would never be used up."""
        model = cleaned.get("model", "")
        if not without_price(provider, [Employee(model=model)]):
            return
        for name in ("run_cost", "month_cost"):
            if cleaned.get(name) is not None:
                self.add_error(name, f"The provider {provider.name!r} has no price for {model!r}: give it one first.")

    def _check_delegates(self, cleaned: dict[str, Any]) -> None:
        organization = cleaned.get("organization") or getattr(self.instance, "organization", None)
        if organization is None or "allowed_tools" not in cleaned:
            return
        try:
            check_delegates(cleaned.get("delegates", ()), cleaned["allowed_tools"], self.instance, organization)
        except forms.ValidationError as error:
            self.add_error("delegates", error)

    def _check_tools(self, allowed: Sequence[str], limits: Mapping[str, Limits]) -> None:
        """No more than a request to a model may name, and no limit for what is not allowed."""
        if len(allowed) > MOST_TOOLS:
            self.add_error(
                "allowed_tools",
                f"{len(allowed)} tools are ticked; a model can be offered at most {MOST_TOOLS}. Untick some.",
            )
        for name in sorted(set(limits) - set(allowed)):
            self.add_error("limits", f"{name} has a limit, but is not ticked above.")

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """Tools that destroy, and another server that reads all that the employee works on."""
        name = cleaned["name"]
        yield from self._loosened(name, cleaned["limits"])
        added = set(cleaned["allowed_tools"]) - set(self.initial["allowed_tools"])
        chosen = [tool for tool in self.catalog if tool.name in added]
        tools = [tool.title for tool in chosen if tool.level == Level.DESTRUCTIVE]
        if tools:
            yield f"{name} may ask to do what cannot be taken back: {', '.join(sorted(tools))}."
        provider = cleaned["provider"]
        if self.instance.pk and "provider" in self.changed_data and provider.kind != ProviderKind.SCRIPTED:
            yield f"All that {name} reads, and its instructions, go to {provider.name} from now on."

    def _loosened(self, name: str, limits: Mapping[str, Limits]) -> Iterator[str]:
        """Each limit that goes while its tool stays."""
        kept = set(lines_of(with_limits(Grant(tool=tool), limits) for tool in limits))
        staying = set(self.cleaned_data["allowed_tools"])
        for line in self.initial["limits"]:
            if line not in kept and line.split(None, 1)[0] in staying:
                yield f"{name} is no longer held to: {line}"


def set_grants(employee: Employee, names: list[str]) -> None:
    """Makes the employee's grants exactly these names; to be called in a transaction."""
    wanted = set(names)
    granted = set(employee.grants.values_list("tool", flat=True))
    employee.grants.filter(tool__in=granted - wanted).delete()
    new = [Grant(employee=employee, tool=name) for name in sorted(wanted - granted)]
    Grant.objects.bulk_create(new, ignore_conflicts=True)  # somebody else may be granting the same


@admin.register(Employee)
class EmployeeAdmin(ConfigurationAdmin):
    """Employees of the organisations in which the person is admin."""

    form = EmployeeForm
    list_display = ("name", "job_title", "organization", "provider", "model", "tools_allowed", "is_active")
    list_filter = ("is_active", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization", "provider")
    search_fields = ("name", "job_title")
    ordering = ("name", "id")
    fieldsets = (
        (None, {"fields": ("organization", "name", "job_title", "is_active", "instructions", "example_tasks")}),
        ("Model", {"fields": ("provider", "model", "max_passes", "run_minutes")}),
        ("How the model answers", {"fields": ("temperature", "max_tokens", "num_ctx", "context_tokens", "extra_body")}),
        ("Budgets", {"fields": BUDGETS}),
        ("Allowed tools", {"fields": ("mode", "allowed_tools", "limits", "delegates", "capabilities")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        counted: QuerySet[Any] = super().get_queryset(request).annotate(grant_count=Count("grants"))
        return counted

    @admin.display(description="Allowed tools", ordering="grant_count")
    def tools_allowed(self, employee: Employee) -> int:
        return int(employee.grant_count)  # type: ignore[attr-defined]

    def save_related(self, request: HttpRequest, form: forms.ModelForm[Any], formsets: Any, change: bool) -> None:
        """The ticked names become grants before the act is recorded."""
        set_grants(form.instance, form.cleaned_data["allowed_tools"])
        grants = [with_limits(grant, form.cleaned_data["limits"]) for grant in form.instance.grants.all()]
        Grant.objects.bulk_update(grants, ["level", "conditions"])
        set_delegates(form.instance, form.cleaned_data["delegates"])
        super().save_related(request, form, formsets, change)
