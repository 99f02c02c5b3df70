"""The tools that an admin form offers: those of the row's organization, or of every organization
that can be chosen for a new row."""

from __future__ import annotations

from typing import Any

from django import forms

from agents.accounts.models import Organization
from agents.employees.toolboxes import load_toolbox
from tools.contract import Tool


def list_available_tools(form: forms.ModelForm[Any]) -> list[Tool]:
    """List every version of every tool, sorted by id; a tool that several organizations share
    appears once."""
    if form.instance.pk:
        return load_toolbox(form.instance.organization_id).tools()
    field = form.fields.get("organization")
    choices = field.queryset if isinstance(field, forms.ModelChoiceField) else None
    organizations = list(choices) if choices is not None else []
    found = {tool.id: tool for each in organizations for tool in load_toolbox(each.pk).tools()}
    return [found[key] for key in sorted(found)]


def list_missing_tools(organization: Organization, names: set[str]) -> list[str]:
    """List the names for which the organization does not have a tool."""
    toolbox = load_toolbox(organization.pk)
    return sorted(name for name in names if toolbox.get_tool(name) is None)
