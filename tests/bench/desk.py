"""A person at the desk decides a hundred different cards in a real browser. The pressed keys, the
seconds, and the bytes that reach each open page are measured.

80 routine cards of 6 shapes are decided as groups; 15 single cards and 5 destructive cards are
decided one by one. A tenth of the single cards is denied. The person is assumed to read a single
card in 2.5 s and a row of a group in 1 s; these times are added to the measured time instead of
being waited for.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from agents.accounts.models import Organization
from agents.employees.models import Grant
from agents.runs.models import Approval, ApprovalStatus, Run, RunStatus
from tests.awaiting import await_that
from tests.bench.figures import Figure, figure
from tests.bench.site import Worksite, worksite
from tests.browser import find_browser, launch_arguments
from tests.processes import Installation
from tools.office.records.models import Record

CARDS_IN_A_RUN = 20
GROUPS = (14, 14, 13, 13, 13, 13)
VALUES: dict[str, Callable[[int], str]] = {
    "region": lambda number: f"R{number}",
    "category": lambda number: f"Category {number}",
    "phone": lambda number: f"+1 555 01{number:02}",
    "email": lambda number: f"person{number}@acme.example",
    "domain": lambda number: f"branch{number}.example",
    "notes": lambda number: f"Called on day {number}",
}
"""A new value for each field of a record."""
SINGLE, DENIED, DESTRUCTIVE = 15, 3, 5
READ_CARD_S, READ_ROW_S = 2.5, 1.0
AIM_KEYS, AIM_S, AIM_BYTES = 60, 300.0, 5_000
TOTAL = sum(GROUPS) + SINGLE + DESTRUCTIVE
SEEN_MS = 300
"""The time for which a new card is shown before the person acts; it counts as part of the reading
time."""
EFFECT_MS = 5_000
MAX_TRIES = 3


@dataclass
class _Person:
    """A person on one page, with the keys they press and the bytes that reach the page."""

    page: Page
    keys: int = 0
    letters: int = 0
    refused: int = 0
    socket_bytes: int = 0
    reading_s: float = 0.0
    decided: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._count))

    def _count(self, frame: Any) -> None:
        self.socket_bytes += len(frame if isinstance(frame, bytes) else str(frame).encode())

    def press(self, key: str) -> None:
        self.keys += 1
        self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Type a confirmation; its letters are counted separately."""
        self.letters += len(text)
        self.page.keyboard.type(text)

    @property
    def received(self) -> int:
        """All bytes that reached the page since it was opened."""
        script = "() => performance.getEntriesByType('resource').reduce((sum, each) => sum + each.transferSize, 0)"
        return int(self.page.evaluate(script)) + self.socket_bytes

    def await_card(self) -> str:
        """Wait until the selected card has been shown long enough to be seen; return its id."""
        selected = "[data-row]:has(> a[aria-current])"
        row = self.page.locator(selected).get_attribute("data-row") or ""
        expect(self.page.locator(f"[data-pane] > #card-{row}")).to_be_visible()
        # Wait less than any person would, but longer than the page's guard against hasty decisions.
        self.page.wait_for_timeout(SEEN_MS)
        return row

    def count_rows(self) -> int:
        return self.page.locator("[data-row]").count()


def decide_all(installation: Installation) -> list[Figure]:
    """Measure one person who decides all cards, while another person watches the inbox."""
    with (
        worksite([{"text": "Done."}]) as site,
        _browsing(installation.url, site) as (person, onlooker),
    ):
        plan = _create_cards(site)
        for page in (person.page, onlooker.page):
            page.goto("/approvals/")
            expect(page.locator("[data-row]")).to_have_count(TOTAL)
            page.wait_for_load_state("networkidle")
        before = person.received, onlooker.received
        began = time.monotonic()
        _decide_groups(person, plan)
        _decide_rest(person, plan)
        took = time.monotonic() - began
        expect(onlooker.page.locator("[data-row]:not(.gone)")).to_have_count(0)
        received = person.received - before[0], onlooker.received - before[1]
        _check(plan)
        paced = took - SEEN_MS / 1000 * (SINGLE + DESTRUCTIVE + len(GROUPS)) + person.reading_s
    return [
        figure(f"desk: keys for {TOTAL} cards", "", [person.keys], AIM_KEYS),
        figure("desk: letters of typed confirmations besides", "", [person.letters]),
        figure("desk: refused keys", "", [person.refused], 0),
        figure("desk: with time to read", "s", [paced], AIM_S),
        figure("desk: of that, the machine", "s", [paced - person.reading_s]),
        figure(
            "desk: bytes a decision, for the one who decides", "", [received[0] / TOTAL], AIM_BYTES
        ),
        figure(
            "desk: bytes a decision, for one who looks on", "", [received[1] / TOTAL], AIM_BYTES
        ),
    ]


@dataclass
class _Plan:
    """The cards' ids, with the intended outcomes: groups and destructive cards are approved; a
    single card is approved if its value is True, else denied."""

    groups: list[list[int]] = field(default_factory=list)
    single: dict[int, bool] = field(default_factory=dict)
    destructive: dict[int, str] = field(default_factory=dict)


def _create_cards(site: Worksite) -> _Plan:
    Grant.objects.get_or_create(employee=site.employee, tool="data.bulkDelete")
    records = [
        Record.objects.create(organization=site.employee.organization, name=f"Company {number:03}")
        for number in range(TOTAL)
    ]
    calls = [
        _update(records[number], {name: VALUES[name](number)})
        for number, name in enumerate(_spread(GROUPS))
    ]
    pairs = itertools.islice(itertools.combinations(VALUES, 2), SINGLE)
    rest = iter(records[len(calls) :])
    calls += [
        _update(next(rest), {one: VALUES[one](1), other: VALUES[other](2)}) for one, other in pairs
    ]
    doomed = list(rest)
    calls += [
        {"tool": "data.bulkDelete", "params": {"record_ids": [str(each.pk)]}} for each in doomed
    ]
    for at in range(0, len(calls), CARDS_IN_A_RUN):
        site.enqueue({"calls": calls[at : at + CARDS_IN_A_RUN]})
        waiting = Run.objects.filter(pk=site.submit().pk, status=RunStatus.WAITING)
        await_that(waiting.exists, "the run waits")
    return _plan(doomed, site.member.organization)


def _spread(sizes: tuple[int, ...]) -> Iterator[str]:
    for name, size in zip(VALUES, sizes, strict=True):
        yield from itertools.repeat(name, size)


def _update(record: Record, changes: dict[str, str]) -> dict[str, Any]:
    return {
        "tool": "data.updateRecord",
        "params": {"record_id": str(record.pk), "changes": changes},
    }


def _plan(doomed: list[Record], organization: Organization) -> _Plan:
    plan, by_shape = _Plan(), dict[str, list[int]]()
    names = {str(record.pk): record.name for record in doomed}
    waiting = Approval.objects.filter(organization=organization, status=ApprovalStatus.PENDING)
    for card in waiting.order_by("tool_call_id"):
        if card.level == "destructive":
            plan.destructive[card.pk] = names[card.params["record_ids"][0]]
        else:
            by_shape.setdefault(card.shape, []).append(card.pk)
    plan.groups = [cards for cards in by_shape.values() if len(cards) > 1]
    single = [cards[0] for cards in by_shape.values() if len(cards) == 1]
    plan.single = {pk: number >= DENIED for number, pk in enumerate(single)}
    assert (len(plan.groups), len(plan.single), len(plan.destructive)) == (
        len(GROUPS),
        SINGLE,
        DESTRUCTIVE,
    )
    return plan


def _decide_groups(person: _Person, plan: _Plan) -> None:
    """Approve each group: select it, read the summary, confirm it."""
    for cards in plan.groups:
        assert int(person.await_card()) in cards
        left = person.count_rows() - len(cards)

        def approve_group() -> None:
            for key in ("Shift+X", "Shift+A", "Enter"):
                person.press(key)

        _decide(person, approve_group, left)
        person.reading_s += READ_ROW_S * len(cards)


def _decide_rest(person: _Person, plan: _Plan) -> None:
    """Decide the other cards in the order of the list."""
    while left := person.count_rows():
        card = int(person.await_card())

        def decide_card(card: int = card) -> None:
            if card in plan.destructive:
                person.press("a")
                person.type(plan.destructive[card])
                person.press("Enter")
            elif plan.single[card]:
                person.press("a")
            else:
                person.press("d")
                person.press("1")

        _decide(person, decide_card, left - 1)
        person.reading_s += READ_CARD_S


def _decide(person: _Person, press_keys: Callable[[], None], left: int) -> None:
    """Press the keys of a decision until the card leaves the list. Each attempt that has no effect
    counts as a refused key."""
    for _ in range(MAX_TRIES):
        press_keys()
        try:
            expect(person.page.locator("[data-row]")).to_have_count(left, timeout=EFFECT_MS)
        except AssertionError:
            person.refused += 1
            person.press("Escape")
        else:
            return
    raise AssertionError("a decision had no effect")


def _check(plan: _Plan) -> None:
    """Check that every card has its intended outcome."""
    approved = {
        *itertools.chain(*plan.groups),
        *plan.destructive,
        *(pk for pk, yes in plan.single.items() if yes),
    }
    wanted = {pk: pk in approved for pk in (*approved, *plan.single)}
    found = {
        card.pk: card.status in (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)
        for card in Approval.objects.filter(pk__in=wanted)
    }
    assert found == wanted, "a card has another outcome than intended"


@contextmanager
def _browsing(url: str, site: Worksite) -> Iterator[tuple[_Person, _Person]]:
    """Yield two logged-in people, each with their own page."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright's loop runs in this thread
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=launch_arguments()
        )
        try:
            yield _Person(_open(browser, url, site)), _Person(_open(browser, url, site))
        finally:
            browser.close()


def _open(browser: Browser, url: str, site: Worksite) -> Page:
    client = Client()
    client.force_login(site.member.user)
    cookie = str(client.cookies[settings.SESSION_COOKIE_NAME].value)
    context: BrowserContext = browser.new_context(
        base_url=url, viewport={"width": 1440, "height": 900}
    )
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": url}])
    context.add_init_script("performance.setResourceTimingBufferSize(10000)")
    return context.new_page()
