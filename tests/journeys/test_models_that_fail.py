"""A model that returns nonsense, or never responds, ends only its own run, with a visible
reason."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from playwright.sync_api import expect

from agents.employees.models import Employee, Grant, ModelProvider, ProviderKind
from agents.runs.models import ExitReason, Run, RunStatus
from tests.journeys.office import Office, describe_run, list_payloads, load_run
from tests.journeys.visitor import Visit
from tests.model_server import Call, ModelServer, Response, failing, html, nonsense
from tests.workshop import event_types

pytestmark = pytest.mark.once

# Temporary faults, with the code that the panel shows until the next attempt.
TEMPORARY = {
    "nonsense": (nonsense(), "bad_answer"),
    "a cut stream": (Response(text="I was about to say", fault="cut"), "cut_stream"),
    "429 with Retry-After": (failing(429, "slow down", Retry_After="2"), "rate_limited"),
    "500": (failing(500, "oops"), "server_error"),
    "never": (Response(text="Too late", hold="start"), "timeout"),
    "a drip without end": (Response(fault="drip"), "timeout"),
    "a closed connection": (Response(fault="reset"), "unreachable"),
}
QUICKLY_RETRIED = ("500", "a closed connection")
WITHOUT_END = ("never", "a drip without end")
# The timeouts for a response: long enough for a slow machine, and short if no response will come.
PATIENT_S, IMPATIENT_S = 30, 3
# Permanent faults: the run ends immediately, and says why.
PERMANENT = {
    "HTML": (html(), "The server sent a web page"),
    "401": (failing(401, "wrong key"), "does not accept the API key"),
    "404": (failing(404, "no such model"), "does not know this address or model"),
    "no credit": (failing(402, "pay first"), "no credit left"),
}
ARCHIVE = {"name": "data.archiveAll", "arguments": '{"record_ids": ["1"]}'}
# Mistakes of the model: the call is refused with a code, and the run continues.
REFUSED_CALLS = {
    "an unknown tool": (Call("data.dropDatabase", {}), "TOOL_NOT_FOUND"),
    "a tool that is not granted": (Call("", extra={"function": ARCHIVE}), "NOT_PERMITTED"),
    "the same by its name on the wire": (
        Call("data.archiveAll", {"record_ids": ["1"]}),
        "NOT_PERMITTED",
    ),
    "params that are not JSON": (
        Call("data.searchRecords", arguments='{"limit": '),
        "INVALID_TOOL_ARGUMENTS",
    ),
    "params of the wrong type": (
        Call("data.searchRecords", {"limit": "many"}),
        "INVALID_PARAMETER",
    ),
    "params that do not exist": (
        Call("data.updateRecord", {"record_id": "1", "color": "red"}),
        "INVALID_PARAMETER",
    ),
    "an unknown record": (
        Call("data.updateRecord", {"record_id": "987654", "changes": {"score": 1}}),
        "NOT_FOUND",
    ),
}


def hire(office: Office, name: str, url: str) -> Employee:
    """Create another employee, with the model at this address."""
    organization = office.workshop.organization
    provider = ModelProvider.objects.create(
        organization=organization,
        name=name,
        kind=ProviderKind.OPENAI,
        base_url=url,
        api_key="sk-test",
        timeout_s=IMPATIENT_S if name in WITHOUT_END else PATIENT_S,
    )
    employee = Employee.objects.create(
        organization=organization, name=name, provider=provider, model="fake"
    )
    Grant.objects.create(employee=employee, tool="utility.calculate")
    return employee


def start_all(office: Office, answers: dict[str, Response], stack: ExitStack) -> dict[str, int]:
    """Start a run for each answer, all at the same time, and return the ids of the runs by name;
    each model first requests a sum, then gives its answer."""
    outside = office.api_client("operator")
    plain = stack.enter_context(ModelServer())  # the first request is slow: it loads its client
    plain.enqueue(Response(text="Ready."))
    office.await_end(outside.start(hire(office, "first", plain.url).pk, "Say ready"))
    started = {}
    for name, answer in answers.items():
        server = stack.enter_context(ModelServer())
        first = Response(
            text="I add.", calls=(Call("utility.calculate", {"operation": "add", "a": 1, "b": 2}),)
        )
        server.enqueue(first, *[answer] * (2 if name in QUICKLY_RETRIED else 1))
        started[name] = outside.start(hire(office, name, server.url).pk, "Add two numbers")
    return started


@pytest.mark.every_commit
def test_a_temporary_failure_is_shown_and_retried(office: Office, visit: Visit) -> None:
    with ExitStack() as stack:
        runs = start_all(office, {name: answer for name, (answer, _) in TEMPORARY.items()}, stack)
        for name, (_, code) in TEMPORARY.items():
            run = office.await_end(runs[name])
            assert (run.status, run.exit_reason) == (
                RunStatus.SUCCEEDED,
                ExitReason.FINAL_ANSWER,
            ), (
                name,
                describe_run(run.pk),
            )
            assert run.answer == "Done."
            delays = list_payloads(run.pk, "provider_delayed")
            assert [delay["code"] for delay in delays] == [code], (name, delays)
            assert event_types(run).count("pass_started") == 2
            assert event_types(run).count("assistant_message") == 2
    visitor = visit("viewer")
    for name, (_, code) in TEMPORARY.items():
        visitor.open_run(runs[name])
        expect(visitor.page.locator("#panel")).to_contain_text("The request to the model failed")
        expect(visitor.page.locator("#panel .code")).to_have_text(code)
        visitor.assert_panel_is_whole(runs[name])


def test_the_pause_in_a_retry_after_header_is_respected(office: Office) -> None:
    with ExitStack() as stack:
        run_id = start_all(office, {"busy": failing(429, "slow down", Retry_After="20")}, stack)[
            "busy"
        ]
        office.await_end(run_id)
    delayed = next(
        event for event in load_run(run_id).events.all() if event.type == "provider_delayed"
    )
    after = load_run(run_id).passes.get(number=2).created_at
    assert (after - delayed.created_at).total_seconds() >= 20 * office.installation.timing_scale


def test_a_permanent_failure_ends_the_run_with_its_reason(office: Office, visit: Visit) -> None:
    with ExitStack() as stack:
        runs = start_all(office, {name: answer for name, (answer, _) in PERMANENT.items()}, stack)
        visitor = visit("viewer")
        for name, (_, why) in PERMANENT.items():
            run = office.await_end(runs[name])
            assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR), (
                describe_run(run.pk)
            )
            assert why in run.problem, (name, run.problem)
            assert "sk-test" not in run.problem
            (end,) = list_payloads(run.pk, "run_finished")
            assert (end["status"], end["exit_reason"]) == ("failed", "provider_error")
            assert "Added" in run.answer or "3" in run.answer, "the answer has the earlier results"
            visitor.open_run(run.pk)
            expect(visitor.page.locator(".finished")).to_contain_text("Provider error")
            expect(visitor.page.locator(".finished")).to_contain_text(why)


def test_retries_end_if_the_model_never_recovers(office: Office) -> None:
    outside = office.api_client("operator")
    with ModelServer() as server:
        server.respond_with(lambda body: failing(503, "maintenance"))
        run_id = outside.start(hire(office, "Patient", server.url).pk, "Wait for it")
        run = office.await_end(run_id)
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR)
    assert [delay["tries"] for delay in list_payloads(run_id, "provider_delayed")] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert "maintenance" in run.problem
    assert outside.get(f"/runs/{run_id}")["exit_reason"] == "provider_error"


def test_a_deadline_ends_a_run_whose_model_never_responds(
    office: Office, model: ModelServer
) -> None:
    office.workshop.connect(model.url, timeout_s=1)
    model.hold()
    run_id = office.api_client("operator").start(office.workshop.employee.pk, "Hurry")
    model.wait_for_held()
    Run.objects.filter(pk=run_id).update(deadline_at=load_run(run_id).created_at)
    run = office.await_end(run_id)
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.DEADLINE)
    (end,) = list_payloads(run_id, "run_finished")
    assert end["exit_reason"] == "deadline"


def test_invalid_calls_are_refused_with_a_code_and_without_cards(
    office: Office, model: ModelServer, visit: Visit
) -> None:
    office.workshop.connect(model.url)
    model.enqueue(
        Response(calls=tuple(call for call, _ in REFUSED_CALLS.values())),
        Response(text="I give up."),
    )
    run_id = office.api_client("operator").start(
        office.workshop.employee.pk, "Do what cannot be done"
    )
    run = office.await_end(run_id)
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "I give up.")
    codes = [rejection["code"] for rejection in list_payloads(run_id, "tool_rejected")]
    assert dict(zip(REFUSED_CALLS, codes, strict=True)) == {
        name: code for name, (_, code) in REFUSED_CALLS.items()
    }
    assert not run.approvals.exists()
    visitor = visit("viewer")
    visitor.open_run(run_id)
    for code in codes:
        expect(visitor.page.locator(".status-rejected .code", has_text=code).first).to_be_visible()
