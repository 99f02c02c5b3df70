"""Employees: who works here."""

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Query, Router

from agents.accounts.models import Membership
from agents.api.schemas import EmployeeShape, Page, Paging
from agents.employees.models import Employee

from .auth import member_of
from .documentation import refusals
from .figures import WholeEmployee, shape_of_employee
from .lookup import PathId, found
from .paging import oldest_first

router = Router(tags=["Employees"])


class EmployeePage(Page[EmployeeShape]):
    """A part of the list of employees."""


@router.get("", response=EmployeePage, summary="List employees")
def list_employees(request: HttpRequest, filters: Query[Paging]) -> EmployeePage:
    """The organisation's employees, in the order in which they came."""
    page, next_cursor = oldest_first(_employees_of(member_of(request)), filters)
    return EmployeePage(items=[_shape_of(employee) for employee in page], next_cursor=next_cursor)


@router.get("/{employee_id}", response=WholeEmployee, summary="Show an employee", openapi_extra=refusals(404))
def show_employee(request: HttpRequest, employee_id: PathId) -> WholeEmployee:
    """One employee with the tools that it may use, and what it did in the last 30 days."""
    employee = found(_employees_of(member_of(request)), employee_id, "employee")
    shape = _shape_of(employee)
    return WholeEmployee(**shape.model_dump(), figures=shape_of_employee(employee.pk))


def _employees_of(member: Membership) -> QuerySet[Employee]:
    rows = Employee.objects.filter(organization_id=member.organization_id)
    return rows.select_related("provider").prefetch_related("grants")


def _shape_of(employee: Employee) -> EmployeeShape:
    return EmployeeShape(
        id=str(employee.pk),
        name=employee.name,
        job_title=employee.job_title,
        mode=employee.mode,
        provider=employee.provider.name,
        model=employee.model,
        allowed_tools=[grant.tool for grant in employee.grants.all()],
        example_tasks=[str(task) for task in employee.example_tasks],
        is_active=employee.is_active,
    )
