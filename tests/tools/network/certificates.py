"""Certificates from a test CA, valid or with a selected fault: wrong name, expired, untrusted
issuer."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ISSUER = "Tests' Own Authority"


def _name(common: str, organization: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organization:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


class Authority:
    """A certificate authority. `trust` is the TLS context of a client that trusts only this
    authority."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name("root", ISSUER)
        self._own = self._signed(self._subject, self._key, 365, [], self._key)
        self.trust = ssl.create_default_context(
            cadata=self._own.public_bytes(serialization.Encoding.PEM).decode("ascii")
        )

    def server(self, name: str, days: float = 30, *, by_itself: bool = False) -> ssl.SSLContext:
        """Return the TLS context of a server with this name. Its certificate expires in this number
        of days, and is signed by the server itself if `by_itself` is set."""
        key = ec.generate_private_key(ec.SECP256R1())
        signer = key if by_itself else self._key
        certificate = self._signed(_name(name), key, days, [name], signer)
        path = self._folder / f"{name}-{days}-{by_itself}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        days: float,
        names: list[str],
        signer: ec.EllipticCurvePrivateKey,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject if signer is self._key else subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=90))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=False
            )
        else:
            usage = dict.fromkeys(
                (
                    "content_commitment",
                    "key_encipherment",
                    "data_encipherment",
                    "key_agreement",
                    "encipher_only",
                    "decipher_only",
                ),
                False,
            )
            builder = builder.add_extension(
                x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **usage),
                critical=True,
            )
        return builder.sign(signer, hashes.SHA256())
