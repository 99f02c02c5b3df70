"""Limits of an employee's tools in the admin: read, checked in words, kept, and loosened only after a question."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.accounts.models import AuditEntry
from agents.admin.employees import MAX_TOOLS
from agents.employees.models import Grant
from agents.employees.toolboxes import get_installed_toolbox
from tests.admin.rows import address, faults, filled_form, make_admin_world
from tests.tools.toolbox.sample_tools import Echo
from tests.world import DELETE, SEARCH, UPDATE, World

pytestmark = pytest.mark.django_db

STATUS = f'{UPDATE} changes.status one_of ["active", "pending"] else forbid'
LIMIT = f"{SEARCH} limit maximum 100 else ask"
RAISED = f"{SEARCH} level write"
ORIGIN = f"{UPDATE} changes.email not_from_outside else forbid"


@pytest.fixture
def world() -> World:
    return make_admin_world()


@pytest.fixture
def admin(world: World) -> Client:
    return world.client("admin")


def saved(world: World, admin: Client, *lines: str, **more: Any) -> Any:
    path = address(world.employee, "change")
    return admin.post(path, filled_form(admin, path, limits="\n".join(lines), **more))


def test_lines_become_limits_and_come_back_as_they_were(world: World, admin: Client) -> None:
    answer = saved(world, admin, RAISED, STATUS, LIMIT, ORIGIN)
    assert answer.status_code == 302, faults(answer)
    search = Grant.objects.get(employee=world.employee, tool=SEARCH)
    assert search.level == "write"
    assert search.conditions == [{"param": "limit", "rule": "maximum", "value": 100, "otherwise": "ask"}]
    form = admin.get(address(world.employee, "change")).context["adminform"].form
    assert set(form.initial["limits"]) == {RAISED, STATUS, LIMIT, ORIGIN}
    assert AuditEntry.objects.filter(action="employee_changed", payload__fields__has_key="limits").exists()


def test_the_employees_page_tells_them(world: World, admin: Client) -> None:
    saved(world, admin, STATUS, ORIGIN)
    html = admin.get(f"/employees/{world.employee.pk}/").content.decode()
    assert "changes.status: one of [&quot;active&quot;,&quot;pending&quot;]; otherwise it is refused" in html
    assert "changes.email: not from outside; otherwise it is refused" in html


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("data.nothing limit maximum 1", "there is no tool &#x27;data.nothing&#x27;"),
        (f"{SEARCH} color equals 1", "has no parameter &#x27;color&#x27;, only"),
        (f"{SEARCH} limit below 1", "&#x27;below&#x27; is not a rule"),
        (f"{SEARCH} limit maximum", "expected a line like"),
        (f"{SEARCH} limit maximum many", "does not start with a JSON value"),
        (f"{SEARCH} limit maximum 1 or ask", "at the end, not"),
        (f"{UPDATE} changes.email not_from_outside 1", "at the end, not"),
        (f"{SEARCH} limit maximum true", "is not a number"),
        (f'{SEARCH} text pattern "("', "is not a valid RE2 regular expression"),
        (f"{SEARCH} limit equals NaN", "Out of range float"),
        (f"{UPDATE} level read", "which cannot be lowered"),
        (f"{UPDATE} level severe", "is not a level"),
        ("data.getStats level write", "has a limit, but is not ticked"),
    ],
)
def test_a_line_that_cannot_be_kept_says_why(world: World, admin: Client, line: str, why: str) -> None:
    answer = saved(world, admin, line)
    assert "limits" in faults(answer)
    assert why in answer.content.decode()
    assert not Grant.objects.exclude(conditions=[], level="").exists()


def test_loosening_a_limit_asks_first_and_tightening_does_not(world: World, admin: Client) -> None:
    saved(world, admin, LIMIT)
    assert saved(world, admin, LIMIT, STATUS).status_code == 302
    answer = saved(world, admin, STATUS)
    assert answer.status_code == 200
    assert f"is no longer limited by: {LIMIT}" in answer.content.decode()
    assert Grant.objects.get(employee=world.employee, tool=SEARCH).conditions != []


def test_a_limit_goes_with_its_tool_without_a_question(world: World, admin: Client) -> None:
    saved(world, admin, LIMIT)
    answer = saved(world, admin, allowed_tools=[UPDATE, DELETE])
    assert answer.status_code == 302, faults(answer)


def test_limits_of_a_tool_that_is_not_installed_any_more_stay(world: World, admin: Client) -> None:
    kept = {"param": "to", "rule": "equals", "value": "me", "otherwise": "ask"}
    world.employee.grants.create(tool="crm.gone", level="write", conditions=[kept])
    path = address(world.employee, "change")
    answer = admin.post(path, filled_form(admin, path, job_title="Steward"))
    assert answer.status_code == 302, faults(answer)
    gone = Grant.objects.get(employee=world.employee, tool="crm.gone")
    assert (gone.level, gone.conditions) == ("write", [kept])


def test_more_tools_than_a_request_may_name_are_refused_with_the_count(world: World, admin: Client) -> None:
    toolbox = get_installed_toolbox()
    names = [f"sample.number{number}" for number in range(MAX_TOOLS + 1)]
    for name in names:
        toolbox.register(Echo(name=name))
    try:
        answer = saved(world, admin, allowed_tools=names)
        assert f"{MAX_TOOLS + 1} tools are ticked, but a model can be offered at most {MAX_TOOLS}" in str(
            faults(answer)
        )
        assert saved(world, admin, allowed_tools=names[:-1]).status_code == 302
    finally:
        for name in names:
            toolbox.unregister(name)
