"""Names that no model may give a value for: credentials come from the connection, the method from the operation."""

import re

from .names import words_in

_EVERYWHERE = words_in(
    "authorization proxyauthorization apikey xapikey accesstoken xaccesstoken authtoken xauthtoken "
    "oauthtoken bearertoken apitoken xapitoken privatetoken clientsecret apisecret appkey xappkey authkey "
    "accesskey secretkey subscriptionkey ocpapimsubscriptionkey basicauth jwt jwttoken"
)
_OUTSIDE_OF_BODIES = words_in(
    "cookie cookie2 token auth secret password passwd sessiontoken sessionid session idtoken usertoken "
    "securitytoken csrftoken xcsrftoken xsrftoken apiauth signature"
)
_ENDS_OF_HEADERS = ("apikey", "token", "authorization", "secret", "credential", "credentials", "password")
_ENDS_IN_PATHS = ("apikey", "token", "secret")
_TOLD_AS_CREDENTIAL = re.compile(
    r"\bapi[ _-]?key\b|\b(?:access|auth|authentication|authorization|bearer|oauth|jwt)[ _-]?token\b"
    r"|\bauthenticat|\bcredentials?\b",
    re.IGNORECASE,
)
_OTHER_METHOD = words_in("xhttpmethodoverride xhttpmethod xmethodoverride httpmethodoverride methodoverride")
_MAY_BE_ONE = frozenset({"key", "token", "auth", "apitoken", "usertoken", "sessiontoken", "xtoken"})


def is_credential(name: str, place: str, description: str = "") -> bool:
    """Return True if this parameter is a credential.

    Args:
        place: path, query, header, cookie or body. In a path what looks like one may be what the call is about, such as
            `{authorization}`, and so may a `token` in a body, unless its description says otherwise.
    """
    plain = _plain(name)
    if place == "path" and not plain.endswith(_ENDS_IN_PATHS):
        return plain in _EVERYWHERE | _MAY_BE_ONE and _TOLD_AS_CREDENTIAL.search(description) is not None
    if plain in _EVERYWHERE:
        return True
    if plain in _MAY_BE_ONE and _TOLD_AS_CREDENTIAL.search(description):
        return True
    if place in ("path", "body"):
        return False
    return plain in _OUTSIDE_OF_BODIES or (place in ("header", "cookie") and plain.endswith(_ENDS_OF_HEADERS))


def changes_method(name: str) -> bool:
    """Whether many servers take the value of a header or a field of this name for the request's method."""
    return name.strip().lower() == "_method" or _plain(name) in _OTHER_METHOD


def why_kept_back(name: str, place: str, description: str = "", *, is_top: bool = True) -> str:
    """Why what needs this name needs what no model may give, as part of a sentence; empty if a model may give it.

    Args:
        place: see `is_credential`.
        is_top: whether it stands by itself in its place, not inside another value.
    """
    if is_credential(name, place, description):
        return f"needs a credential: {name[:100]!r}"
    if is_top and changes_method(name):
        return f"needs {name[:100]!r}, which may change its method"
    return ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
