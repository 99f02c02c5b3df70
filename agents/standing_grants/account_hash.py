"""Compute a hash of the account that a tool uses: it changes with the server, the credentials, or
the way to log in."""

import json
from typing import Any

from django.forms.models import model_to_dict
from django.utils.crypto import salted_hmac

from agents.accounts.models import Organization
from agents.employees.toolboxes import load_credentials, load_own_credentials
from tools.connections.models import Source
from tools.contract import Tool, ToolError, canonical_json

_ADDRESS = (
    "kind",
    "address",
    "base_url",
    "command",
    "environment",
    "authentication",
    "key_name",
    "key_place",
)
_LOGIN = ("token_url", "scopes", "service")


def hash_account(organization: Organization, tool: Tool) -> str:
    """Return a keyed hash of the account that the tool uses; empty for a tool that acts within
    Gadget.

    A connected source uses the credentials of its service; plugins and open-world tools may use any
    credentials, so all credentials count. The same account has different hashes in two
    organizations. For a tool of a connected source, this costs a query.
    """
    if not (tool.is_from_outside or tool.open_world):
        return ""
    source = _find_source(organization.pk, tool) if tool.is_from_outside else None
    if source is None:
        parts: Any = _read_all(load_credentials(organization))
    else:
        own = load_own_credentials(organization.pk, organization.credentials_version)
        service = source.credentials_service
        parts = [model_to_dict(source, (*_ADDRESS, *_LOGIN)), _read_one(own, service)]
    text = canonical_json([organization.pk, parts])
    return salted_hmac("gadget.standing_grants.account", text, algorithm="sha256").hexdigest()


def _find_source(organization_id: int, tool: Tool) -> Source | None:
    return Source.objects.filter(organization_id=organization_id, name=tool.category).first()


def _read_all(credentials: Any) -> dict[str, Any]:
    return {service: _read_one(credentials, service) for service in sorted(credentials)}


def _read_one(credentials: Any, service: str) -> Any:
    try:
        return json.loads(json.dumps(dict(credentials.get(service, {})), sort_keys=True))
    except ToolError:
        return None
