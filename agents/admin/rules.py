"""Tool rules: a level raised for all employees of an organization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelectWidget

from agents.admin.available_tools import list_available_tools
from agents.admin.configuration import ConfigurationAdmin
from agents.admin.confirmation import ConfirmationForm
from agents.admin.scope import ScopedRelatedFilter
from agents.employees.models import ToolRule
from agents.employees.toolboxes import load_toolbox
from tools.contract import Level
from tools.toolbox.asked_actions import PREFIX


class RuleForm(ConfirmationForm):
    """The form for a tool's level for all employees; a level that is set must be higher than the
    tool's own."""

    tool = forms.ChoiceField(widget=UnfoldAdminSelectWidget)
    level = forms.ChoiceField(
        choices=[
            ("", "the tool's own level"),
            *((level.value, level.value) for level in Level if level is not Level.READ),
        ],
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="At write level or above, each call needs approval, whichever employee requests it.",
    )

    class Meta:
        model = ToolRule
        fields = ("organization", "tool", "level")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = {
            tool.name: f"{tool.name} ({tool.level.value})" for tool in list_available_tools(self)
        }
        field = self.fields.get("tool")
        if isinstance(field, forms.ChoiceField):
            field.choices = sorted(offered.items())

    def clean(self) -> dict[str, Any]:
        """Check that the organization has the tool, and that the level is higher than the tool's
        own."""
        cleaned = super().clean() or {}
        organization = cleaned.get("organization") or getattr(self.instance, "organization", None)
        if organization is None:
            return cleaned
        tool = load_toolbox(organization.pk).get_tool(cleaned.get("tool") or self.instance.tool)
        if tool is None and "tool" in cleaned:
            self.add_error("tool", f"{organization} has no such tool. Choose another one.")
        level = cleaned.get("level", "")
        if tool is not None and level and Level(level).rank <= tool.level.rank:
            self.add_error(
                "level",
                f"{tool.name} already has the level {tool.level.value}. Only a higher level can be set.",
            )
        return cleaned

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """Describe a lowered level as a consequence, because fewer calls then need approval."""
        before = self.initial.get("level", "")
        if (
            self.instance.pk
            and before
            and (not cleaned["level"] or Level(cleaned["level"]).rank < Level(before).rank)
        ):
            now = cleaned["level"] or "back at its own level"
            yield f"{self.instance.tool} was raised to {before} for all employees. From now on it is {now}."


@admin.register(ToolRule)
class ToolRuleAdmin(ConfigurationAdmin):
    """Tool levels raised for all employees. The list also shows stopped tools, which people stop
    and resume on the stops page."""

    form = RuleForm
    immutable_fields = ("organization", "tool")
    list_display = ("tool", "level", "organization", "stopped_by", "stopped_at")
    list_filter = (("organization", ScopedRelatedFilter),)
    list_select_related = ("organization",)
    search_fields = ("tool",)
    ordering = ("tool", "id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolRule]:
        """Leave out the actions of agents, whose levels are set on the page for agents."""
        rows: QuerySet[ToolRule] = super().get_queryset(request)
        return rows.exclude(tool__startswith=PREFIX)

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        fields = ("organization", "tool", "level")
        return fields if obj is None else (*fields, "stopped_by", "stopped_at")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Model | None = None
    ) -> tuple[str, ...]:
        fixed: tuple[str, ...] = super().get_readonly_fields(request, obj)
        return (*fixed, "stopped_by", "stopped_at")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False for a stopped tool: deleting its rule would lift the stop."""
        is_stopped = isinstance(obj, ToolRule) and obj.stopped_at is not None
        return super().has_delete_permission(request, obj) and not is_stopped
