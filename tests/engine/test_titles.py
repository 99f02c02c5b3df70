"""A run with a long task gets a name from its employee's model, beside the run, which never waits for it."""

import pytest

from agents.engine.titles import title_run
from agents.models import ModelProvider, RunStatus
from agents.models.run import title_of
from tests.engine.workshop import Workshop, again, all_at_once, event_types, payloads
from tests.model_server import Answer, ModelServer
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

TASK = "Look through all companies of the region EU.\nQualify those with a score above 80 and write a report of it."


def test_comes_from_the_model_and_is_told_in_a_line(workshop: Workshop, model: ModelServer) -> None:
    model.script(Answer(text='"Qualify the best companies in the EU".\n'))
    run = workshop.submit(TASK)
    assert run.title == title_of(TASK)
    assert title_run(run.pk)
    run = again(run)
    assert run.title == "Qualify the best companies in the EU"
    assert payloads(run, "run_titled") == [{"title": run.title}]
    (asked,) = model.requests
    assert TASK in asked["messages"][-1]["content"]
    assert not asked.get("tools")
    assert (run.input_tokens, run.output_tokens, run.status) == (100, 10, RunStatus.QUEUED)


@pytest.mark.parametrize("task", ["Count the records", "  Count\tthe   records "])
def test_is_the_task_itself_where_that_is_short(workshop: Workshop, model: ModelServer, task: str) -> None:
    run = workshop.submit(task)
    assert not title_run(run.pk)
    assert (again(run).title, model.requests) == ("Count the records", [])


def test_is_given_once_however_often_it_is_asked_for(workshop: Workshop, model: ModelServer) -> None:
    model.script(Answer(text="Qualify companies"))
    run = workshop.submit(TASK)
    all_at_once([lambda: title_run(run.pk)] * 3)
    assert not title_run(run.pk)
    assert event_types(again(run)).count("run_titled") == 1


@pytest.mark.parametrize("answer", [Answer(text="  \n "), Answer(status=500), Answer(text='""')])
def test_stays_the_beginning_of_the_task_if_the_model_gives_none(
    workshop: Workshop, model: ModelServer, answer: Answer
) -> None:
    model.script(answer)
    run = workshop.submit(TASK)
    assert not title_run(run.pk)
    assert again(run).title == title_of(TASK)
    assert "run_titled" not in event_types(run)


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
