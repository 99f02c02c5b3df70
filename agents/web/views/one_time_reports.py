"""Reports shown once, on the page to which a form redirects, so that a reload does not repeat them.

The session stores them until then. They are encrypted like secret columns, because they can contain
secret links.
"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest

from agents.accounts.models import Membership
from agents.platform.encrypted_fields import EncryptedTextField

_ENCRYPTED = EncryptedTextField()


def store_report(
    request: HttpRequest, member: Membership, name: str, report: dict[str, Any]
) -> None:
    """Store a report under this name, replacing an earlier one; `report` must be serializable as
    JSON."""
    stored = {"organization_id": member.organization_id, "report": report}
    request.session[name] = _ENCRYPTED.get_prep_value(json.dumps(stored))


def take_report(request: HttpRequest, member: Membership, name: str) -> dict[str, Any]:
    """Return and delete the stored report; empty if there is none, if it belongs to another
    organization, or if the request is not a GET."""
    if request.method != "GET" or name not in request.session:
        return {}
    text = _ENCRYPTED.from_db_value(request.session.pop(name))
    stored = json.loads(text) if text else {}
    report: dict[str, Any] = stored.get("report", {})
    return report if stored.get("organization_id") == member.organization_id else {}
