"""Param names that a model may not use: credentials, and overrides of the HTTP method."""

import re

from tools.sources.openapi.names import word_set
from tools.sources.openapi.references import UnsupportedOperationError
from tools.toolbox.objections import Objection

_IN_EVERY_PLACE = word_set(
    "authorization proxyauthorization apikey xapikey accesstoken xaccesstoken authtoken xauthtoken "
    "oauthtoken bearertoken apitoken xapitoken privatetoken clientsecret apisecret appkey xappkey authkey "
    "accesskey secretkey subscriptionkey ocpapimsubscriptionkey basicauth jwt jwttoken"
)
_EXCEPT_IN_BODIES = word_set(
    "cookie cookie2 token auth secret password passwd sessiontoken sessionid session idtoken usertoken "
    "securitytoken csrftoken xcsrftoken xsrftoken apiauth signature"
)
_HEADER_ENDINGS = (
    "apikey",
    "token",
    "authorization",
    "secret",
    "credential",
    "credentials",
    "password",
)
_PATH_ENDINGS = ("apikey", "token", "secret")
_DESCRIBES_CREDENTIAL = re.compile(
    r"\bapi[ _`-]{0,3}(?:key|secret)\b|\b(?:access|auth|authentication|authorization|bearer|oauth|jwt)[ _-]?token\b"
    r"|\bauthenticat|\bcredentials?\b",
    re.IGNORECASE,
)
_METHOD_OVERRIDES = word_set(
    "xhttpmethodoverride xhttpmethod xmethodoverride httpmethodoverride methodoverride"
)
_AMBIGUOUS = frozenset(
    {"key", "token", "auth", "secret", "apitoken", "usertoken", "sessiontoken", "xtoken"}
)


class ForbiddenParamError(UnsupportedOperationError):
    """A value needs a name that a model may not use; the message gives the name, as part of a
    sentence."""


class ProvidedParamError(ForbiddenParamError):
    """A value needs a field that the connection fills."""


def is_credential(name: str, place: str, description: str = "") -> bool:
    """Return True if this parameter is a credential.

    Args:
        place: path, query, header, cookie or body. A name in a path, such as `{authorization}`, may
            be the subject of the call, and so may a `token` in a body, unless its description calls
            it a credential.
    """
    plain = _normalize(name)
    if place == "path" and not plain.endswith(_PATH_ENDINGS):
        return (
            plain in _IN_EVERY_PLACE | _AMBIGUOUS
            and _DESCRIBES_CREDENTIAL.search(description) is not None
        )
    if plain in _IN_EVERY_PLACE:
        return True
    if plain in _AMBIGUOUS and _DESCRIBES_CREDENTIAL.search(description):
        return True
    if place in ("path", "body"):
        return False
    return plain in _EXCEPT_IN_BODIES or (
        place in ("header", "cookie") and plain.endswith(_HEADER_ENDINGS)
    )


def may_change_method(name: str) -> bool:
    """Return True if many servers read the HTTP method from a header or field of this name."""
    return name.strip().lower() == "_method" or _normalize(name) in _METHOD_OVERRIDES


def object_to_name(
    name: str, place: str, description: str = "", *, is_top: bool = True
) -> Objection | None:
    """Return why a model may not use this name, as part of a sentence; None if it may.

    Args:
        place: see `is_credential`.
        is_top: True if the name is not inside another value.
    """
    if is_credential(name, place, description):
        return Objection(f"needs a credential: {name[:100]!r}")
    if is_top and may_change_method(name):
        return Objection(f"needs {name[:100]!r}, which may change its method")
    return None


def _normalize(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
