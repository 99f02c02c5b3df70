"""The newest versions of organizations' tools and credentials that this process has seen."""

import threading
from dataclasses import dataclass

from tools.caches import Cache

MAX_ORGANIZATIONS = 10_000
"""The maximum number of organizations whose versions a process keeps in memory."""


@dataclass(frozen=True)
class OrganizationVersions:
    """Versions of an organization's tools and credentials. A version only increases; 0 means that
    there has never been a change."""

    tools: int = 0
    credentials: int = 0


_seen: Cache[int, OrganizationVersions] = Cache(MAX_ORGANIZATIONS)
_lock = threading.Lock()


def record_versions(organization_id: int, tools: int, credentials: int = 0) -> None:
    """Record the versions of an organization's row, unless this process has already seen newer
    versions: a long transaction may read an old row."""
    known = _seen.get(organization_id)
    if known is not None and known.tools >= tools and known.credentials >= credentials:
        return
    with _lock:
        known = _seen.get(organization_id) or OrganizationVersions()
        newest = OrganizationVersions(max(known.tools, tools), max(known.credentials, credentials))
        _seen.put(organization_id, newest)


def correct_versions(
    organization_id: int, seen: OrganizationVersions | None, found: OrganizationVersions
) -> None:
    """Replace versions that were rolled back or are not committed yet; do nothing if other versions
    have been seen since."""
    with _lock:
        if _seen.get(organization_id) == seen:
            _seen.put(organization_id, found)


def get_newest_versions(organization_id: int) -> OrganizationVersions | None:
    """Return the newest versions seen; None if this process has not read the organization's row
    yet."""
    return _seen.get(organization_id)
