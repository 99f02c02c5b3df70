"""A running Gadget and a fake outside world, with the actions that fault tests perform on them."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml
from celery import current_app
from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now
from kombu.connection import Connection

from agents.approvals import resolutions
from agents.employees.models import Employee, Grant, ModelProvider, ProviderKind
from agents.runs import actions
from agents.runs.models import (
    ENDED,
    PARKED,
    Approval,
    ApprovalStatus,
    Event,
    Run,
    RunStatus,
    ToolCall,
)
from gadget_site.addresses import build_broker_url
from gadget_site.management.processes import (
    ProcessSpec,
    build_sweeper_process,
    build_web_process,
    build_worker_process,
)
from tests.awaiting import await_that
from tests.model_server import ModelServer
from tests.processes import Installation, RealProcess
from tests.recorder import Recorder
from tests.workshop import Workshop

Pass = dict[str, Any]
PAUSE_TRIES = 50


@dataclass
class Site:
    """Real processes, one organization, the recorder as the outside world, and a model whose
    responses can be held.

    Decisions are made in the test's process, which cannot reach the queue, so the workers learn of
    them only from the sweeper's hints.
    """

    installation: Installation
    workshop: Workshop
    recorder: Recorder
    model: ModelServer
    _scripts: list[dict[str, Any]] = field(default_factory=list)

    def start(self, *parts: ProcessSpec) -> None:
        """Start these parts simultaneously, and wait until each is ready."""
        for process in [self.installation.spawn(part) for part in parts]:
            process.await_line(" ready")

    def have_workers(self, count: int, *others: ProcessSpec) -> None:
        """Ensure that a sweeper and exactly `count` workers are running; start the processes
        `others` at the same time."""
        living = self.workers()
        for surplus in living[count:]:
            surplus.kill()
        missing = [self._next_worker(place) for place in range(count - len(living))]
        has_sweeper = any(
            process.is_alive for process in self.installation.processes if process.name == "sweeper"
        )
        self.start(*missing, *others, *([] if has_sweeper else [build_sweeper_process()]))

    def have_web(self) -> RealProcess:
        """Return the running web process; start one if there is none."""
        living = [
            each for each in self.installation.processes if each.name == "web" and each.is_alive
        ]
        if not living:
            self.start(build_web_process())
            living = [self.installation.process("web")]
        return living[-1]

    def workers(self) -> list[RealProcess]:
        """List the running workers."""
        return [
            each
            for each in self.installation.processes
            if each.name.startswith("worker") and each.is_alive
        ]

    def start_another_worker(self) -> None:
        self.start(self._next_worker())

    def _next_worker(self, place: int = 0) -> ProcessSpec:
        earlier = sum(process.name.startswith("worker") for process in self.installation.processes)
        return build_worker_process(earlier + place + 1)

    def submit(self, task: str, *passes: Pass) -> Run:
        """Submit a task, for which the employee's script plays these passes."""
        self._scripts.append(
            {"title": task, "task": f"^{task}$", "passes": list(passes), "answer": "Done."}
        )
        self.workshop.play_text(yaml.safe_dump({"scripts": self._scripts}))
        return self.workshop.submit(task)

    def submit_to_model(self, task: str = "Think") -> Run:
        """Submit a task to another employee, whose model is `self.model`."""
        organization = self.workshop.organization
        columns = {
            "kind": ProviderKind.OPENAI,
            "base_url": self.model.url,
            "api_key": "sk-test",
            "timeout_s": 60,
        }
        provider, _ = ModelProvider.objects.get_or_create(
            organization=organization, name="Held", defaults=columns
        )
        uses_model = {"provider": provider, "model": "fake"}
        employee, _ = Employee.objects.get_or_create(
            organization=organization, name="Mo", defaults=uses_model
        )
        Grant.objects.get_or_create(employee=employee, tool="probe.gate")
        submission = actions.Submission(employee_id=employee.pk, task=task)
        return actions.submit(self.workshop.operator, submission)[0]

    def send(self, job: str, *runs_: Run) -> None:
        """Queue this job for the workers, once for each of these runs."""
        with Connection(build_broker_url(self.installation.redis.url)) as queue:  # type: ignore[no-untyped-call]
            for run in runs_:
                place = {"connection": queue, "queue": self.installation.queue}
                current_app.send_task(job, args=[run.pk], ignore_result=True, **place)

    def driver_of(self, run: Run) -> RealProcess:
        """Return the worker that holds the run's lease."""
        pid = reload(run).lease_owner.partition("-")[0]
        return next(process for process in self.installation.processes if str(process.pid) == pid)

    def pause(self, worker: RealProcess) -> None:
        """Send SIGSTOP while the worker is not writing: a file that a paused process has locked
        stays locked."""
        for _ in range(PAUSE_TRIES):
            worker.pause()
            if connection.vendor != "sqlite" or not _file_is_locked():
                return
            worker.resume()
            await_that(lambda: not _file_is_locked(), "nobody writes for a moment")
        raise AssertionError(f"{worker.name} always holds the database")

    def pause_driver_of(self, run: Run) -> RealProcess:
        """Pause the worker that holds the run's lease, and return it."""
        driver = self.driver_of(run)
        self.pause(driver)
        return driver

    def await_status(self, run: Run, *statuses: str, seconds: float = 60) -> Run:
        """Return the run once it has one of these statuses."""
        await_that(
            lambda: reload(run).status in statuses,
            lambda: f"{statuses}, but {self.describe(run)}",
            seconds,
        )
        return reload(run)

    def await_card(self, run: Run) -> Approval:
        """Return the run's card once it waits for a decision."""
        self.await_status(run, RunStatus.WAITING)
        return self.workshop.card(run)

    def approve_next(self, run: Run, **more: Any) -> Approval:
        """Approve the run's card once it exists."""
        return self.workshop.approve(self.await_card(run), **more)

    def resolve(self, run: Run, outcome: str) -> None:
        """Resolve the run's unknown outcome, as a person does."""
        (call,) = ToolCall.objects.filter(run=run, status="outcome_unknown")
        resolutions.resolve(self.workshop.approver, call.pk, outcome, "Looked at it outside.")

    def describe(self, run: Run) -> str:
        """Describe the run for the message of a failing test."""
        now = reload(run)
        lines = Event.objects.filter(run=run).order_by("seq").values_list("type", flat=True)
        return f"{now.status} {now.exit_reason} crashes={now.crash_count} {now.problem!r} {list(lines)}"


@contextmanager
def stopping(worker: RealProcess) -> Iterator[None]:
    """Send SIGTERM to the worker, and wait at the end of the block until it has ended on its
    own."""
    stop = threading.Thread(target=worker.stop, args=(20.0,))
    stop.start()
    yield
    stop.join()


def _file_is_locked() -> bool:
    with closing(
        sqlite3.connect(connection.settings_dict["NAME"], timeout=0.3, isolation_level=None)
    ) as probe:
        try:
            probe.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False


def reload(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def has_ended(run: Run) -> bool:
    return reload(run).status in ENDED


def list_unsettled_runs() -> list[int]:
    """List the ids of the runs that the engine still has to continue."""
    parked = Q(status__in=PARKED)
    graced = Q(approvals__status=ApprovalStatus.APPROVED, approvals__start_after__gt=Now())
    busy = Run.objects.exclude(parked | Q(status__in=ENDED)) | Run.objects.filter(parked & graced)
    return list(busy.values_list("pk", flat=True).distinct())


def read(name: str) -> Pass:
    """Return a pass with one read that waits at this gate of the recorder."""
    return {"calls": [{"tool": "probe.gate", "params": {"name": name}}]}


def effect(name: str) -> Pass:
    """Return a pass with one write outside the database."""
    return {"calls": [{"tool": "probe.effect", "params": {"name": name}}]}


def rename(record_id: int, to: str, gate: str = "") -> Pass:
    """Return a pass with one write inside the database; if a gate is named, the write waits there
    inside its transaction."""
    return {
        "calls": [
            {"tool": "probe.rename", "params": {"record_id": record_id, "to": to, "gate": gate}}
        ]
    }
