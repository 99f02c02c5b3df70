"""What a file holds: text that can be shown, or what can be said of anything else."""

import hashlib
from dataclasses import dataclass
from typing import BinaryIO

LARGEST_TEXT = 1_000_000
"""Bytes of a text that is shown whole or written."""

_PART = 1 << 20
_BEGINNINGS = (
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
class Content:
    """A file's size and hash; its text if it is one of at most 1 MB, else None."""

    size: int
    sha256: str
    text: str | None
    kind: str

    @property
    def in_words(self) -> str:
        """The text itself, or words that are different for every different content."""
        if self.text is not None:
            return self.text
        return f"({self.kind}, {self.size:,} bytes, SHA-256 {self.sha256})"


def content_of(file: BinaryIO) -> Content:
    """Read all of it, a part at a time."""
    beginning = file.read(LARGEST_TEXT + 1)
    hashed, size = hashlib.sha256(beginning), len(beginning)
    while part := file.read(_PART):
        hashed.update(part)
        size += len(part)
    text = text_of(beginning) if size <= LARGEST_TEXT else None
    return Content(size, hashed.hexdigest(), text, kind_of(beginning))


def text_of(data: bytes) -> str | None:
    """The text in UTF-8; None if it is something else."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def kind_of(data: bytes) -> str:
    """What the file seems to be, by how it begins."""
    known = next((kind for beginning, kind in _BEGINNINGS if data.startswith(beginning)), "")
    if known:
        return known
    return "text" if b"\0" not in data[:1024] else "binary data"
