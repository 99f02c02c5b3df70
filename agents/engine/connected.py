"""What an organisation has: the tools of this installation, and those that it has connected."""

from functools import lru_cache

from agents.engine.credentials import credentials_in
from agents.engine.toolbox import installed_toolbox
from agents.models import Organization
from agents.models.versions import Versions, newest_seen
from tools.connections.offered import offered_tools, reach_of
from tools.contract import Reach
from tools.toolbox import Toolbox

MOST_ORGANIZATIONS = 500
"""Whose tools one process remembers."""


def toolbox_of(organization_id: int) -> Toolbox:
    """What this organisation has, in the newest version that this process has seen; every read of its row is seen.

    Costs a few queries when that version is new to the process, and nothing where nothing is connected.
    """
    versions = _versions_of(organization_id)
    return _connected(organization_id, versions) if versions.tools else installed_toolbox()


def reach_for(organization_id: int) -> Reach:
    """The hosts that the organisation's tools may reach; likewise."""
    versions = _versions_of(organization_id)
    return _reach(organization_id, versions.tools) if versions.tools else Reach()


def forget() -> None:
    """Make everything anew when it is asked for; for tests, whose organisations share their ids."""
    _connected.cache_clear()
    _reach.cache_clear()


def _versions_of(organization_id: int) -> Versions:
    if newest_seen(organization_id) is None:
        Organization.objects.get(pk=organization_id)
    return newest_seen(organization_id) or Versions()


@lru_cache(maxsize=MOST_ORGANIZATIONS)
def _connected(organization_id: int, versions: Versions) -> Toolbox:
    tools = offered_tools(organization_id, credentials_in(organization_id, versions.credentials))
    return installed_toolbox().extended(tools, _reach(organization_id, versions.tools).allowed)


@lru_cache(maxsize=MOST_ORGANIZATIONS)
def _reach(organization_id: int, _tools_version: int) -> Reach:
    return reach_of(organization_id)
