"""Limits on request bodies: small for strangers, and as large as a page needs for logged-in
people."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from urllib.parse import unquote

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest, parse_cookie
from django.urls import Resolver404, resolve

from agents.accounts.membership import authenticate_token
from agents.admin.source_forms import LARGEST_DOCUMENT
from agents.web.views.files import MAX_UPLOAD_SIZE
from tools.registries.records import LARGEST_IMPORT

WITHOUT_LOGIN = 1_000_000
WITH_LOGIN = 3_000_000
"""A little more than DATA_UPLOAD_MAX_MEMORY_SIZE, so that Django itself refuses slightly larger
requests and says why."""

FORM_FIELDS = 1_000_000
"""The number of bytes that a form's other fields may have, besides its files."""

UPLOADS = {
    "files-upload": MAX_UPLOAD_SIZE + FORM_FIELDS,
    "records-import": LARGEST_IMPORT + FORM_FIELDS,
    "admin:connections_source_add": LARGEST_DOCUMENT + FORM_FIELDS,
    "admin:connections_source_change": LARGEST_DOCUMENT + FORM_FIELDS,
}
"""The body limits of pages on which logged-in people upload files, by URL name."""

LARGEST = max(UPLOADS.values())


@dataclass(frozen=True)
class RequestSender:
    """The credentials that a request's sender presents; empty if there are none."""

    cookies: str = ""
    authorization: str = ""

    @property
    def has_credentials(self) -> bool:
        return bool(self.authorization or self._session_key)

    @property
    def _session_key(self) -> str:
        return str(parse_cookie(self.cookies).get(settings.SESSION_COOKIE_NAME, ""))

    def is_logged_in(self) -> bool:
        """Return True if the database has the token or the session, and its user may still log
        in."""
        scheme, _, token = self.authorization.partition(" ")
        if scheme.lower() == "bearer":
            return authenticate_token(token.strip()) is not None
        if not self._session_key:
            return False
        request = HttpRequest()
        request.session = import_module(settings.SESSION_ENGINE).SessionStore(self._session_key)
        return get_user(request).is_authenticated


def get_body_limit(sender: RequestSender, path: str) -> int:
    """Return the size, in bytes, of the largest body that this sender may send to this path."""
    return _get_limit_with_login(path) if sender.is_logged_in() else WITHOUT_LOGIN


def _get_limit_with_login(path: str) -> int:
    try:
        name = resolve(unquote(path)).view_name
    except Resolver404:
        return WITH_LOGIN
    return UPLOADS.get(name, WITH_LOGIN)
