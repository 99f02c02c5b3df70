"""The time from a notice's commit to its arrival at the mail server."""

from __future__ import annotations

import random
import time

from django.db import transaction

from agents.accounts.notice_facts import NoticeKind
from agents.notices.channels import add_known_email
from agents.notices.models import Notice
from agents.notices.outbox import send_soon
from agents.runs.models import Approval
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
    """Write one notice at a time about a waiting card, at irregular moments, and measure when its e-mail arrives."""
    with worksite([WRITE]) as site:
        run, seconds = site.submit(), []
        await_that(Approval.objects.filter(run=run).exists, "a card waits")
        card = Approval.objects.get(run=run)
        add_known_email(site.member, "bench@example.com")
        for number in range(samples + WARM_UP):
            time.sleep(random.uniform(0, REST_S))
            known = len(mail.received)
            committed = _write(card, number)
            mail.wait_for(known + 1)
            seconds.append(time.time() - committed)
    return [latency("commit of a notice → mail server", seconds[WARM_UP:], AIM_MS)]


def _write(card: Approval, number: int) -> float:
    """Write a notice; return the wall-clock time right after its commit."""
    committed: list[float] = []
    with transaction.atomic():
        transaction.on_commit(lambda: committed.append(time.time()))
        key = f"bench:{card.pk}:{number}"
        about = {"run_id": card.run_id, "approval": card, "key": key}
        Notice.objects.create(organization=card.organization, kind=NoticeKind.CARD, **about)
        send_soon()
    return committed[0]
