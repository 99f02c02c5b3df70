"""Messages to a run: the model reads them before its next pass, none is lost, and a message
resumes an ended run."""

from typing import Any

import pytest

from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.runs import actions
from agents.runs.models import ExitReason, Run, RunStatus
from tests.model_server import Call, ModelServer, Response
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    all_at_once,
    asking,
    build_workshop,
    call,
    calls,
    event_types,
    passes,
    payloads,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("conversation_cache_is_checked"),
]

EFFECT = Response(text="I ask.", calls=(Call("probe.effect", {"name": "a"}, id="c1"),))
SLEEP = Response(calls=(Call("probe.sleep", {"ms": 0}, id="c2"),))


def shape_of(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the role and the text of each message after the instructions."""
    return [(message["role"], message.get("content") or "") for message in request["messages"][1:]]


class TestAMessage:
    def test_sent_twelve_times_at_the_same_moment_is_added_once(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        run = workshop.submit("Begin.")
        all_at_once([lambda: actions.add_message(workshop.operator, run.pk, "Hurry.", "m-1")] * 12)
        assert list(run.messages.values_list("text", flat=True)) == ["Begin.", "Hurry."]
        assert event_types(run).count("message_added") == 1

    def test_waits_until_all_calls_are_decided_and_keeps_its_place(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(EFFECT, SLEEP, Response(text="Done."))
        run = workshop.work("Begin.")
        workshop.say(run, "Be quick.")
        assert again(run).status == RunStatus.WAITING
        assert len(model.requests) == 1
        workshop.deny(workshop.card(run), "no")
        run = workshop.drive(run)
        assert run.status == RunStatus.SUCCEEDED
        roles = [role for role, _ in shape_of(model.requests[1])]
        assert roles == ["user", "assistant", "tool", "user"]
        assert shape_of(model.requests[1])[-1] == ("user", "Be quick.")
        roles = [role for role, _ in shape_of(model.requests[2])]
        assert roles == ["user", "assistant", "tool", "user", "assistant", "tool"]
        assert [each.messages_upto for each in passes(run)] == [1, 2, 2]

    def test_during_the_models_response_is_read_before_the_run_ends(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(Response(text="Done.", hold="start"), Response(text="Done, and that too."))
        run = workshop.submit("Begin.")
        with workshop.driving(run):
            model.wait_for_held()
            workshop.say(run, "And that.")
            model.release()
        run = again(run)
        assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Done, and that too.")
        assert shape_of(model.requests[1]) == [
            ("user", "Begin."),
            ("assistant", "Done."),
            ("user", "And that."),
        ]

    def test_during_a_tool_call_is_read_in_the_next_pass(
        self, workshop: Workshop, model: ModelServer, recorder: Recorder
    ) -> None:
        recorder.hold("slow")
        model.script(
            Response(calls=(Call("probe.gate", {"name": "slow"}),)), Response(text="Done.")
        )
        run = workshop.submit()
        with workshop.driving(run):
            recorder.await_arrival("slow")
            workshop.say(run, "Hurry.")
            recorder.release("slow")
        assert shape_of(model.requests[1])[-1] == ("user", "Hurry.")

    def test_during_the_closing_pass_is_read_before_the_run_ends(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.allow_passes(1)
        model.script(SLEEP, Response(text="Closed.", hold="start"), Response(text="Heard."))
        run = workshop.submit()
        with workshop.driving(run):
            model.wait_for_held()
            workshop.say(run, "Wait!")
            model.release()
        run = again(run)
        assert (run.status, run.exit_reason) == (RunStatus.SUCCEEDED, ExitReason.MAX_PASSES)
        assert run.answer == "Heard."
        assert ("user", "Wait!") in shape_of(model.requests[-1])

    def test_publishes_an_event_with_its_text_and_its_sender(self, workshop: Workshop) -> None:
        run = workshop.submit()
        workshop.say(run, "  Hello.  ")
        assert payloads(run, "message_added") == [{"text": "Hello.", "by": "acme-operator"}]

    def test_to_a_queued_run_is_in_its_first_request(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        run = workshop.submit("Begin.")
        workshop.say(run, "More.")
        workshop.drive(run)
        assert shape_of(model.requests[0]) == [("user", "Begin."), ("user", "More.")]

    @pytest.mark.parametrize("text", ["", "  \n ", "x" * 20_001, "a\0b"])
    def test_that_is_empty_too_long_or_unstorable_is_refused(
        self, workshop: Workshop, text: str
    ) -> None:
        run = workshop.submit()
        with pytest.raises(Invalid) as refused:
            workshop.say(run, text)
        assert refused.value.extra["field"] == "text"
        assert again(run).message_count == 1

    def test_from_a_viewer_or_another_organization_is_refused(self, workshop: Workshop) -> None:
        run = workshop.submit()
        with pytest.raises(Forbidden):
            actions.add_message(workshop.members["viewer"], run.pk, "Hello.")
        with pytest.raises(NotFound):
            actions.add_message(build_workshop("other").admin, run.pk, "Hello.")
        assert again(run).message_count == 1


class TestAnEndedRun:
    def test_resumes_with_a_message_and_new_passes(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.allow_passes(2)
        model.script(SLEEP, Response(text="Done."), SLEEP, Response(text="Done again."))
        run = workshop.work()
        assert run.status == RunStatus.SUCCEEDED
        run = workshop.say(run, "Once more.")
        assert (run.status, run.exit_reason, run.finished_at) == (RunStatus.QUEUED, "", None)
        assert run.max_passes == 4
        run = workshop.drive(run)
        assert (run.status, run.answer, run.pass_number) == (RunStatus.SUCCEEDED, "Done again.", 4)
        resumed = event_types(run).index("run_finished") + 1
        assert event_types(run)[resumed : resumed + 3] == [
            "message_added",
            "run_resumed",
            "pass_started",
        ]

    def test_that_failed_resumes_with_its_counts_reset(self, workshop: Workshop) -> None:
        workshop.play_text("this is no script")
        run = workshop.work()
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR)
        assert run.problem
        Run.objects.filter(pk=run.pk).update(crash_count=5, patience_tries=3)
        run = workshop.say(run)
        assert (run.crash_count, run.patience_tries, run.patience_since, run.problem) == (
            0,
            0,
            None,
            "",
        )
        workshop.play(answer="Now it works.")
        assert workshop.drive(run).answer == "Now it works."


class TestContinuing:
    def test_adds_the_requested_number_of_passes(self, workshop: Workshop) -> None:
        workshop.allow_passes(1)
        workshop.play(
            *[asking(call("probe.sleep", ms=0, tag=str(number))) for number in range(9)],
            task="^Do the work",
        )
        run = workshop.work()
        assert (run.exit_reason, len(calls(run))) == (ExitReason.MAX_PASSES, 1)
        run = actions.continue_run(workshop.operator, run.pk, 3)
        assert (run.status, run.max_passes) == (RunStatus.QUEUED, run.pass_number + 3)
        run = workshop.drive(run)
        assert (run.exit_reason, len(calls(run))) == (ExitReason.MAX_PASSES, 4)

    def test_adds_the_employees_number_of_passes_by_default(self, workshop: Workshop) -> None:
        workshop.play()
        run = workshop.work()
        run = actions.continue_run(workshop.operator, run.pk)
        assert run.max_passes == run.pass_number + workshop.employee.max_passes

    @pytest.mark.parametrize("number", [0, -1, 101])
    def test_refuses_a_number_beyond_the_limits(self, workshop: Workshop, number: int) -> None:
        workshop.play()
        run = workshop.work()
        with pytest.raises(Invalid) as refused:
            actions.continue_run(workshop.operator, run.pk, number)
        assert refused.value.extra["field"] == "max_passes"
        assert again(run).status == RunStatus.SUCCEEDED

    def test_is_refused_while_the_run_has_not_ended(self, workshop: Workshop) -> None:
        run = workshop.submit()
        with pytest.raises(Conflict):
            actions.continue_run(workshop.operator, run.pk)
        assert again(run).message_count == 1

    def test_is_refused_to_viewers_and_other_organizations(self, workshop: Workshop) -> None:
        workshop.play()
        run = workshop.work()
        with pytest.raises(Forbidden):
            actions.continue_run(workshop.members["viewer"], run.pk)
        with pytest.raises(NotFound):
            actions.continue_run(build_workshop("other").admin, run.pk)


def test_the_assistants_message_is_sent_back_verbatim(
    workshop: Workshop, model: ModelServer
) -> None:
    signed = {"reasoning_content": "hm", "signature": "sig=="}
    model.script(Response(text="I look.", calls=SLEEP.calls, extra=signed), Response(text="Done."))
    workshop.work()
    assistant = model.requests[1]["messages"][2]
    assert (assistant["reasoning_content"], assistant["signature"]) == ("hm", "sig==")
    assert assistant["tool_calls"][0]["id"] == "c2"
    assert model.requests[1]["messages"][3]["tool_call_id"] == "c2"
