"""A registry for apps that start runs: each app provides the people and the texts behind
its runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from agents.runs.models import Origin, Run

Act = tuple[int, str, str]
"""A person's user id, name and action, such as "made the trigger"."""


@dataclass(frozen=True)
class RunOrigin:
    """The functions with which an app provides facts about the runs that it starts.

    Attributes:
        load_acts: returns the people behind the runs with these ids, by run id.
        load_texts: returns the template that a person wrote for the run, and the message from
            outside that started it, as JSON; None if the message was deleted.
    """

    load_acts: Callable[[Collection[int]], dict[int, list[Act]]]
    load_texts: Callable[[Run], tuple[str, str] | None]


ORIGINS: dict[Origin, RunOrigin] = {}
"""The registered functions by origin; an app registers them when it is ready."""
