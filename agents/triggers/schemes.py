"""Check the proofs of senders: each scheme proves some parts of a message, and names the parts that
it does not prove."""

import base64
import binascii
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from agents.triggers.models import Scheme
from tools.toolbox.objections import Objection

TOLERANCE_S = 300
"""The maximum number of seconds by which a signed time may differ from this server's time."""
STANDARD_PREFIX = "whsec_"


@dataclass(frozen=True)
class Incoming:
    """A request with a message to a trigger.

    Attributes:
        headers: the headers by their names in lower case.
        now: the time of arrival, in seconds since 1970.
    """

    headers: Mapping[str, str]
    body: bytes
    now: float


@dataclass(frozen=True)
class Proof:
    """The secret that a trigger shares with its sender.

    Attributes:
        header: the name of the header with the signature, for HMAC.
    """

    secret: str
    header: str = ""


@dataclass(frozen=True)
class SchemeTraits:
    """The properties of a scheme: what it proves, in words for people, and its check.

    Attributes:
        body, age, id: how the scheme proves the body, the age and the id of a message.
        id_header: the header with the sender's id of a message; empty if the scheme has none.
        find_objection: returns the reason to refuse a request; None only for a valid proof.
    """

    body: str
    age: str
    id: str
    id_header: str
    find_objection: Callable[[Incoming, Proof], Objection | None]


class WrongSecret(ValueError):
    """The secret does not have the form that the scheme needs; the text is for the person who
    entered it."""


def make_secret(scheme: str) -> str:
    """Generate a secret in the form that the scheme's senders expect."""
    raw = secrets.token_bytes(32)
    return (
        STANDARD_PREFIX + base64.b64encode(raw).decode() if scheme == Scheme.STANDARD else raw.hex()
    )


def check_secret(scheme: str, secret: str) -> None:
    """Check the form of a secret that a person has entered.

    Raises:
        WrongSecret
    """
    if not 16 <= len(secret) <= 200 or not secret.isascii() or not secret.isprintable():
        raise WrongSecret("the secret must have 16 to 200 visible ASCII characters")
    if scheme == Scheme.STANDARD:
        try:
            _read_standard_secret(secret)
        except ValueError:
            raise WrongSecret(
                f"the secret must be base64, with or without {STANDARD_PREFIX}"
            ) from None


def _check_standard(incoming: Incoming, proof: Proof) -> Objection | None:
    message_id, at, signatures = (
        _get_standard(incoming, name) for name in ("id", "timestamp", "signature")
    )
    if not message_id or not at:
        return _LACKS_HEADERS
    signed = f"{message_id}.{at}.".encode("utf-8", "replace") + incoming.body
    expected = base64.b64encode(
        hmac.digest(_read_standard_secret(proof.secret), signed, "sha256")
    ).decode()
    given = [part.partition(",") for part in signatures.split()]
    if not any(version == "v1" and _is_same(value, expected) for version, _, value in given):
        return _WRONG
    return _object_to_age(at, incoming.now)


def _get_standard(incoming: Incoming, name: str) -> str:
    """Return a header of Standard Webhooks; if the header `webhook-id` is missing, return the
    header with Svix's prefix instead."""
    prefix = "webhook" if "webhook-id" in incoming.headers else "svix"
    return incoming.headers.get(f"{prefix}-{name}", "")


def _check_github(incoming: Incoming, proof: Proof) -> Objection | None:
    expected = "sha256=" + _sign_hex(proof.secret, incoming.body)
    return None if _is_same(incoming.headers.get("x-hub-signature-256", ""), expected) else _WRONG


def _check_gitlab(incoming: Incoming, proof: Proof) -> Objection | None:
    return None if _is_same(incoming.headers.get("x-gitlab-token", ""), proof.secret) else _WRONG


def _check_slack(incoming: Incoming, proof: Proof) -> Objection | None:
    at = incoming.headers.get("x-slack-request-timestamp", "")
    signed = f"v0:{at}:".encode("utf-8", "replace") + incoming.body
    if not _is_same(
        incoming.headers.get("x-slack-signature", ""), "v0=" + _sign_hex(proof.secret, signed)
    ):
        return _WRONG
    return _object_to_age(at, incoming.now)


def _check_bearer(incoming: Incoming, proof: Proof) -> Objection | None:
    kind, _, token = incoming.headers.get("authorization", "").partition(" ")
    return None if kind.lower() == "bearer" and _is_same(token.strip(), proof.secret) else _WRONG


def _check_hmac(incoming: Incoming, proof: Proof) -> Objection | None:
    given = incoming.headers.get(proof.header.lower(), "").removeprefix("sha256=")
    digest = hmac.digest(proof.secret.encode(), incoming.body, "sha256")
    is_right = _is_same(given.lower(), digest.hex()) or _is_same(
        given, base64.b64encode(digest).decode()
    )
    return None if is_right else _WRONG


_WRONG = Objection("the signature or the token is wrong")
_LACKS_HEADERS = Objection(
    "the headers webhook-id and webhook-timestamp, or svix-id and svix-timestamp, are needed"
)
TRAITS: dict[str, SchemeTraits] = {
    Scheme.STANDARD: SchemeTraits(
        "signed", "signed, at most 5 minutes", "signed", "webhook-id", _check_standard
    ),
    Scheme.GITHUB: SchemeTraits(
        "signed", "not proved", "sent, not signed", "x-github-delivery", _check_github
    ),
    Scheme.GITLAB: SchemeTraits(
        "not proved", "not proved", "sent, not signed", "idempotency-key", _check_gitlab
    ),
    Scheme.SLACK: SchemeTraits(
        "signed", "signed, at most 5 minutes", "signed with the body", "", _check_slack
    ),
    Scheme.ALERTMANAGER: SchemeTraits(
        "not proved", "not proved", "none; equal bodies are repeats", "", _check_bearer
    ),
    Scheme.HMAC: SchemeTraits(
        "signed", "not proved", "none; equal bodies are repeats", "", _check_hmac
    ),
}


def find_objection(scheme: str, incoming: Incoming, proof: Proof) -> Objection | None:
    """Return the reason to refuse a request; None only if its proof is valid."""
    return TRAITS[scheme].find_objection(incoming, proof)


def find_key(scheme: str, incoming: Incoming, payload: object) -> tuple[str, bool]:
    """Return the key of the message, and True if the key is the sender's id instead of the body's
    digest."""
    own = incoming.headers.get(TRAITS[scheme].id_header, "") if TRAITS[scheme].id_header else ""
    if scheme == Scheme.STANDARD:
        own = _get_standard(incoming, "id")
    if scheme == Scheme.SLACK and isinstance(payload, dict):
        own = str(payload.get("event_id") or "")
    if own:
        return f"i{sha256(own.encode('utf-8', 'replace')).hexdigest()}", True
    return f"b{sha256(incoming.body).hexdigest()}", False


def _read_standard_secret(secret: str) -> bytes:
    text = secret.removeprefix(STANDARD_PREFIX).rstrip("=")
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    if not raw:
        raise ValueError("it is empty")
    return raw


def _sign_hex(secret: str, signed: bytes) -> str:
    return hmac.digest(secret.encode(), signed, "sha256").hex()


def _is_same(given: str, expected: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _object_to_age(at: str, now: float) -> Objection | None:
    if not (at.isascii() and at.isdigit()):
        return Objection("the timestamp is not a number of seconds")
    if abs(now - int(at[:15])) > TOLERANCE_S:
        return Objection("the message is more than 5 minutes old, or from the future")
    return None
