"""Where a failure stops: background threads and sweeps go on although one act of theirs failed."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import InterfaceError, OperationalError

logger = logging.getLogger(__name__)


@contextmanager
def surviving(act: str) -> Iterator[None]:
    """Log what the block raises and go on after it; a lost database is one line, everything else is told whole."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        logger.warning("%s: the database does not answer: %s", act, error)
    except Exception:
        logger.exception("%s failed", act)
