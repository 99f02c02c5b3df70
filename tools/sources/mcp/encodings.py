"""Recognition of binary data in text form: hex, base32, base64, base85, numbers and escapes.

Data differs from words in its statistics: it uses its whole alphabet, and has hardly any runs of
lower-case letters.
"""

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

SHORTEST_RUN = 1_024
"""The minimum length of a text without white space that is treated as binary content anywhere."""
SHORTEST_DECLARED = 64
"""The minimum length of a text without white space that is treated as binary content next to a
media type. Up to LONGEST_DIGEST, its first bytes must also be those of a known format."""
LONGEST_DIGEST = 128
"""The maximum length of a text that may be a hash or an id, even next to a media type."""
LONGEST_KEPT = 8_192
"""The maximum length of an address, signed token, key or certificate; these are not binary
content."""
SHORTEST_LIST = 512
"""The minimum length of a list of numbers that are treated as bytes if they are as varied as
bytes."""
_SAMPLE = 20_000
_KEPT = ("eyJ", "MII", "AAAAB3NzaC1", "AAAAC3NzaC1", "AAAAE2VjZHNh")
_HEX = re.compile(r"[0-9A-Fa-f]+")
_ONE_CASE = re.compile(r"[A-Z0-9]+=*|[a-z0-9]+=*")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_PRINTABLE = re.compile(r"[!-~]+")
_WORD = re.compile(r"[a-z]{5,}")
_UPPER, _LOWER, _DIGIT = re.compile(r"[A-Z]"), re.compile(r"[a-z]"), re.compile(r"[0-9]")
_ESCAPE = re.compile(r"(?:\\x|\\u00|%|=)([0-9A-Fa-f]{2})|\\([0-3][0-7]{2})")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\udc80-\udcff]")
_FORMATS = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "audio, video or image"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"wOF", "font/woff"),
)


@dataclass(frozen=True)
class Encoded:
    """Binary data that was recognized: its format, or else its encoding; and its size in bytes."""

    kind: str
    size: int
    is_known: bool = False
    """True if the first bytes identify a known format."""


@dataclass(frozen=True)
class _Encoding:
    name: str
    bits: float
    """Bits of data in one character."""
    decode: Callable[[str], bytes]


_HEXADECIMAL = _Encoding("hex", 4, bytes.fromhex)
_BASE_32 = _Encoding("base32", 5, lambda text: base64.b32decode(text, casefold=True))
_BASE_64 = _Encoding("base64", 6, lambda text: base64.b64decode(text.translate({45: 43, 95: 47})))
_BASE_85 = _Encoding("base85", 6.4, base64.b85decode)
_ASCII_85 = _Encoding("base85", 6.4, lambda text: base64.a85decode(text.removeprefix("<~")))


def recognize_run(run: str, *, is_declared: bool = False) -> Encoded | None:
    """Recognize a text without white space as data; None for words, ids, keys and addresses.

    Args:
        is_declared: True if a media type accompanies the text, which may then be short.
    """
    if len(run) < (SHORTEST_DECLARED if is_declared else SHORTEST_RUN) or not run.isascii():
        return None
    encoding = _find_encoding(run)
    if encoding is None or (not is_declared and len(run) <= LONGEST_KEPT and run.startswith(_KEPT)):
        return None
    found = _describe(run, encoding)
    is_short = len(run) <= LONGEST_DIGEST or (encoding is _BASE_85 and len(run) < SHORTEST_RUN)
    return None if is_short and not found.is_known else found


def recognize_bytes(values: list[Any], *, is_declared: bool = False) -> Encoded | None:
    """Recognize a list of numbers as bytes, signed or not; None for a table of other numbers."""
    if len(values) < SHORTEST_DECLARED or not all(
        type(value) is int and -128 <= value <= 255 for value in values
    ):
        return None
    least, most = min(values), max(values)
    if least < 0 and most > 127:
        return None
    kind = _find_format(bytes(value & 255 for value in values[:16]))
    is_sorted = sorted(values) in (values, values[::-1])
    is_varied = most - least >= 235 and len(set(values)) >= 128 and not is_sorted
    if kind or is_declared or (len(values) >= SHORTEST_LIST and is_varied):
        return Encoded(kind or "data", len(values), is_known=bool(kind))
    return None


def recognize_wrapped(lines: Sequence[str]) -> Encoded | None:
    """Recognize data in lines of equal length; the last may be shorter. None for ids or hashes."""
    width, run = len(lines[0]), "".join(lines)
    is_list = len({line[:3] for line in lines[:-1]}) == 1 and len(lines) > 2 and run[0] != run[3:4]
    found = recognize_run(run)
    if found is None or (is_list and not found.is_known):
        return None
    is_wrap = found.is_known or len(lines[-1]) < width or run.endswith("=")
    if found.kind == "hex":
        is_hash = width in (32, 40, 48, 56, 64, 96, 128)
        return found if is_wrap or (not is_hash and (width >= 40 or width in (2, 4))) else None
    return found if is_wrap or width >= 56 else None


def recognize_raw(text: str) -> Encoded | None:
    """Recognize bytes that were decoded as text, or written as escapes such as `\\x89`."""
    controls = _CONTROL.findall(text[:_SAMPLE])
    is_varied = len(set(controls)) >= 8 or controls.count("\ufffd") * 2 > len(controls)
    if len(controls) * 10 >= len(text[:_SAMPLE]) and is_varied:
        return Encoded("binary data", len(text))
    escapes = _ESCAPE.findall(text)
    if len(escapes) < SHORTEST_DECLARED * 4 or len(escapes) * 12 < len(text):
        return None
    raw = bytes(int(by_hex, 16) if by_hex else int(by_octal, 8) for by_hex, by_octal in escapes)
    is_text = _is_utf8(raw) and sum(byte < 32 for byte in raw) * 10 < len(raw)
    return None if is_text else Encoded("binary data", len(_ESCAPE.sub("x", text)))


def recognize_numbers(text: str) -> Encoded | None:
    """Recognize a text that contains only bytes, as decimal numbers."""
    parts = re.findall(r"-?\d+", text)
    are_bytes = len(parts) >= SHORTEST_DECLARED and all(len(part) <= 4 for part in parts)
    return recognize_bytes([int(part) for part in parts]) if are_bytes else None


def recognize_pairs(text: str) -> Encoded | None:
    """Recognize a text that contains only bytes, as hex pairs with one separator throughout."""
    digits = re.findall(
        r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{2}(?![0-9A-Fa-f])",
        text.replace("0x", " ").replace("\\x", " "),
    )
    signs = {
        "".join(sign.split())
        for sign in re.findall(r"(?<=[0-9A-Fa-f])[\s,;:-]+(?=[\\0-9A-Fa-f])", text)
    }
    if len(signs) > 1 or len(digits) < SHORTEST_LIST:
        return None
    return recognize_run("".join(digits))


def _find_encoding(run: str) -> _Encoding | None:
    """Return the first encoding whose alphabet the text uses as evenly as data does; None for
    words."""
    sample = run if len(run) <= _SAMPLE else run[: _SAMPLE // 2] + run[-_SAMPLE // 2 :]
    length, distinct = len(sample), len(set(sample))
    upper, lower, digits = (len(kind.findall(sample)) / length for kind in (_UPPER, _LOWER, _DIGIT))
    if _HEX.fullmatch(run):
        return _HEXADECIMAL if distinct >= 8 and upper + lower >= 0.01 and digits >= 0.01 else None
    if _ONE_CASE.fullmatch(run):
        return _BASE_32 if distinct >= 20 and digits >= 0.03 and upper + lower >= 0.03 else None
    words = sum(len(word) for word in _WORD.findall(sample) if len(set(word)) > 2) / length
    others = 1 - upper - lower - digits
    if _BASE64.fullmatch(run):
        return _BASE_64 if upper and lower and digits and words < 0.2 and others < 0.12 else None
    is_even = min(upper, lower) >= 0.08 and digits >= 0.03 and others >= 0.1
    is_even = (
        is_even
        and distinct >= 50
        and sum(not character.isalnum() for character in set(sample)) >= 16
    )
    if not (is_even and words < 0.1 and _PRINTABLE.fullmatch(run)):
        return None
    return _ASCII_85 if any(sign in run for sign in "\"',./:[\\]") else _BASE_85


def _describe(run: str, encoding: _Encoding) -> Encoded:
    try:
        kind = _find_format(encoding.decode(run[:40]))
    except ValueError:
        kind = ""
    return Encoded(
        kind or encoding.name, int(len(run.rstrip("=")) * encoding.bits / 8), is_known=bool(kind)
    )


def _find_format(head: bytes) -> str:
    """Return the format that has these first bytes; empty if none is known."""
    known = next((kind for start, kind in _FORMATS if head.startswith(start)), "")
    return known or ("video/mp4" if head[4:8] == b"ftyp" else "")


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
