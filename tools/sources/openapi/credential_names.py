"""Which parameters of a description are credentials: these come from the connection and are never shown to a model."""

import re

from .names import words_in

_EVERYWHERE = words_in(
    "authorization proxyauthorization cookie cookie2 apikey xapikey accesstoken xaccesstoken authtoken xauthtoken "
    "oauthtoken bearertoken apitoken xapitoken privatetoken clientsecret apisecret appkey xappkey authkey "
    "accesskey secretkey subscriptionkey ocpapimsubscriptionkey basicauth jwt jwttoken"
)
_OUTSIDE_OF_BODIES = words_in(
    "token auth secret password passwd sessiontoken sessionid session idtoken usertoken securitytoken csrftoken "
    "xcsrftoken xsrftoken apiauth signature"
)
_ENDS_OF_HEADERS = ("apikey", "token", "authorization", "secret", "credential", "credentials", "password")
_TOLD_AS_CREDENTIAL = re.compile(
    r"\bapi[ _-]?key\b|\b(?:access|auth|authentication|authorization|bearer|oauth|jwt)[ _-]?token\b"
    r"|\bauthenticat|\bcredentials?\b",
    re.IGNORECASE,
)
_MAY_BE_ONE = frozenset({"key", "token", "auth", "apitoken", "usertoken", "sessiontoken", "xtoken"})


def is_credential(name: str, place: str, description: str = "") -> bool:
    """Whether this parameter is one.

    Args:
        place: path, query, header, cookie or body. In a path or a body a `token` may be what the call is about, unless
            its description says otherwise.
    """
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    if plain in _EVERYWHERE:
        return True
    if plain in _MAY_BE_ONE and _TOLD_AS_CREDENTIAL.search(description):
        return True
    if place in ("path", "body"):
        return False
    return plain in _OUTSIDE_OF_BODIES or (place in ("header", "cookie") and plain.endswith(_ENDS_OF_HEADERS))
