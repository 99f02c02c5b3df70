"""What an organisation has: the tools of this installation, and those that it has connected."""

import threading
from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from agents.engine.credentials import own_credentials
from agents.engine.toolbox import installed_toolbox
from agents.models import Organization
from agents.models.versions import Versions, correct, newest_seen
from tools.connections.offered import offered_tools
from tools.contract import PrivateHosts, Reach
from tools.toolbox import Toolbox

MOST_ORGANIZATIONS = 500
"""Whose tools one process remembers."""


@dataclass(frozen=True)
class _Connected:
    """What an organisation has in one version."""

    versions: Versions
    toolbox: Toolbox
    reach: Reach


_kept: dict[int, _Connected] = {}
_lock = threading.Lock()


def toolbox_of(organization_id: int) -> Toolbox:
    """What this organisation has, in the newest version that this process has seen; every read of its row is seen.

    Costs at most three queries when that version is new to the process, and nothing where nothing is connected.
    """
    return _of(organization_id).toolbox


def reach_for(organization_id: int) -> Reach:
    """The hosts that the organisation's tools may reach; likewise."""
    return _of(organization_id).reach


def forget() -> None:
    """Make everything anew when it is asked for; for tests, whose organisations share their ids."""
    with _lock:
        _kept.clear()


def _of(organization_id: int) -> _Connected:
    seen = newest_seen(organization_id)
    kept = _kept.get(organization_id)
    if kept is not None and kept.versions == seen:
        return kept
    if seen is not None and not seen.tools:
        return _nothing(seen)
    made = _made(organization_id)
    if made.versions != seen:
        correct(organization_id, seen, made.versions)
    if made.versions.tools and not connection.in_atomic_block:
        _keep(organization_id, made)
    return made


def _nothing(versions: Versions) -> _Connected:
    return _Connected(versions, installed_toolbox(), Reach())


def _made(organization_id: int) -> _Connected:
    """From what this connection reads, the version first: what another thread saw may never be committed."""
    rows = Organization.objects.filter(pk=organization_id).order_by()
    found = list(
        rows.values_list(
            *("tools_version", "credentials_version"),
            *("allowed_hosts__host", "allowed_hosts__without_card", "allowed_hosts__may_be_private"),
            "allowed_hosts__opened_by_superuser",
        )
    )
    versions = Versions(*found[0][:2]) if found else Versions()
    if not versions.tools:
        return _nothing(versions)
    wanted = frozenset(host for _, _, host, _, is_wanted, is_opened in found if is_wanted and not is_opened)
    reach = Reach(
        allowed=frozenset(host for _, _, host, without_card, *_ in found if without_card),
        private=frozenset(host for _, _, host, _, is_wanted, is_opened in found if is_wanted and is_opened),
        wanted=wanted,
        installation=settings.ALLOWED_PRIVATE_HOSTS if wanted else PrivateHosts(),
    )
    offered = offered_tools(organization_id, own_credentials(organization_id, versions.credentials), reach)
    toolbox = installed_toolbox().extended(offered.tools, reach.allowed, offered.withheld)
    return _Connected(versions, toolbox, reach)


def _keep(organization_id: int, made: _Connected) -> None:
    """Only what was committed is kept: what a transaction sees of its own may come to nothing."""
    with _lock:
        _kept.pop(organization_id, None)
        while len(_kept) >= MOST_ORGANIZATIONS:
            _kept.pop(next(iter(_kept)))
        _kept[organization_id] = made
