"""Folding of texts, so that values match even if their case, spaces, escapes or punctuation differ.

`fold_words` keeps letters and digits in lower case and turns everything else into spaces. It works
on UTF-8, because bytes are searched and translated at several hundred megabytes a second.
"""

import json
import re
import unicodedata
from urllib.parse import unquote_to_bytes

_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ASCII = bytes(range(128))
_MAX_DECODINGS = 3
_WORD_BYTES = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyz")
_TABLE = bytes(
    byte if byte in _WORD_BYTES or byte >= 0x80 else 0x20 for byte in bytes(range(256)).lower()
)
_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0xA4CF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
"""Scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Chinese and Japanese."""


def fold_text(text: str) -> bytes:
    """Decode percent escapes and normalize letters and case; ASCII punctuation stays."""
    for _ in range(_MAX_DECODINGS):
        decoded = _PERCENT.sub(_decode_percent, text) if "%" in text else text
        if decoded == text:
            break
        text = decoded
    if text.isascii():
        return text.encode()
    folded = (
        unicodedata.normalize("NFKC", _IGNORED.sub("", text)).casefold().encode("utf-8", "replace")
    )
    for character in set(folded.translate(None, _ASCII).decode()):
        if not (character.isalnum() or unicodedata.category(character).startswith("M")):
            raw = character.encode()
            folded = folded.replace(raw, b" " * len(raw))
    return folded


def fold_words(folded: bytes) -> bytes:
    """Turn ASCII punctuation into spaces and letters into lower case; positions stay the same."""
    return folded.translate(_TABLE)


def split_words(text: str) -> list[bytes]:
    """Return the words of a text in folded form."""
    return fold_words(fold_text(text)).split()


def unescape_json(text: str) -> str:
    """Decode the escapes in the text of a JSON document, whose quotes become spaces."""
    if "\\" not in text:
        return text
    unquoted = text.replace("\\\\", "/").replace('\\"', " ").replace('"', " ")
    try:
        decoded = json.loads(f'"{unquoted}"', strict=False)
    except ValueError:
        return text
    return str(decoded)


def is_bounded(words: bytes, start: int, end: int) -> bool:
    """Return True if the words from `start` to `end` are not part of a longer word."""
    before, after = words[max(start - 4, 0) : start], words[end : end + 4]
    first, last = words[start : start + 4], words[max(end - 4, start) : end]
    return not (
        are_joined(_get_last(before), _get_first(first))
        or are_joined(_get_last(last), _get_first(after))
    )


def are_joined(one: str, other: str) -> bool:
    """Return True if both are letters or digits of scripts that put spaces between words."""
    return all(each.isalnum() and not _is_unspaced(each) for each in (one, other))


def _get_first(raw: bytes) -> str:
    return raw.decode("utf-8", "ignore")[:1]


def _get_last(raw: bytes) -> str:
    return raw.decode("utf-8", "ignore")[-1:]


def _is_unspaced(character: str) -> bool:
    return any(low <= ord(character) <= high for low, high in _UNSPACED)


def _decode_percent(match: re.Match[str]) -> str:
    return unquote_to_bytes(match[0]).decode("utf-8", "replace")
