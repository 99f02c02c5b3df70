"""The tools that a form of the admin offers: those of the row's organisation, or of all that may still be chosen."""

from __future__ import annotations

from typing import Any

from django import forms

from agents.accounts.models import Organization
from agents.employees.toolboxes import toolbox_of
from tools.contract import Tool


def offered_in(form: forms.ModelForm[Any]) -> list[Tool]:
    """Every version of every tool, by name; of several organisations' tools with the same id, one."""
    if form.instance.pk:
        return toolbox_of(form.instance.organization_id).tools()
    field = form.fields.get("organization")
    choices = field.queryset if isinstance(field, forms.ModelChoiceField) else None
    organizations = list(choices) if choices is not None else []
    found = {tool.id: tool for each in organizations for tool in toolbox_of(each.pk).tools()}
    return [found[key] for key in sorted(found)]


def not_of(organization: Organization, names: set[str]) -> list[str]:
    """Those of the names that the organisation has no tool of."""
    toolbox = toolbox_of(organization.pk)
    return sorted(name for name in names if toolbox.get_tool(name) is None)
