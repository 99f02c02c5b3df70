"""The certificate that a server presents, valid or not."""

import ssl
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import httpcore2
from cryptography import x509
from cryptography.x509.oid import NameOID

from tools.network.errors import network_error, timeout_error
from tools.network.http_client import GuardedClient
from tools.network.transport import GuardedBackend, RequestGuard, within


@dataclass(frozen=True)
class ServerCertificate:
    """A server's certificate for a host name.

    Attributes:
        issuer: the organization that issued it, else the issuer's common name.
        expires_at: when the certificate expires, in UTC.
        problem: why the certificate is not valid; empty if it is.
    """

    issuer: str
    expires_at: datetime
    problem: str

    @property
    def days_left(self) -> int:
        """Full days until it expires; negative once it has expired."""
        return (self.expires_at - datetime.now(UTC)).days


def fetch_certificate(host: str, port: int, client: GuardedClient) -> ServerCertificate:
    """Fetch the certificate that the host presents for its name; only the TLS handshake is sent.

    Raises:
        ToolError: SECURITY_VIOLATION, NETWORK_ERROR or TIMEOUT.
    """
    limits = client.limits
    try:
        with within(RequestGuard(time.monotonic() + limits.total_s, limits.header_bytes)):
            der, problem = _fetch_with_problem(client, host, port)
    except httpcore2.TimeoutException:
        raise timeout_error(host, limits.total_s) from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise network_error(f"{host} presents no certificate on port {port}.") from error
    return _parse_certificate(der, host, problem)


def _fetch_with_problem(client: GuardedClient, host: str, port: int) -> tuple[bytes, str]:
    backend = client.build_backend()
    try:
        return _fetch_der(backend, host, port, client.get_tls_context()), ""
    except httpcore2.ConnectError as error:
        fault = error.args[0] if error.args else None
        if not isinstance(fault, ssl.SSLCertVerificationError):
            raise
        return _fetch_der(backend, host, port, _build_unverified_context()), fault.verify_message


def _fetch_der(backend: GuardedBackend, host: str, port: int, context: ssl.SSLContext) -> bytes:
    plain = backend.connect_tcp(host, port)
    stream = plain.start_tls(context, host)
    try:
        connection = stream.get_extra_info("socket")
        return bytes(connection.getpeercert(binary_form=True) or b"")
    finally:
        stream.close()


def _build_unverified_context() -> ssl.SSLContext:
    """Build a context for reading an invalid certificate; no request uses its connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _parse_certificate(der: bytes, host: str, problem: str) -> ServerCertificate:
    try:
        certificate = x509.load_der_x509_certificate(der)
        names = {
            attribute.oid: str(attribute.value)
            for attribute in certificate.issuer
            if isinstance(attribute.value, str)
        }
        expires_at = certificate.not_valid_after_utc
    except (ValueError, x509.UnsupportedGeneralNameType) as error:
        raise network_error(f"The certificate of {host} cannot be read.", attempted=True) from error
    issuer = names.get(NameOID.ORGANIZATION_NAME) or names.get(NameOID.COMMON_NAME) or "unknown"
    return ServerCertificate(issuer, expires_at, problem)
