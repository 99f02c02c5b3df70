"""A real web process for all tests of the edge, and an organization with people."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.emptying import empty_tables
from tests.gadget_site.edge.site import Site
from tests.processes import Installation
from tests.world import make_world


@pytest.fixture(scope="package")
def installation(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Installation]:
    """Run the web process, which serves one test after another."""
    with Installation() as running:
        running.start_web()
        yield running
    with django_db_blocker.unblock():
        empty_tables()


@pytest.fixture
def site(transactional_db: None, installation: Installation) -> Site:
    """Return the process with fresh rows."""
    return Site(installation, make_world())
