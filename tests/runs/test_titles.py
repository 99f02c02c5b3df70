"""A run with a long task gets a name from its employee's model, beside the run, which never waits for it."""

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
from tests.model_server import Answer, ModelServer
from tests.runs.counted import assert_use_is_true, count_all
from tests.workshop import Workshop, again, all_at_once, beside, event_types, eventually, payloads
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

TASK = "Look through all companies of the region EU.\nQualify those with a score above 80 and write a report of it."


def test_comes_from_the_model_and_is_told_in_a_line(workshop: Workshop, model: ModelServer) -> None:
    model.script(Answer(text='"Qualify the best companies in the EU".\n'))
    run = workshop.submit(TASK)
    assert run.title == make_title(TASK)
    assert title_run(run.pk)
    run = again(run)
    assert run.title == "Qualify the best companies in the EU"
    told = {"title": run.title, "input_tokens": 100, "output_tokens": 10, "cost": None}
    assert payloads(run, "run_titled") == [told], "no price is known"
    (asked,) = model.requests
    assert TASK in asked["messages"][-1]["content"]
    assert not asked.get("tools")
    assert (run.input_tokens, run.output_tokens, run.status) == (100, 10, RunStatus.QUEUED)


def test_is_never_what_the_model_thinks(workshop: Workshop, model: ModelServer) -> None:
    model.script(Answer(text="<think>A name is needed.</think>Qualify companies"))
    run = workshop.submit(TASK)
    assert title_run(run.pk)
    assert again(run).title == "Qualify companies"


@pytest.mark.parametrize("task", ["Count the records", "  Count\tthe   records "])
def test_is_the_task_itself_where_that_is_short(workshop: Workshop, model: ModelServer, task: str) -> None:
    run = workshop.submit(task)
    assert not title_run(run.pk)
    assert (again(run).title, model.requests) == ("Count the records", [])


def test_is_given_once_however_often_it_is_asked_for(workshop: Workshop, model: ModelServer) -> None:
    model.script(Answer(text="Qualify companies"))
    run = workshop.submit(TASK)
    named = []
    all_at_once([lambda: named.append(title_run(run.pk))] * 3)
    assert not title_run(run.pk)
    assert sorted(named) == [False, False, True]
    told = payloads(run, "run_titled")
    assert len(told) == len(model.requests), "each of them has used something"
    assert [each["title"] for each in told if "title" in each] == ["Qualify companies"]
    assert again(run).title == "Qualify companies"


@pytest.mark.parametrize(
    ("answer", "used"),
    [
        (Answer(text="  \n "), 110),
        (Answer(status=500), 0),
        (Answer(text='""'), 110),
        (Answer(text="Half of a na", finish="length"), 110),
        (Answer(finish="content_filter"), 110),
        (Answer(text="<think>Qualify companies"), 110),
    ],
)
def test_stays_the_beginning_of_the_task_if_the_model_gives_none(
    workshop: Workshop, model: ModelServer, answer: Answer, used: int
) -> None:
    model.script(answer)
    run = workshop.submit(TASK)
    assert not title_run(run.pk)
    run = again(run)
    assert (run.title, run.input_tokens + run.output_tokens) == (make_title(TASK), used)
    unnamed = {"input_tokens": 100, "output_tokens": 10, "cost": None}
    assert payloads(run, "run_titled") == ([unnamed] if used else [])


def test_is_one_short_line_whatever_the_model_writes(workshop: Workshop, model: ModelServer) -> None:
    model.script(Answer(text="# Title: " + "very " * 100 + "long\nand more"))
    run = workshop.submit(TASK)
    assert title_run(run.pk)
    title = again(run).title
    assert (len(title), title[:9]) == (80, "very very")
    assert "\n" not in title


def test_is_no_matter_of_a_script_nor_of_a_tool_that_is_switched_off(
    workshop: Workshop, model: ModelServer, toolbox: Toolbox
) -> None:
    run = workshop.submit(TASK)
    toolbox.disable("system.titleRun")
    assert not title_run(run.pk)
    toolbox.enable("system.titleRun")
    ModelProvider.objects.update(kind="scripted")
    assert not title_run(run.pk)
    assert not model.requests


def test_asks_nobody_once_the_run_was_cancelled(workshop: Workshop, model: ModelServer) -> None:
    run = workshop.submit(TASK)
    workshop.cancel(run)
    assert not title_run(run.pk)
    assert not model.requests


PRICED = {"*": {"input": "2", "output": "10"}}
COST = 300
"""Micros of 100 tokens in and 10 out."""


def test_what_it_used_counts_like_what_a_pass_used(workshop: Workshop, model: ModelServer) -> None:
    ModelProvider.objects.update(prices=PRICED)
    model.script(Answer(text="Qualify companies"))
    run = workshop.submit(TASK)
    count_all()
    assert title_run(run.pk)
    run = again(run)
    assert (run.input_tokens, run.output_tokens, run.cost_micros) == (100, 10, COST)
    assert [told["cost"] for told in payloads(run, "run_titled")] == [COST / 1_000_000]
    count_all()
    count_all()
    use = EmployeeUse.objects.get(employee=workshop.employee)
    assert (use.passes, use.input_tokens, use.output_tokens, use.cost_micros) == (0, 100, 10, COST)
    assert_use_is_true()


@pytest.mark.parametrize("limit", [{"run_tokens": 110}, {"month_tokens": 110}, {"run_cost": "0.0003"}], ids=str)
def test_what_it_used_is_gone_from_every_budget(
    workshop: Workshop, model: ModelServer, limit: dict[str, int | str]
) -> None:
    ModelProvider.objects.update(prices=PRICED)
    Employee.objects.update(**limit)
    model.script(Answer(text="Qualify companies"))
    run = workshop.submit(TASK)
    assert title_run(run.pk)
    run = workshop.drive(run)
    assert (run.exit_reason, len(model.requests)) == (ExitReason.BUDGET_EXHAUSTED, 1)


def cancelled(workshop: Workshop, run: Run) -> None:
    workshop.cancel(run)


def everything_stopped(workshop: Workshop, _: Run) -> None:
    stops.stop_everything(workshop.operator)


def its_employee_stopped(workshop: Workshop, _: Run) -> None:
    stops.stop_employee(workshop.operator, workshop.employee.pk)


def its_tool_stopped(workshop: Workshop, _: Run) -> None:
    stops.stop_tool(workshop.operator, "system.titleRun")


def ended(reason: ExitReason) -> Callable[[Workshop, Run], None]:
    def end_it(_: Workshop, run: Run) -> None:
        with run_transaction(run.pk) as tx:
            end_run(tx, Ending(reason, "Done."))

    return end_it


def stopped_after_its_end(workshop: Workshop, run: Run) -> None:
    ended(ExitReason.FINAL_ANSWER)(workshop, run)
    stops.stop_everything(workshop.operator)


failed = ended(ExitReason.DEADLINE)
succeeded = ended(ExitReason.FINAL_ANSWER)


@pytest.mark.parametrize(
    "stop", [cancelled, failed, everything_stopped, its_employee_stopped, its_tool_stopped, stopped_after_its_end]
)
def test_is_given_up_at_once_when_its_run_is_stopped(
    workshop: Workshop, model: ModelServer, stop: Callable[[Workshop, Run], None]
) -> None:
    model.script(Answer(text="Too late", hold="start"))
    run = workshop.submit(TASK)
    with beside(lambda: title_run(run.pk)) as thread:
        eventually(lambda: len(model.requests) == 1)
        stop(workshop, run)
        thread.join(5)
        assert not thread.is_alive(), "the request is not waited for"
    run = again(run)
    assert (run.title, run.input_tokens) == (make_title(TASK), 0)
    assert "run_titled" not in event_types(run)


def test_comes_although_the_run_has_answered_meanwhile(workshop: Workshop, model: ModelServer) -> None:
    model.script(Answer(text="Qualify companies", hold="start"))
    run = workshop.submit(TASK)
    with beside(lambda: title_run(run.pk)):
        model.wait_for_held()
        succeeded(workshop, run)
        model.release()
        eventually(lambda: again(run).title == "Qualify companies")


def test_is_not_asked_for_once_the_run_has_failed(workshop: Workshop, model: ModelServer) -> None:
    run = workshop.submit(TASK)
    failed(workshop, run)
    assert not title_run(run.pk)
    assert not model.requests
