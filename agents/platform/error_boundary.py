"""Contain failures, so that a background thread or a sweep continues after a failed step."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agents.platform.database_outages import OUTAGE_ERRORS, UNREACHABLE, describe_outage

logger = logging.getLogger(__name__)


@dataclass
class BlockFailure:
    """The failure of a block, if there was one.

    Attributes:
        outage: the database outage that made the block fail; empty for any other error.
        is_failed: True if the block failed, with an outage or any other error.
    """

    outage: str = ""
    is_failed: bool = False


@contextmanager
def log_and_continue(action: str) -> Iterator[BlockFailure]:
    """Log the block's failure and continue. A database outage is logged in one line, any other
    error with its traceback."""
    failure = BlockFailure()
    try:
        yield failure
    except OUTAGE_ERRORS as error:
        failure.outage, failure.is_failed = describe_outage(error) or UNREACHABLE, True
        logger.warning("%s: %s (%s)", action, failure.outage, error)
    except Exception:
        failure.is_failed = True
        logger.exception("%s failed", action)
