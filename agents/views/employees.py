"""The list of employees."""

from __future__ import annotations

from django.db.models import Count
from django.http import HttpRequest, HttpResponseBase

from agents.models import Employee, Membership

from .pages import framed, page


@page("GET")
def all_employees(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Who works here, on which model, and who follows a script."""
    employees = (
        Employee.objects.filter(organization_id=member.organization_id)
        .select_related("provider")
        .prefetch_related("grants")
        .annotate(run_count=Count("runs"))
        .order_by("-is_active", "name")
    )
    return framed(request, member, "employees/list.html", {"employees": employees})
