"""The colleagues to whom an employee can delegate tasks: the employee's form shows their names, and
its grant stores their ids."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms

from agents.accounts.models import Organization
from agents.admin.fields import LinesField
from agents.employees.models import Employee, Grant
from agents.runs.engine.context import DELEGATE, list_colleagues

HELP = (
    "Names of other employees of the organization, one per line. Each works with its own tools and limits. "
    f"Requires {DELEGATE}, ticked above."
)


def build_delegates_field() -> LinesField:
    """Build the form field for the delegates' names."""
    return LinesField(label="Can delegate to", help_text=HELP, longest=80)


def list_delegate_names(employee: Employee) -> list[str]:
    """Return the names of the employee's delegates, as the form's field shows them; an unsaved
    employee has none."""
    stored = (
        employee.grants.filter(tool=DELEGATE).values_list("delegates", flat=True)
        if employee.pk
        else ()
    )
    return [each.name for each in list_colleagues(employee, [pk for ids in stored for pk in ids])]


def check_delegates(
    names: Sequence[str], allowed: Sequence[str], employee: Employee, organization: Organization
) -> None:
    """Check that each name belongs to another employee and that the tool for delegating is allowed.

    Raises:
        ValidationError: a name is unknown or the employee's own, or the tool is not ticked.
    """
    if names and DELEGATE not in allowed:
        raise forms.ValidationError(f"Tick {DELEGATE} above, or leave this empty.")
    others = Employee.objects.filter(organization=organization, name__in=names).exclude(
        pk=employee.pk
    )
    unknown = sorted(set(names) - set(others.values_list("name", flat=True)))
    if unknown:
        raise forms.ValidationError(
            f"{organization.name} has no other employee named {unknown[0]!r}."
        )


def set_delegates(employee: Employee, names: Sequence[str]) -> None:
    """Store exactly these delegates in the employee's grant; call it in a transaction, after the
    grants are saved."""
    same = Employee.objects.filter(
        organization_id=employee.organization_id, name__in=names
    ).exclude(pk=employee.pk)
    ids = sorted(same.values_list("pk", flat=True))
    Grant.objects.filter(employee=employee, tool=DELEGATE).update(delegates=ids)
