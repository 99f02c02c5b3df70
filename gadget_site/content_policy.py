"""The Content-Security-Policy header: strict everywhere, relaxed under /admin/, whose pages need
inline code."""

from __future__ import annotations

from csp.middleware import CSPMiddleware, PolicyParts
from django.http import HttpRequest
from django.http.response import HttpResponseBase

ADMIN_PREFIX = "/admin/"
ADMIN_DIRECTIVES = {
    "script-src": ["'unsafe-inline'", "'unsafe-eval'"],
    "style-src": ["'unsafe-inline'"],
}


class ContentPolicyMiddleware(CSPMiddleware):
    """Middleware that sends the policy of settings.py, with ADMIN_DIRECTIVES added under
    ADMIN_PREFIX."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        """Return the parts that django-csp builds the header from."""
        parts = super().get_policy_parts(request, response, report_only)
        if request.path_info.startswith(ADMIN_PREFIX) and not report_only:
            parts.update = {**ADMIN_DIRECTIVES, **(parts.update or {})}
        return parts
