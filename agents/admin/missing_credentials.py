"""Credentials that a source of tools still needs, with the form to enter them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from agents.accounts.models import Credential, Organization
from agents.employees.toolboxes import load_own_credentials
from tools.connections.models import Source
from tools.connections.servers import required_fields
from tools.contract import ToolError


@dataclass(frozen=True)
class MissingCredentials:
    """Fields of a service that have no value, and the URL of the form for them."""

    service: str
    fields: tuple[str, ...]
    url: str


def find_missing_credentials(source: Source) -> MissingCredentials | None:
    """Return the credentials that the source needs to sign its requests but does not have; None if
    it has them all."""
    service, organization = (
        source.credentials_service,
        Organization.objects.get(pk=source.organization_id),
    )
    try:
        known = load_own_credentials(organization.pk, organization.credentials_version).get(
            service, {}
        )
    except ToolError:  # values that can no longer be decrypted count as missing
        known = {}
    missing = tuple(name for name in required_fields(source) if not known.get(name))
    return (
        MissingCredentials(service, missing, _build_form_url(organization, service))
        if missing
        else None
    )


def _build_form_url(organization: Organization, service: str) -> str:
    row = Credential.objects.filter(organization=organization, service=service).only("pk").first()
    if row is not None:
        return reverse("admin:accounts_credential_change", args=(row.pk,))
    return f"{reverse('admin:accounts_credential_add')}?{urlencode({'for': service, 'organization': organization.pk})}"
