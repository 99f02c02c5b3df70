"""The time from the commit of a fact to the arrival of its notice at the mail server, and at a webhook's receiver."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

from django.db import transaction

from agents.notices.channels import add_known_email
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import RunFinished
from agents.runs.models import Approval, Run, RunStatus
from agents.webhooks.changes import WebhookTerms, make_webhook
from agents.webhooks.models import Webhook, WebhookKind
from tests.awaiting import await_that
from tests.bench.figures import Figure, latency
from tests.bench.site import Worksite, worksite
from tests.mail_server import MailServer
from tests.processes import Installation
from tests.webhooks.receiver import open_receiver

AIM_MAIL_MS, AIM_WEBHOOK_MS = 2_000.0, 1_400.0
REST_S = 0.4
"""The longest pause between two notices: about five come in a second."""
WARM_UP = 3
WRITE = {"calls": [{"tool": "probe.effect", "params": {"name": "never approved"}}]}


def told(_: Installation, mail: MailServer, samples: int) -> list[Figure]:
    """Measure when the e-mails about facts arrive, and then when the webhook of another organization hears of them."""
    with worksite([WRITE]) as site:
        add_known_email(site.member, "bench@example.com")

        def wait_for_mail(count: int) -> float:
            mail.wait_for(count)
            return time.time()

        mailed = _measure(site, samples, wait_for_mail)
    with worksite([WRITE]) as site, open_receiver() as receiver:
        site.member.role = "admin"
        make_webhook(site.member, WebhookTerms("Bench", receiver.url, [WebhookKind.RUN_FAILED]))

        def wait_for_request(count: int) -> float:
            await_that(lambda: len(receiver.received) >= count, "the receiver heard of it")
            return receiver.received[count - 1].at

        delivered = _measure(site, samples, wait_for_request)
        Webhook.objects.all().delete()
    return [
        latency("commit of a fact → mail server", mailed, AIM_MAIL_MS),
        latency("commit of a fact → webhook's receiver", delivered, AIM_WEBHOOK_MS),
    ]


def _measure(site: Worksite, samples: int, wait_for: Callable[[int], float]) -> list[float]:
    """Write one event about a failed run at a time, at irregular moments; return the seconds until each was told.

    Args:
        wait_for: waits until so many facts were told; returns the wall-clock time at which the last one was.
    """
    run, seconds = site.submit(), []
    await_that(Approval.objects.filter(run=run).exists, "a card waits")
    for count in range(1, samples + WARM_UP + 1):
        time.sleep(random.uniform(0, REST_S))
        committed = _write(run)
        seconds.append(wait_for(count) - committed)
    return seconds[WARM_UP:]


def _write(run: Run) -> float:
    """Write the event of an end, without ending the run; return the wall-clock time right after its commit."""
    committed: list[float] = []
    with run_transaction(run.pk) as tx:
        transaction.on_commit(lambda: committed.append(time.time()))
        tx.publish(replace(RunFinished.of(tx.run, None), status=RunStatus.FAILED.value))
    return committed[0]
