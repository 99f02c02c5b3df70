"""What an organisation's tools log in with: the installation's credentials, and its own in their place.

What an organisation has connected itself gets its own alone: its admins say where that leads.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from django.db.models import F

from agents.engine.toolbox import installed_toolbox
from agents.known_secrets import KNOWN_SECRETS
from agents.models import Credential, Organization
from tools.contract import ErrorCode, ToolError, secrets_of

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


def have_changed(organization_id: int) -> None:
    """Tell every process that it has to read them again; to be called in the transaction of the change."""
    Organization.objects.filter(pk=organization_id).update(credentials_version=F("credentials_version") + 1)


def forget() -> None:
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
