"""Rules of tools: a level that is raised for all employees of an organisation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelectWidget

from agents.employees.models import ToolRule
from agents.employees.toolboxes import toolbox_of
from tools.contract import Level

from .catalog import offered_in
from .configuration import ConfigurationAdmin
from .confirming import ConfirmingForm
from .scope import ScopedRelatedFilter


class RuleForm(ConfirmingForm):
    """One tool and its level for all; a tool's own level is never lowered."""

    tool = forms.ChoiceField(widget=UnfoldAdminSelectWidget)
    level = forms.ChoiceField(
        choices=[("", "its own"), *((level.value, level.value) for level in Level if level is not Level.READ)],
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="From write on a person approves each call, whichever employee asks for it.",
    )

    class Meta:
        model = ToolRule
        fields = ("organization", "tool", "level")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = {tool.name: f"{tool.name} ({tool.level.value})" for tool in offered_in(self)}
        field = self.fields.get("tool")
        if isinstance(field, forms.ChoiceField):
            field.choices = sorted(offered.items())

    def clean(self) -> dict[str, Any]:
        """The level is higher than the tool's own."""
        cleaned = super().clean() or {}
        organization = cleaned.get("organization") or getattr(self.instance, "organization", None)
        if organization is None:
            return cleaned
        tool = toolbox_of(organization.pk).get_tool(cleaned.get("tool") or self.instance.tool)
        if tool is None and "tool" in cleaned:
            self.add_error("tool", f"{organization} has no such tool.")
        level = cleaned.get("level", "")
        if tool is not None and level and Level(level).rank <= tool.level.rank:
            self.add_error("level", f"{tool.name} is {tool.level.value} by itself; choose a higher level.")
        return cleaned

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """Less is asked than before."""
        before = self.initial.get("level", "")
        if self.instance.pk and before and (not cleaned["level"] or Level(cleaned["level"]).rank < Level(before).rank):
            now = cleaned["level"] or "its own level"
            yield f"{self.instance.tool} was raised to {before} for all; from now on it is {now}."


@admin.register(ToolRule)
class ToolRuleAdmin(ConfigurationAdmin):
    """Levels raised for all; what is stopped is seen here, and stopped or released on the page of stops."""

    form = RuleForm
    fixed = ("organization", "tool")
    list_display = ("tool", "level", "organization", "stopped_by", "stopped_at")
    list_filter = (("organization", ScopedRelatedFilter),)
    list_select_related = ("organization",)
    search_fields = ("tool",)
    ordering = ("tool", "id")

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        fields = ("organization", "tool", "level")
        return fields if obj is None else (*fields, "stopped_by", "stopped_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        fixed: tuple[str, ...] = super().get_readonly_fields(request, obj)
        return (*fixed, "stopped_by", "stopped_at")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Not while it holds a stop: that is released on its own page."""
        is_stopped = isinstance(obj, ToolRule) and obj.stopped_at is not None
        return super().has_delete_permission(request, obj) and not is_stopped
