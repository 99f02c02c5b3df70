"""The certificate that a server shows, whether or not it is to be believed."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime

import httpcore2
from cryptography import x509
from cryptography.x509.oid import NameOID

from tools.contract import HostPort

from .door import Door
from .failures import too_slow, unreachable
from .resolving import addresses_of
from .streams import PinnedBackend, Timer, Traffic


@dataclass(frozen=True)
class Certificate:
    """What a server showed for a name.

    Attributes:
        issuer: the organisation that issued it, or what stands in its place.
        expires_at: in UTC.
        problem: why it is not to be believed; empty if it is.
    """

    issuer: str
    expires_at: datetime
    problem: str

    @property
    def days_left(self) -> int:
        """Whole days until it expires; below 0 when it has."""
        return (self.expires_at - datetime.now(UTC)).days


def certificate_of(host: str, port: int, door: Door) -> Certificate:
    """The certificate that the host shows for its name; nothing is sent but the handshake.

    Raises:
        ToolError: SECURITY_VIOLATION, NETWORK_ERROR or TIMEOUT.
    """
    timer = Timer(door.limits.total_s)
    try:
        addresses = addresses_of(HostPort(host, port), door.reach, door.resolve, timer.left())
        backend = PinnedBackend(door.dial, addresses, timer, Traffic(host, door.limits.header_bytes))
        try:
            shown, problem = _shown(backend, host, port, door.certificate_context()), ""
        except httpcore2.ConnectError as error:
            fault = error.args[0] if error.args else None
            if not isinstance(fault, ssl.SSLCertVerificationError):
                raise
            shown, problem = _shown(backend, host, port, _believing()), fault.verify_message
    except httpcore2.TimeoutException:
        raise too_slow(host, timer.seconds) from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise unreachable(f"{host} shows no certificate on port {port}.") from error
    return _read(shown, host, problem)


def _shown(backend: PinnedBackend, host: str, port: int, context: ssl.SSLContext) -> bytes:
    plain = backend.connect_tcp(host, port)
    stream = plain.start_tls(context, host)
    try:
        connection = stream.get_extra_info("socket")
        return bytes(connection.getpeercert(binary_form=True) or b"")
    finally:
        stream.close()


def _believing() -> ssl.SSLContext:
    """For looking at a certificate that is not valid; nothing is ever sent over such a connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _read(shown: bytes, host: str, problem: str) -> Certificate:
    try:
        certificate = x509.load_der_x509_certificate(shown)
        names = {
            attribute.oid: str(attribute.value) for attribute in certificate.issuer if isinstance(attribute.value, str)
        }
        expires_at = certificate.not_valid_after_utc
    except (ValueError, x509.UnsupportedGeneralNameType) as error:
        raise unreachable(f"The certificate of {host} cannot be read.", attempted=True) from error
    issuer = names.get(NameOID.ORGANIZATION_NAME) or names.get(NameOID.COMMON_NAME) or "unknown"
    return Certificate(issuer, expires_at, problem)
