"""Which versions of an organisation's tools and credentials this process has seen."""

import threading
from dataclasses import dataclass


@dataclass(frozen=True)
class Versions:
    """They only ever go up; 0 means that there was never anything."""

    tools: int = 0
    credentials: int = 0


_seen: dict[int, Versions] = {}
_lock = threading.Lock()


def take_note(organization_id: int, tools: int, credentials: int = 0) -> None:
    """What stands in the organisation's row. A transaction that began earlier may still read what is old."""
    known = _seen.get(organization_id)
    if known is not None and known.tools >= tools and known.credentials >= credentials:
        return
    with _lock:
        known = _seen.get(organization_id, Versions())
        _seen[organization_id] = Versions(max(known.tools, tools), max(known.credentials, credentials))


def correct(organization_id: int, seen: Versions | None, found: Versions) -> None:
    """What was seen was never committed, or is not yet; unless something else has been seen meanwhile."""
    with _lock:
        if _seen.get(organization_id) == seen:
            _seen[organization_id] = found


def newest_seen(organization_id: int) -> Versions | None:
    """None if this process has not read the organisation's row yet."""
    return _seen.get(organization_id)


def forget() -> None:
    """Know nothing, as at the start of the process; for tests, whose organisations share their ids."""
    _seen.clear()
