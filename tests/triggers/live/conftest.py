"""Fixtures for tests with real processes: one web process, worker and sweeper serve all tests in a
file."""

from tests.faults.conftest import installation, model, recorder, site  # noqa: F401
from tests.gateway.live.conftest import running  # noqa: F401
