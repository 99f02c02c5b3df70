"""Tests of approvals on the engine's fixtures."""

from tests.workshop.fixtures import (  # noqa: F401
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    model,
    nothing_kept_is_stale,
    recorder,
    toolbox,
    workshop,
)
