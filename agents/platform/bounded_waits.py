"""Shorten stored waits that are longer than the code allows because the database's clock was
ahead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

CLOCK_SLACK = timedelta(minutes=1)
"""The amount by which a stored time may be too late without being corrected, because the clocks of
hosts differ slightly."""
MAX_ROWS = 200
"""The maximum number of rows that are corrected at a time."""


@dataclass(frozen=True)
class BoundedWait:
    """A column that stores the time until which a row waits, and the longest wait that is allowed.

    Attributes:
        name: the word for the rows in log lines.
        select: returns the rows that may wait.
        longest: returns the longest allowed wait.
        anew: returns the time that replaces a time that is too late.
    """

    name: str
    select: Callable[[], QuerySet[Any]]
    column: str
    longest: Callable[[], timedelta]
    anew: Callable[[], Any]

    def correct(self) -> int:
        """Shorten the waits that are too long; return the number of corrected rows. Rows that are
        locked are corrected next time."""
        rows = self.select()
        late = rows.filter(**{f"{self.column}__gt": Now() + self.longest() + CLOCK_SLACK})
        with transaction.atomic():
            free = late.select_for_update(skip_locked=True, no_key=True, of=("self",)).order_by(
                "pk"
            )
            ids = list(free.values_list("pk", flat=True)[:MAX_ROWS])
            return (
                rows.model._default_manager.filter(pk__in=ids).update(**{self.column: self.anew()})
                if ids
                else 0
            )
