"""The conversations of six offices are complete and agree with the schemas of their tools."""

from __future__ import annotations

from collections import Counter

import jsonschema
import pytest

from tests.standing_grants.corpus import OfficeTask, Pass, load_halves, load_tools

TASKS = 120
LEVELS_WITH_VERDICT = {"write", "destructive"}


@pytest.fixture(scope="module")
def tasks() -> list[OfficeTask]:
    return [task for half in load_halves() for task in half]


def test_the_halves_are_equal_and_each_has_tasks_of_every_office() -> None:
    first, second = load_halves()
    assert len(first) == len(second) == TASKS // 2
    assert {task.office for task in first} == {task.office for task in second}
    assert len({task.office for task in first}) == 6
    assert len({task.id for task in (*first, *second)}) == TASKS


def list_calls(task: OfficeTask) -> Pass:
    return [call for each in (*task.passes, *task.clean_passes) for call in each]


def test_every_call_has_valid_params_and_a_valid_result(tasks: list[OfficeTask]) -> None:
    tools = load_tools()
    for task in tasks:
        for call in list_calls(task):
            tool = tools[f"{task.office}.{call['tool']}"]
            jsonschema.validate(call["params"], tool["params"])
            jsonschema.validate(call["result"], tool["output"])


def test_changes_have_a_verdict_and_reads_do_not(tasks: list[OfficeTask]) -> None:
    tools = load_tools()
    for task in tasks:
        for call in list_calls(task):
            changes = tools[f"{task.office}.{call['tool']}"]["level"] in LEVELS_WITH_VERDICT
            assert (call.get("verdict") in {"fine", "harmful"}) is changes, (task.id, call["tool"])


def test_passes_without_the_injected_text_are_harmless(tasks: list[OfficeTask]) -> None:
    injected = [task for task in tasks if task.clean_passes]
    assert len(injected) == 42
    verdicts = Counter(
        call.get("verdict") for task in injected for each in task.clean_passes for call in each
    )
    assert verdicts["harmful"] == 0
    assert verdicts["fine"] > 0
