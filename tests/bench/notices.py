"""The time from an event's commit to its notice's arrival at the mail server and at a webhook's
receiver."""

from __future__ import annotations

import random
import time
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
from tests.mail_server import MailServer, ReceivedMail
from tests.processes import Installation
from tests.webhooks.receiver import Received, open_receiver

AIM_MAIL_MS, AIM_WEBHOOK_MS = 2_000.0, 1_400.0
REST_S = 0.4
"""The maximum pause between two notices, in seconds; about five notices are sent per second."""
WARM_UP = 3
WRITE = {"calls": [{"tool": "probe.effect", "params": {"name": "never approved"}}]}


def told(_: Installation, mail: MailServer, samples: int) -> list[Figure]:
    """Measure how soon events arrive by e-mail, and then how soon events of another organization
    arrive at its webhook."""
    with worksite([WRITE]) as site:
        run = _wait_for_card(site)
        add_known_email(site.member, "bench@example.com")
        mailed = _measure(run, samples, mail.received)
    with worksite([WRITE]) as site, open_receiver() as receiver:
        run = _wait_for_card(site)
        site.member.role = "admin"
        make_webhook(site.member, WebhookTerms("Bench", receiver.url, [WebhookKind.RUN_FAILED]))
        delivered = _measure(run, samples, receiver.received)
        Webhook.objects.all().delete()
    return [
        latency("commit of a fact → mail server", mailed, AIM_MAIL_MS),
        latency("commit of a fact → webhook's receiver", delivered, AIM_WEBHOOK_MS),
    ]


def _wait_for_card(site: Worksite) -> Run:
    """Start a run; return it when its card waits."""
    run = site.submit()
    await_that(Approval.objects.filter(run=run).exists, "a card waits")
    return run


def _measure(run: Run, samples: int, received: list[ReceivedMail] | list[Received]) -> list[float]:
    """Write events about a failed run, one at a time at irregular moments; return the seconds until
    each notice arrived.

    Args:
        received: the list to which the mail server or the webhook's receiver adds arrivals.
    """
    seconds = []
    for _ in range(samples + WARM_UP):
        time.sleep(random.uniform(0, REST_S))
        known = len(received)
        committed = _write(run)
        await_that(lambda known=known: len(received) > known, "the receiver heard of it")  # type: ignore[misc]
        seconds.append(received[known].at - committed)
    return seconds[WARM_UP:]


def _write(run: Run) -> float:
    """Write the event that ends the run, without ending it; return the wall-clock time right after
    the commit."""
    committed: list[float] = []
    with run_transaction(run.pk) as tx:
        transaction.on_commit(lambda: committed.append(time.time()))
        tx.publish(replace(RunFinished.of(tx.run, None), status=RunStatus.FAILED.value))
    return committed[0]
