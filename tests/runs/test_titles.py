"""A run with a long task gets a title from its employee's model; the run never waits for it."""

from collections.abc import Callable

import pytest

from agents.employees.models import Employee, ModelProvider
from agents.insight.models import EmployeeUse
from agents.runs import stops
from agents.runs.engine.ending import Ending, end_run
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import ExitReason, Run, RunStatus
from agents.runs.models.run import make_title
from agents.runs.titles import title_run
from tests.features import feature
from tests.model_server import ModelServer, Response
from tests.runs.counted import assert_use_is_true, count_all
from tests.workshop import Workshop, again, all_at_once, beside, event_types, eventually, payloads
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

TASK = "Look through all companies of the region EU.\nQualify those with a score above 80 and write a report of it."


@feature(
    "Built-in tools",
    "`system.titleRun` names a run with a long task, in parallel to the run",
    "tools/builtin/system.py",
)
def test_a_title_comes_from_the_model_and_is_published(
    workshop: Workshop, model: ModelServer
) -> None:
    model.script(Response(text='"Qualify the best companies in the EU".\n'))
    run = workshop.submit(TASK)
    assert run.title == make_title(TASK)
    assert title_run(run.pk)
    run = again(run)
    assert run.title == "Qualify the best companies in the EU"
    expected = {"title": run.title, "input_tokens": 100, "output_tokens": 10, "cost": None}
    assert payloads(run, "run_titled") == [expected], "no price is known"
    (asked,) = model.requests
    assert TASK in asked["messages"][-1]["content"]
    assert not asked.get("tools")
    assert (run.input_tokens, run.output_tokens, run.status) == (100, 10, RunStatus.QUEUED)


def test_a_title_omits_the_thoughts_of_the_model(workshop: Workshop, model: ModelServer) -> None:
    model.script(Response(text="<think>A name is needed.</think>Qualify companies"))
    run = workshop.submit(TASK)
    assert title_run(run.pk)
    assert again(run).title == "Qualify companies"


@pytest.mark.parametrize("task", ["Count the records", "  Count\tthe   records "])
def test_a_short_task_is_its_own_title(workshop: Workshop, model: ModelServer, task: str) -> None:
    run = workshop.submit(task)
    assert not title_run(run.pk)
    assert (again(run).title, model.requests) == ("Count the records", [])


def test_a_title_is_set_once_by_concurrent_requests(workshop: Workshop, model: ModelServer) -> None:
    model.script(Response(text="Qualify companies"))
    run = workshop.submit(TASK)
    outcomes = []
    all_at_once([lambda: outcomes.append(title_run(run.pk))] * 3)
    assert not title_run(run.pk)
    assert sorted(outcomes) == [False, False, True]
    events = payloads(run, "run_titled")
    assert len(events) == len(model.requests), "each request has used tokens"
    assert [each["title"] for each in events if "title" in each] == ["Qualify companies"]
    assert again(run).title == "Qualify companies"


@pytest.mark.parametrize(
    ("answer", "used"),
    [
        (Response(text="  \n "), 110),
        (Response(status=500), 0),
        (Response(text='""'), 110),
        (Response(text="Half of a na", finish="length"), 110),
        (Response(finish="content_filter"), 110),
        (Response(text="<think>Qualify companies"), 110),
    ],
)
def test_a_title_remains_the_beginning_of_the_task_if_the_model_does_not_return_one(
    workshop: Workshop, model: ModelServer, answer: Response, used: int
) -> None:
    model.script(answer)
    run = workshop.submit(TASK)
    assert not title_run(run.pk)
    run = again(run)
    assert (run.title, run.input_tokens + run.output_tokens) == (make_title(TASK), used)
    unnamed = {"input_tokens": 100, "output_tokens": 10, "cost": None}
    assert payloads(run, "run_titled") == ([unnamed] if used else [])


def test_a_title_is_one_short_line_whatever_the_model_writes(
    workshop: Workshop, model: ModelServer
) -> None:
    model.script(Response(text="# Title: " + "very " * 100 + "long\nand more"))
    run = workshop.submit(TASK)
    assert title_run(run.pk)
    title = again(run).title
    assert (len(title), title[:9]) == (80, "very very")
    assert "\n" not in title


def test_a_title_is_not_requested_from_a_scripted_provider_or_if_its_tool_is_disabled(
    workshop: Workshop, model: ModelServer, toolbox: Toolbox
) -> None:
    run = workshop.submit(TASK)
    toolbox.disable("system.titleRun")
    assert not title_run(run.pk)
    toolbox.enable("system.titleRun")
    ModelProvider.objects.update(kind="scripted")
    assert not title_run(run.pk)
    assert not model.requests


def test_a_title_is_not_requested_once_the_run_is_cancelled(
    workshop: Workshop, model: ModelServer
) -> None:
    run = workshop.submit(TASK)
    workshop.cancel(run)
    assert not title_run(run.pk)
    assert not model.requests


PRICED = {"*": {"input": "2", "output": "10"}}
COST = 300
"""The cost of a title's 100 input and 10 output tokens, in millionths of a currency unit."""


def test_a_titles_usage_counts_for_the_run_and_the_employee_but_not_as_a_pass(
    workshop: Workshop, model: ModelServer
) -> None:
    ModelProvider.objects.update(prices=PRICED)
    model.script(Response(text="Qualify companies"))
    run = workshop.submit(TASK)
    count_all()
    assert title_run(run.pk)
    run = again(run)
    assert (run.input_tokens, run.output_tokens, run.cost_micros) == (100, 10, COST)
    assert [event["cost"] for event in payloads(run, "run_titled")] == [COST / 1_000_000]
    count_all()
    count_all()
    use = EmployeeUse.objects.get(employee=workshop.employee)
    assert (use.passes, use.input_tokens, use.output_tokens, use.cost_micros) == (0, 100, 10, COST)
    assert_use_is_true()


@pytest.mark.parametrize(
    "limit", [{"run_tokens": 110}, {"month_tokens": 110}, {"run_cost": "0.0003"}], ids=str
)
def test_a_titles_usage_counts_toward_every_budget(
    workshop: Workshop, model: ModelServer, limit: dict[str, int | str]
) -> None:
    ModelProvider.objects.update(prices=PRICED)
    Employee.objects.update(**limit)
    model.script(Response(text="Qualify companies"))
    run = workshop.submit(TASK)
    assert title_run(run.pk)
    run = workshop.drive(run)
    assert (run.exit_reason, len(model.requests)) == (ExitReason.BUDGET_EXHAUSTED, 1)


def cancel(workshop: Workshop, run: Run) -> None:
    workshop.cancel(run)


def stop_everything(workshop: Workshop, _: Run) -> None:
    stops.stop_everything(workshop.operator)


def stop_its_employee(workshop: Workshop, _: Run) -> None:
    stops.stop_employee(workshop.operator, workshop.employee.pk)


def stop_its_tool(workshop: Workshop, _: Run) -> None:
    stops.stop_tool(workshop.operator, "system.titleRun")


def make_ending(reason: ExitReason) -> Callable[[Workshop, Run], None]:
    def end_it(_: Workshop, run: Run) -> None:
        with run_transaction(run.pk) as tx:
            end_run(tx, Ending(reason, "Done."))

    return end_it


def stop_after_its_end(workshop: Workshop, run: Run) -> None:
    make_ending(ExitReason.FINAL_ANSWER)(workshop, run)
    stops.stop_everything(workshop.operator)


fail = make_ending(ExitReason.DEADLINE)
succeed = make_ending(ExitReason.FINAL_ANSWER)


@feature(
    "Built-in tools",
    "Naming a run is abandoned if the run or the tool is stopped or the run fails, "
    "and counts in statistics and budgets",
    "agents/runs/titles.py",
)
@pytest.mark.parametrize(
    "stop", [cancel, fail, stop_everything, stop_its_employee, stop_its_tool, stop_after_its_end]
)
def test_a_title_is_abandoned_immediately_when_its_run_is_stopped_cancelled_or_failed(
    workshop: Workshop, model: ModelServer, stop: Callable[[Workshop, Run], None]
) -> None:
    model.script(Response(text="Too late", hold="start"))
    run = workshop.submit(TASK)
    with beside(lambda: title_run(run.pk)) as thread:
        eventually(lambda: len(model.requests) == 1)
        stop(workshop, run)
        thread.join(5)
        assert not thread.is_alive(), "the request is not waited for"
    run = again(run)
    assert (run.title, run.input_tokens) == (make_title(TASK), 0)
    assert "run_titled" not in event_types(run)


def test_a_title_is_set_even_if_the_run_has_answered_meanwhile(
    workshop: Workshop, model: ModelServer
) -> None:
    model.script(Response(text="Qualify companies", hold="start"))
    run = workshop.submit(TASK)
    with beside(lambda: title_run(run.pk)):
        model.wait_for_held()
        succeed(workshop, run)
        model.release()
        eventually(lambda: again(run).title == "Qualify companies")


def test_a_title_is_not_requested_once_the_run_has_failed(
    workshop: Workshop, model: ModelServer
) -> None:
    run = workshop.submit(TASK)
    fail(workshop, run)
    assert not title_run(run.pk)
    assert not model.requests
