"""The start page and the list of runs: their contents for each role, and the small number of
queries that they need."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.accounts.models import Organization
from agents.employees.models import Employee, Grant
from agents.runs.models import Approval, ApprovalStatus, Run, RunStatus
from agents.web.charts.bar_charts import HEIGHT, build_charts, build_table
from agents.web.charts.daily_counts import DAYS, DailyCounts, Day, load_last_days
from agents.web.lists.run_pages import PAGE_SIZE, RunListFilter, load_run_page
from tests.web.pages import read_page
from tests.world import World, make_employee

pytestmark = pytest.mark.django_db

BIDI = "\u202e"


def section(html: str, name: str) -> str:
    """Return the section with this id."""
    found = re.search(rf'<section id="{name}".*?</section>', html, re.DOTALL)
    assert found, f"no section {name}"
    return found[0]


def ago(**span: float) -> datetime:
    return timezone.now() - timedelta(**span)


def decide(card: Approval, status: ApprovalStatus, at: datetime, by: Any) -> None:
    consumed = {"consumed_at": at} if status == ApprovalStatus.CONSUMED else {}
    Approval.objects.filter(pk=card.pk).update(
        status=status, decided_by=by, decided_at=at, **consumed
    )


# Figures


def test_each_day_counts_its_own_runs_calls_and_decisions(world: World) -> None:
    noon = datetime(2026, 3, 15, 12, tzinfo=timezone.get_default_timezone())
    for days in (0, 2, 2, 13, 14):
        run = world.run(RunStatus.SUCCEEDED, created_at=noon - timedelta(days=days))
        world.call(run, created_at=noon - timedelta(days=days))
        world.call(run, created_at=noon - timedelta(days=days))
    by = world.users["approver"]
    decide(world.card(), ApprovalStatus.CONSUMED, noon - timedelta(days=2), by)
    decide(world.card(), ApprovalStatus.DENIED, noon - timedelta(days=13), by)
    days_shown = load_last_days(world.acme.pk, noon)
    assert [day.date for day in days_shown] == [
        date(2026, 3, 2) + timedelta(days=n) for n in range(DAYS)
    ]
    expected = {
        11: DailyCounts(2, 4, approved=1),
        0: DailyCounts(1, 2, denied=1),
        13: DailyCounts(1, 2),
    }
    assert {
        place: day.figures for place, day in enumerate(days_shown) if any(day.figures)
    } == expected


def test_a_day_ends_at_midnight(world: World) -> None:
    midnight = datetime(2026, 3, 15, tzinfo=timezone.get_default_timezone())
    for moment in (
        midnight - timedelta(microseconds=1),
        midnight,
        midnight + timedelta(hours=23, minutes=59),
    ):
        world.run(RunStatus.SUCCEEDED, created_at=moment)
    shown = load_last_days(world.acme.pk, midnight + timedelta(hours=1))
    assert [day.figures.runs for day in shown[-2:]] == [1, 2]


def test_figures_do_not_include_another_organization(world: World) -> None:
    world.call(world.run(RunStatus.SUCCEEDED))
    assert not any(any(day.figures) for day in load_last_days(world.globex.pk))


def test_old_days_are_cached_but_new_rows_are_counted_immediately(world: World) -> None:
    world.run(RunStatus.SUCCEEDED, created_at=ago(days=3))
    world.run(RunStatus.SUCCEEDED, created_at=ago(hours=30))
    assert [day.figures.runs for day in load_last_days(world.acme.pk)] == [
        day.figures.runs for day in load_last_days(world.acme.pk)
    ]
    world.run(RunStatus.SUCCEEDED)
    with CaptureQueriesContext(connection) as asked:
        shown = load_last_days(world.acme.pk)
    assert len(asked) == 1
    assert asked.captured_queries[0]["sql"].count("COUNT(*)") <= 3 * len(DailyCounts._fields)
    assert sum(day.figures.runs for day in shown) == 3
    assert shown[-1].figures.runs >= 1


def test_cached_days_are_dropped_when_they_are_too_old(world: World) -> None:
    now = timezone.now()
    world.run(RunStatus.SUCCEEDED, created_at=now - timedelta(days=DAYS - 1))
    assert load_last_days(world.acme.pk, now)[0].figures.runs == 1
    later = load_last_days(world.acme.pk, now + timedelta(days=1))
    assert sum(day.figures.runs for day in later) == 0
    assert len(later) == DAYS


def build_days(*counted: DailyCounts) -> list[Day]:
    return [
        Day(date(2026, 3, 1) + timedelta(days=place), each) for place, each in enumerate(counted)
    ]


def test_the_highest_column_reaches_the_top_and_no_bar_exceeds_the_chart() -> None:
    charts = build_charts(
        build_days(DailyCounts(5, 100, 3, 1), DailyCounts(), DailyCounts(10, 1, 0, 2))
    )
    for chart in charts:
        bars = [bar for column in chart.columns for bar in column.bars]
        assert min(bar.y for bar in bars) == 0
        assert all(bar.y >= 0 and bar.height > 0 for bar in bars)
        assert max(bar.y + bar.height for bar in bars) == HEIGHT
        assert len(chart.columns) == 3
        assert not chart.columns[1].bars


def test_a_chart_has_a_text_description() -> None:
    runs, calls, decisions = build_charts(
        build_days(DailyCounts(1234, 0, 3, 1), DailyCounts(6, 0, 0, 2))
    )
    assert (runs.total, runs.today) == ("1,240", "6")
    assert runs.description == "1,240 in total, 6 today. Highest: 1,234 on Sun 1 Mar."
    assert calls.description == "None in this period."
    assert decisions.columns[0].label == "Sun 1 Mar: 3 approved, 1 denied"
    assert [(part.name, part.total) for part in decisions.series] == [
        ("approved", "3"),
        ("denied", "3"),
    ]
    assert build_table(build_days(DailyCounts(1234, 0, 3, 1)))[0][1] == ["1,234", "0", "3", "1"]


def test_the_page_draws_the_charts_with_titles_and_a_table(world: World) -> None:
    world.run(RunStatus.SUCCEEDED)
    html = read_page(world.client("viewer"))
    assert html.count('<svg class="chart" role="img"') == html.count("<desc ") == 3
    assert "Runs started on each of the last 14 days" in html
    assert html.count('<th scope="row">') == DAYS
    assert "style=" not in html


# The form for a new task


def test_a_viewer_sees_why_they_cannot_start_runs(world: World) -> None:
    html = read_page(world.client("viewer"))
    assert "You are a viewer in Acme" in html
    assert "To start runs, you need the operator role" in html
    assert "<textarea" not in html


def test_the_form_offers_the_employees_and_preselects_one(world: World) -> None:
    second = create_employee(world, "Ann Mary Lee")
    html = read_page(world.client("operator"))
    assert html.count('type="radio" name="employee"') == 2
    assert html.count(" checked>") == 1
    assert f'value="{second.pk}" required checked' in html
    assert ">AL</span>" in html
    chosen = read_page(world.client("operator"), f"/?employee={world.employee.pk}")
    assert f'value="{world.employee.pk}" required checked' in chosen


def create_employee(world: World, name: str, **more: Any) -> Employee:
    values = {"job_title": "Clerk", "example_tasks": ["First example", "Second example"], **more}
    return Employee.objects.create(
        organization=world.acme, provider=world.employee.provider, name=name, **values
    )


def test_an_example_task_is_chosen_by_number_and_its_text_never_comes_from_the_address(
    world: World,
) -> None:
    second = create_employee(world, "Zoe")
    client = world.client("operator")
    filled = read_page(client, f"/?employee={second.pk}&example=1")
    assert re.search(r"<textarea[^>]*>\nSecond example</textarea>", filled)
    for query in (
        f"employee={second.pk}&example=9",
        "example=x",
        "task=Evil",
        f"employee={world.others_employee.pk}",
    ):
        assert re.search(r"<textarea[^>]*>\n</textarea>", read_page(client, f"/?{query}")), query


def test_a_refused_task_stays_in_the_form(world: World) -> None:
    gone = create_employee(world, "Gone", is_active=False)
    client = world.client("operator")
    for employee, status in ((gone.pk, 409), (world.others_employee.pk, 404), ("", 422)):
        response = client.post("/", {"employee": employee, "task": "Write it down."})
        assert response.status_code == status
        assert b"Write it down.</textarea>" in response.content
        assert b'role="alert"' in response.content
    assert not Run.objects.exists()


def test_a_member_of_another_organization_sees_nothing_of_acme(world: World) -> None:
    world.card()
    world.run(RunStatus.SUCCEEDED, task="Secret task")
    for path in ("/", "/?live=1", "/runs/", "/runs/?q=secret"):
        html = read_page(world.client("outsider"), path)
        assert "Dana" not in html
        assert "Secret task" not in html
        assert "Acme" not in html


def test_names_and_tasks_are_escaped_with_hidden_characters_shown(world: World) -> None:
    create_employee(
        world, f"{BIDI}<b>Eve</b>", job_title=f"{BIDI}boss", example_tasks=[f"{BIDI}do <i>it</i>"]
    )
    world.run(RunStatus.SUCCEEDED, task=f"{BIDI}<script>x</script>")
    for path in ("/", "/runs/"):
        html = read_page(world.client("operator"), path)
        assert "<script>x" not in html
        assert "<b>Eve" not in html
        assert BIDI not in re.sub(r'data-example="[^"]*"', "", html)


# The live part


def test_the_guide_shows_the_next_step_and_disappears_when_all_steps_are_done(
    world: World,
) -> None:
    fresh = Organization.objects.create(name="Fresh", slug="fresh")
    world.users["stranger"].memberships.create(organization=fresh, role="admin")
    client = world.client("stranger")
    assert read_current_step(client) == "Set up an employee"
    assert "There is no active employee yet" in read_page(client)
    employee = make_employee(fresh, "Flo")
    assert read_current_step(client) == "Assign a task"
    client.post("/", {"employee": employee.pk, "task": "Begin."})
    assert read_current_step(client) == "Decide a card"
    card = world.card()
    Grant.objects.filter(employee=world.employee).delete()
    decide(card, ApprovalStatus.DENIED, timezone.now(), world.users["approver"])
    assert read_current_step(client) == "Decide a card"
    assert 'id="guide"' not in read_page(world.client("viewer"))


def read_current_step(client: Client) -> str:
    guide = section(read_page(client), "guide")
    found = re.findall(r'aria-current="step">.*?<h3>(.*?)</h3>', guide, re.DOTALL)
    assert len(found) == 1
    return str(found[0])


def test_the_guide_names_the_role_that_each_step_requires(world: World) -> None:
    assert "An operator does this." in section(read_page(world.client("viewer")), "guide")
    world.card()
    assert "An approver does this." in section(read_page(world.client("operator")), "guide")
    assert "Review the approval" in section(read_page(world.client("approver")), "guide")


def test_waiting_cards_are_listed_oldest_first_with_their_level(world: World) -> None:
    first, second = world.card(), world.destructive_card()
    waiting = section(read_page(world.client("approver")), "waiting")
    assert waiting.index(f"/approvals/{first.pk}/") < waiting.index(f"/approvals/{second.pk}/")
    assert 'class="level write"' in waiting
    assert 'class="level destructive"' in waiting
    assert "Waiting for your decision" in waiting
    assert "Waiting for a decision" in section(read_page(world.client("operator")), "waiting")
    for _ in range(6):
        world.card()
    assert "All 8 cards" in section(read_page(world.client("approver")), "waiting")


def test_requesters_see_the_two_person_rule_on_their_cards(world: World) -> None:
    card = world.card()
    Run.objects.filter(pk=card.run_id).update(created_by=world.users["approver"])
    assert "someone else must approve" not in read_page(world.client("approver"))
    Organization.objects.filter(pk=world.acme.pk).update(four_eyes=True)
    assert "someone else must approve" in section(read_page(world.client("approver")), "waiting")
    assert "someone else must approve" not in section(read_page(world.client("admin")), "waiting")


def test_runs_are_listed_by_their_status(world: World) -> None:
    queued, waiting = world.run(RunStatus.QUEUED), world.run(RunStatus.WAITING)
    ended = [
        world.run(status) for status in (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED)
    ]
    html = read_page(world.client("viewer"))
    at_work, recent = section(html, "at-work"), section(html, "recent")
    assert [f"/runs/{run.pk}/" in at_work for run in (queued, waiting, *ended)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [f"/runs/{run.pk}/" in recent for run in (queued, waiting, *ended)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert "data-refresh-often" in at_work
    Run.objects.filter(pk=queued.pk).update(status=RunStatus.WAITING)
    assert "data-refresh-often" not in read_page(world.client("viewer"))


def test_active_runs_come_before_waiting_runs(world: World) -> None:
    moving = world.run(RunStatus.QUEUED)
    for _ in range(20):
        world.run(RunStatus.WAITING)
    assert f"/runs/{moving.pk}/" in section(read_page(world.client("viewer")), "at-work")


def test_the_live_fragment_has_the_same_live_sections_as_the_whole_page(world: World) -> None:
    world.card()
    world.run(RunStatus.SUCCEEDED)
    client = world.client("approver")
    page, live = read_page(client), read_page(client, "/?live=1")
    for name in ("guide", "waiting", "at-work", "recent"):
        assert section(page, name) == section(live, name)
    assert "<form" not in live
    assert "<desc" not in live


def test_the_pages_need_a_constant_number_of_queries(world: World) -> None:
    paths = (
        "/",
        "/?live=1",
        "/runs/",
        "/runs/?status=waiting",
        f"/runs/?employee={world.employee.pk}",
        "/runs/?q=x",
    )
    client = world.client("approver")
    world.card()
    world.run(RunStatus.SUCCEEDED)
    client.get("/")  # caches the texts of cards
    few = [count_queries(client, path) for path in paths]
    for number in range(10):
        world.card()
        world.run(RunStatus.FAILED)
        create_employee(world, f"Worker {number}")
    client.get("/")
    assert [count_queries(client, path) for path in paths] == few
    assert max(few) <= 24, few  # six of these queries load the marks of waiting cards


def count_queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as asked:
        read_page(client, path)
    return len(asked)


# All runs


def test_a_search_scans_a_limited_number_of_runs_and_says_how_far_back_it_went(
    world: World,
) -> None:
    hay = [world.run(RunStatus.SUCCEEDED, task="Hay") for _ in range(4)]
    needle = world.run(RunStatus.SUCCEEDED, task="Needle", created_at=Now())
    more = [world.run(RunStatus.SUCCEEDED, task="Hay") for _ in range(5)]
    first = load_run_page(world.acme.pk, RunListFilter(text="needle"), max_scanned=3)
    assert (first.runs, first.next_before) == ([], more[2].pk)
    assert first.scanned_to == Run.objects.get(pk=more[2].pk).created_at
    second = load_run_page(
        world.acme.pk, RunListFilter(text="needle", before=first.next_before), max_scanned=3
    )
    assert ([run.pk for run in second.runs], second.next_before) == ([needle.pk], needle.pk)
    last = load_run_page(
        world.acme.pk, RunListFilter(text="needle", before=hay[2].pk), max_scanned=3
    )
    assert (last.runs, last.next_before, last.scanned_to) == ([], None, None)


def test_a_search_finds_every_run_once_for_any_scan_limit(world: World) -> None:
    other = create_employee(world, "Other")
    for number in range(2 * PAGE_SIZE + 10):
        run = world.run(
            RunStatus.WAITING if number % 3 else RunStatus.QUEUED, task=f"Task {number % 2}"
        )
        if number % 5 == 0:
            Run.objects.filter(pk=run.pk).update(employee=other)
    for wanted in (
        {"text": "Task 1"},
        {"status": "waiting", "employee_id": world.employee.pk},
        {"status": "waiting"},
    ):
        expected = [run.pk for run in Run.objects.order_by("-pk") if fits(run, wanted)]
        assert len(expected) > PAGE_SIZE
        for most in (1, 7, 1000):
            assert walk(world.acme.pk, wanted, most) == expected


def fits(run: Run, wanted: dict[str, Any]) -> bool:
    return (
        wanted.get("text", "") in run.task
        and wanted.get("status", run.status) == run.status
        and wanted.get("employee_id", run.employee_id) == run.employee_id
    )


def walk(organization_id: int, wanted: dict[str, Any], most: int) -> list[int]:
    """List the ids of the runs on all pages of the list."""
    found: list[int] = []
    page = load_run_page(organization_id, RunListFilter(**wanted), most)
    found += [run.pk for run in page.runs]
    while page.next_before is not None:
        page = load_run_page(
            organization_id, RunListFilter(**wanted, before=page.next_before), most
        )
        found += [run.pk for run in page.runs]
    return found


def test_the_filtered_list_links_to_all_runs(world: World) -> None:
    world.run()
    client = world.client("viewer")
    assert "All runs, newest first" not in read_page(client, "/runs/")
    assert "All runs, newest first" in read_page(client, "/runs/?q=nothing")
    assert "No runs yet." in read_page(world.client("outsider"), "/runs/")


def test_a_form_submitted_twice_starts_one_run(world: World) -> None:
    client = world.client("operator")
    found = re.search(
        r'name="client_request_id" value="(\w{32})"', client.get("/").content.decode()
    )
    assert found is not None
    sent = {"employee": world.employee.pk, "task": "Look", "client_request_id": found[1]}
    first, second = client.post("/", sent), client.post("/", sent)
    assert (first.status_code, first["Location"]) == (302, second["Location"])
    assert f'value="{found[1]}"' not in client.get("/").content.decode()
