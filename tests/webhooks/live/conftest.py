"""Fixtures for tests with real processes: one web process, worker and sweeper serve all tests in a
file, and may reach receivers on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.emptying import empty_tables
from tests.faults.conftest import model, recorder, site  # noqa: F401
from tests.probes import RECORDER_VARIABLE
from tests.processes import Installation
from tests.recorder import Recorder


@pytest.fixture(scope="module")
def installation(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    recorder: Recorder,  # noqa: F811
) -> Iterator[Installation]:
    """Start all parts of a Gadget that may reach receivers on this machine."""
    variables = {RECORDER_VARIABLE: recorder.url, "ALLOWED_PRIVATE_HOSTS": "127.0.0.1"}
    with Installation(variables=variables, is_forked=True) as running:
        running.start_all()
        yield running
    with django_db_blocker.unblock():
        empty_tables()
