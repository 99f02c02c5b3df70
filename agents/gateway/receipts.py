"""Receipts: signed approvals of asks, which others can check offline, as compact JWS (RFC 7515, RFC
8037).

The signature proves that a receipt is genuine. Only `agents.gateway.redemptions.redeem` proves that
it was not used before.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import asdict, dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from agents.gateway.models import SigningKey

TYPE = "gadget-receipt"
KEYS_ARE_KNOWN = timedelta(days=30)
"""The time for which a retired key is still served; it is longer than the lifetime of any
receipt."""


@dataclass(frozen=True)
class Receipt:
    """The claims of a receipt; a verifier compares each of them.

    Attributes:
        iss: the installation's configured origin, or `gadget`.
        org: the organization's slug.
        ask: the ask's id.
        asker: the agent key that asked.
        params_digest: SHA-256 of the params as `digest_params` writes them, in hexadecimal.
        decision: always `approved`, because denied asks do not get a receipt.
        decided_by: the usernames of the people who decided.
        aud: the verifier, as named by the agent.
        iat, exp: the time of the decision and the end of the receipt's validity, in seconds since
            1970.
    """

    iss: str
    org: str
    ask: str
    asker: str
    action: str
    level: str
    params_digest: str
    decision: str
    decided_by: str
    aud: str
    iat: int
    exp: int


class InvalidReceipt(Exception):
    """The receipt is not genuine."""


def digest_params(params: dict[str, Any]) -> str:
    """Hash params with SHA-256: JSON in UTF-8 with sorted keys and without spaces."""
    text = json.dumps(params, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sign_receipt(receipt: Receipt) -> str:
    """Sign the receipt with the current key. Signing the same receipt again gives the same text."""
    key = ensure_current_key()
    head = {"alg": "EdDSA", "typ": TYPE, "kid": key.key_id}
    signed = f"{_encode_json(head)}.{_encode_json(asdict(receipt))}"
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key.private))
    return f"{signed}.{_encode(private.sign(signed.encode()))}"


def read_receipt(text: str) -> Receipt:
    """Verify a receipt's signature and return its claims. The receipt's age is not checked.

    Raises:
        InvalidReceipt
    """
    try:
        head, body, signature = text.split(".")
        key_id = json.loads(_decode(head))["kid"]
        key = SigningKey.objects.filter(key_id=str(key_id)).first()
        if key is None:
            raise InvalidReceipt
        public = Ed25519PublicKey.from_public_bytes(_decode(key.public))
        public.verify(_decode(signature), f"{head}.{body}".encode())
        return Receipt(**json.loads(_decode(body)))
    except (ValueError, KeyError, TypeError, RecursionError, InvalidSignature) as error:
        raise InvalidReceipt from error


def list_public_keys() -> list[dict[str, str]]:
    """List the current and recently retired public keys as JSON Web Keys, the current one first."""
    known = SigningKey.objects.filter(
        Q(is_current=True) | Q(retired_at__gt=Now() - KEYS_ARE_KNOWN)
    ).order_by("-id")
    fixed = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig"}
    return [{**fixed, "kid": key.key_id, "x": key.public} for key in known]


def rotate_signing_key() -> SigningKey:
    """Replace the signing key; receipts signed with the old key can still be checked for 30 days.

    Called by `manage.py rotate_receipt_key`.
    """
    with transaction.atomic():
        SigningKey.objects.filter(is_current=True).update(is_current=False, retired_at=Now())
        return _make_key()


def ensure_current_key() -> SigningKey:
    """Return the key that signs now; create a key if there is none yet."""
    current = SigningKey.objects.filter(is_current=True)
    if (key := current.first()) is not None:
        return key
    try:
        with transaction.atomic():
            return _make_key()
    except IntegrityError:  # another process created it first
        return current.get()


def _make_key() -> SigningKey:
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(
        serialization.Encoding.Raw, serialization.PublicFormat.Raw
    )
    raw = private.private_bytes(
        serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
    )
    return SigningKey.objects.create(
        key_id=sha256(public).hexdigest()[:16], private=raw.hex(), public=_encode(public)
    )


def _encode_json(value: dict[str, Any]) -> str:
    return _encode(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _encode(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _decode(text: str) -> bytes:
    """Decode base64url. Refuse every text that `_encode` would write differently, because the
    library ignores invalid characters and unused bits.

    Raises:
        ValueError
    """
    raw = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    if _encode(raw) != text:
        raise ValueError("not in canonical form")
    return raw
