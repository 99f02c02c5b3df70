"""A large result in a run: the model gets a part with a handle and can read the rest; people see
the whole result."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agents.employees.models import Grant
from agents.runs.engine.context import load_context
from agents.runs.models import RunStatus
from tests.features import feature
from tests.model_responses import Call, Response
from tests.model_server import ModelServer
from tests.workshop import Workshop, asking, call, calls
from tools.contract.excerpts import MAX_CHARACTERS, format_handle
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db(transaction=True)

SHORTENED = re.compile(r"\[shortened: ([\d,]+) of ([\d,]+) \w+; handle (r-\d+);[^\]]*\]$")
COUNT = 900


@pytest.fixture
def many(workshop: Workshop) -> Workshop:
    """A workshop with many records, and an employee that may read shortened results in full."""
    Grant.objects.create(employee=workshop.employee, tool="results.read")
    names = [f"Company {number:04} with a long name" for number in range(COUNT)]
    rows = [
        Record(organization=workshop.organization, name=name, region="EU", status="active")
        for name in names
    ]
    Record.objects.bulk_create(rows)
    return workshop


def tool_messages(body: dict[str, Any]) -> list[str]:
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def read_to_end(body: dict[str, Any]) -> Response:
    """Respond as a model that searches, and then reads the whole result."""
    messages = tool_messages(body)
    if not messages:
        return Response(calls=(Call("data__searchRecords", {"limit": 1000}),))
    found = SHORTENED.search(messages[0])
    assert found is not None, messages[0][-200:]
    if messages[-1].endswith("this is the end]"):
        return Response(text="All read.")
    seen = re.search(r"continue with offset (\d+)\]$", messages[-1])
    offset = int(seen[1]) if seen else int(found[1].replace(",", ""))
    return Response(calls=(Call("results__read", {"handle": found[3], "offset": offset}),))


@feature(
    "Results and errors",
    "The model reads a large result in excerpts, and people see the whole",
    "tools/contract/excerpts.py",
)
def test_the_model_can_read_the_whole_result_in_parts(many: Workshop, model: ModelServer) -> None:
    model.respond_with(read_to_end)
    run = many.work()
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "All read.")
    messages = tool_messages(model.requests[-1])
    assert len(messages) > 2
    assert max(map(len, messages)) < MAX_CHARACTERS + 200
    assert set(re.findall(r"Company \d{4}", "".join(messages))) == {
        f"Company {number:04}" for number in range(COUNT)
    }
    assert len((calls(run)[0].result or {})["data"]["records"]) == COUNT


def test_a_handle_opens_the_result_of_its_own_call(workshop: Workshop) -> None:
    workshop.play(asking(*[call("probe.sleep", ms=0, tag=tag) for tag in "ab"]))
    run = workshop.work()
    first, second = calls(run)
    result = load_context(run.pk).build_tool_context(first).earlier_result(format_handle(second.pk))
    assert result is not None
    assert result.data == {"tag": "b"}


def test_a_handle_of_another_run_is_refused(many: Workshop, model: ModelServer) -> None:
    model.enqueue(
        Response(calls=(Call("data__searchRecords", {"limit": 1000}),)), Response(text="Seen.")
    )
    foreign = calls(many.work())[0].pk
    model.enqueue(
        Response(calls=(Call("results__read", {"handle": f"r-{foreign}"}),)),
        Response(text="Tried."),
    )
    (call,) = calls(many.work("Look into the other one"))
    assert (call.result or {})["error"]["code"] == "NOT_FOUND"
    assert "Company" not in call.content
