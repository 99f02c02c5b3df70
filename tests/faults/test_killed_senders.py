"""kill -9 of a worker while it sends notices: everybody is notified, and each kill repeats only
interrupted notifications."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from agents.accounts.models import Membership
from agents.deliveries.models import DeliveryStatus
from agents.notices.models import Delivery
from agents.runs.models import RunStatus
from tests.awaiting import await_that
from tests.emptying import empty_tables
from tests.faults.site import Site, effect, read
from tests.faults.told_people import add_approvers, count_repeats
from tests.features import feature
from tests.mail_server import MailServer
from tests.probes import RECORDER_VARIABLE
from tests.processes import Installation
from tests.recorder import Recorder

TIMING_SCALE = 0.05
KILLS = 3
APPROVERS = 4
CARDS = 6


@pytest.fixture(scope="module")
def mail() -> Iterator[MailServer]:
    """A mail server whose responses can be held."""
    with MailServer() as server:
        yield server


@pytest.fixture(scope="module")
def installation(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, recorder: Recorder, mail: MailServer
) -> Iterator[Installation]:
    """Gadget with a mail server."""
    variables = {
        RECORDER_VARIABLE: recorder.url,
        "MAIL_URL": mail.url,
        "MAIL_FROM": "gadget@example.com",
    }
    with Installation(timing_scale=TIMING_SCALE, variables=variables, is_forked=True) as running:
        yield running
    with django_db_blocker.unblock():
        empty_tables()


@pytest.fixture(autouse=True)
def approvers(site: Site, mail: MailServer) -> Iterator[list[Membership]]:
    """Yield approvers who are notified by mail; the mail server starts without messages."""
    mail.received.clear()
    yield add_approvers(site.workshop.organization, APPROVERS)
    mail.release()


@feature(
    "The gate",
    "A mail server that hangs delays no run, and everybody is notified although a sender was killed",
    "agents/deliveries/engine.py",
)
def test_everybody_is_notified_and_a_kill_repeats_only_interrupted_notifications(
    site: Site, mail: MailServer, approvers: list[Membership]
) -> None:
    mail.hold()
    site.have_workers(1)
    calls = [call for number in range(CARDS) for call in effect(f"pay{number}")["calls"]]
    run = site.submit("Pay", {"calls": calls})
    site.await_status(run, RunStatus.WAITING)
    for _ in range(KILLS):
        mail.wait_for_held()
        site.workers()[0].kill()
        mail.release()
        await_that(lambda: not mail.held, "the dead sender's message arrives")
        mail.hold()
        site.have_workers(1)
    mail.release()
    await_that(
        lambda: not Delivery.objects.filter(status=DeliveryStatus.WAITING).exists(),
        "everything is sent",
        60,
    )
    repeats = count_repeats(mail, approvers)
    assert 0 < repeats <= KILLS * CARDS, "each kill hit a message that had arrived"


def test_a_hanging_mail_server_does_not_delay_runs(site: Site, mail: MailServer) -> None:
    mail.hold()
    site.have_workers(1)
    first = site.submit("Pay", effect("pay"))
    site.await_status(first, RunStatus.WAITING)
    mail.wait_for_held()
    second = site.submit("Read", read("read"))
    site.recorder.await_arrival("read")
    site.await_status(second, RunStatus.SUCCEEDED, seconds=30)
    assert mail.held
    site.workshop.deny(site.workshop.card(first))
