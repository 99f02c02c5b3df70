"""Usage that is reported late corrects the estimate of its pass; passes never wait for it."""

from __future__ import annotations

import threading
import time

import pytest

from agents.runs import budgets
from agents.runs.models import Pass, Run, RunStatus
from tests.model_server import ModelServer, Response
from tests.workshop import Workshop, again, eventually, passes, payloads

pytestmark = pytest.mark.django_db(transaction=True)

FINISH = {"choices": [{"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}]}
USAGE = {"choices": [], "usage": {"prompt_tokens": 1_000, "completion_tokens": 50}}


def set_prices(workshop: Workshop) -> None:
    workshop.employee.provider.prices = {"*": {"input": "1000", "output": "1000"}}
    workshop.employee.provider.save()


def delay_usage(model: ModelServer) -> None:
    """Send the next response immediately, but its usage only once the server is released."""
    padding = {"choices": [], "padding": "x" * 400}
    model.enqueue(Response(events=(FINISH, padding, USAGE), hold="middle"))


def test_an_estimate_is_recorded_with_the_pass_and_corrected_later(
    workshop: Workshop, model: ModelServer
) -> None:
    set_prices(workshop)
    delay_usage(model)
    started = time.monotonic()
    run = workshop.work()
    assert time.monotonic() - started < 15
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Done.")
    (recorded,) = passes(run)
    assert recorded.usage_estimated
    assert recorded.input_tokens > 100
    assert (
        run.estimated_tokens
        == run.input_tokens + run.output_tokens
        == recorded.input_tokens + recorded.output_tokens
    )
    assert run.cost_micros == recorded.cost_micros > 0
    assert payloads(run, "run_finished")[0]["usage_estimated"]
    model.release()
    eventually(lambda: Run.objects.get(pk=run.pk).estimated_tokens == 0)
    run = again(run)
    assert (run.input_tokens, run.output_tokens, run.cost_micros) == (1_000, 50, 1_050_000)
    (recorded,) = passes(run)
    assert (recorded.input_tokens, recorded.output_tokens, recorded.usage_estimated) == (
        1_000,
        50,
        False,
    )
    (line,) = payloads(run, "usage_reported")
    assert (line["pass_number"], line["input_tokens"], line["cost"]) == (1, 1_000, 1.05)


def test_an_estimate_without_later_usage_stays_and_counts_toward_budgets(
    workshop: Workshop, model: ModelServer
) -> None:
    workshop.employee.run_tokens = 10
    workshop.employee.save()
    model.script(Response(text="Done.", usage=None))
    run = workshop.work()
    assert run.estimated_tokens == run.input_tokens + run.output_tokens > 10
    assert passes(run)[0].usage_estimated
    run = Run.objects.select_related("employee", "organization").get(pk=run.pk)
    assert budgets.list_run_budgets(run)[0].is_exhausted


def test_usage_reported_with_the_response_is_not_an_estimate(
    workshop: Workshop, model: ModelServer
) -> None:
    model.script(Response(text="Done."))
    run = workshop.work()
    assert (run.input_tokens, run.output_tokens, run.estimated_tokens) == (100, 10, 0)
    assert not payloads(run, "usage_reported")


def test_an_estimate_is_corrected_only_once(workshop: Workshop, model: ModelServer) -> None:
    delay_usage(model)
    run = workshop.work()
    Pass.objects.filter(run=run).update(usage_estimated=False)
    model.release()
    model.enqueue(Response(text="Again."))
    eventually(lambda: not any(thread.name == "tail" for thread in threading.enumerate()))
    assert again(run).input_tokens == run.input_tokens
