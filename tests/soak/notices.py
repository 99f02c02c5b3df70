"""The soak of notices: 10,000 cards cause notices while the senders are repeatedly killed.

Everybody must be notified, and nobody twice unless a kill interrupted the sending. `python -m
tests.soak` runs this module, `tests.soak.notices`, once on each database.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time

import django

django.setup()

from django.db import connection  # noqa: E402
from django.test.utils import setup_databases, teardown_databases  # noqa: E402

from agents.accounts.notice_facts import NoticeKind  # noqa: E402
from agents.deliveries.models import DeliveryStatus  # noqa: E402
from agents.notices.models import Delivery, Notice  # noqa: E402
from agents.notices.outbox import add_notice, build_card_notice  # noqa: E402
from tests.emptying import empty_tables  # noqa: E402
from tests.faults.told_people import add_approvers, count_repeats  # noqa: E402
from tests.mail_server import MailServer  # noqa: E402
from tests.notices.canaries import plant_and_search  # noqa: E402
from tests.processes import Installation  # noqa: E402
from tests.world import make_world  # noqa: E402

CARDS = 10_000
CARDS_OF_A_RUN = 50
PEOPLE = 3
SENDERS = 2
POLL_S = 0.05
BETWEEN_KILLS_S = (1.0, 4.0)
SLOWEST_ANSWER_S = 0.3
TIMING_SCALE = 0.05
"""At this scale, a sending that a kill interrupted is repeated after 15 seconds."""
WITH_CANARIES = 500


def main() -> int:
    """Run the soak; return 0 if everybody was notified, and no message contained a value from a
    card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", type=int, default=CARDS)
    parser.add_argument(
        "--canaries", type=int, default=WITH_CANARIES, help="cards with a canary in every field"
    )
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print(f"{connection.vendor}: notices, seed {options.seed}", flush=True)
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        began = time.monotonic()
        searched = plant_and_search(options.canaries)
        print(
            f"  {options.canaries} cards with canaries: none in {searched}, {_count_seconds(began)}",
            flush=True,
        )
        empty_tables()
        _kill_senders(options.cards, random.Random(options.seed))
    finally:
        connection.close()
        teardown_databases(databases, verbosity=0)
    return 0


def _kill_senders(cards: int, chance: random.Random) -> None:
    world, began = make_world(), time.monotonic()
    with MailServer() as mail:
        mail.choose_delay = lambda: chance.uniform(0, SLOWEST_ANSWER_S)
        approvers = add_approvers(world.acme, PEOPLE)
        variables = {"MAIL_URL": mail.url, "MAIL_FROM": "gadget@example.com"}
        with Installation(timing_scale=TIMING_SCALE, variables=variables) as installation:
            senders = Senders(installation, chance)
            for number in range(cards):
                if number % CARDS_OF_A_RUN == 0:
                    run = world.run()
                add_notice(build_card_notice(NoticeKind.CARD, world.card(run)))
                senders.kill_if_due()
            made = time.monotonic()
            while _is_waiting():
                senders.kill_if_due()
                time.sleep(POLL_S)
            repeats = count_repeats(mail, approvers)
            told = f"{cards:,} cards for {PEOPLE} people in {len(mail.received):,} messages"
            print(
                f"  {told}: {senders.kills} kills, {repeats:,} repeats, {_count_seconds(began)}",
                flush=True,
            )
            print(
                f"  the last notice was sent {time.monotonic() - made:.0f} s after the cards were created",
                flush=True,
            )


class Senders:
    """The workers that send notices; every few seconds, one of them is killed and replaced."""

    def __init__(self, installation: Installation, chance: random.Random) -> None:
        self._installation, self._chance = installation, chance
        self.kills = 0
        self._living = [installation.start_worker(number + 1) for number in range(SENDERS)]
        self._plan_next()

    def kill_if_due(self) -> None:
        """Kill one worker if it is time, and start another."""
        if time.monotonic() < self._due_at:
            return
        self.kills += 1
        self._living.pop(self._chance.randrange(SENDERS)).kill()
        self._living.append(self._installation.start_worker(SENDERS + self.kills))
        self._plan_next()

    def _plan_next(self) -> None:
        self._due_at = time.monotonic() + self._chance.uniform(*BETWEEN_KILLS_S)


def _is_waiting() -> bool:
    is_unsent = Delivery.objects.filter(status=DeliveryStatus.WAITING).exists()
    return is_unsent or Notice.objects.filter(spread_at=None).exists()


def _count_seconds(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
