"""How far an operation reaches: its HTTP method is a floor, and words in its name may only raise it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.contract import Level
from tools.sources.risks import carried_by, reached_by

from .names import words_in

FLOORS = {
    "GET": Level.READ,
    "HEAD": Level.READ,
    "OPTIONS": Level.READ,
    "POST": Level.WRITE,
    "PUT": Level.WRITE,
    "PATCH": Level.WRITE,
    "DELETE": Level.DESTRUCTIVE,
}

RAISING_WORDS = {
    Level.DESTRUCTIVE: words_in(
        "delete destroy purge remove erase wipe truncate revoke "
        "terminate uninstall decommission deprovision deregister drop"
    ),
    Level.WRITE: words_in(
        "create insert upsert update modify edit replace overwrite send submit publish unpublish "
        "activate deactivate enable disable execute trigger invoke launch restart reboot subscribe "
        "unsubscribe approve reject assign unassign upload rename append provision enqueue dispatch"
    ),
}
"""These say what happens wherever they stand."""

RAISING_VERBS = {
    Level.DESTRUCTIVE: words_in("clear reset kill flush discard shutdown empty expire forget"),
    Level.WRITE: words_in(
        "add set put post patch write save start stop run pause resume cancel close open move copy clone merge apply "
        "confirm accept decline invite grant lock unlock import sync refresh rotate register join leave mark switch "
        "toggle bind unbind attach detach increment notify retry rerun book order pay charge refund transfer vote "
        "generate build deploy install schedule"
    ),
}
"""These are names of things as well, so they count only where a verb stands: first in the id, unless it begins with a
verb that reads, or first in the path's last segment, or first in a name or a value of a query that stands in the path.
"""

READING_VERBS = words_in("get list find search fetch read show describe query count retrieve view lookup check")

_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True)
class Inferred:
    """A level and why, in plain words."""

    level: Level
    reason: str


def inferred_level(operation: Mapping[str, Any]) -> Inferred:
    """Infer the level of an operation from its description; an unknown method counts as destructive.

    Args:
        operation: its `method`, `path`, `operation_id` and `params`, as `Operation.as_json` writes them.
    """
    method, path, operation_id = operation["method"], operation["path"], operation["operation_id"]
    floor = FLOORS.get(method, Level.DESTRUCTIVE)
    if carries := carried_by(operation):
        return Inferred(Level.DESTRUCTIVE, f"it may carry other requests: {carries}")
    inferred = Inferred(floor, f"{method} is {floor} level")
    if not floor.has_side_effects and (reaches := reached_by(operation)):
        inferred = Inferred(Level.WRITE, f"{method} is {floor} level, but {reaches}")
    reads = any(verb in READING_VERBS for verb in _verbs(operation_id))
    query = re.sub("[&=;+]|%..", "/", path.partition("?")[2])
    segment = _last_segment(path)
    for text, where in ((operation_id, "its id"), (segment, "its path"), (query, "the query in its path")):
        for level, word in _raising(text, reads=reads):
            if level.rank > inferred.level.rank:
                inferred = Inferred(level, f"{method} is {floor} level, but {where} says {word!r}")
    return inferred


def words_of(text: str) -> list[str]:
    """`users/deleteAll-now` → users, delete, all, now."""
    return [token.lower() for token in _TOKEN.findall(text)]


def _last_segment(path: str) -> str:
    fixed = [segment for segment in re.split(r"[/:]", path.partition("?")[0]) if segment and "{" not in segment]
    return fixed[-1] if fixed else ""


def _verbs(text: str) -> list[str]:
    return [words[0] for part in re.split(r"[/.:]|__", text) if (words := words_of(part))]


def _raising(text: str, *, reads: bool) -> Iterable[tuple[Level, str]]:
    for level, known in RAISING_WORDS.items():
        yield from ((level, word) for word in words_of(text) if word in known)
    for level, known in () if reads else RAISING_VERBS.items():
        yield from ((level, word) for word in _verbs(text) if word in known)
