"""A call that cannot run is rejected: the model reads the reason, and no card is created."""

from typing import Any

import pytest

from agents.runs.models import Approval, CallStatus, RunStatus
from tests.model_server import Call, ModelServer, Response
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    asking,
    build_workshop,
    call,
    calls,
    data_of,
    error_code,
    event_types,
    payloads,
    statuses,
)
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

SLEEP = call("probe.sleep", ms=0)


def raw(tool: str, arguments: str) -> dict[str, Any]:
    """Return a call with its arguments as raw text."""
    return {"tool": tool, "arguments": arguments}


class TestAnInvalidRequest:
    @pytest.mark.parametrize(
        ("asked", "code"),
        [
            (call("probe.nowhere"), "TOOL_NOT_FOUND"),
            (call("data.createRecord", name="New"), "NOT_PERMITTED"),
            (call("data__createRecord", name="New"), "NOT_PERMITTED"),
            (call("probe__effect", name="New"), "TOOL_NOT_FOUND"),
            (call("probe.effect"), "MISSING_PARAM"),
            (call("probe.sleep", ms="soon"), "INVALID_PARAMETER"),
            (call("data.searchRecords", limit=5000), "INVALID_PARAMETER"),
            (call("probe.sleep", ms=0, color="red"), "INVALID_PARAMETER"),
            (raw("probe.sleep", "{not json"), "INVALID_TOOL_ARGUMENTS"),
            (raw("probe.sleep", "[1, 2]"), "INVALID_TOOL_ARGUMENTS"),
            (raw("probe.sleep", '"text"'), "INVALID_TOOL_ARGUMENTS"),
            (raw("probe.sleep", "null"), "INVALID_TOOL_ARGUMENTS"),
            (raw("probe.sleep", '{"ms": 1, "ms": 2}'), "INVALID_TOOL_ARGUMENTS"),
            (raw("probe.sleep", '{"ms": NaN}'), "INVALID_TOOL_ARGUMENTS"),
            (raw("probe.sleep", '{"ms": 0, "tag": "\\u0000"}'), "INVALID_TOOL_ARGUMENTS"),
            (raw("probe.sleep", "[" * 100_000), "INVALID_TOOL_ARGUMENTS"),
            (call("probe.rename", record_id=999_999_999, to="x"), "NOT_FOUND"),
            (call("data.updateRecord", record_id="999999999", changes={"name": "x"}), "NOT_FOUND"),
        ],
    )
    def test_is_rejected_with_its_code_and_without_a_card(
        self, workshop: Workshop, asked: dict[str, Any], code: str
    ) -> None:
        workshop.play(asking(asked, SLEEP))
        run = workshop.work()
        bad, good = calls(run)
        assert (bad.status, error_code(bad), bad.attempts) == (CallStatus.REJECTED, code, 0)
        assert good.status == CallStatus.SUCCEEDED
        assert run.status == RunStatus.SUCCEEDED
        assert not Approval.objects.filter(run=run).exists()
        (line,) = payloads(run, "tool_rejected")
        name = asked["tool"].replace("data__", "data.")
        assert (line["call_id"], line["tool"], line["code"]) == (str(bad.pk), name, code)
        assert line["reason"]
        assert bad.content.startswith("TOOL ERROR: ")

    def test_is_stored_under_the_name_of_its_tool(self, workshop: Workshop) -> None:
        asked = ("data__createRecord", "data.createRecord@1.0", "probe.nowhere")
        workshop.play(asking(*(call(name, name="New") for name in asked)))
        run = workshop.work()
        assert [row.tool for row in calls(run)] == [
            "data.createRecord",
            "data.createRecord",
            "probe.nowhere",
        ]
        assert statuses(run) == [CallStatus.REJECTED] * 3

    def test_is_rejected_if_the_tool_is_disabled(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        workshop.play(asking(SLEEP))
        toolbox.disable("probe.sleep")
        run = workshop.work()
        assert error_code(calls(run)[0]) == "TOOL_DISABLED"

    def test_is_rejected_if_a_capability_is_missing(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        workshop.play(asking(SLEEP))
        sleep = toolbox.get_tool("probe.sleep")
        assert sleep is not None
        toolbox.unregister("probe.sleep")
        toolbox.register(type("Sleep", (type(sleep),), {"capabilities": frozenset({"patience"})})())
        assert error_code(calls(workshop.work())[0]) == "NOT_PERMITTED"
        workshop.employee.capabilities = ["patience"]
        workshop.employee.save()
        assert statuses(workshop.work()) == [CallStatus.SUCCEEDED]

    def test_is_rejected_if_the_mode_excludes_the_tool(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        workshop.play(asking(SLEEP))
        sleep = toolbox.get_tool("probe.sleep")
        assert sleep is not None
        toolbox.unregister("probe.sleep")
        toolbox.register(type(sleep)(), modes={"research"})
        assert error_code(calls(workshop.work())[0]) == "NOT_PERMITTED"
        run = workshop.work(mode="research")
        toolbox.unregister("probe.sleep")
        toolbox.register(_with_every_mode(sleep))
        assert statuses(run) == [CallStatus.SUCCEEDED]

    def test_is_rejected_if_the_grant_was_removed_while_the_model_responded(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(
            Response(calls=(Call("probe.sleep", {"ms": 0}),), hold="start"), Response(text="I see.")
        )
        run = workshop.submit()
        with workshop.driving(run):
            model.wait_for_held()
            workshop.employee.grants.filter(tool="probe.sleep").delete()
            model.release()
        assert error_code(calls(run)[0]) == "NOT_PERMITTED"

    def test_tells_the_model_which_param_is_missing(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(Response(calls=(Call("probe.effect", {}),)), Response(text="I see."))
        workshop.work()
        lines = model.requests[1]["messages"][-1]["content"].splitlines()
        assert lines[0] == "TOOL ERROR: MISSING_PARAMETER"
        assert "PARAMETER: name" in lines

    def test_for_another_organizations_record_is_rejected_as_not_found(
        self, workshop: Workshop
    ) -> None:
        mine = workshop.record()
        foreign = build_other_record()
        workshop.play(
            asking(call("probe.rename", record_id=foreign, to="x"), call("data.searchRecords"))
        )
        run = workshop.work()
        stolen, found = calls(run)
        assert (stolen.status, error_code(stolen)) == (CallStatus.REJECTED, "NOT_FOUND")
        assert [row["id"] for row in data_of(found)["records"]] == [str(mine.pk)]


def _with_every_mode(tool: Any) -> Any:
    copy = type(tool)()
    copy.modes = None
    return copy


def build_other_record() -> int:
    """Create a record in another organization, and return its id."""
    other = build_workshop("other")
    return int(other.record(name="Foreign").pk)


class TestTheLimitOfAPass:
    def test_on_cards_rejects_the_21st_card(self, workshop: Workshop) -> None:
        workshop.play(asking(*[call("probe.effect", name=str(number)) for number in range(23)]))
        run = workshop.work()
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL] * 20 + [CallStatus.REJECTED] * 3
        assert {error_code(row) for row in calls(run)[20:]} == {"LIMIT_EXCEEDED"}
        assert "Ask again after these" in calls(run)[20].content
        assert len(workshop.cards(run)) == 20

    def test_on_cards_ignores_duplicates_and_reads(self, workshop: Workshop) -> None:
        effects = [call("probe.effect", name=str(number)) for number in range(20)]
        workshop.play(asking(SLEEP, *effects, effects[0], effects[1]))
        run = workshop.work()
        assert len(workshop.cards(run)) == 20
        assert statuses(run)[-2:] == [CallStatus.DUPLICATE] * 2

    def test_on_calls_rejects_calls_beyond_a_hundred(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        asked = tuple(
            Call("utility.calculate", {"operation": "add", "a": number, "b": 1})
            for number in range(103)
        )
        model.script(Response(calls=asked), Response(text="Done."))
        run = workshop.work()
        assert run.status == RunStatus.SUCCEEDED
        assert statuses(run) == [CallStatus.SUCCEEDED] * 100 + [CallStatus.REJECTED] * 3
        assert {error_code(row) for row in calls(run)[100:]} == {"LIMIT_EXCEEDED"}

    def test_on_events_shortens_a_huge_result_in_its_event_but_not_in_the_database(
        self, workshop: Workshop
    ) -> None:
        workshop.play(asking(call("probe.big", characters=2_000_000)))
        run = workshop.work()
        assert len(data_of(calls(run)[0])["text"]) == 2_000_000
        (line,) = payloads(run, "tool_result")
        assert (line["result"]["truncated"], line["result"]["data"]) == (True, None)
        assert line["result"]["summary"] == "2000000 characters"


class TestAnIrregularModel:
    def test_that_repeats_the_id_of_a_call_gets_one_result_per_call(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(
            Response(
                calls=(Call("probe.sleep", {"ms": 0}, id="x"), Call("probe.clock", {}, id="x")),
                style="whole",
            ),
            Response(calls=(Call("probe.progress", {}, id="x"),)),
            Response(text="Done."),
        )
        run = workshop.work()
        assert run.status == RunStatus.SUCCEEDED, run.problem
        assert len({row.provider_call_id for row in calls(run)}) == 3

    def test_that_omits_the_id_of_a_call_gets_a_generated_id(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(
            Response(calls=(Call("probe.sleep", {"ms": 0}, id=""),), style="whole"),
            Response(text="Done."),
        )
        run = workshop.work()
        assert run.status == RunStatus.SUCCEEDED, run.problem
        assert calls(run)[0].provider_call_id

    def test_that_writes_malformed_arguments_gets_them_back_as_an_empty_object(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(
            Response(calls=(Call("probe.sleep", arguments="{oops"),)), Response(text="Done.")
        )
        run = workshop.work()
        assert (run.status, error_code(calls(run)[0])) == (
            RunStatus.SUCCEEDED,
            "INVALID_TOOL_ARGUMENTS",
        )
        assert model.requests[1]["messages"][2]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_a_call_by_an_employee_without_tools_is_rejected_and_the_model_answers(
    workshop: Workshop, model: ModelServer, recorder: Recorder
) -> None:
    workshop.employee.grants.all().delete()
    model.script(
        Response(calls=(Call("probe.effect", {"name": "a"}),)), Response(text="I have no tools.")
    )
    run = workshop.work()
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "I have no tools.")
    assert "tools" not in model.requests[0]
    assert event_types(run).count("tool_rejected") == 1
    assert not recorder.effects
