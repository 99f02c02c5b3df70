"""Calls start only with current permission, no matter how the configuration changes."""

from __future__ import annotations

import os
import random
import secrets

import pytest

from tests.employees.random_permissions import World
from tests.features import feature
from tests.recorder import Recorder
from tests.workshop import Workshop
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

SEED_VARIABLE = "GADGET_TEST_SEED"
CONFIGURATIONS = 16


@feature(
    "The gate",
    "No call starts without permission at that moment, even if permissions change in between",
    "agents/runs/engine/passes.py",
)
def test_only_calls_that_are_currently_permitted_start(
    workshop: Workshop, recorder: Recorder, toolbox: Toolbox
) -> None:
    seed = int(os.environ.get(SEED_VARIABLE) or secrets.randbelow(10**6))
    print(f"{SEED_VARIABLE}={seed} repeats this")
    with World(workshop, recorder, random.Random(seed)) as world:
        for _ in range(CONFIGURATIONS):
            world.live()
    print(dict(world.figures))
    assert not world.faults, "\n".join(world.faults)
    assert world.figures["writes executed"] > 0
    assert world.figures["changes while driven"] > 0
