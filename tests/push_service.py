"""A push service over real HTTP and a browser behind it: it authenticates the sender, and decrypts
the messages."""

from __future__ import annotations

import json
import os
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CURVE = ec.SECP256R1()
LONGEST_S = 24 * 3600


def from_base64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def to_base64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


@dataclass(frozen=True)
class BrowserKeys:
    """The keys of one subscription."""

    private: ec.EllipticCurvePrivateKey
    auth: bytes

    @classmethod
    def make(cls) -> Self:
        return cls(ec.generate_private_key(CURVE), os.urandom(16))

    @property
    def public(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def decrypt(self, body: bytes) -> bytes:
        """Decrypt one record, as RFC 8291 and RFC 8188 describe it.

        Raises:
            InvalidTag: it was not encrypted for this browser.
        """
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        senders = body[21 : 21 + length]
        assert len(body) - 21 - length <= size
        shared = self.private.exchange(
            ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, senders)
        )
        secret = _derive(shared, self.auth, b"WebPush: info\x00" + self.public + senders, 32)
        key = _derive(secret, salt, b"Content-Encoding: aes128gcm\x00", 16)
        nonce = _derive(secret, salt, b"Content-Encoding: nonce\x00", 12)
        padded = AESGCM(key).decrypt(nonce, body[21 + length :], None).rstrip(b"\x00")
        assert padded[-1:] == b"\x02", "the last record ends with 2"
        return padded[:-1]


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)


def check_sender(authorization: str, origin: str) -> str:
    """Check the signature, the receiver and the age of a VAPID header; return the sender's public
    key.

    Raises:
        InvalidSignature: it was signed with another key.
    """
    scheme, _, rest = authorization.partition(" ")
    assert scheme == "vapid"
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    signed, _, signature = fields["t"].rpartition(".")
    head, claims = (json.loads(from_base64(part)) for part in signed.split("."))
    raw = from_base64(signature)
    assert len(raw) == 64
    numbers = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    key = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, from_base64(fields["k"]))
    key.verify(encode_dss_signature(*numbers), signed.encode(), ec.ECDSA(hashes.SHA256()))
    assert head == {"typ": "JWT", "alg": "ES256"}
    assert claims["aud"] == origin
    assert time.time() < claims["exp"] <= time.time() + LONGEST_S
    assert claims["sub"].startswith(("mailto:", "https:"))
    return fields["k"]


class PushService:
    """The service and the one browser behind it.

    Attributes:
        status, words, retry_after: the response to each message.
        answering: while it is not set, requests hang; `hanging` counts the hanging requests.
        messages: the decrypted messages, as JSON; `raw` has the received bytes.
        senders: the senders' public keys.
    """

    def __init__(self) -> None:
        self.keys = BrowserKeys.make()
        self.status, self.words, self.retry_after = 201, "", ""
        self.answering, self.hanging = threading.Event(), threading.Semaphore(0)
        self.answering.set()
        self.messages: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.senders: set[str] = set()
        self.faults: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                service.receive(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answering.set()
        self._server.shutdown()
        self._server.server_close()
        assert not self.faults, self.faults

    @property
    def form(self) -> dict[str, str]:
        """The subscription, as the page's script sends it."""
        return {
            "endpoint": f"{self.origin}/push/4711",
            "p256dh": to_base64(self.keys.public),
            "auth": to_base64(self.keys.auth),
        }

    def receive(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            self.senders.add(check_sender(headers["authorization"], self.origin))
            assert headers["content-encoding"] == "aes128gcm"
            assert int(headers["ttl"]) > 0
            plain = self.keys.decrypt(body)
        except Exception as error:  # noqa: BLE001 - reported by the test's thread
            self.faults.append(repr(error))
        else:
            if self.status == 201:
                self.raw.append(body)
                self.headers.append(headers)
                self.messages.append(json.loads(plain))
        if not self.answering.is_set():
            self.hanging.release()
            self.answering.wait(30)
        request.send_response(self.status)
        request.send_header("Content-Length", str(len(self.words)))
        if self.retry_after:
            request.send_header("Retry-After", self.retry_after)
        request.end_headers()
        request.wfile.write(self.words.encode())
