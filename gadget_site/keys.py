"""The installation's keys: created once in the data folder, and readable only by their owner."""

from __future__ import annotations

import binascii
import os
import secrets
import tempfile
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

from cryptography.fernet import Fernet

from gadget_site.faults import WrongValueError
from gadget_site.parsers import split_words

SECRET_KEY_FILE = "secret_key"  # noqa: S105
ENCRYPTION_KEY_FILE = "encryption_key"
AUDIT_KEY_FILE = "audit_key"
FERNET_BYTES = 32
KEY_EXAMPLE = (
    "$(python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())')"
)


def load_secret_key(data_dir: Path) -> str:
    """Return the key that signs sessions; the first call creates it."""
    return _load_or_create(data_dir / SECRET_KEY_FILE, lambda: secrets.token_urlsafe(50))


def load_encryption_key(data_dir: Path) -> str:
    """Return the key that encrypts stored credentials; the first call creates it."""
    return _load_or_create(data_dir / ENCRYPTION_KEY_FILE, lambda: Fernet.generate_key().decode())


def load_audit_key(data_dir: Path) -> str:
    """Return the key that signs the audit; the first call creates it."""
    return _load_or_create(data_dir / AUDIT_KEY_FILE, lambda: Fernet.generate_key().decode())


def parse_keys(text: str) -> tuple[str, ...]:
    """Return the keys in the text; an error states the number of the first invalid key, but does
    not show the key."""
    keys = split_words(text)
    if not keys:
        raise WrongValueError("contains no key", KEY_EXAMPLE)
    for number, key in enumerate(keys, start=1):
        if fault := _describe_fault(key):
            raise WrongValueError(f"key {number} of {len(keys)} {fault}", KEY_EXAMPLE)
    return keys


def _describe_fault(key: str) -> str:
    try:
        size = len(b64decode(key, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        return "is not URL-safe base64"
    return "" if size == FERNET_BYTES else f"holds {size} bytes instead of {FERNET_BYTES}"


def _load_or_create(path: Path, create: Callable[[], str]) -> str:
    if not path.exists():
        _write_once(path, create())
    return path.read_text(encoding="ascii").strip()


def _write_once(path: Path, text: str) -> None:
    """Write the file unless it exists. A hard link is created atomically, so only one of several
    starting processes writes the file."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        Path(temporary).unlink()
