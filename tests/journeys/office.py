"""An organization in a running Gadget: its people, its runs, and their state in the database."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import redis
from channels_redis.pubsub import RedisPubSubChannelLayer
from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now
from django.test import Client

from agents.accounts.membership import issue_token
from agents.accounts.models import Membership
from agents.platform import notify
from agents.runs import actions
from agents.runs.models import ENDED, PARKED, Approval, ApprovalStatus, Event, Run, RunStatus
from agents.web.panel.slots import fold_events
from tests.awaiting import await_that
from tests.journeys.api_client import ApiClient
from tests.processes import Installation, RealProcess
from tests.recorder import Recorder
from tests.workshop import Workshop


@dataclass
class Office:
    """Everything a journey needs: rows in `workshop`, processes in `installation`, effects in
    `recorder`."""

    installation: Installation
    workshop: Workshop
    recorder: Recorder
    _seen: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._seen = {id(process): len(process.lines) for process in self.installation.processes}

    @property
    def url(self) -> str:
        return self.installation.url

    @property
    def web(self) -> RealProcess:
        return self.installation.process("web")

    def member(self, role: str) -> Membership:
        return self.workshop.members[role]

    def token(self, role: str) -> str:
        """Issue an API token for the person with this role."""
        return issue_token(self.member(role), "journey")[1]

    def api_client(self, role: str) -> ApiClient:
        """Return a client for REST and sockets, with a token of the person with this role."""
        return ApiClient(self.url, self.token(role))

    def session(self, member: Membership) -> str:
        """Log this person in, and return the value of the session cookie."""
        client = Client()
        client.force_login(member.user)
        return str(client.cookies[settings.SESSION_COOKIE_NAME].value)

    def submit(self, task: str = "Do the work") -> Run:
        """Start a run from this process; the sweeper finds it."""
        submission = actions.Submission(employee_id=self.workshop.employee.pk, task=task)
        return actions.submit(self.member("operator"), submission)[0]

    def await_status(self, run_id: int, *statuses: str) -> Run:
        """Wait until the run has one of these statuses, and return it."""
        await_that(
            lambda: load_run(run_id).status in statuses,
            lambda: f"{statuses}: {describe_run(run_id)}",
        )
        return load_run(run_id)

    def await_cards(self, run_id: int, count: int = 1) -> list[Approval]:
        """Wait until the run waits, and return its pending cards, oldest first."""
        self.await_status(run_id, RunStatus.WAITING)
        cards = self.workshop.cards(load_run(run_id))
        assert len(cards) == count, describe_run(run_id)
        return cards

    def await_end(self, run_id: int) -> Run:
        """Wait until the run has ended, and return it."""
        return self.await_status(run_id, *ENDED)

    def await_bells(self, run_id: int) -> None:
        """Wait until a socket is subscribed to this run's hints and streamed text."""
        group = f"{self.installation.queue}:bell__group__{notify.get_run_group(run_id)}"
        with redis.Redis.from_url(self.installation.redis.url) as client:
            await_that(
                lambda: client.pubsub_numsub(group)[0][1] > 0,
                f"a socket is subscribed to run {run_id}",
            )

    def stream(self, run_id: int, epoch: int, text: str, start: int) -> None:
        """Send text of the run's second pass from this character on, as a worker with this epoch
        does."""
        layer = RedisPubSubChannelLayer(
            [self.installation.redis.url], prefix=f"{self.installation.queue}:bell"
        )
        delta = {"type": "delta", "pass_number": 2, "epoch": epoch, "start": start, "text": text}
        with ThreadPoolExecutor() as beside:  # the browser's loop runs in this thread
            beside.submit(
                asyncio.run, layer.group_send(notify.get_run_group(run_id), delta)
            ).result()

    def end_grace(self) -> None:
        """End the grace period of every approval."""
        Approval.objects.filter(status=ApprovalStatus.APPROVED).update(start_after=Now())

    def list_unsettled_runs(self) -> list[int]:
        """List the runs that still wait for a worker or the sweeper."""
        graced = Q(status__in=PARKED, approvals__status=ApprovalStatus.APPROVED)
        busy = Run.objects.exclude(Q(status__in=PARKED) | Q(status__in=ENDED)) | Run.objects.filter(
            graced
        )
        return list(busy.values_list("pk", flat=True).distinct())

    def assert_no_crashes(self) -> None:
        """Assert that every part still runs, and that no process wrote a traceback meanwhile."""
        for name in {process.name for process in self.installation.processes}:
            assert self.installation.process(name).is_alive, f"{name} has ended"
        for process in self.installation.processes:
            fresh = process.lines[self._seen.get(id(process), 0) :]
            assert not any("Traceback" in line for line in fresh), "\n".join(fresh)


def load_run(run_id: int) -> Run:
    return Run.objects.get(pk=run_id)


def describe_run(run_id: int) -> str:
    """Describe the run and its events, for the message of a failed test."""
    run = load_run(run_id)
    lines = Event.objects.filter(run=run).order_by("seq").values_list("type", flat=True)
    return f"{run.status} {run.exit_reason} {run.problem!r} {list(lines)}"


def load_events(run_id: int) -> list[Event]:
    return list(Event.objects.filter(run_id=run_id).order_by("seq"))


def list_event_numbers(run_id: int) -> list[int]:
    """List the numbers of the run's events in the database: 1..n."""
    return [event.seq for event in load_events(run_id)]


def list_line_numbers(run_id: int) -> list[int]:
    """List the event numbers of the lines in a complete panel, in its order."""
    return [event.seq for event in fold_events(load_events(run_id))]


def list_payloads(run_id: int, type_: str) -> list[dict[str, Any]]:
    """List the payloads of the run's events of this type."""
    return [event.payload for event in load_events(run_id) if event.type == type_]
