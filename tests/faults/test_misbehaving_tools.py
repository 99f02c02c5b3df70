"""A worker executes calls that fail in every possible way: each gets its own result, and no other
call is affected."""

from __future__ import annotations

import json

import pytest
from django.db import transaction

from agents.accounts.models import AuditEntry, Credential
from agents.employees.models import Grant
from agents.employees.toolboxes import bump_credentials_version
from agents.runs.models import CallStatus, Event, Message, Pass, Run, RunStatus, ToolCall
from tests.awaiting import await_that
from tests.bad_probes import MISBEHAVIORS, PROBES, SECRET, SERVICE
from tests.faults.site import Site
from tests.features import feature
from tests.model_server import Call, Response
from tests.workshop import calls, data_of, error_code, statuses

FORGOTTEN_MB = 60
GOOD = Call("bad.good")
UNCLEAR = {
    "raises": "failed unexpectedly; the reason is in the log",
    "exits": "failed unexpectedly; the reason is in the log",
    "runs out": "failed unexpectedly; the reason is in the log",
    "raises unprintable": "failed unexpectedly; the reason is in the log",
    "is no JSON": "data.what is NotJson, which is not JSON",
    "is endless": "nested too deeply, or contains itself",
    "cannot be read": "failed unexpectedly",
    "cannot be dumped": "failed unexpectedly",
    "is nothing": "NoneType, not a ToolResult",
}
CLEAR = {
    "is huge": ("LIMIT_EXCEEDED", "the limit is 8,000,000"),
    "raises with a secret": ("UNAUTHORIZED", "[hidden] was refused."),
}


@pytest.fixture
def worker(site: Site) -> Site:
    """A worker, and an employee that may use every bad tool; the test can read the requests to its
    model."""
    site.have_workers(1)
    employee = site.workshop.employee
    Grant.objects.bulk_create([Grant(employee=employee, tool=tool.name) for tool in PROBES])
    with transaction.atomic():
        organization = site.workshop.organization
        Credential.objects.create(
            organization=organization, service=SERVICE, fields=json.dumps({"token": SECRET})
        )
        bump_credentials_version(organization.pk)
    site.workshop.connect(site.model.url)
    return site


def ways(tool: str, *hows: str) -> list[Call]:
    return [
        Call(tool, {"how": how})
        for how in hows or MISBEHAVIORS
        if hows or how not in ("hangs", "prints")
    ]


def run_calls(site: Site, *asked: Call) -> Run:
    """Run these calls in one pass, and return the ended run."""
    site.model.script(Response(calls=asked), Response(text="Done."))
    run = site.workshop.submit("Misbehave")
    return site.await_status(run, RunStatus.SUCCEEDED)


def measure_good_call(run: Run) -> tuple[int, int]:
    """Return the process that executed the good call, and its memory in MB."""
    row = ToolCall.objects.get(run=run, tool="bad.good")
    assert row.status == CallStatus.SUCCEEDED
    return data_of(row)["pid"], data_of(row)["memory"]


@feature(
    "Execution",
    "A worker survives tools that raise, exit, hang or return nonsense, and drops results that are too large",
    "tools/toolbox/isolation.py",
)
@pytest.mark.parametrize("kind", ["", "Async"])
def test_each_misbehaving_call_gets_its_own_result_and_the_worker_continues(
    worker: Site, kind: str
) -> None:
    pid, memory = measure_good_call(run_calls(worker, GOOD))
    tool = "bad.async" if kind else "bad.read"
    run = run_calls(worker, *ways(tool), *ways(f"bad.brief{kind}", "hangs"), GOOD)
    for row in calls(run):
        _assert_result(row)
    assert measure_good_call(run)[0] == pid
    assert [process.pid for process in worker.workers()] == [pid]
    _assert_memory_is_freed(worker, pid, memory)
    _assert_secret_is_hidden(worker)


def _assert_result(row: ToolCall) -> None:
    how = row.params.get("how", "")
    if how in UNCLEAR:
        assert (row.status, error_code(row)) == (CallStatus.FAILED, "TOOL_EXECUTION_FAILED"), how
        assert UNCLEAR[how] in row.content
    elif how in CLEAR:
        code, text = CLEAR[how]
        assert (row.status, error_code(row)) == (CallStatus.FAILED, code), how
        assert text in row.content
    elif how == "hangs":
        assert (row.status, error_code(row)) == (CallStatus.FAILED, "TIMEOUT")
    else:
        assert row.status == CallStatus.SUCCEEDED, how


def _assert_memory_is_freed(site: Site, pid: int, before: int) -> None:
    """Check that the same process drives the next runs, and frees the memory of the large
    results."""
    seen: list[int] = []

    def is_forgotten() -> bool:
        served_by, memory = measure_good_call(run_calls(site, GOOD))
        assert served_by == pid
        seen.append(memory - before)
        return seen[-1] < FORGOTTEN_MB

    await_that(is_forgotten, lambda: f"the memory is freed: {seen} MB more", 30)


def _assert_secret_is_hidden(site: Site) -> None:
    for model in (ToolCall, Event, AuditEntry, Message, Pass):
        assert SECRET not in str(list(model.objects.values())), model
    assert SECRET not in str(site.model.requests)
    assert "[hidden]" in str(site.model.requests)
    (process,) = site.workers()
    assert SECRET not in process.output
    assert "logged [hidden]" in process.output


def test_a_failed_outside_write_has_an_unknown_outcome(worker: Site) -> None:
    hows = ["raises", "exits", "runs out", "raises unprintable"]
    assert _write_and_settle(worker, *hows) == [CallStatus.OUTCOME_UNKNOWN] * len(hows)


def test_an_outside_write_that_returns_any_result_is_treated_as_done(worker: Site) -> None:
    hows = [
        "is huge",
        "is nothing",
        "is no JSON",
        "cannot be read",
        "cannot be dumped",
        "is endless",
    ]
    assert _write_and_settle(worker, *hows) == [CallStatus.SUCCEEDED] * len(hows)


def _write_and_settle(site: Site, *hows: str) -> list[str]:
    """Submit a run with these bad writes, approve them, and return how each ended."""
    site.model.script(Response(calls=tuple(ways("bad.write", *hows))), Response(text="Done."))
    run = site.workshop.submit("Write badly")
    site.await_card(run)
    for card in site.workshop.cards(run):
        site.workshop.approve(card)
    site.await_status(run, RunStatus.NEEDS_ATTENTION, RunStatus.SUCCEEDED)
    await_that(lambda: CallStatus.APPROVED not in statuses(run), "all have been tried")
    found = statuses(run)
    for row in ToolCall.objects.filter(run=run, status=CallStatus.OUTCOME_UNKNOWN):
        site.workshop.resolve(row)
    site.await_status(run, RunStatus.SUCCEEDED)
    return found


def test_secrets_are_hidden_in_the_output_that_a_tool_prints(worker: Site) -> None:
    run_calls(worker, *ways("bad.read", "prints"))
    (process,) = worker.workers()
    process.await_line("stdout ")
    assert SECRET not in process.output
