"""A browser whose pages this process serves without a server or sockets; many cards are shown on
one loaded page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser import find_browser, launch_arguments

UNSAFE = "DJANGO_ALLOW_ASYNC_UNSAFE"


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Start the browser. Playwright's event loop runs in this thread, so Django must be allowed to
    query the database there."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv(UNSAFE, "1")
        with playwright.chromium.launch(
            executable_path=find_browser(), args=launch_arguments()
        ) as browser:
            yield browser
