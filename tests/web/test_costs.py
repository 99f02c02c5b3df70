"""Costs and budgets on pages and over REST."""

from __future__ import annotations

import pytest

from agents.employees.models import Employee, ModelProvider, ProviderKind
from agents.runs.models import Event as EventRow
from agents.runs.models import EventType, Pass, Run, RunStatus
from agents.web.panel.transcript import describe_run, read_entries
from tests.features import feature
from tests.web.pages import read_page
from tests.world import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    world = make_world()
    provider = ModelProvider.objects.create(
        organization=world.acme,
        name="Real",
        kind=ProviderKind.OPENAI,
        prices={"m": {"input": "1", "output": "2"}},
    )
    Employee.objects.filter(pk=world.employee.pk).update(provider=provider, model="m")
    world.employee.refresh_from_db()
    return world


def create_used_run(world: World, cost_micros: int = 12_340, *, is_estimated: bool = False) -> Run:
    """Create a run that has ended after one pass."""
    figures = {"input_tokens": 1200, "output_tokens": 80, "cost_micros": cost_micros}
    run = world.run(RunStatus.SUCCEEDED, estimated_tokens=1280 * is_estimated, **figures)
    of_pass = {"number": 1, "duration_ms": 2100, "usage_estimated": is_estimated, **figures}
    Pass.objects.create(run=run, response={}, messages_upto=1, **of_pass)
    ended = {
        "status": "succeeded",
        "exit_reason": "final_answer",
        "answer": "Done.",
        "pass_number": 1,
    }
    cost = {"cost": cost_micros / 1e6 if cost_micros else None, "currency": "USD"}
    events = [
        (EventType.PASS_STARTED, {"pass_number": 1}),
        (
            EventType.RUN_FINISHED,
            {
                **ended,
                "usage_estimated": is_estimated,
                "input_tokens": 1200,
                "output_tokens": 80,
                **cost,
            },
        ),
    ]
    for seq, (type_, payload) in enumerate(events, start=1):
        EventRow.objects.create(run=run, seq=seq, type=type_, payload=payload)
    Run.objects.filter(pk=run.pk).update(next_event_seq=3)
    return run


@feature(
    "Costs, budgets, long runs", "Tokens and cost on the run's page", "agents/web/panel/lines.py"
)
def test_a_run_shows_its_cost_and_the_cost_of_each_pass(world: World) -> None:
    run = create_used_run(world)
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert "1,200 + 80 tokens · 0.0123 USD · 2.1 s" in html
    assert "1 pass · 1,200 + 80 tokens · 0.0123 USD" in html
    assert "0.0123 USD" in read_page(world.client("viewer"), "/runs/")


def test_an_estimate_is_labeled_on_every_page(world: World) -> None:
    run = create_used_run(world, is_estimated=True)
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert "1 pass · about 1,200 + 80 tokens · about 0.0123 USD" in html
    assert "about 1,200 + 80 tokens · about 0.0123 USD · 2.1 s" in html
    for path in ("/runs/", "/"):
        assert "· about 0.0123 USD" in read_page(world.client("viewer"), path)


def test_an_unknown_price_is_not_shown_as_free(world: World) -> None:
    run = create_used_run(world, cost_micros=0)
    ModelProvider.objects.update(prices={})
    html = read_page(world.client("viewer"), f"/runs/{run.pk}/")
    assert "1,200 + 80 tokens · no price known" in html
    assert (
        "Unknown"
        in read_page(world.client("viewer"), f"/employees/{world.employee.pk}/").split(
            "<dt>Price</dt>"
        )[1]
    )
    assert "USD" not in read_page(world.client("viewer"), "/runs/")


@feature(
    "Costs, budgets, long runs",
    "`usage.cost` over REST, null if there is no price",
    "agents/api/runs.py",
)
def test_the_api_returns_the_cost_or_null_if_it_is_unknown(world: World) -> None:
    client = world.client("viewer")
    run, free = create_used_run(world), create_used_run(world, cost_micros=0)
    assert client.get(f"/api/runs/{run.pk}").json()["usage"] == {
        "input_tokens": 1200,
        "output_tokens": 80,
        "cost": 0.01234,
    }
    assert client.get(f"/api/runs/{free.pk}").json()["usage"]["cost"] is None
    ModelProvider.objects.update(prices={"*": {"input": "0", "output": "0"}})
    assert client.get(f"/api/runs/{free.pk}").json()["usage"]["cost"] == 0
    assert [each["usage"]["cost"] for each in client.get("/api/runs").json()["items"]] == [
        0,
        0.01234,
    ]


def test_transcripts_contain_the_cost(world: World) -> None:
    run = Run.objects.get(pk=create_used_run(world).pk)
    assert describe_run(run)["cost"] == "0.0123 USD"
    begun, _ = read_entries(run.pk, 0, 9, set())
    assert begun.figures == "1,200 + 80 tokens · 0.0123 USD · 2.1 s"


class TestBudgets:
    @feature(
        "Costs, budgets, long runs",
        "How much of the month's budgets is used, with a warning at 80%",
        "agents/web/views/employees.py",
    )
    def test_are_shown_on_the_employee_page(self, world: World) -> None:
        create_used_run(world)
        client, path = world.client("viewer"), f"/employees/{world.employee.pk}/"
        assert "Budget for" not in read_page(client, path)
        Employee.objects.filter(pk=world.employee.pk).update(month_tokens=1_600, month_cost="1")
        html = read_page(client, path)
        assert "Dana: 1,280 of 1,600 tokens" in html
        assert "80% used" in html
        assert "triangle-alert" in html.split("Budget for")[1].split("</section>")[0]
        assert "Dana: 0.0123 of 1.00 USD" in html
        assert "1% used" in html

    def test_are_shown_on_the_start_page(self, world: World) -> None:
        create_used_run(world)
        assert "Budget for" not in read_page(world.client("viewer"), "/")
        world.acme.month_tokens = 1_000
        world.acme.save()
        html = read_page(world.client("viewer"), "/")
        assert "Acme: 1,280 of 1,000 tokens" in html
        assert "Used up" in html
        assert "Budget for" not in read_page(world.client("outsider"), "/")

    @feature(
        "Costs, budgets, long runs",
        "A new task is refused with a clear error once the month's budget is used up",
        "agents/runs/actions.py",
    )
    def test_refuse_a_task_with_a_reason_once_used_up(self, world: World) -> None:
        create_used_run(world)
        Employee.objects.filter(pk=world.employee.pk).update(month_tokens=1_280)
        form = {"employee": world.employee.pk, "task": "One more"}
        response = world.client("operator").post("/", form)
        assert response.status_code == 409
        assert "Dana has used 1,280 of its 1,280 tokens" in response.content.decode()
        assert "One more" in response.content.decode()
        sent = {"employee_id": str(world.employee.pk), "task": "One more"}
        problem = world.client("operator").post("/api/runs", sent, content_type="application/json")
        assert (problem.status_code, problem.json()["code"]) == (409, "budget_exhausted")
        assert "An admin can raise this budget." in problem.json()["detail"]
        assert Run.objects.count() == 1
