"""Load the toolbox of an organization, and the credentials of its tools."""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings
from django.db import connection
from django.db.models import F
from django.utils.module_loading import import_string

from agents.accounts.models import Credential, Organization
from agents.accounts.models.organization_versions import (
    OrganizationVersions,
    correct_versions,
    get_newest_versions,
)
from agents.employees.shared_limits import get_shared_guards
from agents.platform.known_secrets import KNOWN_SECRETS
from tools.caches import Cache
from tools.config import Config, ToolSettings
from tools.connections.connected_tools import load_connected_sources
from tools.contract import ErrorCode, NetworkAccess, PrivateHosts, ToolError, collect_secrets
from tools.sources import BrokenPlugin, PluginSource, fill_toolbox, start_plugins
from tools.sources.builtin import BuiltinSource
from tools.toolbox import CallLimits, Policy, Toolbox

logger = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def get_installed_toolbox() -> Toolbox:
    """Return the installation's toolbox, which all organizations share. Each process has its own.

    It also contains the tools that were registered, and counts the calls that were made, since the
    process started.

    `settings.GADGET_TOOLS` contains the dotted names of lists of tools; `gadget.yaml` names plugins
    and limits all tools.
    """
    config: Config = settings.GADGET_CONFIG
    for service, variables in config.unset.items():
        logger.warning(
            "the credentials of %s are not used: %s is not set", service, ", ".join(variables)
        )
    toolbox = Toolbox(
        Policy(
            disabled=config.tools.disabled,
            strict_capabilities=config.tools.strict_capabilities,
            features_by_tool=config.tools.features_by_tool,
        ),
        config.environment,
        CallLimits(config.tools.default_timeout, config.tools.max_concurrent_calls),
        config.tools.allow_dynamic_registration,
    )
    toolbox.guards = get_shared_guards()
    fill_toolbox(toolbox, [*_start_builtin_sources(), *get_installed_plugins()[0]])
    toolbox.start()
    return toolbox


@lru_cache(maxsize=1)
def get_installed_plugins() -> tuple[list[PluginSource], list[BrokenPlugin]]:
    """Return the plugins that work, and the broken plugins with the reasons. These are the plugins
    that `gadget.yaml` names, and the office with its demo unless `gadget.yaml` switches it off."""
    taken = {tool.name for source in _start_builtin_sources() for tool in source.tools()}
    wanted: ToolSettings = settings.GADGET_CONFIG.tools
    office = settings.GADGET_OFFICE_PLUGINS if wanted.office else []
    return start_plugins([*office, *wanted.plugins], taken)


def forget_installed_tools() -> None:
    """Forget the installation's tools, so that the next use loads them again; for tests that change
    settings."""
    for loaded in (get_installed_toolbox, get_installed_plugins, _start_builtin_sources):
        loaded.cache_clear()


@lru_cache(maxsize=1)
def _start_builtin_sources() -> list[BuiltinSource]:
    sources = [BuiltinSource(import_string(dotted)) for dotted in settings.GADGET_TOOLS]
    for source in sources:
        source.start()
    return sources


MAX_TOOLBOXES = 500
"""The maximum number of organizations whose toolboxes a process caches."""


@dataclass(frozen=True)
class _OrganizationTools:
    """The tools and network access of an organization, in one version."""

    versions: OrganizationVersions
    toolbox: Toolbox
    network_access: NetworkAccess


_tools: Cache[int, _OrganizationTools] = Cache(MAX_TOOLBOXES)


def load_toolbox(organization_id: int) -> Toolbox:
    """Return the organization's toolbox, in the newest version that this process has seen in the
    organization's row.

    This takes up to three queries if the version is new to this process. It does not take any if
    the process knows that the organization does not have tools of its own.
    """
    return _load_tools(organization_id).toolbox


def load_network_access(organization_id: int) -> NetworkAccess:
    """Return the hosts that the organization's tools may contact, in the same version and with the
    same number of queries as `load_toolbox`."""
    return _load_tools(organization_id).network_access


def _load_tools(organization_id: int) -> _OrganizationTools:
    seen = get_newest_versions(organization_id)
    cached = _tools.get(organization_id)
    if cached is not None and cached.versions == seen:
        return cached
    if seen is not None and not seen.tools:
        return _build_without_own_tools(seen)
    loaded = _read_tools(organization_id)
    if loaded.versions != seen:
        correct_versions(organization_id, seen, loaded.versions)
    # Do not cache inside a transaction, because these versions may still be rolled back.
    if loaded.versions.tools and not connection.in_atomic_block:
        _tools.put(organization_id, loaded)
    return loaded


def _build_without_own_tools(versions: OrganizationVersions) -> _OrganizationTools:
    return _OrganizationTools(versions, get_installed_toolbox(), NetworkAccess())


def _read_tools(organization_id: int) -> _OrganizationTools:
    """Read the organization's tools, together with the version in the database, because a version
    that was seen in an open transaction may be rolled back."""
    organization = Organization.objects.filter(pk=organization_id).order_by()
    rows = list(  # one row for each allowed host, or a single row if there is none
        organization.values_list(
            *("tools_version", "credentials_version"),
            *(
                "allowed_hosts__host",
                "allowed_hosts__without_card",
                "allowed_hosts__may_be_private",
            ),
            "allowed_hosts__opened_by_superuser",
            named=True,
        )
    )
    versions = (
        OrganizationVersions(rows[0].tools_version, rows[0].credentials_version)
        if rows
        else OrganizationVersions()
    )
    if not versions.tools:
        return _build_without_own_tools(versions)
    private = [row for row in rows if row.allowed_hosts__may_be_private]
    requested = frozenset(
        row.allowed_hosts__host for row in private if not row.allowed_hosts__opened_by_superuser
    )
    network_access = NetworkAccess(
        allowed=frozenset(
            row.allowed_hosts__host for row in rows if row.allowed_hosts__without_card
        ),
        private=frozenset(
            row.allowed_hosts__host for row in private if row.allowed_hosts__opened_by_superuser
        ),
        requested=requested,
        installation=settings.ALLOWED_PRIVATE_HOSTS if requested else PrivateHosts(),
    )
    own_credentials = load_own_credentials(organization_id, versions.credentials)
    toolbox = get_installed_toolbox().with_hosts(network_access.allowed)
    sources = load_connected_sources(organization_id, own_credentials, network_access)
    fill_toolbox(toolbox, sources, by_precedence=True)
    return _OrganizationTools(versions, toolbox, network_access)


Fields = Mapping[str, str]

MAX_ORGANIZATIONS = 500
"""The maximum number of organizations whose credentials a process caches."""


class OrganizationCredentials(Mapping[str, Fields]):
    """Credentials by service. Services whose credentials no key can decrypt are included, but
    reading them raises an error.

    Raises:
        ToolError: UNAUTHORIZED, naming the service.
    """

    def __init__(self, readable: Mapping[str, Fields], unreadable: frozenset[str]) -> None:
        self._readable = readable
        self._unreadable = unreadable

    def __getitem__(self, service: str) -> Fields:
        if service in self._unreadable:
            raise ToolError(
                ErrorCode.UNAUTHORIZED,
                f"The credentials of this organization for {service!r} can no longer be read.",
                recovery_hint="Continue without them. An admin has to enter them again.",
                attempted=False,
            )
        return self._readable[service]

    def __contains__(self, service: object) -> bool:
        return service in self._readable or service in self._unreadable

    def __iter__(self) -> Iterator[str]:
        return iter(self._readable)

    def __len__(self) -> int:
        return len(self._readable)


@dataclass(frozen=True)
class _OwnCredentials:
    readable: Mapping[str, Fields]
    unreadable: frozenset[str]


def load_credentials(organization: Organization) -> Mapping[str, Fields]:
    """Return the credentials of the organization's tools, by service.

    The organization's own credentials replace those of `gadget.yaml` for the same service. This
    takes a query if the version is new to the process.
    """
    shared = get_installed_toolbox().environment.credentials
    if not organization.credentials_version:
        return shared
    own = _load_own_credentials(organization.pk, organization.credentials_version)
    replaced = own.readable.keys() | own.unreadable
    inherited = {service: fields for service, fields in shared.items() if service not in replaced}
    return OrganizationCredentials({**inherited, **own.readable}, own.unreadable)


def load_own_credentials(organization_id: int, version: int) -> Mapping[str, Fields]:
    """Return the organization's own credentials by service, without those of `gadget.yaml`.

    The organization's own sources of tools get only these credentials.

    Args:
        version: the organization's `credentials_version`; 0 means that it has none.
    """
    if not version:
        return {}
    own = _load_own_credentials(organization_id, version)
    return OrganizationCredentials(own.readable, own.unreadable)


def bump_credentials_version(organization_id: int) -> None:
    """Make every process read the credentials again; call this in the transaction of the change."""
    Organization.objects.filter(pk=organization_id).update(
        credentials_version=F("credentials_version") + 1
    )


def parse_fields(stored: str) -> dict[str, str] | None:
    """Parse the text in `Credential.fields` into a dict; None if it is not a JSON object."""
    try:
        fields = json.loads(stored)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


_credentials: Cache[tuple[int, int], _OwnCredentials] = Cache(MAX_ORGANIZATIONS)


def _load_own_credentials(organization_id: int, version: int) -> _OwnCredentials:
    return _credentials.get_or_load(
        (organization_id, version), lambda: _read_own_credentials(organization_id)
    )


def _read_own_credentials(organization_id: int) -> _OwnCredentials:
    rows = (
        Credential.objects.filter(organization_id=organization_id)
        .order_by()
        .values_list("service", "fields")
    )
    found = {service: parse_fields(stored) for service, stored in rows}
    readable = {service: fields for service, fields in found.items() if fields is not None}
    KNOWN_SECRETS.learn(collect_secrets(readable), owner=organization_id)
    return _OwnCredentials(readable, frozenset(found) - readable.keys())
