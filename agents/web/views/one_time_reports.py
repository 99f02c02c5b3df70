"""Reports that are shown once, on the page to which a form redirects, so that a reload repeats nothing.

The session holds them until then, encrypted like secret columns: readers of the database learn no links.
"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest

from agents.accounts.models import Membership
from agents.platform.encrypted_fields import EncryptedTextField

_SEAL = EncryptedTextField()


def store_report(request: HttpRequest, member: Membership, name: str, report: dict[str, Any]) -> None:
    """Store a report for the next page of this name, replacing an earlier one; `report` is plain JSON."""
    stored = {"organization_id": member.organization_id, "report": report}
    request.session[name] = _SEAL.get_prep_value(json.dumps(stored))


def take_report(request: HttpRequest, member: Membership, name: str) -> dict[str, Any]:
    """Return the stored report and delete it; empty without one, or if it belongs to another organization."""
    if request.method != "GET" or name not in request.session:
        return {}
    text = _SEAL.from_db_value(request.session.pop(name))
    stored = json.loads(text) if text else {}
    report: dict[str, Any] = stored.get("report", {})
    return report if stored.get("organization_id") == member.organization_id else {}
