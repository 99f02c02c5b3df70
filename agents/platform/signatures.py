"""Create and check HMAC-SHA256 signatures with the audit keys. The first key signs, and every key
verifies.

The keys are not in the database. So a signature, unlike a plain hash, proves that its author had a
key.
"""

import hmac
from base64 import urlsafe_b64decode
from functools import lru_cache

from django.conf import settings

_KEY_ID_DIGITS = 8


def get_current_key_id() -> str:
    """Return the short id of the key that signs now. The id does not reveal anything about the
    key."""
    return next(iter(_index_keys(tuple(settings.GADGET_AUDIT_KEYS))))


def sign(purpose: str, text: str, key_id: str) -> str | None:
    """Return the signature as 64 hexadecimal digits; None if no key has this id.

    A signature for one purpose is never valid for another.
    """
    key = _index_keys(tuple(settings.GADGET_AUDIT_KEYS)).get(key_id)
    return None if key is None else _hmac(key, f"{purpose}\0{text}")


def is_known(key_id: str) -> bool:
    """Return True if one of the keys has this id."""
    return key_id in _index_keys(tuple(settings.GADGET_AUDIT_KEYS))


@lru_cache(maxsize=4)
def _index_keys(keys: tuple[str, ...]) -> dict[str, bytes]:
    raw = [urlsafe_b64decode(key) for key in keys]
    return {_hmac(key, "key id")[:_KEY_ID_DIGITS]: key for key in raw}


def _hmac(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256").hex()
