"""Waits for the database to record something that must not be lost, such as the report of a write."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import connection

from agents.database_condition import UNAVAILABLE, condition_of
from agents.engine import lease
from agents.engine.timing import timing

logger = logging.getLogger(__name__)

_TRIES = 3

Value = TypeVar("Value")


def record_patiently(what: str, act: Callable[[], Value]) -> Value:
    """Record it, and retry for as long as a condition of the database prevents it.

    Any other failure of the database, or a condition while the worker shuts down, is tried three times.
    """
    tries = 0
    while True:
        try:
            return act()
        except UNAVAILABLE as error:
            tries += 1
            condition = condition_of(error)
            if tries >= _TRIES and (not condition or lease.is_going_down()):
                raise
            logger.warning("%s: %s (%s)", what, condition or "the database failed", error)
            connection.close()
        if tries > 1:
            time.sleep(timing().sweep_s)
