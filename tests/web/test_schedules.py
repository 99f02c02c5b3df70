"""The schedules page: everybody sees the schedules; operators create, pause, resume and cancel
them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import DjangoAssertNumQueries

from agents.accounts.models import AuditEntry
from agents.employees.models import Employee
from agents.runs import schedules
from agents.runs.models import Run
from agents.runs.queries.runs import annotate_waits
from agents.web.template_filters import status_label
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.hostile import packed
from tests.hostile.pages import Reading, strange, tells
from tests.web.asking import ask_question
from tests.world import World
from tools.schedules.changes import MAX_SCHEDULES
from tools.schedules.models import Schedule

pytestmark = [pytest.mark.django_db, pytest.mark.once]

DAILY = ("0 9 * * *", "Europe/Berlin")


def create_schedule(world: World, task: str = "Look around") -> Schedule:
    return schedules.create(world.member("operator"), world.employee.pk, task, DAILY)


def form(world: World, **more: str) -> dict[str, str]:
    filled = {
        "employee": str(world.employee.pk),
        "task": "Look\r\naround",
        "cron": "0 9 * * MON",
        "time_zone": "UTC",
    }
    return {**filled, **more}


def read_page(world: World, username: str = "viewer", query: str = "") -> str:
    response = world.client(username).get(f"/schedules/{query}")
    assert response.status_code == 200
    return str(response.content.decode())


def reload(schedule: Schedule) -> Schedule:
    return Schedule.objects.get(pk=schedule.pk)


# The page


@feature(
    "Schedules",
    "A page to create, preview, pause, resume and cancel schedules",
    "agents/web/views/schedules.py",
    whole_file=True,
)
def test_a_viewer_sees_schedules_without_buttons(world: World) -> None:
    create_schedule(world)
    body = read_page(world)
    for told in (
        "Look around",
        "every day at 09:00 (Europe/Berlin)",
        "0 9 * * *",
        "Dana",
        "operator",
        "active",
    ):
        assert told in body
    assert "/pause/" not in body
    assert "New schedule" not in body


def test_the_last_run_is_linked(world: World) -> None:
    schedule = create_schedule(world)
    Schedule.objects.update(next_at=Now())
    sweep_once()
    run = Run.objects.get(origin="schedule")
    assert f'href="/runs/{run.pk}/"' in read_page(world)
    assert reload(schedule).fired == 1
    html = world.client("viewer").get(f"/runs/{run.pk}/").content.decode()
    assert f"Started by schedule {schedule.pk} on behalf of" in html


def test_a_schedule_shows_why_its_last_run_waits(world: World) -> None:
    create_schedule(world)
    run = ask_question(world).run
    Schedule.objects.update(last_run=run, last_at=Now(), fired=1)
    assert status_label(annotate_waits(Run.objects.all()).get()) == "Waiting for an answer"
    assert '<span class="badge status-waiting look-wait">Waiting for an answer</span>' in read_page(
        world
    )
    with pytest.raises(AttributeError, match="waits_for"):
        status_label(Run.objects.get(pk=run.pk))


def test_the_reason_for_switching_off_is_shown(world: World) -> None:
    create_schedule(world)
    Employee.objects.filter(pk=world.employee.pk).update(is_active=False)
    Schedule.objects.update(next_at=Now())
    sweep_once()
    body = read_page(world)
    assert "switched off" in body
    assert "Dana is no longer active." in body


def test_the_employees_stop_is_shown(world: World) -> None:
    create_schedule(world)
    Employee.objects.filter(pk=world.employee.pk).update(stopped_at=Now(), stopped_by="approver")
    assert "approver stopped Dana." in re.sub(r"<[^>]+>", "", read_page(world))


def test_cancelled_schedules_are_listed_on_a_separate_page(world: World) -> None:
    create_schedule(world, "Stays")
    schedules.cancel(world.member("approver"), create_schedule(world, "Goes").pk)
    body, cancelled = read_page(world), read_page(world, query="?cancelled=1")
    assert "Stays" in body
    assert "Goes" not in body
    assert "Goes" in cancelled
    assert "by approver" in cancelled
    assert "Stays" not in cancelled


def test_many_schedules_are_listed_on_several_pages(world: World) -> None:
    for number in range(60):
        create_schedule(world, f"Task no. {number:02}.")
    first = read_page(world)
    (query,) = re.findall(r'href="(\?before=\d+)" rel="next"', first)
    second = read_page(world, query=query)
    told = re.findall(r"Task no\. \d\d\.", first + second)
    assert told == [f"Task no. {number:02}." for number in reversed(range(60))]
    assert 'rel="next"' not in second


@pytest.mark.parametrize(
    "query", ["?before=x", f"?before={10**30}", "?before=-1", "?cancelled=%00"]
)
def test_invalid_parameters_are_ignored(world: World, query: str) -> None:
    read_page(world, query=query)


# Creating a schedule


def test_the_form_creates_a_schedule_owned_by_its_sender(world: World) -> None:
    response = world.client("approver").post("/schedules/new/", form(world), follow=True)
    assert "every Monday at 09:00 (UTC)" in response.content.decode()
    schedule = Schedule.objects.get()
    assert (schedule.employee, schedule.created_by) == (world.employee, world.users["approver"])
    assert (schedule.task, schedule.cron, schedule.time_zone) == (
        "Look\naround",
        "0 9 * * MON",
        "UTC",
    )
    entry = AuditEntry.objects.get(action="schedule_created")
    assert (entry.actor, entry.subject) == ("user:approver", f"schedule:{schedule.pk}")


def test_a_preview_does_not_create_a_schedule_and_keeps_the_typed_texts(world: World) -> None:
    response = world.client("operator").post(
        "/schedules/new/", form(world, look="1", task="Half a tas")
    )
    body = response.content.decode()
    assert response.status_code == 200
    assert len(re.findall(r"<li><time[^>]*>Mon \d+ \w{3} 20\d\d, 09:00</time>", body)) == 5
    assert "Half a tas" in body
    assert 'value="0 9 * * MON"' in body
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "told", "status"),
    [
        ({"cron": "0 0 31 2 *"}, "month 2 has no day 31", 422),
        ({"cron": "0 9 32 * *"}, "the day of the month is &#x27;32&#x27;. Allowed: 1 to 31", 422),
        ({"cron": ""}, "five fields", 422),
        ({"cron": "* * * * *"}, "at least 5", 422),
        ({"cron": "<b>9</b>"}, "five fields", 422),
        ({"time_zone": "Mars/Olympus"}, "There is no time zone", 422),
        ({"time_zone": "\0"}, "There is no time zone", 422),
        ({"task": " "}, "Task is empty", 422),
        ({"task": "a\0b"}, "NUL", 422),
        ({"task": "x" * 20_001}, "20,001 characters", 422),
        ({"employee": "999999"}, "There is no employee", 404),
        ({"employee": "x"}, "There is no employee", 404),
    ],
)
@pytest.mark.parametrize("look", [False, True])
def test_an_invalid_field_is_explained_and_the_schedule_is_not_created(
    world: World, wrong: dict[str, str], told: str, status: int, look: bool
) -> None:
    more = {"look": "1"} if look else {}
    response = world.client("operator").post("/schedules/new/", form(world, **wrong, **more))
    is_about_times = not wrong.keys() & {"task", "employee"}
    assert response.status_code == (status if is_about_times or not look else 200)
    if is_about_times or not look:
        assert told in response.content.decode()
    assert not Schedule.objects.exists()


def test_a_task_that_is_too_long_is_refused_and_stays_in_the_form(world: World) -> None:
    task = "x" * 20_001
    client = world.client("operator")
    there = client.post("/schedules/new/", form(world, task=task))
    at_home = client.post("/", {"employee": world.employee.pk, "task": task})
    for response in (there, at_home):
        assert response.status_code == 422
        assert "ask has 20,001 characters; at most 20,000 are allowed" in response.content.decode()
        assert task in response.content.decode()
    assert 'data-max-length="20000"' in there.content.decode()
    assert not re.search(r'<textarea[^>]* name="task"[^>]* maxlength', there.content.decode()), (
        "a browser would cut it"
    )


def test_an_employee_of_another_organization_returns_404(world: World) -> None:
    response = world.client("operator").post(
        "/schedules/new/", form(world, employee=str(world.others_employee.pk))
    )
    assert response.status_code == 404
    assert not Schedule.objects.exists()


def test_a_schedule_for_an_inactive_employee_is_refused(world: World) -> None:
    resting = Employee.objects.create(
        organization=world.acme, name="Rested", provider=world.employee.provider, is_active=False
    )
    body = read_page(world, "operator")
    assert "Rested" not in body
    assert (
        world.client("operator")
        .post("/schedules/new/", form(world, employee=str(resting.pk)))
        .status_code
        == 409
    )


def test_duplicates_and_too_many_schedules_are_refused(world: World) -> None:
    client = world.client("operator")
    assert client.post("/schedules/new/", form(world)).status_code == 302
    assert client.post("/schedules/new/", form(world)).status_code == 409
    first = Schedule.objects.get()
    Schedule.objects.bulk_create(
        Schedule(
            organization=world.acme,
            task=str(n),
            cron="0 9 * * *",
            time_zone="UTC",
            next_at=first.next_at,
        )
        for n in range(MAX_SCHEDULES - 1)
    )
    response = client.post("/schedules/new/", form(world, task="One more"))
    assert response.status_code == 409
    assert "There are already 100 schedules" in response.content.decode()


# Pausing, resuming, cancelling


def test_a_schedule_can_be_paused_and_resumed(world: World) -> None:
    schedule = create_schedule(world)
    client = world.client("approver")
    client.post(f"/schedules/{schedule.pk}/pause/")
    assert reload(schedule).state == "paused"
    assert client.post(f"/schedules/{schedule.pk}/pause/").status_code == 409
    client.post(f"/schedules/{schedule.pk}/resume/")
    assert (reload(schedule).state, reload(schedule).created_by) == (
        "active",
        world.users["approver"],
    )
    assert client.post(f"/schedules/{schedule.pk}/resume/").status_code == 409


def test_cancelling_needs_confirmation_and_is_final(world: World) -> None:
    schedule = create_schedule(world)
    client = world.client("operator")
    asked = client.post(f"/schedules/{schedule.pk}/cancel/").content.decode()
    assert "Cancel this schedule?" in asked
    assert reload(schedule).state == "active"
    client.post(f"/schedules/{schedule.pk}/cancel/", {"confirmed": "1"})
    assert reload(schedule).state == "cancelled"
    for act in ("resume", "pause"):
        assert client.post(f"/schedules/{schedule.pk}/{act}/").status_code == 409
    assert client.post(f"/schedules/{schedule.pk}/cancel/", {"confirmed": "1"}).status_code == 409


# Text from other people


def fill(world: World, texts: list[str]) -> None:
    """For each text, create an active and a switched-off schedule that have the text in every
    field."""
    for number, text in enumerate(texts):
        employee = Employee.objects.create(
            organization=world.acme,
            name=text[:80],
            job_title=text[:120],
            provider=world.employee.provider,
        )
        states: tuple[dict[str, Any], ...] = ({"next_at": Now()}, {"is_active": False})
        for state in states:
            Schedule.objects.create(
                organization=world.acme,
                employee=employee,
                task=f"{text} {number}",
                cron="0 9 * * *",
                time_zone="UTC",
                problem=text[:300],
                made_in_run=text[:64],
                created_by=world.users["admin"],
                **state,
            )


def readings(world: World) -> list[Reading]:
    found, query = [], ""
    while True:
        found.append(Reading(read_page(world, "operator", query)))
        if not found[-1].following:
            return found
        query = found[-1].following


def test_hostile_text_is_escaped(world: World) -> None:
    fill(world, ["harmless, but longer than a heading holds: " + "x " * 60])
    (harmless,) = readings(world)
    assert not harmless.faults
    Schedule.objects.all().delete()
    texts = list(packed(2_000, longest=2_000))
    fill(world, texts)
    found = readings(world)
    for reading in found:
        assert not reading.faults
        assert not strange(
            reading,
            harmless.shapes | {("a", frozenset({"href"})), ("a", frozenset({"href", "rel"}))},
        )
    told = "".join(reading.text for reading in found)
    assert [text[:80] for text in texts if not tells(told, text)] == []


def test_typed_hostile_text_is_escaped(world: World) -> None:
    for text in packed(2_000, longest=2_000):
        typed = form(world, task=text, cron=text[:90], time_zone=text[:60])
        response = world.client("operator").post("/schedules/new/", typed)
        assert response.status_code == 422
        assert not Reading(response.content.decode()).faults


def test_the_page_needs_a_constant_number_of_queries(
    world: World, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(30):
        create_schedule(world, f"Task {number}")
    Schedule.objects.update(last_run=world.card().run, last_at=Now(), fired=1)
    client = world.client("operator")
    with django_assert_max_num_queries(9):
        client.get("/schedules/")


def test_the_form_offers_only_employees_in_the_organization(world: World) -> None:
    body = read_page(world, "outsider")
    assert "Hank" in body
    assert "Dana" not in body
