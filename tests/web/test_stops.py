"""The stop page: its buttons for each role, and the notices on other pages."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.admin import site
from django.db.models.functions import Now
from django.test import Client, RequestFactory

from agents.accounts.models import AuditEntry, Organization
from agents.admin.employees import EmployeeAdmin, EmployeeForm
from agents.employees.models import Employee, ToolRule
from agents.employees.toolboxes import get_installed_toolbox
from agents.runs import stops
from agents.runs.models import RunStatus
from tests.admin.rows import make_admin_world
from tests.features import feature
from tests.web.pages import read_page
from tests.world import World

pytestmark = pytest.mark.django_db


def press(client: Client, act: str, what: str, which: object = "") -> int:
    return client.post("/stop/", {"act": act, "what": what, "which": which}).status_code


def test_an_operator_stops_everything_and_every_page_says_so(world: World) -> None:
    run = world.run(RunStatus.QUEUED)
    assert press(world.client("operator"), "stop", "everything") == 302
    for path in ("/", "/runs/", "/employees/"):
        assert "operator stopped everything" in read_page(world.client("viewer"), path)
    assert "operator stopped everything" in read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert "operator stopped everything" not in read_page(world.client("outsider"), "/")
    entry = AuditEntry.objects.get(action="stopped")
    assert (entry.actor, entry.subject) == ("user:operator", f"organization:{world.acme.pk}")


def test_only_an_admin_can_resume(world: World) -> None:
    stops.stop_everything(world.member("operator"))
    page = read_page(world.client("approver"), "/stop/")
    assert "Only an admin can resume" in page
    assert 'value="release"' not in page
    assert press(world.client("approver"), "release", "everything") == 403
    assert press(world.client("admin"), "release", "everything") == 302
    world.acme.refresh_from_db()
    assert world.acme.stopped_at is None


@feature(
    "The gate", "Whoever stopped something can undo it for two minutes", "agents/runs/stops.py"
)
@pytest.mark.parametrize("what", ["everything", "employee", "tool"])
def test_the_person_who_stopped_something_can_lift_the_stop_for_two_minutes(
    world: World, what: str
) -> None:
    which = {"employee": world.employee.pk, "tool": "data.getStats"}.get(what, "")
    for late in (False, True):
        assert press(world.client("operator"), "stop", what, which) == 302
        assert 'value="release"' in read_page(world.client("operator"), "/stop/")
        assert 'value="release"' not in read_page(world.client("approver"), "/stop/")
        assert press(world.client("approver"), "release", what, which) == 403
        if late:
            for rows in (Organization.objects, Employee.objects, ToolRule.objects):
                rows.filter(stopped_at__isnull=False).update(
                    stopped_at=Now() - timedelta(minutes=3)
                )
            assert 'value="release"' not in read_page(world.client("operator"), "/stop/")
        assert press(world.client("operator"), "release", what, which) == (403 if late else 302)
    assert press(world.client("admin"), "release", what, which) == 302


def test_the_page_does_not_preselect_anything_and_says_what_a_stop_would_halt(world: World) -> None:
    world.run(RunStatus.QUEUED)
    world.run(RunStatus.WAITING)
    page = re.sub(r"\s+", " ", read_page(world.client("operator"), "/stop/"))
    assert "Would halt 2 unfinished runs (1 at work, 1 waiting)" in page
    assert "would halt 2 unfinished runs (1 at work, 1 waiting)</span>" in page
    assert '<select name="which" required> <option value="">Choose a tool</option>' in page
    assert '<optgroup label="Used by 1 employee">' in page
    assert press(world.client("operator"), "stop", "tool") == 422
    assert not ToolRule.objects.exists()


def test_a_viewer_has_no_buttons_and_cannot_stop_anything(world: World) -> None:
    assert 'value="stop"' not in read_page(world.client("viewer"), "/stop/")
    for what, which in (
        ("everything", ""),
        ("employee", world.employee.pk),
        ("tool", "data.getStats"),
    ):
        assert press(world.client("viewer"), "stop", what, which) == 403
    world.acme.refresh_from_db()
    assert (world.acme.stopped_at, ToolRule.objects.count()) == (None, 0)


def test_an_employee_can_be_stopped_and_resumed(world: World) -> None:
    assert press(world.client("operator"), "stop", "employee", world.employee.pk) == 302
    assert "stopped by operator" in read_page(
        world.client("viewer"), f"/employees/{world.employee.pk}/"
    )
    run = world.run(RunStatus.QUEUED)
    stops.apply(run.pk)
    assert "Nothing new starts" in read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert press(world.client("admin"), "release", "employee", world.employee.pk) == 302
    assert "stopped by operator" not in read_page(
        world.client("viewer"), f"/employees/{world.employee.pk}/"
    )


def test_a_tool_can_be_stopped_in_the_catalog_and_over_rest(world: World) -> None:
    assert press(world.client("operator"), "stop", "tool", "data.getStats") == 302
    assert "stopped by operator" in read_page(world.client("viewer"), "/tools/?q=data.getStats")
    by_name = {one["name"]: one for one in world.client("viewer").get("/api/tools").json()["items"]}
    assert not by_name["data.getStats"]["is_enabled"]
    assert by_name["data.searchRecords"]["is_enabled"]
    theirs = {
        one["name"]: one for one in world.client("outsider").get("/api/tools").json()["items"]
    }
    assert theirs["data.getStats"]["is_enabled"]


@feature(
    "The gate", "The stop page names each tool with its id and level", "agents/web/views/stops.py"
)
def test_tools_are_named_with_their_ids_and_levels(world: World) -> None:
    ToolRule.objects.create(organization=world.acme, tool="data.getStats", level="write")
    press(world.client("operator"), "stop", "tool", "data.searchRecords")
    ToolRule.objects.create(
        organization=world.acme, tool="old.gone", stopped_at=Now(), stopped_by="operator"
    )
    page = read_page(world.client("admin"), "/stop/")
    counting = get_installed_toolbox().get_tool("data.getStats")
    assert counting is not None
    assert (
        f'<option value="data.getStats">{counting.title} · data.getStats · write</option>' in page
    )
    stopped = page.partition('id="tools-head"')[2].partition('class="stop-tool"')[0]
    lines = [re.sub(r"<[^>]+>|\s+", " ", line) for line in stopped.split("<li>")[1:]]
    assert [" ".join(line.split())[:48] for line in lines] == [
        "old.gone no longer installed stopped by operator",
        "read Search records data.searchRecords stopped b",
    ]
    assert 'value="data.searchRecords">Search' not in page
    assert press(world.client("admin"), "release", "tool", "old.gone") == 302
    assert not ToolRule.objects.filter(tool="old.gone").exists()


def test_a_level_raised_for_all_is_shown_in_the_catalog_and_over_rest(world: World) -> None:
    ToolRule.objects.create(organization=world.acme, tool="data.getStats", level="write")
    by_name = {one["name"]: one for one in world.client("viewer").get("/api/tools").json()["items"]}
    assert by_name["data.getStats"]["level"] == "write"
    assert "data.getStats" in read_page(world.client("viewer"), "/tools/?level=write&q=getStats")


def test_an_employee_of_another_organization_returns_404(world: World) -> None:
    assert press(world.client("operator"), "stop", "employee", world.others_employee.pk) == 404
    assert Employee.objects.get(pk=world.others_employee.pk).stopped_at is None


@pytest.mark.parametrize(
    ("act", "what", "which"),
    [
        ("stop", "", ""),
        ("", "everything", ""),
        ("stop", "employee", "x"),
        ("release", "employee", "9" * 30),
    ],
)
def test_an_invalid_form_is_refused(world: World, act: str, what: str, which: str) -> None:
    assert press(world.client("admin"), act, what, which) == 422


def test_stopping_twice_is_recorded_once(world: World) -> None:
    for _ in range(2):
        assert press(world.client("operator"), "stop", "everything") == 302
    assert AuditEntry.objects.filter(action="stopped").count() == 1


@feature("The gate", "A raised level for all employees of an organization", "agents/admin/rules.py")
def test_a_level_can_be_raised_in_the_admin() -> None:
    world = make_admin_world()
    client = world.client("admin")
    sent = {"organization": world.acme.pk, "tool": "data.getStats", "level": "write"}
    assert client.post("/admin/employees/toolrule/add/", sent).status_code == 302
    rule = ToolRule.objects.get()
    assert (rule.tool, rule.level) == ("data.getStats", "write")
    assert AuditEntry.objects.filter(action="tool_rule_added").exists()
    lower = client.post("/admin/employees/toolrule/add/", {**sent, "tool": "data.bulkDelete"})
    assert "Only a higher level can be set." in lower.content.decode()
    asked = client.post(f"/admin/employees/toolrule/{rule.pk}/change/", {"level": ""})
    assert "was raised to write for all" in asked.content.decode()
    rule.refresh_from_db()
    assert rule.level == "write"


def test_saving_an_admin_form_that_was_opened_before_a_stop_does_not_lift_the_stop(
    world: World, rf: RequestFactory
) -> None:
    read_before = Employee.objects.get(pk=world.employee.pk)
    stops.stop_employee(world.member("operator"), world.employee.pk)
    read_before.job_title = "Clerk"
    form = EmployeeForm(instance=read_before)
    EmployeeAdmin(Employee, site).save_model(rf.post("/"), read_before, form, change=True)
    world.employee.refresh_from_db()
    assert (world.employee.job_title, world.employee.stopped_by) == ("Clerk", "operator")
