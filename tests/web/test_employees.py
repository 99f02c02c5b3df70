"""Employees: the list, and the profile with allowed tools, instructions, figures and runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.db.models.functions import Now

from agents.employees.models import Employee, Grant
from agents.runs.models import Run, RunStatus
from agents.web.views import employees
from tests.features import feature
from tests.web.counted import count_calls, count_passes
from tests.web.pages import read_page
from tests.world import SEARCH, UPDATE, World

pytestmark = pytest.mark.django_db


def read_profile(world: World, username: str = "operator") -> str:
    return read_page(world.client(username), f"/employees/{world.employee.pk}/")


def create_employee(world: World, name: str, **more: Any) -> Employee:
    return Employee.objects.create(
        organization=world.acme, name=name, provider=world.employee.provider, **more
    )


class TestTheList:
    def test_shows_initials_job_model_and_figures(self, world: World) -> None:
        create_employee(world, "Ada Maria Lovelace", job_title="Analyst", is_active=False)
        world.run(RunStatus.SUCCEEDED)
        world.run()
        html = read_page(world.client("viewer"), "/employees/")
        for part in ("Dana", "Data steward", "follows a script", ">AL<", "inactive"):
            assert part in html
        dana = html.split("Data steward")[1].split("</li>")[0]
        for part in (
            "<b>3</b> tools",
            "<b>2</b> runs",
            "<b>1</b> finished",
            "<b>1</b> in progress",
        ):
            assert part in dana
        assert "Hank" not in html

    def test_ignores_old_runs(self, world: World) -> None:
        run = world.run(RunStatus.SUCCEEDED)
        Run.objects.filter(pk=run.pk).update(created_at=Now() - timedelta(days=31))
        assert "<b>0</b> runs" in read_page(world.client("viewer"), "/employees/")
        assert "<dt>Runs</dt><dd>0</dd>" in read_profile(world)

    def test_counts_only_a_limited_number_of_the_newest_runs(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(employees, "MAX_COUNTED", 2)
        for _ in range(3):
            world.run(RunStatus.SUCCEEDED)
        assert "<b>2</b> runs" in read_page(world.client("viewer"), "/employees/")
        assert "<dt>Runs</dt><dd>2</dd>" in read_profile(world)

    def test_continues_after_its_cursor_and_searches_names_and_jobs(self, world: World) -> None:
        for number in range(65):
            create_employee(world, f"Worker {number:02}", job_title=f"Job {number:02}")
        client = world.client("viewer")
        first = read_page(client, "/employees/")
        assert "Worker 58" in first
        assert "Worker 59" not in first
        assert "Worker 64" in read_page(client, f"/employees/?after={quote('Worker 58')}")
        assert "Worker 64" in read_page(client, "/employees/?q=job+64")
        assert "No employee matches" in read_page(client, "/employees/?q=nobody")

    def test_needs_a_constant_number_of_queries(
        self, world: World, django_assert_max_num_queries: Any
    ) -> None:
        for number in range(20):
            create_employee(world, f"Worker {number}")
        client = world.client("viewer")
        read_page(client, "/employees/")
        with django_assert_max_num_queries(7):
            read_page(client, "/employees/")


class TestTheProfile:
    def test_lists_allowed_tools_by_category_with_their_level(self, world: World) -> None:
        html = read_profile(world)
        tools = html.split('id="tools-head"')[1].split("</section>")[0]
        assert [
            tools.index(part) for part in (SEARCH, "data.updateRecord", "data.bulkDelete")
        ] == sorted(tools.index(part) for part in (SEARCH, "data.updateRecord", "data.bulkDelete"))
        for level in ("read", "write", "destructive"):
            assert f'class="level {level}"' in tools
        assert "data.createRecord" not in tools

    def test_lists_tools_that_are_not_installed(self, world: World) -> None:
        Grant.objects.create(employee=world.employee, tool="gone.tool")
        html = read_profile(world)
        assert "Allowed, but not installed" in html
        assert "Calls are refused" not in html

    def test_links_example_tasks_to_the_form_on_the_start_page(self, world: World) -> None:
        world.employee.example_tasks = ["Tidy up & <b>report</b>"]
        world.employee.save()
        link = f"/?employee={world.employee.pk}&amp;example=0"
        assert f'href="{link}"' in read_profile(world)
        assert link not in read_profile(world, "viewer")
        assert "<b>report" not in read_profile(world)
        form = read_page(world.client("operator"), link.replace("&amp;", "&"))
        assert "Tidy up &amp; &lt;b&gt;report&lt;/b&gt;</textarea>" in form

    def test_shows_instructions_as_text(self, world: World) -> None:
        world.employee.instructions = "Be kind.\n<script>alert(1)</script>\u202e" + "long " * 20_000
        world.employee.save()
        html = read_profile(world)
        assert "<script>alert" not in html
        assert "⟦U+202E⟧" in html
        assert "text long" in html

    def test_shows_success_duration_and_tokens(self, world: World) -> None:
        endings = (("done", 10), ("answered", 20), ("denied", 20), ("", 90))
        for outcome, seconds in endings:
            status = RunStatus.SUCCEEDED if outcome else RunStatus.FAILED
            run = world.run(status, input_tokens=100, output_tokens=50, outcome=outcome)
            Run.objects.filter(pk=run.pk).update(
                started_at=Now(), finished_at=Now() + timedelta(seconds=seconds)
            )
        world.card()
        html = read_profile(world)
        assert "Hit the pass limit" not in html
        Run.objects.filter(status=RunStatus.FAILED).update(exit_reason="max_passes")
        assert "<dt>Hit the pass limit</dt><dd>1</dd>" in read_profile(world)
        for part in (
            "<dd>67%</dd>",
            "<dt>Denied</dt><dd>1</dd>",
            "<dd>20.0 s</dd>",
            "<dt>In progress</dt><dd>1</dd>",
            "<dd>120</dd>",
        ):
            assert part in html
        assert f'<a href="/approvals/?employee={world.employee.pk}">1</a>' in html

    @pytest.mark.parametrize(
        "name", ["../x/y", "a b/c?d=1#e", "\n", "--><script>hacked()</script>", "gone.tool"]
    )
    def test_does_not_link_a_tool_that_is_not_installed(self, world: World, name: str) -> None:
        for tool in (name, SEARCH):
            count_calls(world.employee, tool, failed=1)
        html = read_profile(world).split('id="activity-head"')[1].split("</section>")[0]
        assert html.count('<a href="/tools/') == html.count(f'<a href="/tools/{SEARCH}/"') == 1

    def test_does_not_count_denied_and_cancelled_runs_as_failures(self, world: World) -> None:
        world.run(RunStatus.SUCCEEDED, outcome="denied")
        world.run(RunStatus.CANCELLED, exit_reason="cancelled")
        world.run(RunStatus.FAILED, exit_reason="denied_repeatedly")
        figures = read_profile(world).split('<dl class="figures">')[1].split("</dl>")[0]
        assert "%" not in figures
        assert "<dt>Denied</dt><dd>2</dd>" in figures
        assert "<dt>Cancelled</dt><dd>1</dd>" in figures

    @feature(
        "Figures and metrics",
        "Figures by tool, and tokens and cost of an employee",
        "agents/web/charts/employee_figures.py",
    )
    def test_shows_calls_by_tool_and_the_usage_of_the_model(self, world: World) -> None:
        count_calls(world.employee, SEARCH, succeeded=30, within_50=30, slowest_ms=40)
        count_calls(world.employee, "gone.tool", days_ago=2, failed=1)
        count_calls(world.others_employee, UPDATE, days_ago=4, succeeded=7)
        count_passes(
            world.employee, passes=3, input_tokens=1200, output_tokens=90, cost_micros=40_000
        )
        html = read_profile(world).split('id="activity-head"')[1].split("</section>")[0]
        for part in (
            "31, 97% succeeded",
            "1,200 input, 90 output",
            "0.0400 USD",
            "gone.tool",
            '<td class="number">30 ms',
        ):
            assert part in html
        assert html.index(SEARCH) < html.index("gone.tool")
        assert html.count("<svg") == 2
        assert "0.0400 USD in total, 0.0400 USD today. Highest: 0.0400 USD today." in html
        assert UPDATE not in html

    def test_shows_the_edit_link_only_to_admins(self, world: World) -> None:
        world.users["admin"].is_staff = True
        world.users["admin"].save()
        change = f"/admin/employees/employee/{world.employee.pk}/change/"
        assert change in read_profile(world, "admin")
        assert change not in read_profile(world, "operator")

    def test_needs_a_constant_number_of_queries(
        self, world: World, django_assert_max_num_queries: Any
    ) -> None:
        for _ in range(15):
            world.run(RunStatus.SUCCEEDED)
        read_profile(world)
        client = world.client("operator")
        with django_assert_max_num_queries(13):
            read_page(client, f"/employees/{world.employee.pk}/")

    def test_returns_404_for_an_employee_of_another_organization(self, world: World) -> None:
        assert (
            world.client("admin").get(f"/employees/{world.others_employee.pk}/").status_code == 404
        )
