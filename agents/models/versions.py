"""Which versions of an organisation's tools and credentials this process has seen."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Versions:
    """They only ever go up; 0 means that there was never anything."""

    tools: int = 0
    credentials: int = 0


_seen: dict[int, Versions] = {}


def take_note(organization_id: int, tools: int, credentials: int | None = None) -> None:
    """What stands in the organisation's row. A transaction that began earlier may still read what is old."""
    known = _seen.get(organization_id, Versions())
    newest = replace(known, tools=max(known.tools, tools))
    _seen[organization_id] = replace(newest, credentials=max(known.credentials, credentials or 0))


def newest_seen(organization_id: int) -> Versions | None:
    """None if this process has not read the organisation's row yet."""
    return _seen.get(organization_id)


def forget() -> None:
    """Know nothing, as at the start of the process; for tests, whose organisations share their ids."""
    _seen.clear()
