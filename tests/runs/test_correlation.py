"""The correlation id of a request is passed to its run, the runs of colleagues, the log and the
requests to the model."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from structlog.contextvars import get_contextvars

from agents.accounts.membership import issue_token
from agents.employees.models import Grant
from agents.platform.log_context import correlate
from agents.runs.models import Run
from tests.context_probes import Describe
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.processes import Installation
from tests.workshop import Workshop, again, asking, call, data_of, eventually, last_call
from tests.workshop.colleagues import delegate, drive_all, hire, may_delegate
from tools.contract.correlation import get_correlation_id

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _granted(workshop: Workshop) -> Any:
    Grant.objects.create(employee=workshop.employee, tool=Describe.name)
    yield
    correlate("")


def told(run: Run) -> str:
    found: str = data_of(last_call(run))["correlation_id"]
    return found


class TestTheCorrelationId:
    def test_of_a_request_is_passed_to_its_run_and_tools(self, workshop: Workshop) -> None:
        workshop.play(asking(call(Describe.name)))
        correlate("order-4711")
        run = workshop.submit()
        correlate("a-later-request")
        assert told(workshop.drive(run)) == "order-4711"
        assert get_correlation_id() == get_contextvars()["correlation_id"] == "a-later-request"

    def test_is_generated_for_a_run_without_a_request(self, workshop: Workshop) -> None:
        workshop.play(asking(call(Describe.name)))
        first, second = workshop.work(), workshop.work()
        assert (told(first), told(second)) == (f"run-{first.pk}", f"run-{second.pk}")
        assert (first.correlation_id, get_correlation_id()) == ("", "")
        assert "correlation_id" not in get_contextvars()

    @pytest.mark.parametrize("of_request", ["order-4711", ""])
    def test_of_a_delegating_run_is_passed_to_the_delegated_run(
        self, workshop: Workshop, of_request: str
    ) -> None:
        kim = hire(workshop, "Kim", asking(call(Describe.name)))
        Grant.objects.create(employee=kim, tool=Describe.name)
        may_delegate(workshop.employee, kim)
        workshop.play(asking(delegate("Kim", "Look it up")))
        correlate(of_request)
        run = workshop.submit()
        correlate("")
        drive_all(workshop, run)
        assert told(Run.objects.get(parent=run)) == (of_request or f"run-{run.pk}")

    def test_is_sent_to_the_model(self, workshop: Workshop, model: ModelServer) -> None:
        model.enqueue(Response(text="Done."))
        correlate("order-4711")
        run = workshop.submit()
        correlate("")
        workshop.drive(run)
        assert [headers["x-request-id"] for headers in model.request_headers] == ["order-4711"]


@feature(
    "Execution",
    "The `X-Request-ID` of a request goes through its run, the log and all that it sends; a bad one is replaced",
    "tools/contract/correlation.py, gadget_site/edge/request_ids.py",
)
def test_real_processes_pass_the_id_from_a_rest_request_to_the_log_and_the_model(
    workshop: Workshop, model: ModelServer, installation: Installation
) -> None:
    model.enqueue(
        Response(calls=(Call(Describe.name),)), Response(text="Done."), Response(text="Done.")
    )
    installation.start_web()
    worker = installation.start_worker()
    _, token = issue_token(workshop.operator, "test")
    sent = {
        "X-Request-ID": "order-4711",
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
    }
    body = json.dumps({"employee_id": str(workshop.employee.pk), "task": "Work"}).encode()
    for given in ("order-4711", "run-7"):
        request = urllib.request.Request(
            f"{installation.url}/api/runs", body, {**sent, "X-Request-ID": given}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            answered, run = response.headers["X-Request-ID"], Run.objects.latest("pk")
            assert json.load(response)["correlation_id"] == answered == run.correlation_id
        assert (answered == given) is (given == "order-4711")
        eventually(lambda run=run: again(run).has_ended)  # type: ignore[misc]
        assert model.request_headers[-1]["x-request-id"] == answered
    worker.await_line("correlation_id=order-4711", seconds=20)
