"""A transient failure of a provider is retried; any other failure ends the run with a reason."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.runs.models import Event, ExitReason, Run, RunStatus
from agents.worker.sweeper import sweep_once
from tests.model_server import Call, ModelServer, Response, error_200, failing, html, nonsense
from tests.workshop import Workshop, again, asking, call, event_types, make_due, passes, payloads

pytestmark = pytest.mark.django_db(transaction=True)


def is_delayed_by(run: Run, code: str) -> bool:
    """Return True if the run is queued for a later time, and its last delay event has this code."""
    run = again(run)
    delayed = Event.objects.filter(run=run, type="provider_delayed").latest("seq")
    is_later = run.next_wake_at is not None and run.next_wake_at > delayed.created_at
    return (
        run.status == RunStatus.QUEUED
        and is_later
        and run.lease_owner == ""
        and delayed.payload["code"] == code
    )


class TestATransientFailure:
    @pytest.mark.parametrize(
        ("answer", "code"),
        [
            (nonsense, "bad_answer"),
            (lambda: Response(text="Half an answer", fault="cut"), "cut_stream"),
            (lambda: failing(429, retry_after="1"), "rate_limited"),
            (lambda: failing(503, retry_after="1"), "server_error"),
            (lambda: error_200({"message": "overloaded", "code": 503}), "server_error"),
        ],
        ids=["nonsense", "cut", "429", "503", "error in 200"],
    )
    def test_requeues_the_run_for_later_without_recording_a_pass(
        self, workshop: Workshop, model: ModelServer, answer: Callable[[], Response], code: str
    ) -> None:
        model.script(answer())
        run = workshop.work()
        assert is_delayed_by(run, code), run.problem
        assert not passes(run)
        assert "assistant_message" not in event_types(run)
        assert "sk-secret-key" not in str(list(Event.objects.values_list("payload", flat=True)))

    def test_a_model_that_never_responds_is_abandoned_at_its_timeout(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.connect(model.url, timeout_s=1)
        model.script(Response(text="Never.", hold="start"))
        assert is_delayed_by(workshop.work(), "timeout")

    def test_a_model_that_only_keeps_the_connection_alive_is_abandoned_at_its_timeout(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        workshop.connect(model.url, timeout_s=1)
        model.script(Response(fault="drip"))
        assert is_delayed_by(workshop.work(), "timeout")

    def test_of_an_unreachable_address_is_retried(self, workshop: Workshop) -> None:
        workshop.connect("http://127.0.0.1:9/v1")
        assert is_delayed_by(workshop.work(), "unreachable")

    def test_is_over_once_the_provider_responds(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.enqueue(failing(429, retry_after="1"))
        run = workshop.work()
        assert run.problem
        assert workshop.drive(run).status == RunStatus.QUEUED, "it is not due yet"
        make_due(run)
        run = workshop.drive(run)
        assert (run.status, run.answer, run.problem) == (RunStatus.SUCCEEDED, "Done.", "")
        assert (run.patience_tries, run.patience_since) == (0, None)
        assert event_types(run).count("pass_started") == 1

    def test_is_followed_by_the_delay_that_the_server_requests(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(failing(429, retry_after="800"))
        run = workshop.work()
        assert run.next_wake_at is not None
        asked = payloads(run, "provider_delayed")[0]
        assert asked["tries"] == 1
        assert asked["retry_at"] == run.next_wake_at.isoformat()
        soonest = Now() + timedelta(seconds=70)
        assert Run.objects.filter(pk=run.pk, next_wake_at__gt=soonest).exists(), "800 s at a tenth"

    @pytest.mark.usefixtures("redis_url")
    def test_does_not_cause_a_hint_before_the_run_is_due(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(failing(429, retry_after="800"))
        run = workshop.work()
        assert sweep_once() == 0
        make_due(run)
        assert sweep_once() == 1
        assert again(run).hinted_at is not None

    def test_ends_the_run_after_six_attempts(self, workshop: Workshop, model: ModelServer) -> None:
        model.script(failing(429, "come back later", retry_after="1"))
        run = workshop.work()
        for tries in range(1, 6):
            assert (run.status, run.patience_tries) == (RunStatus.QUEUED, tries)
            make_due(run)
            run = workshop.drive(run)
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR)
        assert "come back later" in run.problem
        assert len(payloads(run, "provider_delayed")) == 5
        assert payloads(run, "run_finished")[0]["exit_reason"] == "provider_error"

    def test_ends_the_run_after_fifteen_minutes(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.script(failing(429, retry_after="1"))
        run = workshop.work()
        Run.objects.filter(pk=run.pk).update(patience_since=Now() - timedelta(hours=1))
        make_due(run)
        assert workshop.drive(run).exit_reason == ExitReason.PROVIDER_ERROR

    def test_is_counted_from_zero_after_each_recorded_pass(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        busy = failing(429, retry_after="1")
        model.enqueue(busy, Response(calls=(Call("probe.clock"),)), busy)
        run = workshop.work()
        make_due(run)
        run = workshop.drive(run)
        assert (run.status, run.patience_tries, run.pass_number) == (RunStatus.QUEUED, 1, 1)


class TestAPermanentFailure:
    @pytest.mark.parametrize(
        ("answer", "code"),
        [
            (html, "bad_answer"),
            (lambda: failing(401, "wrong key sk-secret-key"), "bad_key"),
            (lambda: failing(404, "no such model"), "not_found"),
            (lambda: failing(400, "bad request"), "refused"),
            (lambda: failing(400, "maximum context length is 10"), "context_too_long"),
        ],
        ids=["html", "401", "404", "400", "too long"],
    )
    def test_ends_the_run_immediately_with_its_reason(
        self, workshop: Workshop, model: ModelServer, answer: Callable[[], Response], code: str
    ) -> None:
        model.script(answer())
        run = workshop.work()
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR)
        assert run.problem.startswith(code)
        assert "sk-secret-key" not in run.problem
        assert len(model.requests) == 1
        assert "The employee gave no answer" in payloads(run, "run_finished")[0]["answer"]

    def test_an_invalid_script_ends_the_run(self, workshop: Workshop) -> None:
        workshop.play_text("scripts: [{task: '(', answer: x}]")
        run = workshop.work()
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR)
        assert run.problem.startswith("bad_script")

    def test_keeps_earlier_results(self, workshop: Workshop, model: ModelServer) -> None:
        model.enqueue(Response(calls=(Call("probe.sleep", {"ms": 0}),)), failing(400))
        run = workshop.work()
        assert run.status == RunStatus.FAILED
        assert "- Slept 0 ms" in run.answer


class TestAnUnstorableResponse:
    @pytest.mark.parametrize("text", ["a\0b", "half a pair: \ud83d"])
    def test_does_not_keep_the_run_from_succeeding_if_it_is_text(
        self, workshop: Workshop, model: ModelServer, text: str
    ) -> None:
        model.script(Response(text=text, extra={"note": text}))
        run = workshop.work()
        assert run.status == RunStatus.SUCCEEDED, run.problem
        assert run.answer

    @pytest.mark.parametrize(
        "asked",
        [
            Call("no\0such"),
            Call("x" * 500),
            Call("probe.sleep", {"ms": 0, "tag": "a\0b"}),
            Call("probe.sleep", {"ms": 0}, id="c\0d"),
            Call("probe.sleep", {"ms": 0}, id="c" * 500),
        ],
        ids=["name", "long name", "params", "id", "long id"],
    )
    def test_does_not_end_the_run_if_it_is_a_call(
        self, workshop: Workshop, model: ModelServer, asked: Call
    ) -> None:
        model.script(Response(calls=(asked,)), Response(text="Done."))
        run = workshop.work()
        assert run.status == RunStatus.SUCCEEDED, (run.status, run.problem)


def test_a_provider_failure_does_not_affect_decided_calls(
    workshop: Workshop, model: ModelServer
) -> None:
    model.enqueue(
        Response(calls=(Call("probe.effect", {"name": "a"}),)), failing(429, retry_after="1")
    )
    run = workshop.work()
    workshop.deny(workshop.card(run))
    run = workshop.drive(run)
    assert is_delayed_by(run, "rate_limited")
    make_due(run)
    assert workshop.drive(run).status == RunStatus.SUCCEEDED


def test_a_scripted_failure_is_retried(workshop: Workshop) -> None:
    failing_pass: dict[str, Any] = {
        **asking(call("probe.clock")),
        "fail": {"code": "rate_limited", "retry_after": 5},
    }
    workshop.play(failing_pass)
    assert is_delayed_by(workshop.work(), "rate_limited")
