"""Employees: their instructions, model, budgets and allowed tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelectWidget

from agents.accounts.models import Organization
from agents.admin.available_tools import list_available_tools, list_missing_tools
from agents.admin.configuration import ConfigurationAdmin
from agents.admin.confirmation import ConfirmationForm
from agents.admin.delegates import (
    build_delegates_field,
    check_delegates,
    list_delegate_names,
    set_delegates,
)
from agents.admin.fields import AllowedToolsField, LinesField, ObjectField
from agents.admin.prices import list_unpriced
from agents.admin.scope import ScopedRelatedFilter
from agents.admin.tool_limits import LimitsField, ToolLimits, apply_limits, list_limits, list_rows
from agents.employees.models import Employee, Grant, ModelProvider, ProviderKind
from agents.employees.provider_settings import check_script
from agents.providers.base import ProviderError
from tools.connections.unavailable_tools import explain_unavailable
from tools.contract import Level, Tool
from tools.contract.outside_text import quote_text
from tools.toolbox.toolbox import MODES

EXAMPLE_MODELS = {ProviderKind.OPENAI: "gpt-5-mini", ProviderKind.OLLAMA: "qwen3"}
MAX_TOOLS = 128
"""The maximum number of tools that one request can name in the Chat Completions protocol."""

BUDGETS = ("run_tokens", "run_cost", "month_tokens", "month_cost", "month_minutes")


class EmployeeForm(ConfirmationForm):
    """The form for one employee, with the exact names of its allowed tools."""

    mode = forms.ChoiceField(
        initial=MODES[0],
        help_text="The employee gets only the ticked tools that belong to this mode. "
        "Tools without a mode belong to every mode. The modes come from the installed tools.",
        widget=UnfoldAdminSelectWidget,
    )
    allowed_tools = AllowedToolsField(
        help_text="Only ticked tools are allowed. Read and draft run by themselves. "
        "Write needs approval (a person or a standing grant). Destructive always needs a person."
    )
    extra_body = ObjectField(
        label="Extra request fields",
        help_text='Advanced: a JSON object that is added to every model request, e.g. {"top_p": 0.9}. For Ollama: '
        '{"think": false, "keep_alive": "30m"}. It cannot replace the conversation, the tools or the model.',
    )
    pinned_versions = LinesField(
        label="Pinned versions",
        help_text="Versions that the employee keeps when newer ones are installed, one per line, e.g. mail.send@1.2. "
        "Every other tool is used in its newest version.",
        longest=161,
    )
    limits = LimitsField()
    delegates = build_delegates_field()
    capabilities = LinesField(
        help_text="Capabilities that tools can require, one per line.", longest=60
    )
    example_tasks = LinesField(
        help_text="Tasks suggested on the start page, one per line.", longest=1_000
    )

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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        granted = (
            list(self.instance.grants.values_list("tool", flat=True)) if self.instance.pk else []
        )
        self.initial["allowed_tools"] = granted
        self.catalog = catalog = list_available_tools(self)
        self._offer_modes(catalog)
        field = self.fields.get("allowed_tools")
        if isinstance(field, AllowedToolsField):
            absent = set(granted) - {tool.name for tool in catalog}
            field.offer(
                catalog,
                granted,
                explain_unavailable(self.instance.organization_id, absent) if absent else {},
            )
        grants = list(self.instance.grants.all()) if self.instance.pk else []
        self.initial["pinned_versions"] = [
            f"{grant.tool}@{grant.version}" for grant in grants if grant.version
        ]
        self.limits_before = list_limits(grants)
        self.initial["limits"] = list_rows(grants, {tool.name: tool for tool in catalog})
        limits = self.fields.get("limits")
        if isinstance(limits, LimitsField):
            limits.offer(catalog, self.initial["limits"])
        self.initial["delegates"] = list_delegate_names(self.instance)

    def _offer_modes(self, catalog: Sequence[Tool]) -> None:
        """Offer the modes that the tools name, and the employee's current mode."""
        named = {mode for tool in catalog for mode in tool.modes or ()} | {self.instance.mode}
        choices = [MODES[0], *sorted(named - {MODES[0]})]
        field = self.fields.get("mode")
        if isinstance(field, forms.ChoiceField):
            field.choices = [(mode, mode.capitalize()) for mode in choices]

    def clean_mode(self) -> str:
        """Refuse the employee's current mode if no installed tool names it any more."""
        mode: str = self.cleaned_data["mode"]
        if mode not in {*MODES, *(named for tool in self.catalog for named in tool.modes or ())}:
            raise forms.ValidationError(
                f"No installed tool belongs to the mode {mode!r}. Choose another mode."
            )
        return mode

    def clean_pinned_versions(self) -> list[str]:
        """Refuse two versions of one tool, and versions that are neither installed nor pinned
        already."""
        lines: list[str] = self.cleaned_data["pinned_versions"]
        known = {*(tool.id for tool in self.catalog), *self.initial["pinned_versions"]}
        if unknown := [line for line in lines if line not in known]:
            raise forms.ValidationError(
                f"{unknown[0]!r} is not an installed version. Write it like mail.send@1.2."
            )
        if repeated := sorted(
            name for name, count in Counter(map(_get_name, lines)).items() if count > 1
        ):
            raise forms.ValidationError(f"{repeated[0]} has several versions. Keep one.")
        return lines

    def clean(self) -> dict[str, Any]:
        """Check that the tools and the provider belong to the organization, and that the model or
        script can be used."""
        cleaned = super().clean() or {}
        self._check_tools(cleaned.get("allowed_tools", ()), cleaned.get("limits", {}))
        self._check_delegates(cleaned)
        for name in sorted({_get_name(line) for line in cleaned.get("pinned_versions", ())}):
            if name not in cleaned.get("allowed_tools", ()):
                message = f"{name} is pinned, but is not ticked above. Tick it or remove the line."
                self.add_error("pinned_versions", message)
        provider = cleaned.get("provider")
        organization = cleaned.get("organization") or getattr(self.instance, "organization", None)
        if organization is not None:
            self._check_owner(organization, cleaned.get("allowed_tools", ()))
        if isinstance(provider, ModelProvider) and organization is not None:
            if provider.organization_id != organization.pk:
                self.add_error(
                    "provider",
                    f"The provider {provider.name!r} belongs to another organization. Choose one of yours.",
                )
            elif provider.kind == ProviderKind.SCRIPTED:
                self._check_script(cleaned.get("model", ""))
            elif not cleaned.get("model"):
                example = EXAMPLE_MODELS[ProviderKind(provider.kind)]
                self.add_error(
                    "model", f"Enter the name of one of {provider.name!r}'s models, e.g. {example}."
                )
            else:
                self._check_price(provider, cleaned)
        return cleaned

    def _check_script(self, name: str) -> None:
        try:
            check_script(name)
        except ProviderError as error:
            self.add_error("model", error.message)

    def _check_owner(self, organization: Organization, allowed: Sequence[str]) -> None:
        """Refuse new grants of tools that the organization does not have; existing grants of such
        tools may stay."""
        if missing := list_missing_tools(
            organization, set(allowed) - set(self.initial["allowed_tools"])
        ):
            self.add_error(
                "allowed_tools",
                f"{organization} does not have {', '.join(missing)}. Untick what is missing.",
            )

    def _check_price(self, provider: ModelProvider, cleaned: dict[str, Any]) -> None:
        """Require a price for a cost limit, because without a price the limit would never be
        reached."""
        model = cleaned.get("model", "")
        if not list_unpriced(provider, [Employee(model=model)]):
            return
        for name in ("run_cost", "month_cost"):
            if cleaned.get(name) is not None:
                self.add_error(
                    name,
                    f"The provider {provider.name!r} has no price for {model!r}. Add one first.",
                )

    def _check_delegates(self, cleaned: dict[str, Any]) -> None:
        organization = cleaned.get("organization") or getattr(self.instance, "organization", None)
        if organization is None or "allowed_tools" not in cleaned:
            return
        try:
            check_delegates(
                cleaned.get("delegates", ()), cleaned["allowed_tools"], self.instance, organization
            )
        except forms.ValidationError as error:
            self.add_error("delegates", error)

    def _check_tools(self, allowed: Sequence[str], limits: Mapping[str, ToolLimits]) -> None:
        """Refuse more tools than a model request can name, and limits on tools that are not
        allowed."""
        if len(allowed) > MAX_TOOLS:
            self.add_error(
                "allowed_tools",
                f"{len(allowed)} tools are ticked, but a model can be offered at most {MAX_TOOLS}. Untick some.",
            )
        for name in sorted(set(limits) - set(allowed)):
            self.add_error(
                "limits",
                f"{name} has a limit, but is not ticked above. Tick it or remove the limit.",
            )

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """List removed limits, added destructive tools, and a new provider that receives the
        employee's data."""
        name = cleaned["name"]
        yield from self._list_removed_limits(name, cleaned["limits"])
        added = set(cleaned["allowed_tools"]) - set(self.initial["allowed_tools"])
        chosen = [tool for tool in self.catalog if tool.name in added]
        tools = [f"{tool.title}" for tool in chosen if tool.level == Level.DESTRUCTIVE]
        if tools:
            yield f"{name} may request destructive actions: {', '.join(sorted(tools))}."
        provider = cleaned["provider"]
        if (
            self.instance.pk
            and "provider" in self.changed_data
            and provider.kind != ProviderKind.SCRIPTED
        ):
            yield f"From now on, {provider.name} receives the instructions of {name} and everything it reads."

    def _list_removed_limits(self, name: str, limits: Mapping[str, ToolLimits]) -> Iterator[str]:
        """List each limit that is removed while its tool stays allowed."""
        remaining = set(list_limits(apply_limits(Grant(tool=tool), limits) for tool in limits))
        staying = set(self.cleaned_data["allowed_tools"])
        own = {tool.name for tool in self.catalog if not tool.is_from_outside}
        for tool, sentence in self.limits_before:
            if (tool, sentence) not in remaining and tool in staying:
                shown = tool if tool in own else quote_text(tool)
                yield f"{name} is no longer limited by: {shown}: {sentence}"


def _get_name(tool_id: str) -> str:
    return tool_id.partition("@")[0]


def set_grants(employee: Employee, names: list[str]) -> None:
    """Grant the employee exactly these tools; call it in a transaction."""
    wanted = set(names)
    granted = set(employee.grants.values_list("tool", flat=True))
    employee.grants.filter(tool__in=granted - wanted).delete()
    new = [Grant(employee=employee, tool=name) for name in sorted(wanted - granted)]
    # Ignore conflicts: a concurrent request may have granted the same tool.
    Grant.objects.bulk_create(new, ignore_conflicts=True)


@admin.register(Employee)
class EmployeeAdmin(ConfigurationAdmin):
    """Employees of the organizations in which the person is an admin."""

    form = EmployeeForm
    change_form_outer_after_template = "admin/employee_simulator.html"
    list_display = (
        "name",
        "job_title",
        "organization",
        "provider",
        "model",
        "allowed_tool_count",
        "is_active",
    )
    list_filter = ("is_active", ("organization", ScopedRelatedFilter))
    list_select_related = ("organization", "provider")
    search_fields = ("name", "job_title")
    ordering = ("name", "id")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "organization",
                    "name",
                    "job_title",
                    "is_active",
                    "instructions",
                    "example_tasks",
                )
            },
        ),
        ("Model", {"fields": ("provider", "model", "max_passes", "run_minutes")}),
        (
            "Model settings",
            {"fields": ("temperature", "max_tokens", "num_ctx", "context_tokens", "extra_body")},
        ),
        ("Budgets", {"fields": BUDGETS}),
        (
            "Allowed tools",
            {
                "fields": (
                    "mode",
                    "allowed_tools",
                    "pinned_versions",
                    "limits",
                    "delegates",
                    "capabilities",
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        counted: QuerySet[Any] = super().get_queryset(request).annotate(grant_count=Count("grants"))
        return counted

    @admin.display(description="Allowed tools", ordering="grant_count")
    def allowed_tool_count(self, employee: Employee) -> int:
        return int(employee.grant_count)  # type: ignore[attr-defined]

    def save_related(
        self, request: HttpRequest, form: forms.ModelForm[Any], formsets: Any, change: bool
    ) -> None:
        """Save the grants, with their limits, versions and delegates, before the change is
        recorded."""
        set_grants(form.instance, form.cleaned_data["allowed_tools"])
        grants = [
            apply_limits(grant, form.cleaned_data["limits"]) for grant in form.instance.grants.all()
        ]
        versions = {
            _get_name(line): line.partition("@")[2] for line in form.cleaned_data["pinned_versions"]
        }
        for grant in grants:
            grant.version = versions.get(grant.tool, "")
        Grant.objects.bulk_update(grants, ["level", "conditions", "version"])
        set_delegates(form.instance, form.cleaned_data["delegates"])
        super().save_related(request, form, formsets, change)
