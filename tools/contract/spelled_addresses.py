"""Disguised addresses, with look-alike punctuation, percent escapes or `name (at) host (dot) net`,
read as a browser or a person would read them."""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from tools.caches import cache_by_text
from tools.contract.confusables import TWINS
from tools.contract.host_endings import ENDINGS

PUNCTUATION = frozenset("./\\:?#@")
_PARTING = PUNCTUATION - {"."}
_DOTS = dict.fromkeys("\u3002\uff61\u00b7\u2022\u2027\u22c5\u30fb", ".")
"""Chinese and Japanese full stops, which browsers read as the dots of a host, and dots at
mid-height."""
_PUNCTUATION_TWINS = {
    **{char: look for char, look in TWINS.items() if look in PUNCTUATION},
    **{
        char: plain
        for char in map(chr, range(0x2000, 0x10000))
        if (plain := unicodedata.normalize("NFKC", char)) in PUNCTUATION
    },
    **_DOTS,
}
_TWINS = re.escape("".join(_PUNCTUATION_TWINS))
_IN_ADDRESS = re.compile(rf"(?<=[A-Za-z0-9:/\\@.{_TWINS}])[{_TWINS}](?=[A-Za-z0-9/\\@.{_TWINS}])")
MOST_ROUNDS = 20
"""The maximum number of times that percent escapes are decoded."""
_LONG_REFERENCE = re.compile(r"&#(?:x([0-9a-f]{8,})|([0-9]{8,}));?", re.IGNORECASE)
_MOST_DIGITS = 7
"""The maximum number of digits of a character's number, without leading zeros."""
_ONE_EMAIL = re.compile(r"\s*[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,126}[\w-]{2,63}\s*")
_BACKSLASH_ESCAPE = re.compile(r"\\(?:u\{?0{0,4}([0-9a-f]{2})\}?|x([0-9a-f]{2}))", re.IGNORECASE)
_BREAKS = re.compile(r"[\t\r\n]+")
_ONE_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,20}:[/\\]{1,9}|(?:https?|wss?|ftp):|[/\\]{2,9})([^\s/?#\\]+)\S*",
    re.IGNORECASE,
)
"""A value that is one address, after tabs and line breaks, which browsers ignore, were removed."""


def _build_bracketed(word: str) -> str:
    return rf"\s{{0,2}}[\[({{<]\s?(?:{word})\s?[\])}}>]\s{{0,2}}"


_BRACKETS = frozenset("[({<")
_LABEL = r"[\w-]{1,63}"
_AT = _build_bracketed(r"@|at|AT|arroba|chez")
_ANY_AT = _build_bracketed(r"@|[^\W\d_]{2}|arroba|chez")
_DOT = _build_bracketed(r"\.|[^\W\d_]{3,5}")
_SPELLED_EMAIL = re.compile(rf"([\w.+-]{{1,64}}+){_AT}({_LABEL}(?:(?:{_DOT}|\.){_LABEL}){{1,5}})")
_SPELLED_THROUGHOUT = re.compile(rf"([\w.+-]{{1,64}}+){_ANY_AT}({_LABEL}(?:{_DOT}{_LABEL}){{1,5}})")
_SPACED_EMAIL = re.compile(rf"([\w.+-]{{1,64}}+)\s@\s({_LABEL}(?:(?:\.|\s\.\s){_LABEL}){{1,5}})")
_SPELLED_HOST = re.compile(
    rf"\b(?:{_LABEL}(?:{_build_bracketed('[.]|dot')}{_LABEL}){{1,5}}|[\w-]{{4,63}}(?:\sdot\s{_LABEL}){{1,5}})",
    re.IGNORECASE,
)
"""The bare word *dot* stands for a period only after four or more letters: *the dot com era* does
not contain a host."""
_WORDS_FOR_EMAIL = re.compile(
    rf"\b([\w.+-]{{1,64}}+)\sat\s({_LABEL}(?:\sdot\s{_LABEL}){{1,5}})\b", re.IGNORECASE
)
_SPACED_LETTERS = re.compile(
    r"(?<!\w)\w(?P<gap>[^\w.@+]{1,3})[\w.@+](?:(?P=gap)[\w.@+]){4,250}(?!\w)"
)
"""A word whose letters all have the same gap between them."""
_ADDRESS = re.compile(
    rf"(?:[a-z][a-z0-9+.-]{{1,20}}:)?[/\\]{{2}}[!-~]+|(?:mailto:)?[\w.+-]{{1,64}}@{_LABEL}(?:\.{_LABEL})+"
    rf"|(?:{_LABEL}\.){{1,5}}({_LABEL})(?:[:/?#][!-~]*)?",
    re.ASCII | re.IGNORECASE,
)
_CODED = re.compile(r"(?<![\w+/-])[\w+/-]{12,4000}(?![\w+/-])", re.ASCII)
_HEXADECIMAL = re.compile(r"(?:[0-9a-f]{2})+", re.IGNORECASE)
_GAP = re.compile(rf"{_DOT}|\s(?:dot|\.)\s", re.IGNORECASE)


@cache_by_text
def list_readings(text: str) -> tuple[str, ...]:
    """List the text and, if it contains disguised addresses, its other possible readings."""
    readings = [text]
    plain = text if text.isascii() else replace_punctuation(text)
    if plain != text:
        readings.append(plain)
    decoded = decode_escapes(_decode_code(plain))
    if decoded != plain:
        readings.append(decoded)
    hidden = (*_find_spelled(decoded), *_join_letters(decoded), *_decode_words(decoded))
    if hidden:
        readings.append(" ".join(hidden))
    return tuple(readings)


def has_false_separator(authority: str) -> bool:
    """Return True if an authority (the part of a web address before its path) contains a character,
    such as a fullwidth `#`, that looks like one that would end or divide it."""
    return bool(_PARTING & (set(replace_punctuation(authority)) - set(authority)))


def replace_punctuation(text: str) -> str:
    """Within an address, replace look-alike punctuation with the ASCII punctuation that it
    imitates."""
    return _IN_ADDRESS.sub(lambda found: _PUNCTUATION_TWINS[found[0]], text)


def _decode_code(text: str) -> str:
    """Decode the escapes of HTML and of programming languages, and remove what browsers ignore in
    an address: invisible characters and line breaks."""
    if "&" in text:
        text = unescape_html(text)
    if "\\" in text:
        text = _BACKSLASH_ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)), text)
    text = join_lines(text)[0]
    if text.isascii():
        return text
    hidden = [ord(char) for char in set(text) if unicodedata.category(char) == "Cf"]
    return text.translate(dict.fromkeys(hidden)) if hidden else text


def unescape_html(text: str) -> str:
    """Replace the character references of HTML; a number that is too large for a character becomes
    U+FFFD."""
    return html.unescape(_LONG_REFERENCE.sub(_shorten_reference, text))


def _shorten_reference(found: re.Match[str]) -> str:
    digits = (found[1] or found[2]).lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return "\ufffd"
    return f"&#{'x' if found[1] else ''}{digits or '0'};"


def join_lines(text: str) -> tuple[str, str]:
    """Remove tabs and line breaks from a value that is one address, as browsers do.

    Returns:
        the value, and the start of the address with its host if it is not in the text as it is
        written; otherwise empty.
    """
    head, *others = _BREAKS.split(text.strip(), maxsplit=1)
    joined = _BREAKS.sub("", text.strip()) if others else ""
    found = _ONE_ADDRESS.fullmatch(joined)
    if found is None or joined.count(":/") + joined.count(":\\") > 1:
        return text, ""
    host = decode_escapes(found[1]).rpartition("@")[2].partition(":")[0]
    ending = host.rstrip(".").rpartition(".")[2].lower()
    if ending not in ENDINGS and not ending.isdecimal():
        return text, ""
    if _ONE_ADDRESS.fullmatch(head) and others and _ONE_EMAIL.fullmatch(others[0]):
        return text, ""  # a web address above an email address
    start = joined[: found.end(1)]
    return joined, "" if start in text else start


@cache_by_text
def decode_escapes(text: str) -> str:
    """Decode percent escapes, including escapes of escapes."""
    for _ in range(MOST_ROUNDS):
        decoded = unquote(text) if "%" in text else text
        if decoded == text:
            break
        text = decoded
    return text


def _join_letters(text: str) -> Iterator[str]:
    """Yield the addresses whose letters have spaces or other gaps between them."""
    for found in _SPACED_LETTERS.finditer(text):
        joined = found[0].replace(found["gap"], "")
        if _is_address(joined):
            yield joined


def _decode_words(text: str) -> Iterator[str]:
    """Yield the addresses that are written in Base64 or as hexadecimal bytes."""
    for found in _CODED.finditer(text):
        word = found[0].replace("-", "+").replace("_", "/")
        try:
            raw = (
                bytes.fromhex(word)
                if _HEXADECIMAL.fullmatch(word)
                else base64.b64decode(word + "=" * (-len(word) % 4))
            )
            decoded = raw.decode("ascii").strip()
        except ValueError:
            continue
        if _is_address(decoded):
            yield decoded


def _is_address(text: str) -> bool:
    """Return True if the whole text is a web address, an email address, or a public host."""
    found = _ADDRESS.fullmatch(text)
    return found is not None and (not found[1] or found[1].lower() in ENDINGS)


def _find_spelled(text: str) -> Iterator[str]:
    """Yield email addresses and hosts that are spelled with words or brackets."""
    if _BRACKETS.isdisjoint(text) and " @ " not in text and " dot " not in text.lower():
        return
    for pattern in (_SPELLED_EMAIL, _SPELLED_THROUGHOUT, _SPACED_EMAIL, _WORDS_FOR_EMAIL):
        for found in pattern.finditer(text):
            host = _join(found[2])
            if host.rpartition(".")[2].lower() in ENDINGS:
                yield f"{found[1]}@{host}"
    for found in _SPELLED_HOST.finditer(text):
        host = _join(found[0])
        if host.rpartition(".")[2].lower() in ENDINGS:
            yield host


def _join(spelled: str) -> str:
    return _GAP.sub(".", spelled)
