"""Operations that read employees."""

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Query, Router

from agents.accounts.models import Membership
from agents.api.auth import get_member
from agents.api.documentation import document_problems
from agents.api.lookup import PathId
from agents.api.paging import take_oldest
from agents.api.schemas import CursorPage, EmployeeSummary, PageQuery
from agents.api.statistics import EmployeeDetail, load_employee_statistics
from agents.employees.models import Employee
from agents.platform.row_ids import get_row

router = Router(tags=["Employees"])


class EmployeeList(CursorPage[EmployeeSummary]):
    """A page of the list of employees."""


@router.get("", response=EmployeeList, summary="List employees")
def list_employees(request: HttpRequest, filters: Query[PageQuery]) -> EmployeeList:
    """List the organization's employees, oldest first."""
    page, next_cursor = take_oldest(_select_employees(get_member(request)), filters)
    return EmployeeList(items=[_summarize(employee) for employee in page], next_cursor=next_cursor)


@router.get(
    "/{employee_id}",
    response=EmployeeDetail,
    summary="Show an employee",
    openapi_extra=document_problems(404),
)
def show_employee(request: HttpRequest, employee_id: PathId) -> EmployeeDetail:
    """Return one employee with its allowed tools and its statistics for the last 30 days."""
    employee = get_row(_select_employees(get_member(request)), employee_id, "employee")
    shape = _summarize(employee)
    return EmployeeDetail(**shape.model_dump(), figures=load_employee_statistics(employee.pk))


def _select_employees(member: Membership) -> QuerySet[Employee]:
    rows = Employee.objects.filter(organization_id=member.organization_id)
    return rows.select_related("provider").prefetch_related("grants")


def _summarize(employee: Employee) -> EmployeeSummary:
    return EmployeeSummary(
        id=str(employee.pk),
        name=employee.name,
        job_title=employee.job_title,
        mode=employee.mode,
        provider=employee.provider.name,
        model=employee.model,
        allowed_tools=[grant.tool for grant in employee.grants.all()],
        pinned_versions={
            grant.tool: grant.version for grant in employee.grants.all() if grant.version
        },
        example_tasks=[str(task) for task in employee.example_tasks],
        is_active=employee.is_active,
    )
