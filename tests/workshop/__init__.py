"""The workshop: an organization with an employee that follows a script, and helpers that drive the
engine in this process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.functions import Now

from agents.accounts.models import Membership, Organization, Role
from agents.approvals import decisions, resolutions
from agents.employees.models import Employee, Grant, ModelProvider, ProviderKind, ToolRule
from agents.readers.reading import read_logs
from agents.runs import actions
from agents.runs.engine import lease
from agents.runs.engine.loop import advance, start_driving
from agents.runs.engine.passes import ask_model, record_pass
from agents.runs.engine.transaction import Action
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Event, Pass, Run, ToolCall
from agents.worker.sweeper import sweep_once
from tests.probes import PROBES
from tests.recorder import Recorder
from tests.scripts import write_script
from tools.contract import Level
from tools.office.records.models import Record

DATA_TOOLS = ("data.searchRecords", "data.updateRecord", "data.bulkDelete", "utility.calculate")
TASK = "Do the work"
LONG_AGO = timedelta(days=1)


@dataclass
class Workshop:
    """One organization, its employee, and a member for each role."""

    organization: Organization
    employee: Employee
    members: dict[str, Membership]

    @property
    def approver(self) -> Membership:
        return self.members["approver"]

    @property
    def admin(self) -> Membership:
        return self.members["admin"]

    @property
    def operator(self) -> Membership:
        return self.members["operator"]

    def raise_for_all(self, tool: str, level: Level) -> None:
        """Raise the tool to this level for every employee."""
        ToolRule.objects.create(organization=self.organization, tool=tool, level=level)

    def play(self, *script: dict[str, Any], answer: str = "Done.", task: str = ".*") -> None:
        """Set the employee's script: `{"calls": [{"tool": …, "params": …}], "text": …}` for each
        pass.

        A later message that matches `task` starts the script again from its first pass.
        """
        script_entry = {"title": "anything", "task": task, "passes": list(script), "answer": answer}
        self.play_text(json.dumps({"scripts": [script_entry]}, ensure_ascii=False))

    def play_text(self, script: str) -> None:
        """Set the script of every employee of this provider from YAML or JSON."""
        provider = self.employee.provider
        provider.kind = ProviderKind.SCRIPTED
        provider.save()
        self.employee.model = write_script(script)
        Employee.objects.filter(provider=provider).update(model=self.employee.model)

    def connect(self, url: str, timeout_s: int = 10) -> None:
        """Let the employee use the model server at this address."""
        provider = self.employee.provider
        provider.kind, provider.base_url, provider.api_key = (
            ProviderKind.OPENAI,
            url,
            "sk-secret-key",
        )
        provider.timeout_s = timeout_s
        provider.save()
        self.employee.model = "fake"
        self.employee.save()

    def allow_passes(self, number: int) -> None:
        """Limit the passes of the employee's new runs."""
        self.employee.max_passes = number
        self.employee.save()

    def submit(self, task: str = TASK, **more: Any) -> Run:
        """Start a run without driving it."""
        return actions.submit(
            self.operator, actions.Submission(employee_id=self.employee.pk, task=task, **more)
        )[0]

    def work(self, task: str = TASK, **more: Any) -> Run:
        """Start a run and drive it as far as possible."""
        return self.drive(self.submit(task, **more))

    def drive(self, run: Run) -> Run:
        """Drive the run in this thread, as one job does; reload and return the run."""
        advance(run.pk)
        return again(run)

    @contextmanager
    def driving(self, run: Run) -> Iterator[threading.Thread]:
        """Drive the run in a thread during the block, as one job does, and wait for the thread to
        finish."""
        with beside(lambda: advance(run.pk)) as thread:
            yield thread

    def record(self, **more: Any) -> Record:
        values = {
            "name": "Acme Corp",
            "region": "EU",
            "category": "Software",
            "status": "active",
            **more,
        }
        return Record.objects.create(organization=self.organization, **values)

    def card(self, run: Run) -> Approval:
        """Return the run's oldest pending card."""
        return self.cards(run)[0]

    def cards(self, run: Run) -> list[Approval]:
        waiting = Approval.objects.filter(run=run, status=ApprovalStatus.PENDING)
        return list(waiting.select_related("tool_call").order_by("pk"))

    def approve(self, card: Approval, by: Membership | None = None, **more: Any) -> Approval:
        values = {
            "digest": card.digest,
            "confirm": decisions.make_confirmation_phrase(card) or "",
            **more,
        }
        return decisions.approve(by or self.approver, card.pk, decisions.Decision(**values))

    def deny(
        self, card: Approval, reason: str = "not now", by: Membership | None = None, **more: Any
    ) -> Approval:
        values = {"digest": card.digest, "reason": reason, **more}
        return decisions.deny(by or self.approver, card.pk, decisions.Decision(**values))

    def edit(
        self, card: Approval, params: dict[str, Any], by: Membership | None = None
    ) -> Approval:
        return decisions.edit(
            by or self.approver, card.pk, decisions.Decision(digest=card.digest), params
        )

    def undo(self, card: Approval, by: Membership | None = None) -> Approval:
        return decisions.undo(by or self.approver, card.pk)

    def say(self, run: Run, text: str = "One more thing.") -> Run:
        return actions.add_message(self.operator, run.pk, text)

    def cancel(self, run: Run) -> Run:
        return actions.cancel(self.operator, run.pk)

    def resolve(
        self, call: ToolCall, outcome: str = "succeeded", reason: str = "I looked."
    ) -> ToolCall:
        return resolutions.resolve(self.approver, call.pk, outcome, reason)


def build_workshop(slug: str = "acme") -> Workshop:
    """Create one organization; its employee may use every probe and some tools on records."""
    with transaction.atomic():
        organization = Organization.objects.create(name=slug.title(), slug=slug)
        provider = ModelProvider.objects.create(
            organization=organization, name="Script", kind=ProviderKind.SCRIPTED
        )
        employee = Employee.objects.create(
            organization=organization, name="Dana", job_title="Clerk", provider=provider
        )
        names = [probe.name for probe in PROBES] + list(DATA_TOOLS)
        Grant.objects.bulk_create([Grant(employee=employee, tool=name) for name in names])
        members = {}
        for role in Role:
            user = User.objects.create_user(f"{slug}-{role}", password="secret-enough")
            members[role.value] = Membership.objects.create(
                organization=organization, user=user, role=role
            )
    return Workshop(organization, employee, members)


def call(tool: str, **params: Any) -> dict[str, Any]:
    """Return a call for a script."""
    return {"tool": tool, "params": params}


def asking(*calls_: dict[str, Any], text: str = "") -> dict[str, Any]:
    """Return a script's pass that requests these calls."""
    return {"text": text, "calls": list(calls_)}


def again(run: Run) -> Run:
    """Reload the run."""
    return Run.objects.get(pk=run.pk)


def calls(run: Run) -> list[ToolCall]:
    """List the run's calls in the order of their requests."""
    return list(ToolCall.objects.filter(run=run).order_by("pass_number", "index"))


def statuses(run: Run) -> list[str]:
    return [call.status for call in calls(run)]


def last_call(run: Run) -> ToolCall:
    return calls(run)[-1]


def error_code(call: ToolCall) -> str:
    """Return the error code of a failed call; empty if it has none."""
    error = (call.result or {}).get("error") or {}
    return str(error.get("code", ""))


def event_types(run: Run) -> list[str]:
    return list(Event.objects.filter(run=run).order_by("seq").values_list("type", flat=True))


def payloads(run: Run, type_: str) -> list[dict[str, Any]]:
    """List the payloads of the run's events of one type, in order."""
    return list(
        Event.objects.filter(run=run, type=type_).order_by("seq").values_list("payload", flat=True)
    )


def passes(run: Run) -> list[Pass]:
    return list(Pass.objects.filter(run=run).order_by("number"))


def die_while_executing(run: Run) -> lease.Lease:
    """Act as a driver that records a pass, starts the calls that need no approval, and dies before
    any of these calls ends. Return the driver's lease."""
    my_lease = lease.acquire(run.pk)
    assert my_lease is not None
    step = start_driving(my_lease)
    assert step.action == Action.ASK
    record_pass(my_lease, step, ask_model(my_lease, step))
    return my_lease


def lose_worker(run: Run) -> Run:
    """Let the run's lease expire, and let the sweeper notice this before a heartbeat renews the
    lease. The run is then due immediately."""
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - LONG_AGO)
        sweep_once()
        Run.objects.filter(pk=run.pk).update(next_wake_at=None)
    return again(run)


def make_due(run: Run) -> Run:
    """End the run's waiting times: the pause after a failure of the provider, and the grace periods
    of approvals."""
    Run.objects.filter(pk=run.pk).update(next_wake_at=None)
    Approval.objects.filter(run=run, status=ApprovalStatus.APPROVED).update(start_after=Now())
    return again(run)


def expire_card(card: Approval) -> None:
    Approval.objects.filter(pk=card.pk).update(expires_at=Now() - timedelta(seconds=1))


def read_everything() -> None:
    """Let the readers of event logs read all events, as workers do."""
    while read_logs():
        pass


@contextmanager
def beside(*works: Callable[[], object]) -> Iterator[threading.Thread]:
    """Run these functions during the block, each in a thread with its own connection, and wait for
    all of them to finish."""
    failures: list[BaseException] = []

    def run_one(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - reported by the test's own thread
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run_one, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    yield threads[0]
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread of this test hangs"
    if failures:
        raise failures[0]


def all_at_once(works: list[Callable[[], object]]) -> None:
    """Run these functions at the same moment, each in a separate thread."""
    barrier = threading.Barrier(len(works))

    def started(work: Callable[[], object]) -> Callable[[], object]:
        def wait_and_work() -> object:
            barrier.wait(30)
            return work()

        return wait_and_work

    with beside(*[started(work) for work in works]):
        connection.close()


def eventually(holds: Callable[[], bool], seconds: float = 20) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.005)


@contextmanager
def write_in_flight(workshop: Workshop, recorder: Recorder) -> Iterator[Run]:
    """Yield a run that a thread drives. Its approved write "a" has arrived outside Gadget and waits
    for a reply."""
    recorder.hold("a")
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    with workshop.driving(run):
        recorder.await_arrival("a")
        yield run


def status_is(call: ToolCall, status: CallStatus) -> bool:
    return ToolCall.objects.filter(pk=call.pk, status=status).exists()


def data_of(call: ToolCall) -> Any:
    """Return the data of a call's result."""
    assert call.result is not None
    return call.result["data"]
