"""A read tool tried by hand: one call, judged by an employee's grants, run by a worker, and
recorded like any other call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.accounts.models import AuditEntry, Organization
from agents.employees.models import Employee, Grant, ModelProvider
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.runs import actions, manual_calls
from agents.runs.engine import lease
from agents.runs.engine.context import load_context
from agents.runs.engine.execution import start_ready
from agents.runs.engine.loop import start_driving
from agents.runs.engine.transaction import Action
from agents.runs.models import CallStatus, ExitReason, Origin, Run, RunStatus
from tests.features import feature
from tests.model_server import ModelServer
from tests.probes import Gate
from tests.tools.toolbox.sample_tools import Echo
from tests.workshop import Workshop, calls, event_types, last_call, lose_worker, passes, payloads
from tools.contract import Level, NoParams, RateLimit, Tool, ToolContext, ToolResult
from tools.toolbox.toolbox import Toolbox

SEARCH = "data.searchRecords"


def submit_call(workshop: Workshop, tool: str = SEARCH, **params: Any) -> Run:
    """Submit a manual call without driving it."""
    return manual_calls.submit(
        workshop.operator, manual_calls.ManualCall(workshop.employee.pk, tool, params)
    )


class TestAManualCall:
    @feature(
        "Execution",
        "A person can try a read tool: judged, run and recorded like any call, without a model",
        "agents/runs/manual_calls.py",
    )
    def test_is_run_by_a_worker_and_its_result_is_the_answer(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        record = workshop.record(region="EU")
        run = submit_call(workshop, region="EU", limit=5)
        assert (run.origin, run.status, calls(run)[0].status) == (
            Origin.MANUAL,
            RunStatus.QUEUED,
            CallStatus.READY,
        )
        run = workshop.drive(run)
        assert (run.status, run.exit_reason) == (RunStatus.SUCCEEDED, ExitReason.FINAL_ANSWER)
        done = last_call(run)
        assert done.status == CallStatus.SUCCEEDED
        assert done.result is not None
        assert run.answer == done.result["summary"]
        assert done.result["data"]["records"][0]["id"] == str(record.pk)
        assert done.params["limit"] == 5
        types = ["run_started", "pass_started", "tool_start", "tool_result", "run_finished"]
        assert event_types(run) == types
        assert payloads(run, "run_started") == [{"by": "acme-operator"}]
        (only,) = passes(run)
        asked = only.response["tool_calls"][0]["function"]
        assert (asked["name"], json.loads(asked["arguments"])) == (SEARCH, done.params)
        assert model.connections == 0, "no model is asked"
        assert run.created_by == workshop.operator.user
        assert not AuditEntry.objects.exists(), "a read needs no entry"

    def test_that_fails_has_the_failure_as_its_answer(self, workshop: Workshop) -> None:
        run = workshop.drive(
            submit_call(workshop, "utility.calculate", operation="divide", a=1, b=0)
        )
        assert run.status == RunStatus.SUCCEEDED
        assert last_call(run).status == CallStatus.FAILED
        assert run.answer.startswith("The call failed: ")
        assert "zero" in run.answer

    def test_is_finished_by_another_worker_if_its_worker_is_lost(self, workshop: Workshop) -> None:
        run = submit_call(workshop, "probe.sleep", ms=1)
        my_lease = lease.acquire(run.pk)
        assert my_lease is not None
        assert start_driving(my_lease).action == Action.RUN_READY
        with my_lease.transaction() as tx:
            start_ready(tx, load_context(run.pk))
        run = workshop.drive(lose_worker(run))
        assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Slept 1 ms")
        assert last_call(run).attempts == 2

    def test_can_be_cancelled(self, workshop: Workshop) -> None:
        run = workshop.cancel(submit_call(workshop))
        assert run.status == RunStatus.CANCELLED
        assert last_call(run).status == CallStatus.CANCELLED

    def test_is_judged_again_by_the_worker(self, workshop: Workshop) -> None:
        run = submit_call(workshop)
        Grant.objects.filter(employee=workshop.employee, tool=SEARCH).delete()
        run = workshop.drive(run)
        assert (run.status, last_call(run).status) == (RunStatus.SUCCEEDED, CallStatus.REJECTED)
        assert "was not granted" in run.answer

    def test_counts_toward_rate_limits(self, workshop: Workshop, toolbox: Toolbox) -> None:
        class Limited(Gate):
            name = "probe.limited"
            rate_limit = RateLimit(1, 60)

            def execute(self, params: Any, context: ToolContext) -> ToolResult:
                return ToolResult.ok(summary="Fine")

        toolbox.register(Limited())
        Grant.objects.create(employee=workshop.employee, tool="probe.limited")
        answers = [
            workshop.drive(submit_call(workshop, "probe.limited", name="a")).answer
            for _ in range(2)
        ]
        assert answers[0] == "Fine"
        assert ": 1 call in 60 s" in answers[1]

    @pytest.mark.parametrize(
        "newer", [Echo(version="2.0"), Echo(version="2.0", level=Level.WRITE, Params=NoParams)]
    )
    def test_uses_the_version_to_which_the_employee_is_pinned(
        self, workshop: Workshop, toolbox: Toolbox, newer: Tool
    ) -> None:
        toolbox.register(Echo(version="1.2", display_name="Say again"))
        toolbox.register(newer)
        Grant.objects.create(employee=workshop.employee, tool=Echo.name, version="1.2")
        run = workshop.drive(submit_call(workshop, Echo.name, text="Hi"))
        assert (last_call(run).version, last_call(run).status) == ("1.2", CallStatus.SUCCEEDED)
        assert (run.answer, run.title) == ("said Hi", "Say again, tried by hand")

    def test_cannot_receive_messages_or_be_continued(self, workshop: Workshop) -> None:
        run = submit_call(workshop)
        for each in (run, workshop.drive(run)):
            with pytest.raises(Conflict, match="start a run with a task"):
                workshop.say(each)
        with pytest.raises(Conflict, match="start a run with a task"):
            actions.continue_run(workshop.operator, run.pk)
        assert len(passes(run)) == 1


class TestAManualCallIsRefused:
    @pytest.mark.parametrize(
        ("tool", "params", "field"),
        [
            (SEARCH, {"limit": 5_000}, "params.limit"),
            (SEARCH, {"color": "red"}, "params.color"),
            ("probe.sleep", {}, "params.ms"),
            (SEARCH, {"text": "a\0b"}, ""),
            (SEARCH, {"text": "\ud800"}, ""),
            ("probe.sleep", {"ms": "soon"}, "params.ms"),
        ],
    )
    def test_if_a_param_is_invalid_and_the_param_is_named(
        self, workshop: Workshop, tool: str, params: dict[str, Any], field: str
    ) -> None:
        with pytest.raises((Invalid, Conflict)) as caught:
            submit_call(workshop, tool, **params)
        assert caught.value.extra.get("field", "") == field
        assert not Run.objects.exists()

    def test_if_its_tool_is_above_the_read_level(self, workshop: Workshop) -> None:
        for tool in ("data.updateRecord", "data.bulkDelete", "probe.effect", "probe.draw"):
            with pytest.raises(Conflict, match="cannot be tried"):
                submit_call(workshop, tool)

    def test_if_it_would_need_approval(self, workshop: Workshop, toolbox: Toolbox) -> None:
        class Fetch(Gate):
            name = "probe.fetch"
            open_world = True

        toolbox.register(Fetch())
        Grant.objects.create(employee=workshop.employee, tool="probe.fetch")
        with pytest.raises(Conflict, match="would need approval"):
            submit_call(workshop, "probe.fetch", name="a")
        Grant.objects.filter(employee=workshop.employee, tool=SEARCH).update(level=Level.WRITE)
        with pytest.raises(Conflict, match="would need approval"):
            submit_call(workshop)

    def test_if_its_tool_is_missing_disabled_or_not_granted(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        class Platform(Gate):
            name = "probe.platform"
            modes = frozenset()

        toolbox.register(Platform())
        for tool in ("probe.nowhere", "probe.platform"):
            with pytest.raises(NotFound):
                submit_call(workshop, tool)
        toolbox.disable(SEARCH)
        with pytest.raises(Conflict, match="disabled"):
            submit_call(workshop)
        Grant.objects.all().delete()
        with pytest.raises(Conflict, match="not granted"):
            submit_call(workshop, "probe.sleep", ms=1)

    def test_if_a_viewer_makes_it_or_its_employee_is_unavailable(self, workshop: Workshop) -> None:
        trial = manual_calls.ManualCall(workshop.employee.pk, SEARCH, {})
        with pytest.raises(Forbidden):
            manual_calls.submit(workshop.members["viewer"], trial)
        other = Organization.objects.create(name="Globex", slug="globex")
        provider = ModelProvider.objects.create(organization=other, name="Script")
        theirs = Employee.objects.create(organization=other, name="Hank", provider=provider)
        Grant.objects.create(employee=theirs, tool=SEARCH)
        with pytest.raises(NotFound):
            manual_calls.submit(workshop.operator, manual_calls.ManualCall(theirs.pk, SEARCH, {}))
        Employee.objects.filter(pk=workshop.employee.pk).update(is_active=False)
        with pytest.raises(Conflict, match="not active"):
            manual_calls.submit(workshop.operator, trial)
        assert not Run.objects.exists()
