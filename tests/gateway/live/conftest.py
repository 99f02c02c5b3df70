"""Web, worker and sweeper as processes, which serve all tests of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.gateway.keys import issue_key
from tests.faults.conftest import installation, model, recorder, site  # noqa: F401
from tests.faults.site import Site
from tests.gateway.live.hook import Hook
from tests.processes import Installation


@pytest.fixture(scope="module")
def running(installation: Installation) -> Installation:  # noqa: F811
    """Start all parts once for the file."""
    installation.start_all()
    return installation


@pytest.fixture
def secret(running: Installation, site: Site) -> str:  # noqa: F811
    """Return an agent key of the operator."""
    return make_secret(site)


def make_secret(site: Site, role: str = "operator", name: str = "Laptop") -> str:  # noqa: F811
    """Create a key of the member with this role, and return its secret."""
    return issue_key(site.workshop.members[role], site.workshop.employee.pk, name, 30)[1]


@pytest.fixture
def hook(site: Site, secret: str, tmp_path: Path) -> Hook:  # noqa: F811
    """Return the hook with a configuration for this site."""
    return Hook(tmp_path, site.installation.url, secret)
