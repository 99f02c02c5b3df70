"""What an organization's employees work with: the toolbox, and the credentials that its tools log in with."""

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings
from django.db import connection
from django.db.models import F
from django.utils.module_loading import import_string

from agents.accounts.models import Credential, Organization
from agents.accounts.models.versions import Versions, correct, newest_seen
from agents.employees.limits import shared_guards
from agents.platform.known_secrets import KNOWN_SECRETS
from tools.config import Config
from tools.connections.offered import offered_tools
from tools.contract import ErrorCode, PrivateHosts, Reach, ToolError, secrets_of
from tools.sources import Broken, PluginSource, fill, plugin_sources
from tools.sources.builtin import BuiltinSource
from tools.toolbox import Limits, Policy, Toolbox

logger = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def installed_toolbox() -> Toolbox:
    """What every organisation has; one per process.

    `settings.GADGET_TOOLS` lists dotted names of sequences of tools; `gadget.yaml` names plugins and limits them all.
    """
    config: Config = settings.GADGET_CONFIG
    for service, variables in config.unset.items():
        logger.warning("the credentials %s are left out: %s is not set", service, ", ".join(variables))
    toolbox = Toolbox(
        Policy(
            disabled=config.tools.disabled,
            strict_capabilities=config.tools.strict_capabilities,
            features_by_tool=config.tools.features_by_tool,
        ),
        config.environment,
        Limits(config.tools.default_timeout, config.tools.max_concurrent_calls),
        config.tools.allow_dynamic_registration,
    )
    toolbox.guards = shared_guards()
    fill(toolbox, [*_shipped(), *installed_plugins()[0]])
    toolbox.start()
    return toolbox


@lru_cache(maxsize=1)
def installed_plugins() -> tuple[list[PluginSource], list[Broken]]:
    """The plugins that `gadget.yaml` names and that work beside all others, and those that do not, with the reason."""
    taken = {tool.name for source in _shipped() for tool in source.tools()}
    return plugin_sources(settings.GADGET_CONFIG.tools.plugins, taken)


@lru_cache(maxsize=1)
def _shipped() -> list[BuiltinSource]:
    sources = [BuiltinSource(import_string(dotted)) for dotted in settings.GADGET_TOOLS]
    for source in sources:
        source.start()
    return sources


MOST_TOOLBOXES = 500
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


def forget_toolboxes() -> None:
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
    made = _read_connected(organization_id)
    if made.versions != seen:
        correct(organization_id, seen, made.versions)
    if made.versions.tools and not connection.in_atomic_block:
        _keep(organization_id, made)
    return made


def _nothing(versions: Versions) -> _Connected:
    return _Connected(versions, installed_toolbox(), Reach())


def _read_connected(organization_id: int) -> _Connected:
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
        while len(_kept) >= MOST_TOOLBOXES:
            _kept.pop(next(iter(_kept)))
        _kept[organization_id] = made


Fields = Mapping[str, str]

MOST_ORGANIZATIONS = 500
"""Whose credentials one process remembers."""


class Credentials(Mapping[str, Fields]):
    """By service; one that cannot be read is there, and fails when it is asked for.

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
                f"The credentials of this organisation for {service!r} cannot be read any more.",
                recovery_hint="Go on without them: an admin of the organisation has to set them again.",
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
class _Own:
    readable: Mapping[str, Fields]
    unreadable: frozenset[str]


def credentials_of(organization: Organization) -> Mapping[str, Fields]:
    """By service, what the organisation's tools get; its own replace those of `gadget.yaml` for a service as a whole.

    Costs a query when the process has not read this version of them yet.
    """
    shared = installed_toolbox().environment.credentials
    if not organization.credentials_version:
        return shared
    own = _own(organization.pk, organization.credentials_version)
    replaced = own.readable.keys() | own.unreadable
    kept = {service: fields for service, fields in shared.items() if service not in replaced}
    return Credentials({**kept, **own.readable}, own.unreadable)


def own_credentials(organization_id: int, version: int) -> Mapping[str, Fields]:
    """By service, what the organisation itself has set, and nothing of `gadget.yaml`; for what it has connected.

    Args:
        version: of its credentials.
    """
    if not version:
        return {}
    own = _own(organization_id, version)
    return Credentials(own.readable, own.unreadable)


def note_changed_credentials(organization_id: int) -> None:
    """Tell every process that it has to read them again; to be called in the transaction of the change."""
    Organization.objects.filter(pk=organization_id).update(credentials_version=F("credentials_version") + 1)


def forget_credentials() -> None:
    """Read all of them again; for tests, whose organisations share their ids."""
    _own.cache_clear()


def fields_in(stored: str) -> dict[str, str] | None:
    """The fields of a stored `Credential.fields`; None if they cannot be read."""
    try:
        fields = json.loads(stored)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


@lru_cache(maxsize=MOST_ORGANIZATIONS)
def _own(organization_id: int, _version: int) -> _Own:
    rows = Credential.objects.filter(organization_id=organization_id).order_by().values_list("service", "fields")
    found = {service: fields_in(stored) for service, stored in rows}
    readable = {service: fields for service, fields in found.items() if fields is not None}
    KNOWN_SECRETS.learn(secrets_of(readable), owner=organization_id)
    return _Own(readable, frozenset(found) - readable.keys())
