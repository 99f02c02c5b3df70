"""One worker executes everything that a tool can do wrong: each gets its own result, and nobody else notices."""

from __future__ import annotations

import json

import pytest
from django.db import transaction

from agents.accounts.models import AuditEntry, Credential
from agents.employees.models import Grant
from agents.employees.toolboxes import bump_credentials_version
from agents.runs.models import CallStatus, Event, Message, Pass, Run, RunStatus, ToolCall
from tests.bad_probes import PROBES, SECRET, SERVICE, WAYS
from tests.faults.awaiting import await_that
from tests.faults.site import Site
from tests.model_server import Answer, Call
from tests.workshop import calls, data_of, error_code, statuses

FORGOTTEN_MB = 60
GOOD = Call("bad.good")
UNCLEAR = {
    "raises": "failed unexpectedly; the reason is in the log",
    "exits": "failed unexpectedly; the reason is in the log",
    "runs out": "failed unexpectedly; the reason is in the log",
    "is unspeakable": "failed unexpectedly; the reason is in the log",
    "is no JSON": "data.what is NotJson, which is not JSON",
    "is endless": "nested too deeply, or contains itself",
    "cannot be read": "failed unexpectedly",
    "cannot be dumped": "failed unexpectedly",
    "is nothing": "NoneType, not a ToolResult",
}
CLEAR = {
    "is huge": ("LIMIT_EXCEEDED", "the limit is 8,000,000"),
    "tells": ("UNAUTHORIZED", "[hidden] was refused."),
}


@pytest.fixture
def worker(site: Site) -> Site:
    """One worker, whose employee may use every bad tool, on a model whose requests can be read."""
    site.have_workers(1)
    employee = site.workshop.employee
    Grant.objects.bulk_create([Grant(employee=employee, tool=tool.name) for tool in PROBES])
    with transaction.atomic():
        organization = site.workshop.organization
        Credential.objects.create(organization=organization, service=SERVICE, fields=json.dumps({"token": SECRET}))
        bump_credentials_version(organization.pk)
    site.workshop.connect(site.model.url)
    return site


def ways(tool: str, *hows: str) -> list[Call]:
    return [Call(tool, {"how": how}) for how in hows or WAYS if hows or how not in ("hangs", "prints")]


def run_of(site: Site, *asked: Call) -> Run:
    """A run whose model asks for all of these at once, when it has ended."""
    site.model.script(Answer(calls=asked), Answer(text="Done."))
    run = site.workshop.submit("Misbehave")
    return site.await_status(run, RunStatus.SUCCEEDED)


def good_of(run: Run) -> tuple[int, int]:
    """The process that served the good call, and its memory then in MB."""
    row = ToolCall.objects.get(run=run, tool="bad.good")
    assert row.status == CallStatus.SUCCEEDED
    return data_of(row)["pid"], data_of(row)["memory"]


@pytest.mark.parametrize("kind", ["", "Async"])
def test_each_has_its_own_clear_result_and_the_same_worker_goes_on(worker: Site, kind: str) -> None:
    pid, memory = good_of(run_of(worker, GOOD))
    tool = "bad.async" if kind else "bad.read"
    run = run_of(worker, *ways(tool), *ways(f"bad.brief{kind}", "hangs"), GOOD)
    for row in calls(run):
        _assert_told(row)
    assert good_of(run)[0] == pid
    assert [process.pid for process in worker.workers()] == [pid]
    _assert_forgotten(worker, pid, memory)
    _assert_secret(worker)


def _assert_told(row: ToolCall) -> None:
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


def _assert_forgotten(site: Site, pid: int, before: int) -> None:
    """The next runs are the same process's, and it does not keep what was too large."""
    seen: list[int] = []

    def is_forgotten() -> bool:
        served_by, memory = good_of(run_of(site, GOOD))
        assert served_by == pid
        seen.append(memory - before)
        return seen[-1] < FORGOTTEN_MB

    await_that(is_forgotten, lambda: f"the memory is freed: {seen} MB more", 30)


def _assert_secret(site: Site) -> None:
    for model in (ToolCall, Event, AuditEntry, Message, Pass):
        assert SECRET not in str(list(model.objects.values())), model
    assert SECRET not in str(site.model.requests)
    assert "[hidden]" in str(site.model.requests)
    (process,) = site.workers()
    assert SECRET not in process.output
    assert "logged [hidden]" in process.output


def test_of_a_write_outside_nobody_says_that_it_did_nothing(worker: Site) -> None:
    hows = ["raises", "exits", "runs out", "is unspeakable", "is huge", "is nothing", "is no JSON"]
    _write_and_settle(worker, *hows)


def test_nor_where_its_result_cannot_be_read(worker: Site) -> None:
    _write_and_settle(worker, "cannot be read", "cannot be dumped")


def _write_and_settle(site: Site, *hows: str) -> None:
    """All of them are approved; of each, people are asked what became of it."""
    site.model.script(Answer(calls=tuple(ways("bad.write", *hows))), Answer(text="Done."))
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
    assert found == [CallStatus.OUTCOME_UNKNOWN] * len(hows)


def test_what_a_tool_prints_is_cleaned_too(worker: Site) -> None:
    run_of(worker, *ways("bad.read", "prints"))
    (process,) = worker.workers()
    process.await_line("stdout ")
    assert SECRET not in process.output
