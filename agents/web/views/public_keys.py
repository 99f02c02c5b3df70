"""The public keys for checking receipts, readable by everyone."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from agents.gateway.receipts import ensure_current_key, list_public_keys

KEPT_S = 300
"""Seconds for which a verifier may keep the response."""


@require_safe
def public_keys(_: HttpRequest) -> JsonResponse:
    """Return the keys as a JSON Web Key Set."""
    ensure_current_key()
    return JsonResponse(
        {"keys": list_public_keys()}, headers={"Cache-Control": f"public, max-age={KEPT_S}"}
    )
