"""The page of a card in a real browser. Cards are shown on it one after another, and are judged by
the parts that are visible at first sight."""

from __future__ import annotations

import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Browser, Route, ViewportSize

from agents.runs.models import Approval

SIZES: tuple[ViewportSize, ...] = ({"width": 1440, "height": 900}, {"width": 360, "height": 740})
"""The windows of a reader: a desktop and a phone."""

SITE = "http://gadget.test"
SHOW = """async ([html, script]) => {
  const { prepareCards } = await import(script);
  const old = document.querySelector("[data-card]");
  old.insertAdjacentHTML("afterend", html);
  old.remove();
  document.querySelector(".missing, .notice.warning")?.remove();
  prepareCards();
  scrollTo(0, 0);
  await new Promise((done) => requestAnimationFrame(() => done()));
}"""
LOOK = """([place, text]) => {
  const seen = [...document.querySelectorAll(`[data-card] ${place}`)].filter((one) => {
    if (one.closest(".approve-button")) one.scrollIntoView(); // whoever presses it has it in view
    const holder = [...one.querySelectorAll("*"), one].filter((part) => part.textContent.includes(text));
    const part = holder.find((each) => ![...each.children].some((child) => holder.includes(child)));
    const box = part?.getBoundingClientRect();
    const isInside = box && box.height > 0 && box.top >= 0 && box.top + 10 <= innerHeight && box.left >= 0;
    return isInside && part.checkVisibility();
  });
  const button = document.querySelector(".approve-button");
  const isWide = document.documentElement.scrollWidth > innerWidth;
  return { isInView: seen.length > 0, isOff: button.disabled, isWide };
}"""


@dataclass(frozen=True)
class Sight:
    """The result of a reader's first look at a card: three facts about the sign's visibility, the
    Approve button and the page's width."""

    is_in_view: bool
    is_off: bool
    is_too_wide: bool


class ReadingPage:
    """One loaded page of an approver in a browser of this size."""

    def __init__(self, browser: Browser, client: Client, size: ViewportSize) -> None:
        self._client = client
        self._context = browser.new_context(viewport=size, reduced_motion="reduce")
        self.page = self._context.new_page()
        self.page.route_web_socket(re.compile("/ws/"), lambda socket: None)
        self.page.route("**/*", self._serve)
        self._first_page = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()

    def show(self, card: Approval) -> None:
        """Show the card instead of the previous one, as a live page does."""
        if not self._first_page:
            self._first_page = self._client.get(f"/approvals/{card.pk}/").content
            self.page.goto(SITE)
        html = self._client.get(f"/approvals/{card.pk}/card/").content.decode()
        self.page.evaluate(SHOW, [html, "/static/js/cards/cards.js"])

    def look(self, place: str, text: str) -> Sight:
        """Look for a sign with this text, without scrolling (except to the Approve button) or
        opening anything."""
        found = self.page.evaluate(LOOK, [place, text])
        return Sight(found["isInView"], found["isOff"], found["isWide"])

    def _serve(self, route: Route) -> None:
        path = route.request.url.removeprefix(SITE)
        if path.startswith("/static/"):
            file = finders.find(path.removeprefix("/static/").partition("?")[0])
            assert isinstance(file, str), path
            route.fulfill(
                body=Path(file).read_bytes(), content_type=mimetypes.guess_type(file)[0] or ""
            )
            return
        # Django would open another connection here, in Playwright's context, so the page is
        # rendered beforehand.
        route.fulfill(body=self._first_page, content_type="text/html; charset=utf-8")
