"""A push reaches the service worker while no page is open; the card is opened and decided, and its
notification disappears.

The browser's developer protocol delivers the message, because no real push service is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, expect

from agents.deliveries.channels.push import make_key_if_missing
from tests.awaiting import await_that
from tests.browser import find_full_browser, launch_arguments
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.visitor import STANDS_STILL_S, STILL, Visit
from tests.workshop import asking, call

REGISTER = """async () => {
  await navigator.serviceWorker.register("/service-worker.js");
  await navigator.serviceWorker.ready;
}"""
CLOSED_BY_ITSELF_S = 20
"""After this time, Chromium removes a notification automatically."""
SUBSCRIBE_WITH_OLD_KEY = """() => {
  const note = (text) => localStorage.setItem("calls", `${localStorage.getItem("calls") ?? ""}${text},`);
  PushManager.prototype.getSubscription = async () => ({
    options: { applicationServerKey: new Uint8Array(65).fill(4).buffer },
    unsubscribe: async () => note("ended"),
  });
  PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
    note(`made:${applicationServerKey}`);
    return { toJSON: () => ({ endpoint: "https://push.example/a", keys: { p256dh: "a", auth: "b" } }) };
  };
}"""
"""Replaces the browser's subscription, whose service no test can reach, with one for an old key,
and records each call."""
LIST_NOTIFICATIONS = """async () => {
  const registration = await navigator.serviceWorker.getRegistration("/");
  const shown = await registration.getNotifications();
  return shown.map((one) => ({ title: one.title, tag: one.tag, path: one.data?.path }));
}"""


class Worker:
    """The service worker of one browser, watched from an empty page outside the site."""

    def __init__(self, context: BrowserContext, office: Office) -> None:
        context.grant_permissions(["notifications"], origin=office.url)
        page = context.new_page()
        page.goto("/notices/")
        page.evaluate(REGISTER)
        self._registration = ""
        self._watcher: Page = context.new_page()
        self._protocol: CDPSession = context.new_cdp_session(self._watcher)
        self._protocol.on("ServiceWorker.workerRegistrationUpdated", self._learn)
        self._protocol.send("ServiceWorker.enable")
        page.close()
        self._context, self._office = context, office

    def push(self, **message: Any) -> None:
        await_that(
            lambda: self._watcher.evaluate("1") and self._registration, "the worker is registered"
        )
        self._protocol.send(
            "ServiceWorker.deliverPushMessage",
            {
                "origin": self._office.url,
                "registrationId": self._registration,
                "data": json.dumps(message),
            },
        )

    def await_notifications(self, *expected: dict[str, str]) -> None:
        """Wait until exactly these notifications are shown. The check uses a page that runs none of
        Gadget's scripts."""
        page = self._context.new_page()
        page.goto("/service-worker.js")
        said = f"{expected} are shown"
        await_that(
            lambda: page.evaluate(LIST_NOTIFICATIONS) == list(expected),
            said,
            CLOSED_BY_ITSELF_S / 3,
        )
        page.close()

    def _learn(self, event: dict[str, Any]) -> None:
        for registration in event["registrations"]:
            self._registration = registration["registrationId"]


@pytest.fixture
def phone(office: Office, chromium: Browser) -> Iterator[BrowserContext]:
    """Yield a phone whose browser shows notifications, with the approver logged in."""
    launched = chromium.browser_type.launch(
        executable_path=find_full_browser(), args=launch_arguments()
    )
    with (
        launched,
        launched.new_context(
            base_url=office.url, viewport={"width": 360, "height": 740}
        ) as context,
    ):
        session = office.session(office.member("approver"))
        context.add_cookies(
            [{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": office.url}]
        )
        yield context


@feature(
    "The gate",
    "A push leads to the card, and its notification closes with the decision, or "
    "later where silent messages end a subscription",
    "static/js/service-worker.js",
)
def test_a_push_opens_its_card_and_disappears_with_the_decision(
    office: Office, phone: BrowserContext, visit: Visit
) -> None:
    office.workshop.play(asking(call("probe.effect", name="a")))
    (card,) = office.await_cards(office.submit().pk)
    desk, worker = visit("admin"), Worker(phone, office)
    desk.page.goto("/approvals/")
    expect(desk.page.locator(f"#row-{card.pk}")).to_be_visible()
    shown = {
        "title": "A decision is waiting",
        "tag": f"card-{card.pk}",
        "path": f"/approvals/{card.pk}/",
    }
    worker.push(**shown, waiting=1)
    worker.await_notifications(shown)
    page = phone.new_page()
    page.goto(shown["path"])
    # No notification is shown, because an open page already shows the waiting cards.
    worker.await_notifications()
    shown_card = page.locator(".card")
    await_that(lambda: shown_card.evaluate(STILL) > STANDS_STILL_S * 1000, "the card does not move")
    shown_card.locator(".approve-button").click()
    expect(desk.page.locator("main")).to_contain_text("Approved by acme-approver")
    desk.page.reload()
    expect(desk.page.locator(f"#row-{card.pk}")).to_have_count(0)
    worker.push(**shown, waiting=1)
    worker.await_notifications(shown)
    worker.push(close=[shown["tag"]], waiting=0)
    worker.await_notifications()


@pytest.mark.every_commit
def test_a_browser_with_an_outdated_key_subscribes_again(
    office: Office, phone: BrowserContext
) -> None:
    make_key_if_missing()
    phone.grant_permissions(["notifications"], origin=office.url)
    phone.add_init_script(f"({SUBSCRIBE_WITH_OLD_KEY})()")
    page = phone.new_page()
    page.goto("/notices/")
    form = page.locator("[data-add-browser]")
    key = form.get_attribute("data-add-browser")
    with page.expect_navigation():
        form.locator("button").click()
    assert page.evaluate("localStorage.getItem('calls')") == f"ended,made:{key},"
