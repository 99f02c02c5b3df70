"""Contents of files: text that can be shown, or a description of anything else."""

import hashlib
from dataclasses import dataclass
from typing import BinaryIO

LARGEST_TEXT = 1_000_000
"""The maximum size, in bytes, of a text that can be written or is shown in full."""

_CHUNK_BYTES = 1 << 20
_SIGNATURES = (
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"SQLite format 3", "a SQLite database"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)


@dataclass(frozen=True)
class FileContent:
    """A file's size, hash and kind, with its text if it is text of at most 1 MB."""

    size: int
    sha256: str
    text: str | None
    kind: str

    @property
    def description(self) -> str:
        """The text itself, or a description that differs for different contents."""
        if self.text is not None:
            return self.text
        return f"({self.kind}, {self.size:,} bytes, SHA-256 {self.sha256})"


def read_content(file: BinaryIO) -> FileContent:
    """Read the whole file in chunks."""
    beginning = file.read(LARGEST_TEXT + 1)
    hashed, size = hashlib.sha256(beginning), len(beginning)
    while part := file.read(_CHUNK_BYTES):
        hashed.update(part)
        size += len(part)
    text = decode_text(beginning) if size <= LARGEST_TEXT else None
    return FileContent(size, hashed.hexdigest(), text, detect_kind(beginning))


def decode_text(data: bytes) -> str | None:
    """Decode the data as UTF-8; return None if it is not text."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def detect_kind(data: bytes) -> str:
    """Detect the kind of file from its first bytes."""
    known = next((kind for beginning, kind in _SIGNATURES if data.startswith(beginning)), "")
    if known:
        return known
    return "text" if b"\0" not in data[:1024] else "binary data"
