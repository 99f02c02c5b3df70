"""An agent key of the workshop's operator, and the engine's fixtures."""

from __future__ import annotations

import pytest

from agents.gateway.keys import authenticate_key, issue_key
from agents.gateway.models import AgentKey
from tests.workshop import Workshop
from tests.workshop.fixtures import (  # noqa: F401
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    conversation_cache_is_checked,
    model,
    recorder,
    toolbox,
    workshop,
)


@pytest.fixture
def key(workshop: Workshop) -> AgentKey:  # noqa: F811
    """Return a key of the operator for the workshop's employee."""
    return make_key(workshop)


def make_key(workshop: Workshop, role: str = "operator", name: str = "Laptop") -> AgentKey:  # noqa: F811
    """Create a key of the member with this role, loaded as in a request."""
    _, secret = issue_key(workshop.members[role], workshop.employee.pk, name, 30)
    key = authenticate_key(secret)
    assert key is not None
    return key
