"""Browser push: encrypt a notification for one browser (RFC 8291), sign it with the installation's
key (RFC 8292), and send it.

This module needs only `cryptography`, because each library for push brings its own HTTP client,
which would bypass our network rules.
"""

from __future__ import annotations

import json
import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from agents.accounts.notice_facts import clean_name
from agents.deliveries.content import Notification
from agents.deliveries.failures import DeliveryError, read_retry_after
from agents.deliveries.models import PushKey
from agents.platform.database_connections import release_connection
from tools.contract import NetworkAccess, ToolError
from tools.network import ClientResponse, NetworkLimits, get_host, read_url, request
from tools.network.urls import parse_ip
from tools.toolbox.objections import Objection

RECORD_SIZE = 4096
POINT_BYTES = 65
SECRET_BYTES = 16
TOKEN_S = 12 * 3600
KEPT_S = 24 * 3600
"""The number of seconds for which the push service keeps a notification for a browser that is not
running."""
GONE = (404, 410)
REFUSED = (401, 403)
LONGEST_WAIT_S = 24 * 3600.0
"""The longest time, in seconds, for which a push service can make us wait."""
MAX_WORDS = 300
SILENT_PUSH_HOSTS = ("web.push.apple.com", "api.push.apple.com")
"""Services that end a subscription after a few pushes that do not show a notification. For these,
old notifications are closed by the next visible push instead."""
_LIMITS = NetworkLimits(total_s=10.0, response_bytes=20_000, redirects=0)


@dataclass(frozen=True)
class Subscription:
    """A browser's address for push notifications.

    Attributes:
        endpoint: the address at the push service of the browser's maker.
        p256dh: the browser's public key, as base64url of an uncompressed point.
        auth: the browser's secret of 16 bytes, as base64url.
    """

    endpoint: str
    p256dh: str
    auth: str

    @classmethod
    def parse(cls, text: str) -> Subscription:
        """Parse a subscription from its JSON, as `dump` writes it."""
        return cls(**json.loads(text))

    def dump(self) -> str:
        return json.dumps(asdict(self))

    def find_objection(self) -> Objection | None:
        """Return the reason why the subscription is not accepted; None if it is accepted."""
        try:
            scheme = read_url(self.endpoint).scheme
        except ToolError:
            scheme = ""
        if (
            len(self.endpoint) > 1000
            or scheme not in ("https", "http")
            or (scheme == "http" and not settings.DEBUG)
        ):
            return Objection("the address of the push service is not valid")
        if self._is_private():
            return Objection(
                "the push service has a private address, which this installation does not allow"
            )
        try:
            _read_point(decode(self.p256dh))
            has_secret = len(decode(self.auth)) == SECRET_BYTES
        except ValueError:
            return Objection("the browser's key is not valid")
        return None if has_secret else Objection("the browser's secret is not valid")

    def _is_private(self) -> bool:
        """Return True if the address or host name is private and GADGET_PRIVATE_PUSH_HOSTS does not
        name it."""
        host, allowed = get_host(read_url(self.endpoint)), settings.PRIVATE_PUSH_HOSTS
        number = parse_ip("127.0.0.1" if host == "localhost" else host)
        if number is None:
            return "." not in host and not any(entry.name == host for entry in allowed.entries)
        return not number.is_global and not allowed.may_cover(host, number)

    @property
    def host(self) -> str:
        """The host of the push service."""
        return get_host(read_url(self.endpoint))


def send(address: str, notification: Notification) -> None:
    """Send a notification to one browser, whose service worker shows it.

    Args:
        address: a subscription, as JSON.

    Raises:
        DeliveryError: the push service refused it, or was unreachable.
    """
    shown: dict[str, Any] = {
        "title": notification.subject,
        "path": notification.path,
        "tag": notification.tag,
        "waiting": notification.waiting,
        **({"close": list(notification.closes)} if notification.closes else {}),
    }
    if notification.code:
        shown |= {
            "title": "Gadget can reach this browser",
            "code": notification.code,
            "channel": notification.channel_id,
        }
    push(address, shown, topic=notification.tag)


def push(address: str, content: dict[str, Any], topic: str = "") -> None:
    """Encrypt the content for one browser, and pass it to its push service.

    Args:
        address: a subscription, as JSON.
        content: less than 4 KB as JSON.
        topic: a later notification with the same topic replaces this one while the browser is not
            running.

    Raises:
        DeliveryError: the push service refused it, or was unreachable.
    """
    subscription = Subscription.parse(address)
    headers = {
        "authorization": sign(subscription.endpoint, load_key()),
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        "ttl": str(KEPT_S),
        "urgency": "high",
        **({"topic": topic} if topic else {}),
    }
    body = encrypt(json.dumps(content).encode(), subscription)
    try:
        host = get_host(read_url(subscription.endpoint))
        reach = NetworkAccess(requested=frozenset({host}), installation=settings.PRIVATE_PUSH_HOSTS)
        release_connection()
        response = request(
            "POST",
            subscription.endpoint,
            reach=reach,
            headers=headers,
            body=body,
            limits=_LIMITS,
            repeatable=True,
        )
    except ToolError as error:
        raise DeliveryError(error.message) from error
    if response.status in GONE:
        raise DeliveryError(
            f"the browser is gone: {host} responded with {response.status}", is_gone=True
        )
    if not 200 <= response.status < 300:
        raise _describe_refusal(host, response)


def _describe_refusal(host: str, response: ClientResponse) -> DeliveryError:
    """Describe a failed response, with the service's own words.

    A response that refuses our key or signature ends the subscription, as if the browser were gone:
    the subscription was made for another key, and the browser has to be added again.
    """
    words = clean_name(response.content[:MAX_WORDS].decode("utf-8", "replace"))
    problem = f"{host} responded with {response.status}{f': {words}' if words else ''}"
    if response.status in REFUSED:
        return DeliveryError(f"{problem}. Add this browser again.", is_gone=True)
    retry_after_s = read_retry_after(response.headers.get("retry-after", ""), LONGEST_WAIT_S)
    return DeliveryError(
        problem, is_final=response.status in (400, 413), retry_after_s=retry_after_s
    )


def encrypt(plain: bytes, subscription: Subscription) -> bytes:
    """Encrypt the content for one browser, in one record of at most 4 KB. Each call uses a new key
    and salt."""
    browsers_key = decode(subscription.p256dh)
    own = ec.generate_private_key(ec.SECP256R1())
    shared = own.exchange(ec.ECDH(), _read_point(browsers_key))
    own_key, salt = encode_point(own.public_key()), os.urandom(SECRET_BYTES)
    secret = _derive(
        shared, decode(subscription.auth), b"WebPush: info\0" + browsers_key + own_key, 32
    )
    key = _derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(secret, salt, b"Content-Encoding: nonce\0", 12)
    header = salt + RECORD_SIZE.to_bytes(4, "big") + bytes([POINT_BYTES]) + own_key
    return header + AESGCM(key).encrypt(nonce, plain + b"\x02", None)


def sign(endpoint: str, key: ec.EllipticCurvePrivateKey) -> str:
    """Build the Authorization header that identifies the sender to the push service."""
    parts = urlsplit(endpoint)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int(time.time()) + TOKEN_S,
        "sub": find_contact(),
    }
    signed = f"{_encode_json({'typ': 'JWT', 'alg': 'ES256'})}.{_encode_json(claims)}"
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    signature = encode(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    return f"vapid t={signed}.{signature}, k={encode(encode_point(key.public_key()))}"


def find_contact() -> str:
    """Return the contact that push services require: the first origin with https, else a `mailto:`
    link to the sender's address."""
    secure = next(
        (origin for origin in settings.ALLOWED_ORIGINS if origin.startswith("https://")), ""
    )
    return secure or f"mailto:{settings.DEFAULT_FROM_EMAIL}"


def load_key() -> ec.EllipticCurvePrivateKey:
    """Load the installation's key for browser push.

    Raises:
        DeliveryError: the installation has no key yet, or the key cannot be decrypted.
    """
    row = PushKey.objects.filter(pk=1).first()
    if row is None or not row.private_key:
        raise DeliveryError("the installation's key for push is missing or cannot be read")
    key = serialization.load_pem_private_key(row.private_key.encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the push key is of another kind")
    return key


def make_key_if_missing() -> None:
    """Create the installation's key for browser push unless it exists; any number of workers may
    call this at the same time."""
    private = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    PushKey.objects.get_or_create(pk=1, defaults={"private_key": private.decode()})


def get_public_key() -> str:
    """Return the installation's public key as base64url, which browsers need to subscribe; empty if
    there is no key."""
    try:
        return encode(encode_point(load_key().public_key()))
    except DeliveryError:
        return ""


def encode(raw: bytes) -> str:
    """Encode as base64url without padding."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def decode(text: str) -> bytes:
    """Decode base64url, with or without padding.

    Raises:
        ValueError: the text is not base64url.
    """
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))


def encode_point(key: ec.EllipticCurvePublicKey) -> bytes:
    """Encode a public key as an uncompressed point of 65 bytes."""
    return key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


def _read_point(raw: bytes) -> ec.EllipticCurvePublicKey:
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw)


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)


def _encode_json(value: dict[str, Any]) -> str:
    return encode(json.dumps(value, separators=(",", ":")).encode())
