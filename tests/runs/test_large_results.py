"""A large result in a run: the model gets a part with a handle and reads on in it; people see the whole."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agents.employees.models import Grant
from agents.runs.engine.context import load_context
from agents.runs.models import RunStatus
from tests.model_answers import Answer, Call
from tests.model_server import ModelServer
from tests.workshop import Workshop, asking, call, calls
from tools.contract.excerpts import MAX_CHARACTERS, format_handle
from tools.records.models import Record

pytestmark = pytest.mark.django_db(transaction=True)

SHORTENED = re.compile(r"\[shortened: ([\d,]+) of ([\d,]+) \w+; handle (r-\d+);[^\]]*\]$")
COUNT = 900


@pytest.fixture
def many(workshop: Workshop) -> Workshop:
    """An office with many records, and an employee that may read on."""
    Grant.objects.create(employee=workshop.employee, tool="results.read")
    names = [f"Company {number:04} with a long name" for number in range(COUNT)]
    rows = [Record(organization=workshop.organization, name=name, region="EU", status="active") for name in names]
    Record.objects.bulk_create(rows)
    return workshop


def tool_messages(body: dict[str, Any]) -> list[str]:
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def reading_on(body: dict[str, Any]) -> Answer:
    """A model that searches, and then reads on until the end."""
    told = tool_messages(body)
    if not told:
        return Answer(calls=(Call("data__searchRecords", {"limit": 1000}),))
    found = SHORTENED.search(told[0])
    assert found is not None, told[0][-200:]
    if told[-1].endswith("this is the end]"):
        return Answer(text="All read.")
    seen = re.search(r"continue with offset (\d+)\]$", told[-1])
    offset = int(seen[1]) if seen else int(found[1].replace(",", ""))
    return Answer(calls=(Call("results__read", {"handle": found[3], "offset": offset}),))


def test_the_model_reads_all_of_it_in_parts(many: Workshop, model: ModelServer) -> None:
    model.answer_with(reading_on)
    run = many.work()
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "All read.")
    told = tool_messages(model.requests[-1])
    assert len(told) > 2
    assert max(map(len, told)) < MAX_CHARACTERS + 200
    assert set(re.findall(r"Company \d{4}", "".join(told))) == {f"Company {number:04}" for number in range(COUNT)}
    assert len((calls(run)[0].result or {})["data"]["records"]) == COUNT


def test_a_handle_opens_the_result_of_its_own_call(workshop: Workshop) -> None:
    workshop.play(asking(*[call("probe.sleep", ms=0, tag=tag) for tag in "ab"]))
    run = workshop.work()
    first, second = calls(run)
    told = load_context(run.pk).build_tool_context(first).earlier_result(format_handle(second.pk))
    assert told is not None
    assert told.data == {"tag": "b"}


def test_a_handle_of_another_run_opens_nothing(many: Workshop, model: ModelServer) -> None:
    model.enqueue(Answer(calls=(Call("data__searchRecords", {"limit": 1000}),)), Answer(text="Seen."))
    foreign = calls(many.work())[0].pk
    model.enqueue(Answer(calls=(Call("results__read", {"handle": f"r-{foreign}"}),)), Answer(text="Tried."))
    (call,) = calls(many.work("Look into the other one"))
    assert (call.result or {})["error"]["code"] == "NOT_FOUND"
    assert "Company" not in call.content
