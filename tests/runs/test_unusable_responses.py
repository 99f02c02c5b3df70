"""An unusable response is recorded as usage, is retried once, and never becomes the answer of a run
that succeeds."""

from __future__ import annotations

import pytest

from agents.insight.counting import count_batch, count_if_due
from agents.insight.models import TotalUse
from agents.runs import budgets
from agents.runs.engine.lease import acquire
from agents.runs.engine.loop import start_driving
from agents.runs.engine.passes import ask_model, record_pass
from agents.runs.models import Event, ExitReason, Run, RunStatus
from tests.features import feature
from tests.model_server import Call, ModelServer, Response, failing
from tests.workshop import Workshop, again, calls, eventually, make_due, passes, payloads

pytestmark = pytest.mark.django_db(transaction=True)

AS_TEXT = Response(
    text='<tool_call>\n{"name": "probe__sleep", "arguments": {"ms": 0}}\n</tool_call>'
)
SLEEP = Response(calls=(Call("probe.sleep", {"ms": 0}),))


def work_twice(workshop: Workshop) -> Run:
    run = workshop.work()
    assert run.status == RunStatus.QUEUED, run.problem
    return workshop.drive(make_due(run))


@feature(
    "Models",
    "Tokens of unusable responses count",
    "agents/runs/engine/missing_responses.py",
    whole_file=True,
)
@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (AS_TEXT, "call_as_text", "--tool-call-parser"),
        (Response(text="Let me look.", finish="tool_calls"), "missing_call", "--tool-call-parser"),
        (Response(), "empty_answer", "another model"),
        (Response(text="<think>Hm, hm"), "empty_answer", "another model"),
    ],
    ids=["call as text", "missing call", "empty", "only thought"],
)
def test_a_second_unusable_response_fails_the_run(
    workshop: Workshop, model: ModelServer, answer: Response, code: str, words: str
) -> None:
    model.script(answer)
    run = work_twice(workshop)
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR)
    assert run.problem.startswith(code)
    assert words in run.problem
    assert len(model.requests) == 2
    assert not passes(run)
    assert not [event for event in Event.objects.filter(run=run) if event.type.startswith("tool_")]
    assert "The employee gave no answer" in run.answer
    assert "Hm" not in run.answer


def test_only_the_second_request_has_a_hint(workshop: Workshop, model: ModelServer) -> None:
    model.enqueue(AS_TEXT, SLEEP, Response(text="Done."))
    run = work_twice(workshop)
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Done.")
    first, second, third = (request["messages"][-1]["content"] for request in model.requests)
    assert second.startswith(first)
    assert "tool call written as text" in second.removeprefix(first)
    assert "written as text" not in third
    assert [message["role"] for message in model.requests[1]["messages"]] == ["system", "user"]


def test_the_hint_follows_the_results_as_a_separate_message(
    workshop: Workshop, model: ModelServer
) -> None:
    model.enqueue(SLEEP, Response(), Response(text="Done."))
    run = work_twice(workshop)
    assert run.answer == "Done."
    assert [message["role"] for message in model.requests[2]["messages"][-2:]] == ["tool", "user"]
    assert "empty" in model.requests[2]["messages"][-1]["content"]


def test_retries_for_other_reasons_do_not_use_up_the_second_request(
    workshop: Workshop, model: ModelServer
) -> None:
    model.enqueue(
        failing(429, retry_after="1"),
        AS_TEXT,
        failing(429, retry_after="1"),
        Response(text="Done."),
    )
    run = workshop.work()
    for _ in range(3):
        assert run.status == RunStatus.QUEUED, run.problem
        run = workshop.drive(make_due(run))
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Done.")


def test_each_pass_has_its_own_second_request(workshop: Workshop, model: ModelServer) -> None:
    model.enqueue(AS_TEXT, SLEEP, AS_TEXT, Response(text="Done."))
    run = work_twice(workshop)
    assert run.status == RunStatus.QUEUED, run.problem
    run = workshop.drive(make_due(run))
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Done.")


def test_an_empty_response_after_work_is_replaced_by_a_summary_of_the_results(
    workshop: Workshop, model: ModelServer
) -> None:
    model.script(SLEEP, Response())
    run = work_twice(workshop)
    assert (run.status, run.exit_reason) == (RunStatus.SUCCEEDED, ExitReason.FINAL_ANSWER)
    assert run.answer.startswith("The employee gave no answer.")
    assert "- Slept 0 ms" in run.answer


def test_a_closing_response_that_is_a_call_is_replaced_by_the_results(
    workshop: Workshop, model: ModelServer
) -> None:
    workshop.allow_passes(1)
    model.script(SLEEP, AS_TEXT)
    run = workshop.work()
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.MAX_PASSES)
    assert "<tool_call>" not in run.answer
    assert "- Slept 0 ms" in run.answer


def test_text_that_calls_a_tool_that_was_not_offered_is_kept_as_the_answer(
    workshop: Workshop, model: ModelServer
) -> None:
    text = '<tool_call>{"name": "weather__find", "arguments": {}}</tool_call>'
    model.script(Response(text=text))
    run = workshop.work()
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, text)


class TestInterruptedText:
    CUT = Response(text="The three largest are Acme and", fault="cut")

    def test_is_kept_and_requested_once_more(self, workshop: Workshop, model: ModelServer) -> None:
        model.enqueue(self.CUT, Response(text="Acme, Initech and Hooli."))
        run = work_twice(workshop)
        assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Acme, Initech and Hooli.")
        (line,) = payloads(run, "answer_unusable")
        assert line["text"].startswith("The three")
        assert line["usage_estimated"]
        assert run.estimated_tokens == line["input_tokens"] + line["output_tokens"] > 100
        assert run.input_tokens == line["input_tokens"] + 100

    def test_is_the_answer_of_a_run_that_fails_after_the_second_attempt(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(self.CUT)
        run = work_twice(workshop)
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.ANSWER_CUT)
        assert run.answer.startswith("The three")
        assert run.problem.startswith("The answer is incomplete.")
        assert len(model.requests) == 2

    def test_of_an_earlier_attempt_is_kept_if_later_attempts_have_no_text(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.enqueue(self.CUT, failing(400))
        run = work_twice(workshop)
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.ANSWER_CUT)
        assert run.answer.startswith("The three")

    def test_does_not_keep_the_run_from_failing_at_its_deadline(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.enqueue(self.CUT)
        run = workshop.work()
        Run.objects.filter(pk=run.pk).update(deadline_at=run.created_at)
        run = workshop.drive(make_due(run))
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.DEADLINE)

    def test_of_a_closing_response_is_kept(self, workshop: Workshop, model: ModelServer) -> None:
        workshop.allow_passes(1)
        model.script(SLEEP, self.CUT)
        run = workshop.work()
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.ANSWER_CUT)
        assert run.answer.startswith("The three")

    def test_does_not_start_calls_that_came_before_the_interruption(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(
            Response(
                text="I look.", calls=(Call("probe.sleep", {"ms": 0}),), finish=None, done=False
            )
        )
        run = work_twice(workshop)
        assert run.status == RunStatus.FAILED
        assert not calls(run)

    def test_of_a_cancelled_run_is_recorded_as_usage(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.enqueue(Response(text="All of it is here", hold="middle"))
        run = workshop.submit()
        with workshop.driving(run):
            model.wait_for_held()
            workshop.cancel(run)
        run = again(run)
        assert run.status == RunStatus.CANCELLED
        assert [line["code"] for line in payloads(run, "answer_unusable")] == ["stopped"]
        assert run.estimated_tokens > 100


def test_a_complete_response_to_a_run_cancelled_meanwhile_is_recorded_as_usage(
    workshop: Workshop, model: ModelServer
) -> None:
    model.enqueue(Response(text="Done."))
    run = workshop.submit()
    lease = acquire(run.pk)
    assert lease is not None
    step = start_driving(lease)
    answer = ask_model(lease, step)
    workshop.cancel(run)
    record_pass(lease, step, answer)
    run = again(run)
    (line,) = payloads(run, "answer_unusable")
    assert (line["code"], line["input_tokens"], line["output_tokens"]) == ("stopped", 100, 10)
    assert (run.input_tokens, run.output_tokens, run.unusable_ms) == (100, 10, answer.duration_ms)


class TestAdaptedRequest:
    REFUSED = Response(
        status=400,
        body='{"error": {"message": "Unsupported value: \'temperature\' does not support 0.2 with this model.", '
        '"param": "temperature", "code": "unsupported_value"}}',
    )

    def test_is_reported_once_on_the_run_that_adapted_it_and_on_later_runs(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.employee.temperature = 0.2
        workshop.employee.save()
        model.enqueue(self.REFUSED, SLEEP, Response(text="Done."), SLEEP, Response(text="Done."))
        first, second = workshop.work(), workshop.work()
        assert [run.status for run in (first, second)] == [RunStatus.SUCCEEDED] * 2
        for run in (first, second):
            (line,) = payloads(run, "request_adapted")
            assert line == {"pass_number": 1, "changes": ["without temperature"]}
        assert len(model.requests) == 5

    def test_of_one_model_does_not_affect_other_models(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.employee.temperature = 0.2
        workshop.employee.save()
        model.enqueue(self.REFUSED)
        workshop.work()
        workshop.employee.model = "another"
        workshop.employee.save()
        run = workshop.work()
        assert [request.get("temperature") for request in model.requests] == [0.2, None, 0.2]
        assert not payloads(run, "request_adapted")

    def test_has_at_most_four_changes(self, workshop: Workshop, model: ModelServer) -> None:
        names = ["top_p", "top_k_", "min_p", "seed_x", "logit_bias"]
        workshop.employee.extra_body = dict.fromkeys(names, 1)
        workshop.employee.save()
        model.enqueue(
            *(failing(400, f"Unsupported parameter: '{name}' is not supported") for name in names)
        )
        run = workshop.work()
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR)
        assert len(model.requests) == 5


class TestUsageOfUnusableResponses:
    def test_counts_for_the_run_the_budget_and_the_figures(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.employee.provider.prices = {"*": {"input": "1000", "output": "1000"}}
        workshop.employee.provider.save()
        model.script(AS_TEXT)
        run = work_twice(workshop)
        assert (run.input_tokens, run.output_tokens, run.cost_micros) == (200, 20, 220_000)
        lines = payloads(run, "answer_unusable")
        assert [(line["code"], line["input_tokens"], line["cost"]) for line in lines] == [
            ("call_as_text", 100, 0.11)
        ] * 2
        count_if_due()
        eventually(lambda: not count_batch())
        (total,) = TotalUse.objects.all()
        assert (total.input_tokens, total.output_tokens, total.cost_micros, total.passes) == (
            200,
            20,
            220_000,
            0,
        )
        assert (
            total.duration_ms == run.unusable_ms == sum(line["duration_ms"] for line in lines) > 0
        )

    def test_ends_the_run_whose_budget_it_used_up(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.employee.run_tokens = 100
        workshop.employee.save()
        model.script(AS_TEXT)
        run = work_twice(workshop)
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.BUDGET_EXHAUSTED)
        assert len(model.requests) == 1
        run = Run.objects.select_related("employee", "organization").get(pk=run.pk)
        assert budgets.list_run_budgets(run)[0].is_exhausted
