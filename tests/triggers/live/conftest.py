"""Web, worker and sweeper as processes, which serve all tests of a file."""

from tests.faults.conftest import installation, model, recorder, site  # noqa: F401
from tests.gateway.live.conftest import running  # noqa: F401
