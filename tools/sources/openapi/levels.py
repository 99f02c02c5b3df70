"""Levels of operations: the HTTP method sets the lowest level, and words in the name can only raise
it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.contract import Level
from tools.sources.openapi.names import word_set
from tools.sources.risks import explain_embedded_requests, explain_exfiltration

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
    Level.DESTRUCTIVE: word_set(
        "delete destroy purge remove erase wipe truncate revoke "
        "terminate uninstall decommission deprovision deregister drop"
    ),
    Level.WRITE: word_set(
        "create insert upsert update modify edit replace overwrite send submit publish unpublish "
        "activate deactivate enable disable execute trigger invoke launch restart reboot subscribe "
        "unsubscribe approve reject assign unassign upload rename append provision enqueue dispatch"
    ),
}
"""Words that raise the level in any position."""

RAISING_VERBS = {
    Level.DESTRUCTIVE: word_set("clear reset kill flush discard shutdown empty expire forget"),
    Level.WRITE: word_set(
        "add set put post patch write save start stop run pause resume cancel close open move copy clone merge apply "
        "confirm accept decline invite grant lock unlock import sync refresh rotate register join leave mark switch "
        "toggle bind unbind attach detach increment notify retry rerun book order pay charge refund transfer vote "
        "generate build deploy install schedule"
    ),
}
"""Verbs that can be nouns too, so they raise the level only in a verb's position: first in a part
of the id, in the last segment of the path, or in a name or value of the path's query. They never
raise it if a part of the id begins with a reading verb."""

READING_VERBS = word_set(
    "get list find search fetch read show describe query count retrieve view lookup check"
)

_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True)
class InferredLevel:
    """An inferred level, with the reason for people."""

    level: Level
    reason: str


def infer_level(operation: Mapping[str, Any]) -> InferredLevel:
    """Infer an operation's level from its description; an unknown method is treated as destructive.

    Args:
        operation: its `method`, `path`, `operation_id` and `params`, as in `ApiOperation.to_json`.
    """
    method, path, operation_id = operation["method"], operation["path"], operation["operation_id"]
    floor = FLOORS.get(method, Level.DESTRUCTIVE)
    if (carries := explain_embedded_requests(operation)) is not None:
        return InferredLevel(Level.DESTRUCTIVE, f"it may embed other requests: {carries}")
    inferred = InferredLevel(floor, f"{method} is {floor} level")
    reaches = explain_exfiltration(operation)
    if not floor.has_side_effects and reaches is not None:
        inferred = InferredLevel(Level.WRITE, f"{method} is {floor} level, but {reaches}")
    reads = any(verb in READING_VERBS for verb in _find_verbs(operation_id))
    query = re.sub("[&=;+]|%..", "/", path.partition("?")[2])
    segment = _find_last_segment(path)
    for text, where in (
        (operation_id, "its id"),
        (segment, "its path"),
        (query, "the query in its path"),
    ):
        for level, word in _find_raising_words(text, reads=reads):
            if level.rank > inferred.level.rank:
                inferred = InferredLevel(
                    level, f"{method} is {floor} level, but {where} says {word!r}"
                )
    return inferred


def split_words(text: str) -> list[str]:
    """Split a name into words: `users/deleteAll-now` → users, delete, all, now."""
    return [token.lower() for token in _TOKEN.findall(text)]


def _find_last_segment(path: str) -> str:
    fixed = [
        segment
        for segment in re.split(r"[/:]", path.partition("?")[0])
        if segment and "{" not in segment
    ]
    return fixed[-1] if fixed else ""


def _find_verbs(text: str) -> list[str]:
    return [words[0] for part in re.split(r"[/.:]|__", text) if (words := split_words(part))]


def _find_raising_words(text: str, *, reads: bool) -> Iterable[tuple[Level, str]]:
    for level, known in RAISING_WORDS.items():
        yield from ((level, word) for word in split_words(text) if word in known)
    for level, known in () if reads else RAISING_VERBS.items():
        yield from ((level, word) for word in _find_verbs(text) if word in known)
