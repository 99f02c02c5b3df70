"""The time from the commit of a fact to the arrival of its notice at the mail server."""

from __future__ import annotations

import random
import time
from dataclasses import replace

from django.db import transaction

from agents.notices.channels import add_known_email
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import RunFinished
from agents.runs.models import Approval, Run, RunStatus
from tests.awaiting import await_that
from tests.bench.figures import Figure, latency
from tests.bench.site import worksite
from tests.mail_server import MailServer
from tests.processes import Installation

AIM_MS = 2_000.0
REST_S = 0.4
"""The longest pause between two notices: about five come in a second."""
WARM_UP = 3
WRITE = {"calls": [{"tool": "probe.effect", "params": {"name": "never approved"}}]}


def told(_: Installation, mail: MailServer, samples: int) -> list[Figure]:
    """Write one event about a failed run at a time, at irregular moments, and measure when its e-mail arrives."""
    with worksite([WRITE]) as site:
        run, seconds = site.submit(), []
        await_that(Approval.objects.filter(run=run).exists, "a card waits")
        add_known_email(site.member, "bench@example.com")
        for _sample in range(samples + WARM_UP):
            time.sleep(random.uniform(0, REST_S))
            known = len(mail.received)
            committed = _write(run)
            mail.wait_for(known + 1)
            seconds.append(time.time() - committed)
    return [latency("commit of a fact → mail server", seconds[WARM_UP:], AIM_MS)]


def _write(run: Run) -> float:
    """Write the event of an end, without ending the run; return the wall-clock time right after its commit."""
    committed: list[float] = []
    with run_transaction(run.pk) as tx:
        transaction.on_commit(lambda: committed.append(time.time()))
        tx.publish(replace(RunFinished.of(tx.run, None), status=RunStatus.FAILED.value))
    return committed[0]
