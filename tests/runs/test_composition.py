"""Tools composed of tools: inner calls run only if they do not need approval; each step of a recipe
gets its own card."""

from typing import Any

import pytest

from agents.employees.models import Grant
from agents.runs import stops
from agents.runs.engine import lease
from agents.runs.engine.context import LARGEST_SESSION, load_context
from agents.runs.engine.execution import prepare_call
from agents.runs.models import CallStatus, Run, RunStatus, ToolCall
from tests import composed_probes
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.recorder import Recorder
from tests.tools.toolbox.sample_tools import Echo
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    data_of,
    die_while_executing,
    error_code,
    lose_worker,
    payloads,
    statuses,
)
from tools.contract import storable_json
from tools.office.records.models import Record
from tools.toolbox.toolbox import Toolbox

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("conversation_cache_is_checked"),
]

ADD = {"operation": "add", "a": 1, "b": 2}


@pytest.fixture(autouse=True)
def _granted(workshop: Workshop) -> None:
    names = [*(probe.name for probe in composed_probes.PROBES), "data.getRecordDetail"]
    Grant.objects.bulk_create([Grant(employee=workshop.employee, tool=name) for name in names])


def composed(tool: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return call("probe.composed", inner=tool, params=params or {}, **more)


def children(parent: ToolCall) -> list[ToolCall]:
    return list(ToolCall.objects.filter(parent_call=parent).order_by("index"))


class TestAnInnerCall:
    @feature(
        "Tool contract",
        "A tool calls another tool; the call is judged and recorded as a child",
        "agents/runs/engine/execution.py",
    )
    def test_is_recorded_as_a_child_with_its_events(self, workshop: Workshop) -> None:
        workshop.play(asking(composed("utility.calculate", ADD), call("utility.calculate", **ADD)))
        run = workshop.work()
        parent, sibling, child = calls(run)
        assert (run.status, statuses(run)) == (RunStatus.SUCCEEDED, [CallStatus.SUCCEEDED] * 3)
        assert (child.parent_call_id, child.tool, child.pass_number) == (
            parent.pk,
            "utility.calculate",
            1,
        )
        assert sibling.parent_call_id is None
        assert data_of(parent)[0]["data"] == data_of(child)
        (begun,) = [
            line for line in payloads(run, "tool_start") if line["call_id"] == str(child.pk)
        ]
        assert begun["parent_call_id"] == str(parent.pk)

    def test_gets_an_index_in_the_pass_of_its_caller(self, workshop: Workshop) -> None:
        workshop.play(
            asking(*[call("probe.clock")] * 3), asking(composed("utility.calculate", ADD))
        )
        places = [(row.pass_number, row.index) for row in calls(workshop.work())]
        assert places == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]

    def test_to_a_write_tool_is_refused_and_not_recorded(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(composed("probe.effect", {"name": "a"})))
        (parent,) = calls(workshop.work())
        assert data_of(parent)[0]["error"]["code"] == "OPERATION_NOT_ALLOWED"
        assert "call it directly" in data_of(parent)[0]["summary"]
        assert not recorder.effects

    @pytest.mark.parametrize(
        ("tool", "params", "code"),
        [
            ("files.read", {"path": "a"}, "NOT_PERMITTED"),
            ("no.such", {}, "TOOL_NOT_FOUND"),
            ("utility.calculate", {}, "MISSING_PARAM"),
        ],
    )
    def test_is_refused_by_the_same_gate_as_other_calls(
        self, workshop: Workshop, tool: str, params: dict[str, Any], code: str
    ) -> None:
        workshop.play(asking(composed(tool, params)))
        (parent,) = calls(workshop.work())
        assert data_of(parent)[0]["error"]["code"] == code

    def test_can_fail_without_failing_its_parent(self, workshop: Workshop) -> None:
        workshop.play(
            asking(composed("utility.calculate", {"operation": "divide", "a": 1, "b": 0}))
        )
        parent, child = calls(workshop.work())
        assert (parent.status, child.status) == (CallStatus.SUCCEEDED, CallStatus.FAILED)

    def test_can_be_nested_at_most_three_levels_deep(self, workshop: Workshop) -> None:
        deep: dict[str, Any] = {"inner": "utility.calculate", "params": ADD}
        for _ in range(3):
            deep = {"inner": "probe.composed", "params": deep}
        workshop.play(asking(call("probe.composed", **deep)))
        run = workshop.work()
        assert [row.tool for row in calls(run)] == ["probe.composed"] * 4
        assert "LIMIT_EXCEEDED" in str(calls(run)[-1].result)

    def test_is_refused_if_its_caller_has_already_made_100(self, workshop: Workshop) -> None:
        workshop.play(asking(composed("utility.calculate", ADD, times=102)))
        parent, *inner = calls(workshop.work())
        assert len(inner) == 100
        assert [one["success"] for one in data_of(parent)] == [True] * 100 + [False] * 2

    def test_is_refused_inside_a_transaction(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.composedWrite", inner="utility.calculate", params=ADD)))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        (row,) = calls(workshop.drive(run))
        assert (row.status, error_code(row)) == (CallStatus.FAILED, "OPERATION_NOT_ALLOWED")

    def test_does_not_start_once_the_run_is_cancelled(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        recorder.hold("before")
        inner = {"inner": "probe.gate", "params": {"name": "before"}}
        workshop.play(asking(call("probe.composed", **inner, times=2)))
        run = workshop.submit()
        with workshop.driving(run):
            recorder.await_arrival("before")
            workshop.cancel(run)
            recorder.release("before")
        parent, first = calls(run)
        assert first.status == CallStatus.SUCCEEDED
        assert "cancelled or stopped" in data_of(parent)[1]["summary"]

    def test_does_not_start_once_the_run_is_given_back(self, workshop: Workshop) -> None:
        workshop.play(asking(composed("utility.calculate", ADD)))
        run = workshop.submit()
        lease.give_back(die_while_executing(run))
        (parent,) = calls(run)
        refused = prepare_call(load_context(run.pk), parent).context.call_tool(
            "utility.calculate", ADD
        )
        assert refused.error is not None
        assert (refused.error.code, calls(run)) == ("WORKER_LOST", [parent])

    def test_is_repeated_by_its_parent_after_the_worker_is_lost(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(composed("utility.calculate", ADD)))
        run = workshop.submit()
        die_while_executing(run)
        parent = calls(run)[0]
        ToolCall.objects.create(
            organization=workshop.organization,
            run=run,
            parent_call=parent,
            pass_number=1,
            index=1,
            provider_call_id="of-1",
            tool="utility.calculate",
            version="1.0",
            level="read",
            params=ADD,
            status=CallStatus.EXECUTING,
            exec_epoch=parent.exec_epoch,
            attempts=1,
            deadline_at=parent.deadline_at,
        )
        run = workshop.drive(lose_worker(run))
        assert run.status == RunStatus.SUCCEEDED
        parent, lost, repeated = calls(run)
        assert (lost.status, error_code(lost), lost.attempts) == (
            CallStatus.FAILED,
            "WORKER_LOST",
            1,
        )
        assert (parent.attempts, repeated.status) == (2, CallStatus.SUCCEEDED)

    def test_that_outlasts_its_caller_is_abandoned_with_it(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        recorder.hold("slow")
        inner = {"inner": "probe.gate", "params": {"name": "slow"}, "times": 2}
        workshop.play(asking(call("probe.composedBriefly", **inner)))
        run = workshop.work()
        recorder.release("slow")
        parent, child = calls(run)
        assert (error_code(parent), error_code(child)) == ("TIMEOUT", "TIMEOUT")
        assert run.status == RunStatus.SUCCEEDED
        assert recorder.arrivals["slow"] == 1

    def test_is_judged_by_current_permissions(self, workshop: Workshop, recorder: Recorder) -> None:
        recorder.hold("first")
        workshop.play(
            asking(call("probe.composed", inner="probe.gate", params={"name": "first"}, times=2))
        )
        run = workshop.submit()
        with workshop.driving(run):
            recorder.await_arrival("first")
            stops.stop_tool(workshop.operator, "probe.gate")
            recorder.release("first")
        parent, _ = calls(run)
        assert data_of(parent)[1]["error"]["code"] == "TOOL_DISABLED"

    def test_is_not_shown_to_the_model(self, workshop: Workshop, model: ModelServer) -> None:
        params = {"inner": "utility.calculate", "params": ADD}
        model.script(
            Response(calls=(Call("probe.composed", params, id="c1"),)), Response(text="Done.")
        )
        run = workshop.work()
        assert len(calls(run)) == 2
        answered_ids = [
            one["tool_call_id"] for one in model.requests[-1]["messages"] if one["role"] == "tool"
        ]
        assert answered_ids == ["c1"]


def recipe(record: Record, **more: Any) -> dict[str, Any]:
    return call("probe.recipe", record_id=record.pk, to="New", **more)


class TestARecipe:
    @feature(
        "Tool contract",
        "Recipe: a list of steps, each judged, approved and recorded",
        "agents/runs/engine/suspension.py",
    )
    def test_stops_at_the_card_of_its_step_and_continues_once_approved(
        self, workshop: Workshop
    ) -> None:
        record = workshop.record(name="Acme")
        workshop.play(asking(recipe(record)), answer="Done.")
        run = workshop.work()
        parent, look, rename = calls(run)
        assert (run.status, run.lease_owner) == (RunStatus.WAITING, "")
        assert (parent.status, look.status) == (CallStatus.SUSPENDED, CallStatus.SUCCEEDED)
        assert (rename.status, rename.params["to"]) == (
            CallStatus.AWAITING_APPROVAL,
            "New (was Acme)",
        )
        assert {look.parent_call_id, rename.parent_call_id} == {parent.pk}
        card = workshop.card(run)
        assert card.preview["targets"][0]["after"] == {"name": "New (was Acme)"}
        workshop.approve(card)
        run = workshop.drive(run)
        assert run.status == RunStatus.SUCCEEDED
        assert statuses(run) == [CallStatus.SUCCEEDED] * 4
        assert data_of(calls(run)[0]) == {"name": "New (was Acme)"}
        record.refresh_from_db()
        assert record.name == "New (was Acme)"

    def test_ends_at_a_denied_step_and_names_it(self, workshop: Workshop) -> None:
        record = workshop.record(name="Acme")
        workshop.play(asking(recipe(record)))
        run = workshop.work()
        workshop.deny(workshop.card(run), "no")
        run = workshop.drive(run)
        parent, _, rename = calls(run)
        assert (parent.status, rename.status) == (CallStatus.FAILED, CallStatus.DENIED)
        assert "Step 2 of 3, probe.rename, did not succeed (denied)" in parent.content
        assert run.status == RunStatus.SUCCEEDED
        record.refresh_from_db()
        assert record.name == "Acme"

    def test_requires_a_grant_for_every_step(self, workshop: Workshop) -> None:
        Grant.objects.filter(employee=workshop.employee, tool="probe.rename").delete()
        record = workshop.record()
        workshop.play(asking(recipe(record)))
        parent, _, rename = calls(workshop.work())
        assert (parent.status, rename.status, error_code(rename)) == (
            CallStatus.FAILED,
            CallStatus.REJECTED,
            "NOT_PERMITTED",
        )

    @pytest.mark.parametrize("forbid", ["stop", "revoke"])
    def test_that_is_forbidden_while_its_step_waits_does_not_take_another_step(
        self, workshop: Workshop, forbid: str
    ) -> None:
        record = workshop.record(name="Acme")
        workshop.play(asking(recipe(record)), answer="Done.")
        run = workshop.work()
        if forbid == "stop":
            stops.stop_tool(workshop.operator, "probe.recipe")
        else:
            Grant.objects.filter(employee=workshop.employee, tool="probe.recipe").delete()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        assert (run.status, statuses(run)) == (
            RunStatus.SUCCEEDED,
            [CallStatus.FAILED, CallStatus.SUCCEEDED, CallStatus.SUCCEEDED],
        )
        assert error_code(calls(run)[0]) == (
            "TOOL_DISABLED" if forbid == "stop" else "NOT_PERMITTED"
        )

    def test_that_raises_an_exception_hides_its_text(self, workshop: Workshop) -> None:
        workshop.play(asking(recipe(workshop.record(), is_broken=True)))
        parent, *_ = calls(workshop.work())
        assert (parent.status, error_code(parent)) == (CallStatus.FAILED, "TOOL_EXECUTION_FAILED")
        assert "hunter2" not in parent.content

    def test_that_contains_itself_fails(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.endless")))
        run = workshop.work()
        assert run.status == RunStatus.SUCCEEDED
        assert statuses(run) == [CallStatus.FAILED] * 4
        assert error_code(calls(run)[-1]) == "LIMIT_EXCEEDED"

    def test_that_contains_itself_fails_even_if_a_newer_version_is_not_a_recipe(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        toolbox.register(Echo(name="probe.endless", version="2.0"))
        Grant.objects.filter(tool="probe.endless").update(version="1.0")
        workshop.play(asking(call("probe.endless")))
        assert error_code(calls(workshop.work())[-1]) == "LIMIT_EXCEEDED"

    def test_fails_if_its_step_cannot_be_built(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.spoilt")))
        run = workshop.work()
        assert (run.status, run.crash_count) == (RunStatus.SUCCEEDED, 0)
        assert error_code(calls(run)[0]) == "TOOL_EXECUTION_FAILED"

    def test_makes_a_call_by_the_model_that_repeats_its_step_a_duplicate(
        self, workshop: Workshop
    ) -> None:
        record = workshop.record(name="Acme")
        same_rename = call("probe.rename", record_id=record.pk, to="New (was Acme)")
        workshop.play(asking(recipe(record)), asking(same_rename))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        assert statuses(run)[-1] == CallStatus.DUPLICATE

    def test_survives_a_lost_worker_at_every_step(self, workshop: Workshop) -> None:
        record = workshop.record(name="Acme")
        workshop.play(asking(recipe(record)))
        run = workshop.submit()
        die_while_executing(run)
        run = workshop.drive(lose_worker(run))
        workshop.approve(workshop.card(run))
        Run.objects.filter(pk=run.pk).update(hinted_at=None)
        run = workshop.drive(run)
        assert run.status == RunStatus.SUCCEEDED
        assert [row.attempts for row in calls(run)] == [2, 1, 1, 1]

    def test_is_cancelled_with_its_run(self, workshop: Workshop) -> None:
        workshop.play(asking(recipe(workshop.record())))
        run = workshop.work()
        workshop.cancel(run)
        assert again(run).status == RunStatus.CANCELLED
        assert statuses(run) == [CallStatus.CANCELLED, CallStatus.SUCCEEDED, CallStatus.CANCELLED]

    def test_runs_in_parallel_with_other_calls_of_its_pass(self, workshop: Workshop) -> None:
        workshop.play(asking(recipe(workshop.record(name="A")), recipe(workshop.record(name="B"))))
        run = workshop.work()
        first, second = workshop.cards(run)
        workshop.approve(second)
        run = workshop.drive(run)
        assert run.status == RunStatus.WAITING
        workshop.approve(first)
        assert workshop.drive(run).status == RunStatus.SUCCEEDED
        assert set(Record.objects.values_list("name", flat=True)) == {"New (was A)", "New (was B)"}


class TestSessionData:
    def test_is_available_to_later_calls_of_the_run(self, workshop: Workshop) -> None:
        workshop.play(
            asking(call("probe.remember", key="seen", value=1)),
            asking(call("probe.remember", key="seen", value=2)),
        )
        run = workshop.work()
        assert [data_of(row) for row in calls(run)] == [{}, {"seen": [1]}]
        assert run.session == {"seen": [1, 2]}

    def test_stays_until_it_is_changed(self, workshop: Workshop) -> None:
        workshop.play(*[asking(call("probe.remember", key=key, value=1)) for key in ("a", "b")])
        assert workshop.work().session == {"a": [1], "b": [1]}

    @feature(
        "Tool contract",
        "Session data, shared by the tools of one run",
        "agents/runs/engine/context.py",
    )
    def test_of_parallel_calls_is_merged_by_key(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        recorder.hold("both")
        workshop.play(
            asking(*[call("probe.remember", key=key, value=1, gate="both") for key in ("a", "b")]),
        )
        run = workshop.submit()
        with workshop.driving(run):
            recorder.await_arrival("both", 2)
            recorder.release("both")
        assert again(run).session == {"a": [1], "b": [1]}

    def test_can_be_deleted(self, workshop: Workshop) -> None:
        workshop.play(
            asking(call("probe.remember", key="a", value=1)),
            asking(call("probe.remember", key="a", value="forget")),
        )
        assert workshop.work().session == {}

    @pytest.mark.parametrize("value", ["a set", "x" * 70_000], ids=["not JSON", "too large"])
    def test_that_cannot_be_stored_is_logged_and_discarded(
        self, workshop: Workshop, caplog: pytest.LogCaptureFixture, value: str
    ) -> None:
        workshop.play(asking(call("probe.remember", key="a", value=value)))
        run = workshop.work()
        assert (run.status, run.session) == (RunStatus.SUCCEEDED, {})
        assert "session data" in caplog.text

    def test_is_stored_up_to_the_limit(self, workshop: Workshop) -> None:
        longest = "x" * (LARGEST_SESSION - len(storable_json({"a": [""]})))
        workshop.play(asking(call("probe.remember", key="a", value=longest)))
        assert workshop.work().session == {"a": [longest]}

    def test_belongs_only_to_its_run(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.remember", key="a", value=1)))
        workshop.work()
        assert [data_of(row) for row in calls(workshop.work())] == [{}]
