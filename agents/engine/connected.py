"""What an organisation has: the tools of this installation, and those that it has connected."""

from functools import lru_cache

from agents.engine.credentials import credentials_of
from agents.engine.toolbox import installed_toolbox
from agents.models import Organization
from tools.connections.offered import offered_tools, reach_of
from tools.contract import Reach
from tools.toolbox import Toolbox

MOST_ORGANIZATIONS = 500
"""Whose tools one process remembers."""

_seen: dict[int, Organization] = {}
"""By id, the rows with the versions that this process saw last."""


def toolbox_of(organization_id: int) -> Toolbox:
    """What this organisation has, in the generation that this process saw last.

    Costs a few queries when that is new to the process. Whoever has read the organisation's row says so with `seen`.
    """
    organization = _known(organization_id)
    generation = organization.tools_version
    if not generation:
        return installed_toolbox()
    return _connected(organization_id, generation, organization.credentials_version)


def reach_for(organization_id: int) -> Reach:
    """The hosts that the organisation's tools may reach; likewise."""
    generation = _known(organization_id).tools_version
    return _reach(organization_id, generation) if generation else Reach()


def seen(organization: Organization) -> None:
    """Take note of the generation that stands in the organisation's row."""
    _seen[organization.pk] = organization


def _known(organization_id: int) -> Organization:
    if organization_id not in _seen:
        seen(Organization.objects.get(pk=organization_id))
    return _seen[organization_id]


@lru_cache(maxsize=MOST_ORGANIZATIONS)
def _connected(organization_id: int, generation: int, _credentials_version: int) -> Toolbox:
    tools = offered_tools(organization_id, credentials_of(_known(organization_id)))
    return installed_toolbox().extended(tools, _reach(organization_id, generation).allowed)


@lru_cache(maxsize=MOST_ORGANIZATIONS)
def _reach(organization_id: int, _generation: int) -> Reach:
    return reach_of(organization_id)
