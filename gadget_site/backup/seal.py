"""The seal at the front of an archive: a signature over all other bytes, which is checked before
anything is unpacked.

It is a separate gzip member, empty except for its comment, so that any `tar` can still unpack the
archive.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import BinaryIO

from agents.platform import signatures

_PURPOSE = "sealed backup"
_HEAD, _TAIL = b"\x1f\x8b\x08\x10\0\0\0\0\0\xff", b"\0\x03\0" + bytes(8)
"""The bytes before the comment (a gzip header) and after it (the comment's end, no content, a
checksum and a length)."""
_SEAL = re.compile(
    re.escape(_HEAD) + rb"gadget-backup ([0-9a-f]{8}) ([0-9a-f]{64})" + re.escape(_TAIL)
)
LENGTH = len(_HEAD) + len(_TAIL) + len("gadget-backup ") + 8 + 1 + 64
_PART = 1 << 20


@dataclass(frozen=True)
class Seal:
    """A seal: the id of its key, and its signature."""

    key_id: str
    signature: str

    def fits(self, file: BinaryIO) -> bool:
        """Return True if the seal matches the rest of the file."""
        expected = signatures.sign(_PURPOSE, _hash_rest(file), self.key_id)
        return expected is not None and hmac.compare_digest(expected, self.signature)


def read_seal(file: BinaryIO) -> Seal | None:
    """Read the seal at the front of the file; return None if the file has no seal."""
    if (found := _SEAL.fullmatch(file.read(LENGTH))) is None:
        return None
    return Seal(found[1].decode(), found[2].decode())


def write_seal(file: BinaryIO) -> None:
    """Replace the first LENGTH bytes of a finished archive with its seal."""
    file.seek(LENGTH)
    key_id = signatures.get_current_key_id()
    signature = signatures.sign(_PURPOSE, _hash_rest(file), key_id) or ""
    file.seek(0)
    file.write(_HEAD + f"gadget-backup {key_id} {signature}".encode() + _TAIL)


def _hash_rest(file: BinaryIO) -> str:
    hashed = hashlib.sha256()
    while part := file.read(_PART):
        hashed.update(part)
    return hashed.hexdigest()
