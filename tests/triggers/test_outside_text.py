"""A trigger's message is treated as text from outside, in the task and in the employee's prompt."""

from __future__ import annotations

import pytest

from agents.employees.models import Grant
from agents.runs.models import CallStatus, Run
from agents.triggers.models import Trigger
from tests.features import feature
from tests.triggers.conftest import add_trigger, send
from tests.workshop import Workshop, asking, call, error_code, last_call
from tools.toolbox.provenance import Provenance, SeenIn

EVIL = "thief@evil.example"
OWN = "sales@acme.example"


def start(workshop: Workshop, task: str, payload: dict[str, str], email: str = EVIL) -> Run:
    """Let a message start a run whose employee writes this address into a record; drive the run."""
    record = workshop.record()
    workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes={"email": email}))
    )
    run = send(add_trigger(workshop, task=task), payload)
    assert run is not None
    return workshop.drive(run)


def find_origin(run: Run) -> SeenIn:
    sightings = Provenance.from_json(last_call(run).provenance).sightings
    return next(one.origin for one in sightings if one.path == "changes.email")


@feature("Agents elsewhere", "A message counts as text from outside", "agents/runs/provenance.py")
@pytest.mark.parametrize("task", ["Answer {{ payload.email }}.", "Answer the sender."])
def test_a_value_from_a_message_counts_as_outside_and_needs_approval(
    workshop: Workshop, task: str
) -> None:
    run = start(workshop, task, {"email": EVIL})
    assert find_origin(run) == SeenIn.OUTSIDE
    assert last_call(run).status == CallStatus.AWAITING_APPROVAL


@feature(
    "Agents elsewhere",
    "A value of a message stays one from outside as the employee reads it, shortened and without hidden characters",
    "agents/runs/provenance.py",
)
@pytest.mark.parametrize(
    "written",
    [
        "thi\U000e0041ef@ev\U000e0041il.example",
        "thief@\u2800evil.example\u3164",
        "x" * 486 + " thief@evil.example.com",
    ],
)
def test_a_value_also_counts_as_outside_in_the_form_that_the_employee_reads(
    workshop: Workshop, written: str
) -> None:
    """Hidden characters are removed from the task, and a long value is shortened, so the employee
    reads a value that differs from the one in the message."""
    run = send(add_trigger(workshop, task="Answer {{ payload.email }}"), {"email": written})
    assert run is not None
    read = run.task.removeprefix("Answer ").split()[-1].rstrip("…")
    record = workshop.record()
    workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes={"email": read}))
    )
    assert find_origin(workshop.drive(run)) == SeenIn.OUTSIDE


def test_values_do_not_count_as_typed_after_a_later_edit_of_the_template(
    workshop: Workshop,
) -> None:
    trigger, record = add_trigger(workshop), workshop.record()
    run = send(trigger, {"title": EVIL})
    assert run is not None
    Trigger.objects.update(task=f"Write to {EVIL}.")
    workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes={"email": EVIL}))
    )
    assert find_origin(workshop.drive(run)) == SeenIn.OUTSIDE


def test_a_value_in_the_template_counts_as_typed_by_a_person(workshop: Workshop) -> None:
    run = start(workshop, f"Write to {OWN} about {{{{ payload.title }}}}.", {"title": "x"}, OWN)
    assert find_origin(run) == SeenIn.PERSON


def test_a_limit_on_outside_values_refuses_a_value_from_a_message(workshop: Workshop) -> None:
    condition = {
        "param": "changes.email",
        "rule": "not_from_outside",
        "value": True,
        "otherwise": "forbid",
    }
    Grant.objects.filter(tool="data.updateRecord").update(conditions=[condition])
    run = start(workshop, "Answer {{ payload.email }}.", {"email": EVIL})
    assert error_code(last_call(run)) == "NOT_PERMITTED"
