"""After its last pass, a run requests one more answer without calls; every run ends with an
answer."""

from dataclasses import replace

import pytest

from agents.runs import actions
from agents.runs.models import CallStatus, ExitReason, RunStatus
from tests.model_server import Call, ModelServer, Response, failing
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    error_code,
    event_types,
    passes,
    payloads,
    statuses,
)

pytestmark = pytest.mark.django_db(transaction=True)


def sleep(tag: object) -> Call:
    return Call("probe.sleep", {"ms": 0, "tag": str(tag)})


class TestTheMaximumNumberOfPasses:
    def test_ends_the_run_with_a_recorded_closing_pass(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.allow_passes(2)
        model.script(
            Response(calls=(sleep(1),)),
            Response(calls=(sleep(2),)),
            Response(text="That is what I have."),
        )
        run = workshop.work()
        assert (run.status, run.exit_reason) == (RunStatus.SUCCEEDED, ExitReason.MAX_PASSES)
        assert run.answer == "That is what I have."
        assert [each.closing for each in passes(run)] == [False, False, True]
        assert [line["pass_number"] for line in payloads(run, "pass_started")] == [1, 2, 3]
        (finished,) = payloads(run, "run_finished")
        assert (finished["status"], finished["exit_reason"]) == ("succeeded", "max_passes")
        assert (finished["answer"], finished["pass_number"]) == ("That is what I have.", 3)
        assert (finished["input_tokens"], finished["output_tokens"]) == (
            run.input_tokens,
            run.output_tokens,
        )

    def test_requests_the_closing_pass_without_tools(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.allow_passes(1)
        model.script(Response(calls=(sleep(1),)), Response(text="Done."))
        workshop.work()
        assert "tools" in model.requests[0]
        assert "tools" not in model.requests[1]
        assert "Do not call any more tools" in model.requests[1]["messages"][-1]["content"]

    def test_is_not_the_exit_reason_if_the_last_pass_has_an_answer(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.allow_passes(2)
        model.script(Response(calls=(sleep(1),)), Response(text="Done in time."))
        run = workshop.work()
        assert (run.exit_reason, run.pass_number) == (ExitReason.FINAL_ANSWER, 2)


class TestTheClosingPass:
    def test_rejects_calls_that_the_model_requests_nevertheless(
        self, workshop: Workshop, model: ModelServer, recorder: Recorder
    ) -> None:
        workshop.allow_passes(1)
        late_calls = (sleep(2), Call("probe.effect", {"name": "a"}), Call("no.such"), sleep(1))
        model.script(Response(calls=(sleep(1),)), Response(text="And more!", calls=late_calls))
        run = workshop.work()
        assert (run.exit_reason, run.answer) == (ExitReason.MAX_PASSES, "And more!")
        assert statuses(run) == [CallStatus.SUCCEEDED] + [CallStatus.REJECTED] * 4
        assert {error_code(row) for row in calls(run)[1:]} == {"OPERATION_NOT_ALLOWED"}
        assert event_types(run).count("tool_rejected") == 4
        assert not workshop.cards(run)
        assert not recorder.effects

    def test_without_text_is_replaced_by_a_summary_of_the_results(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.allow_passes(1)
        model.script(Response(calls=(sleep(1),)), Response(calls=(sleep(2),)))
        run = workshop.work()
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.MAX_PASSES)
        assert payloads(run, "run_finished")[0]["status"] == "failed"
        assert "The employee gave no answer: out of passes." in run.answer
        assert "- Slept 0 ms" in run.answer

    def test_that_is_empty_does_not_prevent_continuing_the_run(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.allow_passes(1)
        model.script(
            Response(calls=(sleep(1),)),
            Response(calls=(sleep(2),)),
            Response(text="Done after all."),
        )
        run = workshop.work()
        actions.continue_run(workshop.operator, run.pk, 2)
        run = workshop.drive(run)
        assert (run.status, run.exit_reason, run.answer) == (
            RunStatus.SUCCEEDED,
            ExitReason.FINAL_ANSWER,
            "Done after all.",
        )

    def test_is_replaced_by_a_summary_of_the_results_if_its_provider_fails(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.allow_passes(1)
        model.script(Response(calls=(sleep(1),)), failing(400))
        run = workshop.work()
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.MAX_PASSES)
        assert "- Slept 0 ms" in run.answer
        assert "refused" in run.problem

    def test_ends_the_run_in_an_error_if_its_provider_fails_while_a_message_is_unread(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.allow_passes(1)
        model.enqueue(Response(calls=(sleep(1),)), replace(failing(400), hold="start"))
        run = workshop.submit()
        with workshop.driving(run):
            model.wait_for_held()
            workshop.say(run, "And the phone number, please.")
            model.release()
        run = again(run)
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR)

    def test_waits_for_the_cards_of_the_last_pass(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.allow_passes(1)
        workshop.play(asking(call("probe.effect", name="a")), answer="Did it.")
        run = workshop.work()
        assert run.status == RunStatus.WAITING
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        assert (run.exit_reason, run.answer) == (ExitReason.MAX_PASSES, "Did it.")

    def test_ends_a_run_that_only_repeats_itself(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(
            Response(calls=(sleep(1),)), Response(calls=(sleep(1),)), Response(calls=(sleep(1),))
        )
        run = workshop.work()
        assert (run.status, run.exit_reason) == (
            RunStatus.SUCCEEDED,
            ExitReason.ALL_TOOLS_DUPLICATE,
        )
        assert statuses(run) == [CallStatus.SUCCEEDED, CallStatus.DUPLICATE, CallStatus.REJECTED]
        assert "repeated earlier calls" in run.answer
        assert [each.closing for each in passes(run)] == [False, False, True]


class TestRepeatedDenials:
    def test_in_three_consecutive_passes_end_the_run(self, workshop: Workshop) -> None:
        workshop.allow_passes(20)
        workshop.play(*[asking(call("probe.effect", name=str(number))) for number in range(5)])
        run = workshop.work()
        for _ in range(3):
            assert run.status == RunStatus.WAITING
            workshop.deny(workshop.card(run))
            run = workshop.drive(run)
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.DENIED_REPEATEDLY)
        assert "Nothing was done" in run.answer

    def test_are_counted_by_tool_whatever_else_the_passes_contain(self, workshop: Workshop) -> None:
        workshop.allow_passes(20)
        other = [call("utility.calculate", operation="add", a=number, b=1) for number in range(5)]
        workshop.play(
            *[asking(call("probe.effect", name=str(number)), other[number]) for number in range(5)]
        )
        run = workshop.work()
        for _ in range(3):
            workshop.deny(workshop.card(run))
            run = workshop.drive(run)
        assert run.exit_reason == ExitReason.DENIED_REPEATEDLY

    def test_are_counted_from_zero_after_an_approval(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.allow_passes(20)
        workshop.play(*[asking(call("probe.effect", name=str(number))) for number in range(4)])
        run = workshop.work()
        for decide in (workshop.deny, workshop.approve, workshop.deny, workshop.deny):
            decide(workshop.card(run))
            run = workshop.drive(run)
        assert run.exit_reason == ExitReason.FINAL_ANSWER

    def test_do_not_count_in_a_pass_with_an_approval(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.allow_passes(20)
        pairs = [
            (call("probe.effect", name=f"a{n}"), call("probe.effect", name=f"b{n}"))
            for n in range(3)
        ]
        workshop.play(*[asking(*pair) for pair in pairs])
        run = workshop.work()
        for _ in range(3):
            one, two = workshop.cards(run)
            workshop.deny(one)
            workshop.approve(two)
            run = workshop.drive(run)
        assert run.exit_reason == ExitReason.FINAL_ANSWER

    def test_do_not_end_the_run_after_a_new_message(self, workshop: Workshop) -> None:
        workshop.allow_passes(20)
        workshop.play(
            *[asking(call("probe.effect", name=str(number))) for number in range(3)],
            task="^Do the work",
        )
        run = workshop.work()
        for _ in range(3):
            workshop.say(run, "Try something else.")
            workshop.deny(workshop.card(run))
            run = workshop.drive(run)
        assert run.exit_reason == ExitReason.FINAL_ANSWER
