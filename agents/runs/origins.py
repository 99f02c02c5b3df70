"""Origins of runs: the people and the texts behind a run, which only the subject that started it
knows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from agents.runs.models import Origin, Run

Act = tuple[int, str, str]
"""A person's user id and name, and their action, such as "made the trigger"."""


@dataclass(frozen=True)
class RunOrigin:
    """The facts that a subject provides about the runs that it starts.

    Attributes:
        load_acts: the people behind runs with these ids, by run id.
        load_texts: the template that a person wrote for the run, and the message from outside that
            started it, as JSON; None if the message is gone.
    """

    load_acts: Callable[[Collection[int]], dict[int, list[Act]]]
    load_texts: Callable[[Run], tuple[str, str] | None]


ORIGINS: dict[Origin, RunOrigin] = {}
"""Providers by origin; a subject that starts runs registers itself when it is ready."""
