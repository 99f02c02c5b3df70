"""Addresses where MCP clients look for a login, which Gadget does not offer: agents use a key."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt


@csrf_exempt
def respond_not_offered(_: HttpRequest, **__: str) -> JsonResponse:
    """Return 404 in JSON: a client that was redirected to a login page would report a broken
    login."""
    detail = (
        "There is no OAuth here. Send an agent key to /mcp as Authorization: Bearer gadget_agent_…"
    )
    return JsonResponse({"error": "not_found", "error_description": detail}, status=404)
