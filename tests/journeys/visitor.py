"""A person in a browser: their actions, the content of their pages, and the errors on them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    Request,
    Response,
    expect,
)
from playwright.sync_api import WebSocket as PageSocket

from tests.awaiting import await_that
from tests.journeys.office import list_line_numbers

# Console messages of the browser about refused requests and lost servers; the tests check those
# cases themselves.
NETWORK_MESSAGES = ("Failed to load resource", "WebSocket connection to")
STANDS_STILL_S = 0.45
IS_TOO_WIDE = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
PANEL_LINES = "() => [...document.querySelectorAll('#panel > li')].map((line) => Number(line.dataset.seq ?? -1))"
STILL = """(card) => {
  const top = card.getBoundingClientRect().top + scrollY;
  if (card.seenAt?.top !== top) card.seenAt = { top, at: performance.now() };
  return performance.now() - card.seenAt.at;
}"""
HIDE_NOTE = "(card) => card.querySelector('[data-outcome]')?.setAttribute('hidden', '')"


class Visitor:
    """One browser context with one page.

    Attributes:
        received: every message of a run's socket, in order.
        requests: method and path of every request.
    """

    def __init__(self, context: BrowserContext, url: str) -> None:
        self._url = url
        self.received: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self._complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self._complaints.append(f"error: {error}"))
        self.page.on("dialog", self._note_dialog)
        self.page.on("request", self._note_request)
        self.page.on("response", self._note_response)
        self.page.on("websocket", self._listen)

    # Actions

    def log_in(self, username: str, password: str) -> None:
        self.page.goto("/login/")
        self.page.get_by_label("Username").fill(username)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.locator("body")).to_have_attribute("data-user", username)

    def start(self, employee: str, task: str) -> int:
        """Assign the task with the form; return the run's id."""
        self.choose(employee)
        self.page.locator("textarea[name=task]").fill(task)
        self.page.get_by_role("button", name="Start", exact=True).click()
        return self.run_id()

    def choose(self, employee: str) -> None:
        """Choose the employee on the start page, by the beginning of its name."""
        self.page.goto("/")
        name = self.page.locator("b", has_text=re.compile(rf"^\s*{re.escape(employee)}"))
        self.page.locator(".person > label").filter(has=name).first.click()

    def open_run(self, run_id: int) -> None:
        self.page.goto(f"/runs/{run_id}/")

    def approve(self, card: Locator) -> None:
        """Press Approve after the card has stayed in place for longer than it ignores clicks; try
        again if the card moved at that moment."""
        for _ in range(3):
            self.await_stillness(card)
            card.evaluate(HIDE_NOTE)  # a note about an earlier click says nothing about this one
            card.locator(".approve-button").click()
            if not card.get_by_text("The list just moved.").is_visible():
                return

    def deny(self, card: Locator, reason: str) -> None:
        card.get_by_text("Deny…").click()
        card.get_by_label(re.compile("Reason")).fill(reason)
        self.await_stillness(card)
        card.get_by_role("button", name="Deny", exact=True).click()

    def await_stillness(self, card: Locator) -> None:
        """Wait until the card has not moved for a moment."""
        await_that(lambda: card.evaluate(STILL) > STANDS_STILL_S * 1000, "the card does not move")

    def block_sockets(self) -> None:
        """Keep the sockets of all later pages silent, so that they do not learn of changes made
        elsewhere."""
        self.page.route_web_socket(re.compile("/ws/"), lambda _socket: None)

    # Content of the page

    def run_id(self) -> int:
        """Wait for the page of a run, and return the run's id."""
        self.page.wait_for_url(re.compile(r"/runs/\d+/"))
        found = re.search(r"/runs/(\d+)/", self.page.url)
        assert found is not None
        return int(found[1])

    def card(self, approval_id: int) -> Locator:
        return self.page.locator(f"#card-{approval_id}")

    @property
    def open_cards(self) -> Locator:
        return self.page.locator("article.card[data-open]")

    @property
    def answer(self) -> Locator:
        return self.page.locator(".answer")

    @property
    def lost_bar(self) -> Locator:
        return self.page.locator("[data-lost]")

    def panel_lines(self) -> list[int]:
        """Return the numbers of the panel's lines from top to bottom; -1 for streaming text."""
        numbers: list[int] = self.page.evaluate(PANEL_LINES)
        return numbers

    def assert_panel_is_whole(self, run_id: int) -> None:
        """Wait until the panel shows every line of the database once and in order."""
        await_that(
            lambda: self.panel_lines() == list_line_numbers(run_id),
            f"the panel {self.panel_lines()} is whole",
        )

    def assert_static_panel_is_whole(self, run_id: int) -> None:
        """Check that the panel of a page without scripts shows every line of the database once and
        in order."""
        lines = self.page.locator("#panel > li")
        assert [
            int(line.get_attribute("data-seq") or -1) for line in lines.all()
        ] == list_line_numbers(run_id)

    def assert_no_complaints(self) -> None:
        """Assert that there was no script error, dialog, policy violation, server error or request
        to another host."""
        assert not self._complaints, self._complaints

    # Recording

    def _listen(self, socket: PageSocket) -> None:
        if "/ws/runs/" in socket.url:
            socket.on("framereceived", lambda frame: self.received.append(json.loads(frame)))

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(NETWORK_MESSAGES):
            self._complaints.append(message.text)

    def _note_dialog(self, dialog: Dialog) -> None:
        self._complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_request(self, request: Request) -> None:
        self.requests.append(f"{request.method} {request.url.removeprefix(self._url)}")
        if not request.url.startswith((self._url, "data:")):
            self._complaints.append(f"request to {request.url}")

    def _note_response(self, response: Response) -> None:
        if response.status >= 500 or (response.status >= 400 and "/static/" in response.url):
            self._complaints.append(f"{response.status} {response.url}")


Visit = Callable[..., Visitor]
