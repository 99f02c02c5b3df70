"""A standing grant approves a value that means "all", empties something or is a credential only if
one of the grant's conditions fixes the value."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from tests.features import feature
from tests.standing_grants.granting import allow, equals, grant, is_waiting
from tests.tools.toolbox.sample_tools import Echo
from tests.workshop import Workshop, asking, call
from tools.contract import Level
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

TOOL = "sample.share"


class Share(Echo):
    name = TOOL
    level = Level.WRITE

    class Params(BaseModel):
        text: str
        expires: str | None = "soon"


@pytest.fixture(autouse=True)
def tool(workshop: Workshop, toolbox: Toolbox) -> None:
    allow(workshop, toolbox, Share())


def waits(workshop: Workshop, **params: Any) -> bool:
    workshop.play(asking(call(TOOL, **params)))
    return is_waiting(workshop.work())


@feature(
    "The gate",
    "A standing grant approves a wildcard only if its condition fixes it",
    "agents/standing_grants/preapprovals.py",
)
@pytest.mark.parametrize("text", ["*", "ghp_abcdefghijklmnop1234567890"])
def test_a_value_with_a_meaning_needs_a_condition_that_fixes_it(
    workshop: Workshop, text: str
) -> None:
    grant(workshop, TOOL, Condition("text", Rule.PREFIX, text[:1]), params=("text", "expires"))
    assert waits(workshop, text=text)
    grant(workshop, TOOL, equals("text", text), params=("text", "expires"))
    assert not waits(workshop, text=text)
