"""What a form's answer has to tell once: it stands on the page that the answer leads to, and a reload repeats no act.

Until then the session keeps it, encrypted as secret columns are: who reads the database learns no link from it.
"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest

from agents.accounts.models import Membership
from agents.platform.encrypted_fields import EncryptedTextField

_SEAL = EncryptedTextField()


def keep(request: HttpRequest, member: Membership, name: str, told: dict[str, Any]) -> None:
    """Keep what the next page of this name tells, instead of what was kept before; `told` is plain JSON."""
    kept = {"organization_id": member.organization_id, "told": told}
    request.session[name] = _SEAL.get_prep_value(json.dumps(kept))


def take(request: HttpRequest, member: Membership, name: str) -> dict[str, Any]:
    """What is told now and never again; empty if there is nothing, or it was kept in another organization."""
    if request.method != "GET" or name not in request.session:
        return {}
    text = _SEAL.from_db_value(request.session.pop(name))
    kept = json.loads(text) if text else {}
    told: dict[str, Any] = kept.get("told", {})
    return told if kept.get("organization_id") == member.organization_id else {}
