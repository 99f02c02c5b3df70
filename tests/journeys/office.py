"""An organization in a running Gadget: who works there, what the runs came to, and the database's word on it."""

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
from agents.approvals.models import Approval, ApprovalStatus
from agents.platform import notify
from agents.runs import actions
from agents.runs.models import ENDED, PARKED, Event, Run, RunStatus
from agents.web.panel.slots import fold_events
from tests.awaiting import await_that
from tests.journeys.outside import Outside
from tests.processes import Installation, RealProcess
from tests.recorder import Recorder
from tests.workshop import Workshop


@dataclass
class Office:
    """Everything a journey needs: `workshop` holds the rows, `installation` the processes, `recorder` is outside."""

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
        """A new API token of the person with this role."""
        return issue_token(self.member(role), "journey")[1]

    def outside(self, role: str) -> Outside:
        """REST and sockets as the person with this role, by token."""
        return Outside(self.url, self.token(role))

    def session(self, member: Membership) -> str:
        """The session cookie's value of a browser in which this person is logged in."""
        client = Client()
        client.force_login(member.user)
        return str(client.cookies[settings.SESSION_COOKIE_NAME].value)

    def submit(self, task: str = "Do the work") -> Run:
        """A run started in this process; the sweeper finds it."""
        submission = actions.Submission(employee_id=self.workshop.employee.pk, task=task)
        return actions.submit(self.member("operator"), submission)[0]

    def await_status(self, run_id: int, *statuses: str) -> Run:
        """The run, once it has one of these statuses."""
        await_that(lambda: run_of(run_id).status in statuses, lambda: f"run {run_id} is {statuses}: {story(run_id)}")
        return run_of(run_id)

    def await_cards(self, run_id: int, count: int = 1) -> list[Approval]:
        """The run's waiting cards, oldest first, once it waits."""
        self.await_status(run_id, RunStatus.WAITING)
        cards = self.workshop.cards(run_of(run_id))
        assert len(cards) == count, story(run_id)
        return cards

    def await_end(self, run_id: int) -> Run:
        """The run, once it has ended."""
        return self.await_status(run_id, *ENDED)

    def await_bells(self, run_id: int) -> None:
        """Until somebody's socket hears the bells of this run, and the text that its model writes."""
        group = f"{self.installation.queue}:bell__group__{notify.get_run_group(run_id)}"
        with redis.Redis.from_url(self.installation.redis.url) as client:
            await_that(lambda: client.pubsub_numsub(group)[0][1] > 0, f"a socket hears the bells of run {run_id}")

    def stream(self, run_id: int, epoch: int, text: str) -> None:
        """Text of the run's second pass, as the worker of this epoch would send it."""
        layer = RedisPubSubChannelLayer([self.installation.redis.url], prefix=f"{self.installation.queue}:bell")
        delta = {"type": "delta", "pass_number": 2, "epoch": epoch, "text": text}
        with ThreadPoolExecutor() as beside:  # the browser's loop runs in this thread
            beside.submit(asyncio.run, layer.group_send(notify.get_run_group(run_id), delta)).result()

    def end_grace(self) -> None:
        """The grace of every approval is over now."""
        Approval.objects.filter(status=ApprovalStatus.APPROVED).update(start_after=Now())

    def unsettled(self) -> list[int]:
        """Runs that a machine still has to do something about."""
        graced = Q(status__in=PARKED, approvals__status=ApprovalStatus.APPROVED)
        busy = Run.objects.exclude(Q(status__in=PARKED) | Q(status__in=ENDED)) | Run.objects.filter(graced)
        return list(busy.values_list("pk", flat=True).distinct())

    def assert_sound(self) -> None:
        """No process died that was not killed on purpose, and none wrote a traceback meanwhile."""
        for name in {process.name for process in self.installation.processes}:
            assert self.installation.process(name).is_alive, f"{name} is dead"
        for process in self.installation.processes:
            fresh = process.lines[self._seen.get(id(process), 0) :]
            assert not any("Traceback" in line for line in fresh), "\n".join(fresh)


def run_of(run_id: int) -> Run:
    return Run.objects.get(pk=run_id)


def story(run_id: int) -> str:
    """What happened to the run, for a failing test."""
    run = run_of(run_id)
    lines = Event.objects.filter(run=run).order_by("seq").values_list("type", flat=True)
    return f"{run.status} {run.exit_reason} {run.problem!r} {list(lines)}"


def events_of(run_id: int) -> list[Event]:
    return list(Event.objects.filter(run_id=run_id).order_by("seq"))


def numbers_of(run_id: int) -> list[int]:
    """The numbers of all events of the run, as the database has them: 1..n."""
    return [event.seq for event in events_of(run_id)]


def lines_of(run_id: int) -> list[int]:
    """The numbers of the lines that a whole panel shows, in its order."""
    return [event.seq for event in fold_events(events_of(run_id))]


def told(run_id: int, type_: str) -> list[dict[str, Any]]:
    """The payloads of the run's events of this type."""
    return [event.payload for event in events_of(run_id) if event.type == type_]
