"""A running Gadget with the world outside it, and what a fault test does to both."""

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
from agents.approvals.models import Approval, ApprovalStatus
from agents.employees.models import Employee, Grant, ModelProvider, ProviderKind
from agents.runs import actions
from agents.runs.models import ENDED, PARKED, Event, Run, RunStatus, ToolCall
from gadget_site.addresses import build_broker_url
from gadget_site.management.processes import ProcessSpec, build_sweeper_process, build_worker_process
from tests.faults.awaiting import await_that
from tests.model_server import ModelServer
from tests.processes import Installation, RealProcess
from tests.recorder import Recorder
from tests.workshop import Workshop

Pass = dict[str, Any]
PAUSE_TRIES = 50


@dataclass
class Site:
    """Real processes, one organization, the recorder outside, and a model that can be held.

    Decisions are made in the test's process, which reaches no queue: only the sweeper tells the workers of them.
    """

    installation: Installation
    workshop: Workshop
    recorder: Recorder
    model: ModelServer
    _scripts: list[dict[str, Any]] = field(default_factory=list)

    def start(self, *parts: ProcessSpec) -> None:
        """Start these parts at once and wait until each is ready."""
        for process in [self.installation.spawn(part) for part in parts]:
            process.await_line(" ready")

    def have_workers(self, count: int, *others: ProcessSpec) -> None:
        """See to it that a sweeper and exactly so many workers live; `others` are started along with them."""
        living = self.workers()
        for surplus in living[count:]:
            surplus.kill()
        missing = [self._next_worker(place) for place in range(count - len(living))]
        has_sweeper = any(process.is_alive for process in self.installation.processes if process.name == "sweeper")
        self.start(*missing, *others, *([] if has_sweeper else [build_sweeper_process()]))

    def workers(self) -> list[RealProcess]:
        """Those that live."""
        return [each for each in self.installation.processes if each.name.startswith("worker") and each.is_alive]

    def start_another_worker(self) -> None:
        self.start(self._next_worker())

    def _next_worker(self, place: int = 0) -> ProcessSpec:
        earlier = sum(process.name.startswith("worker") for process in self.installation.processes)
        return build_worker_process(earlier + place + 1)

    def submit(self, task: str, *passes: Pass) -> Run:
        """A run of the employee whose script plays these passes for exactly this task."""
        self._scripts.append({"title": task, "task": f"^{task}$", "passes": list(passes), "answer": "Done."})
        provider = self.workshop.employee.provider
        provider.script = yaml.safe_dump({"scripts": self._scripts})
        provider.save()
        return self.workshop.submit(task)

    def submit_to_model(self, task: str = "Think") -> Run:
        """A run of another employee, whose model is `self.model`."""
        organization = self.workshop.organization
        held = {"kind": ProviderKind.OPENAI, "base_url": self.model.url, "api_key": "sk-test", "timeout_s": 60}
        provider, _ = ModelProvider.objects.get_or_create(organization=organization, name="Held", defaults=held)
        answered = {"provider": provider, "model": "fake"}
        employee, _ = Employee.objects.get_or_create(organization=organization, name="Mo", defaults=answered)
        Grant.objects.get_or_create(employee=employee, tool="probe.gate")
        submission = actions.Submission(employee_id=employee.pk, task=task)
        return actions.submit(self.workshop.operator, submission)[0]

    def send(self, job: str, *runs_: Run) -> None:
        """Put a message for each of these runs into the workers' queue."""
        with Connection(build_broker_url(self.installation.redis.url)) as queue:  # type: ignore[no-untyped-call]
            for run in runs_:
                place = {"connection": queue, "queue": self.installation.queue}
                current_app.send_task(job, args=[run.pk], ignore_result=True, **place)

    def driver_of(self, run: Run) -> RealProcess:
        """The worker that holds the run's lease."""
        pid = fresh(run).lease_owner.partition("-")[0]
        return next(process for process in self.installation.processes if str(process.pid) == pid)

    def pause(self, worker: RealProcess) -> None:
        """SIGSTOP at a moment when it is not writing: a file that a stopped process has locked stays locked for all."""
        for _ in range(PAUSE_TRIES):
            worker.pause()
            if connection.vendor != "sqlite" or not _file_is_locked():
                return
            worker.resume()
            await_that(lambda: not _file_is_locked(), "nobody writes for a moment")
        raise AssertionError(f"{worker.name} always holds the database")

    def pause_driver_of(self, run: Run) -> RealProcess:
        """SIGSTOP of the worker that holds the run's lease; returns it."""
        driver = self.driver_of(run)
        self.pause(driver)
        return driver

    def await_status(self, run: Run, *statuses: str, seconds: float = 60) -> Run:
        """The run, once it has one of these statuses."""
        await_that(lambda: fresh(run).status in statuses, lambda: f"{statuses}, but {self.story(run)}", seconds)
        return fresh(run)

    def await_card(self, run: Run) -> Approval:
        """The run's card, once it waits for a decision."""
        self.await_status(run, RunStatus.WAITING)
        return self.workshop.card(run)

    def approve_next(self, run: Run, **more: Any) -> Approval:
        """Approve the run's card once it is there."""
        return self.workshop.approve(self.await_card(run), **more)

    def resolve(self, run: Run, outcome: str) -> None:
        """A person says what became of the run's unknown call."""
        (call,) = ToolCall.objects.filter(run=run, status="outcome_unknown")
        resolutions.resolve(self.workshop.approver, call.pk, outcome, "Looked at it outside.")

    def story(self, run: Run) -> str:
        """What happened to the run, for a failing test."""
        now = fresh(run)
        lines = Event.objects.filter(run=run).order_by("seq").values_list("type", flat=True)
        return f"{now.status} {now.exit_reason} crashes={now.crash_count} {now.problem!r} {list(lines)}"


@contextmanager
def leaving(worker: RealProcess) -> Iterator[None]:
    """SIGTERM; when the block has ended, the worker must have gone by itself."""
    going = threading.Thread(target=worker.stop, args=(20.0,))
    going.start()
    yield
    going.join()


def _file_is_locked() -> bool:
    with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=0.3, isolation_level=None)) as probe:
        try:
            probe.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False


def fresh(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def has_ended(run: Run) -> bool:
    return fresh(run).status in ENDED


def unsettled() -> list[int]:
    """Runs that a machine still has to do something about."""
    parked = Q(status__in=PARKED)
    graced = Q(approvals__status=ApprovalStatus.APPROVED, approvals__start_after__gt=Now())
    busy = Run.objects.exclude(parked | Q(status__in=ENDED)) | Run.objects.filter(parked & graced)
    return list(busy.values_list("pk", flat=True).distinct())


def read(name: str) -> Pass:
    """A pass with one read that waits at this gate of the recorder."""
    return {"calls": [{"tool": "probe.gate", "params": {"name": name}}]}


def effect(name: str) -> Pass:
    """A pass with one write outside our database."""
    return {"calls": [{"tool": "probe.effect", "params": {"name": name}}]}


def rename(record_id: int, to: str, gate: str = "") -> Pass:
    """A pass with one write inside our database, which may hold in its transaction."""
    return {"calls": [{"tool": "probe.rename", "params": {"record_id": record_id, "to": to, "gate": gate}}]}
