"""A message that is sent to a trigger repeatedly, while the web process is killed in between,
starts only one run."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException

import pytest

from agents.runs.models import Run
from agents.triggers.models import ReceivedMessage, Trigger
from tests.awaiting import await_that
from tests.faults.site import Site
from tests.features import feature
from tests.sampling import take_sample
from tests.triggers.conftest import add_trigger, sign

DELIVERIES = 50
SENDERS = 5
BODY = json.dumps({"title": "Shop is down"}).encode()
"""The body of every message."""


class Sender:
    """Sends one message until it has been accepted as often as required."""

    def __init__(self, site: Site, trigger: Trigger, delivery: str) -> None:
        self.port = site.installation.port
        self.path = f"/hooks/{trigger.public_id}"
        self.headers = {**sign(BODY, delivery), "Content-Type": "application/json"}
        self.runs: list[str] = []
        self.lost = 0
        self._lock = threading.Lock()

    def send_once(self, _: int = 0) -> None:
        """Send the message, again after each failure, until it is accepted."""
        while True:
            connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
            try:
                connection.request("POST", self.path, BODY, self.headers)
                response = connection.getresponse()
                status, text = response.status, response.read()
            except (OSError, HTTPException):
                with self._lock:
                    self.lost += 1
                threading.Event().wait(0.02)
                continue
            finally:
                connection.close()
            if status == 202:
                with self._lock:
                    self.runs.append(json.loads(text)["run_id"])
                return


@feature(
    "Agents elsewhere",
    "A message starts one run, however often it comes",
    "agents/triggers/receiving.py",
)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("delivery", ["d1", ""], ids=["id", "no id"])
@pytest.mark.parametrize("kills", take_sample([2, 5, 10], 3, "kills of the web"))
def test_a_message_that_is_sent_fifty_times_starts_only_one_run_despite_kills(
    site: Site, delivery: str, kills: int
) -> None:
    site.have_workers(1)
    site.have_web()
    site.workshop.play(answer="Seen.")
    sender = Sender(site, add_trigger(site.workshop), delivery)
    with ThreadPoolExecutor(SENDERS) as pool:
        sent = [pool.submit(sender.send_once) for _ in range(DELIVERIES)]
        for number in range(kills):
            share = DELIVERIES * number // (kills + 1)
            await_that(lambda: len(sender.runs) >= share, "some were accepted", 60)  # noqa: B023
            site.have_web().kill()
            site.have_web()
        for one in sent:
            one.result(120)
    assert len(sender.runs) == DELIVERIES
    assert set(sender.runs) == {str(Run.objects.get().pk)}
    assert ReceivedMessage.objects.count() == 1
