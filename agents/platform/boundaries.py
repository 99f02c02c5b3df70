"""Where a failure stops: background threads and sweeps go on although one act of theirs failed."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agents.platform.database_condition import LOST, UNAVAILABLE, condition_of

logger = logging.getLogger(__name__)


@dataclass
class Survived:
    """The way a block ended.

    Attributes:
        condition: the condition of the database that made the block fail; else empty.
    """

    condition: str = ""


@contextmanager
def surviving(act: str) -> Iterator[Survived]:
    """Log the block's failure and continue: a condition of the database in one line, any other error in full."""
    survived = Survived()
    try:
        yield survived
    except UNAVAILABLE as error:
        survived.condition = condition_of(error) or LOST
        logger.warning("%s: %s (%s)", act, survived.condition, error)
    except Exception:
        logger.exception("%s failed", act)
