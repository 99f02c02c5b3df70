"""Which credentials a source of tools lacks, and the form in which they are given."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from agents.accounts.models import Credential, Organization
from agents.employees.toolboxes import own_credentials
from tools.connections.models import Source
from tools.connections.servers import needed_fields
from tools.contract import ToolError


@dataclass(frozen=True)
class Lacking:
    """Fields of a service that have no value, and the address of the form for them."""

    service: str
    fields: tuple[str, ...]
    url: str


def lacking(source: Source) -> Lacking | None:
    """What the source's requests cannot be signed without; None if nothing is missing."""
    service, organization = source.credentials_service, Organization.objects.get(pk=source.organization_id)
    try:
        known = own_credentials(organization.pk, organization.credentials_version).get(service, {})
    except ToolError:  # they cannot be read any more
        known = {}
    missing = tuple(name for name in needed_fields(source) if not known.get(name))
    return Lacking(service, missing, _form_for(organization, service)) if missing else None


def _form_for(organization: Organization, service: str) -> str:
    row = Credential.objects.filter(organization=organization, service=service).only("pk").first()
    if row is not None:
        return reverse("admin:accounts_credential_change", args=(row.pk,))
    return f"{reverse('admin:accounts_credential_add')}?{urlencode({'for': service, 'organization': organization.pk})}"
