"""Journeys: one Gadget of real processes and one Chromium serve all journeys, each with fresh
rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from django.conf import settings
from playwright.sync_api import Browser, expect, sync_playwright
from pytest_django import DjangoDbBlocker

from tests.awaiting import await_that
from tests.browser import find_browser, launch_arguments
from tests.emptying import empty_tables
from tests.journeys.office import Office
from tests.journeys.visitor import Visit, Visitor
from tests.model_server import ModelServer, Response
from tests.probes import RECORDER_VARIABLE
from tests.processes import Installation
from tests.recorder import Recorder
from tests.workshop import build_workshop
from tests.workshop.invariants import assert_invariants

PATIENCE_MS = 60_000
UNSAFE = "DJANGO_ALLOW_ASYNC_UNSAFE"


@pytest.fixture(scope="package")
def recorder() -> Iterator[Recorder]:
    """Yield the server that stands in for the outside world of the test tools."""
    with Recorder() as outside:
        yield outside


@pytest.fixture(scope="package")
def installation(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, recorder: Recorder
) -> Iterator[Installation]:
    """Yield a web process, a sweeper and a worker, which serve one journey after another."""
    with Installation(variables={RECORDER_VARIABLE: recorder.url, UNSAFE: ""}) as running:
        running.start_all()
        yield running
    with django_db_blocker.unblock():
        empty_tables()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Yield the browser. Playwright's event loop runs in this thread, so Django has to allow
    queries in a thread with a running loop."""
    path = find_browser()
    expect.set_options(timeout=PATIENCE_MS)
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv(UNSAFE, "1")
        with playwright.chromium.launch(executable_path=path, args=launch_arguments()) as browser:
            yield browser


@pytest.fixture
def office(
    transactional_db: None, installation: Installation, recorder: Recorder
) -> Iterator[Office]:
    """Yield an organization; after the journey, all runs settle and the invariants are checked."""
    running = Office(installation, build_workshop(), recorder)
    yield running
    recorder.reset()
    await_that(lambda: not running.list_unsettled_runs(), "all runs are settled")
    assert_invariants()
    running.assert_no_crashes()
    installation.forget_files()


@pytest.fixture
def visit(office: Office, chromium: Browser) -> Iterator[Visit]:
    """Yield a function that opens a browser: `visit("approver")` logs that person in. Page errors
    fail the test."""
    with ExitStack() as contexts:
        visitors = []

        def open_one(role: str = "", *, scripts: bool = True) -> Visitor:
            context = contexts.enter_context(
                chromium.new_context(
                    base_url=office.url, java_script_enabled=scripts, reduced_motion="reduce"
                )
            )
            visitor = Visitor(context, office.url)
            visitors.append(visitor)
            if role:
                session = office.session(office.member(role))
                context.add_cookies(
                    [{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": office.url}]
                )
            return visitor

        yield open_one
        for visitor in visitors:
            visitor.assert_no_complaints()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """Yield a model server over real HTTP."""
    with ModelServer() as server:
        server.title = Response(text="Named by its model")
        yield server
