"""To whom an employee may hand tasks: names of other employees in its form, their ids in its grant."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms

from agents.accounts.models import Organization
from agents.employees.models import Employee, Grant
from agents.runs.engine.context import DELEGATE, colleagues_of

from .fields import LinesField

HELP = (
    "Names of other employees of the organisation, one per line; nobody by default. Their work runs with their own "
    f"tools and limits. It takes {DELEGATE}, ticked above."
)


def delegates_field() -> LinesField:
    """The field for these names."""
    return LinesField(label="May hand tasks to", help_text=HELP, longest=80)


def names_of(employee: Employee) -> list[str]:
    """The names that are kept, as the field takes them; an employee that is not saved yet has none."""
    kept = employee.grants.filter(tool=DELEGATE).values_list("delegates", flat=True) if employee.pk else ()
    return [each.name for each in colleagues_of(employee, [pk for ids in kept for pk in ids])]


def check_delegates(
    names: Sequence[str], allowed: Sequence[str], employee: Employee, organization: Organization
) -> None:
    """Raises ValidationError if one of the names is nobody's, the employee's own, or the tool is not allowed."""
    if names and DELEGATE not in allowed:
        raise forms.ValidationError(f"Tick {DELEGATE} above, or name nobody here.")
    others = Employee.objects.filter(organization=organization, name__in=names).exclude(pk=employee.pk)
    unknown = sorted(set(names) - set(others.values_list("name", flat=True)))
    if unknown:
        raise forms.ValidationError(f"{unknown[0]!r} is no other employee of {organization.name}.")


def set_delegates(employee: Employee, names: Sequence[str]) -> None:
    """Keeps exactly these in the employee's grant; to be called in a transaction, once the grants stand."""
    same = Employee.objects.filter(organization_id=employee.organization_id, name__in=names).exclude(pk=employee.pk)
    ids = sorted(same.values_list("pk", flat=True))
    Grant.objects.filter(employee=employee, tool=DELEGATE).update(delegates=ids)
