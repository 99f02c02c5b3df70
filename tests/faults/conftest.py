"""Fault tests: real processes that live through one file's tests; after each of them everything must have settled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from pytest_django import DjangoDbBlocker

from tests.engine.invariants import assert_invariants
from tests.engine.workshop import build_workshop
from tests.faults.awaiting import await_that
from tests.faults.site import Site, unsettled
from tests.model_server import ModelServer
from tests.probes import RECORDER_VARIABLE
from tests.processes import Installation
from tests.recorder import Recorder


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    """The outside world."""
    with Recorder() as outside:
        yield outside


@pytest.fixture(scope="module")
def installation(
    request: pytest.FixtureRequest, recorder: Recorder, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Installation]:
    """A Gadget at a tenth of the real times, or at the file's TIMING_SCALE; its rows go with it."""
    scale = getattr(request.module, "TIMING_SCALE", 0.1)
    with django_db_blocker.unblock():
        with Installation(timing_scale=scale, variables={RECORDER_VARIABLE: recorder.url}) as running:
            yield running
        call_command("flush", interactive=False, verbosity=0)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    """A model that can be held."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def site(
    request: pytest.FixtureRequest, installation: Installation, recorder: Recorder, model: ModelServer
) -> Iterator[Site]:
    """An organisation of the test's own; when the test has ended, the invariants must hold."""
    workshop = build_workshop(f"site{id(request):x}")
    yield Site(installation, workshop, recorder, model)
    await_that(lambda: not unsettled(workshop.organization), "all runs are settled")
    doubled = {key: count for key, count in recorder.effects.items() if count > 1}
    model.reset()
    recorder.reset()
    assert_invariants()
    assert not doubled
