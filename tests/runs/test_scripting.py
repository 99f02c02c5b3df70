"""A Python script hands a task to an employee and gets the result of the run, which a worker
drives."""

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from django.db import transaction

from agents.platform.refusals import Conflict, Forbidden, NotFound
from agents.runs.models import ApprovalKind, ExitReason, Origin, Run, RunStatus
from agents.runs.scripting import run_task
from agents.worker.jobs import advance_run
from agents.worker.run_poller import RunPoller
from tests.features import feature
from tests.processes import Installation
from tests.workshop import Workshop, asking, build_workshop, call, calls
from tests.workshop.colleagues import ask, delegate, hire, may_delegate
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db(transaction=True)

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "test-a-tool.md"


@pytest.fixture
def worker() -> Iterator[None]:
    """Drive due runs in threads, as every worker does."""
    poller = RunPoller(4, advance_run)
    poller.start()
    yield
    poller.stop()
    poller.join()


@pytest.mark.usefixtures("worker")
class TestATaskFromAScript:
    @feature(
        "The toolbox and its settings",
        "A Python script runs a task with an employee and gets status, answer and waiting cards",
        "agents/runs/scripting.py",
    )
    def test_returns_the_answer_when_the_run_ends(self, workshop: Workshop) -> None:
        workshop.record()
        workshop.play(asking(call("data.searchRecords")), answer="There is one.")
        result = run_task(workshop.operator, "Dana", "Count the records", timeout_s=60)
        assert (result.status, result.answer, result.cards) == (
            RunStatus.SUCCEEDED,
            "There is one.",
            (),
        )
        assert result.exit_reason == ExitReason.FINAL_ANSWER
        run = Run.objects.get(pk=result.run_id)
        assert (run.origin, run.created_by, run.task) == (
            Origin.TASK,
            workshop.operator.user,
            "Count the records",
        )

    def test_returns_the_waiting_cards(self, workshop: Workshop) -> None:
        record = workshop.record()
        change = call(
            "data.updateRecord", record_id=str(record.pk), changes={"phone": "+1 555 0100"}
        )
        workshop.play(asking(change))
        result = run_task(workshop.operator, "Dana", "Change it", timeout_s=60)
        assert (result.status, result.has_ended, result.answer) == (RunStatus.WAITING, False, "")
        (card,) = result.cards
        assert (card.run_id, card.kind, card.tool) == (
            result.run_id,
            ApprovalKind.APPROVAL,
            "data.updateRecord",
        )
        assert "Acme Corp" in card.sentence
        assert Record.objects.get(pk=record.pk).phone == ""

    def test_returns_a_colleagues_question_as_its_only_card(self, workshop: Workshop) -> None:
        kim = hire(
            workshop, "Kim", asking(call("data.searchRecords")), asking(ask("Which region?"))
        )
        may_delegate(workshop.employee, kim)
        workshop.play(asking(delegate("Kim", "Look it up")))
        result = run_task(workshop.operator, "Dana", "Ask Kim", timeout_s=60)
        (card,) = result.cards
        assert (card.kind, card.sentence) == (ApprovalKind.QUESTION, "Kim asks: “Which region?”")
        assert Run.objects.get(pk=card.run_id).parent_id == result.run_id

    def test_a_failed_task_returns_the_reason(self, workshop: Workshop) -> None:
        workshop.play_text("no script")
        result = run_task(workshop.operator, "Dana", "Work", timeout_s=60)
        assert (result.status, result.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR)
        assert "The script is wrong" in result.problem


class TestAScriptWithoutAWorker:
    def test_returns_at_the_timeout_and_does_not_affect_the_run(self, workshop: Workshop) -> None:
        workshop.play()
        result = run_task(workshop.operator, "Dana", "Work", timeout_s=0.3)
        assert (result.status, result.has_ended, result.exit_reason) == (
            RunStatus.QUEUED,
            False,
            None,
        )
        workshop.drive(Run.objects.get(pk=result.run_id))
        assert Run.objects.get(pk=result.run_id).status == RunStatus.SUCCEEDED

    def test_cannot_submit_a_task_that_would_be_refused_elsewhere(self, workshop: Workshop) -> None:
        build_workshop("other")
        for member, employee, refusal in (
            (workshop.members["viewer"], "Dana", Forbidden),
            (workshop.operator, "Nobody", NotFound),
        ):
            with pytest.raises(refusal):
                run_task(member, employee, "Work", timeout_s=1)
        workshop.employee.is_active = False
        workshop.employee.save()
        with pytest.raises(Conflict, match="Dana is not active"):
            run_task(workshop.operator, "Dana", "Work", timeout_s=1)
        assert not Run.objects.exists()

    def test_cannot_wait_inside_a_transaction(self, workshop: Workshop) -> None:
        with pytest.raises(RuntimeError, match="inside a transaction"), transaction.atomic():
            run_task(workshop.operator, "Dana", "Work", timeout_s=1)
        assert not Run.objects.exists()


def test_the_script_in_the_guide_prints_the_answer_of_a_run_driven_by_a_worker(
    workshop: Workshop, installation: Installation
) -> None:
    installation.start_worker()
    workshop.play(asking(call("data.searchRecords")), answer="There are none.")
    (script,) = re.findall(
        r"<<'END'\n(.*?)^END$", GUIDE.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    for shown, here in (('"operator"', '"acme-operator"'), ('"acme-demo"', '"acme"')):
        assert shown in script
        script = script.replace(shown, here)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(script, {})
    assert printed.getvalue() == "succeeded There are none.\n"
    assert [each.tool for each in calls(Run.objects.get())] == ["data.searchRecords"]
