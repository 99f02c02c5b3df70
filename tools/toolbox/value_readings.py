"""Readings of values: the one place that decides which names, numbers, texts, paths and addresses
could mean the same.

Rules, limits, standing grants and provenance all compare by these readings. A rule applies if one
reading of a value meets its condition; a limit or grant holds only if every reading does.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Any
from urllib.parse import unquote

from tools.caches import cache_by_text
from tools.contract.confusables import TWINS
from tools.contract.contacts import decode_host, find_opened_host
from tools.contract.host_endings import ENDINGS
from tools.contract.look_alikes import (
    SHORTEST_JOINED,
    fold_characters,
    reduce_to_joined_look,
    reduce_to_look,
)
from tools.contract.named_hosts import is_address_name


class Reading(IntEnum):
    """The versions of the rules for reading values; a recording is judged by the version that was
    in use at its time."""

    FIRST = 1
    """Names are read exactly as written; escapes are decoded twice."""
    FOLDED = 2
    """Names are folded; escapes are decoded completely; hosts are read whole."""


TODAY = Reading.FOLDED
LONGEST_READ = 20_000
"""Only this many characters of a text are read in all ways; a longer text may mean any short one,
because programs remove spaces, hidden characters and detours of a path."""
LONGEST_NUMBER = 40
_MOST_ROUNDS = 20
"""The maximum number of times that escapes are decoded; a text with more layers of escapes cannot
be read."""
_MOST_GROWTH = 2
"""A long text that grows by more than this factor cannot be read, because folding it takes too
long."""
_PUNCTUATION = {ord(char): look for char, look in TWINS.items() if look in set("./\\:?#@%;")}
_HIDDEN = frozenset({"Cf", "Cc"})
_VARIATION = re.compile("[\u180b-\u180f\u034f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Invisible characters that select a variant of the letter before them."""
_OVERLONG = re.compile(r"%(?:c([01])|e0%8([01])|f0%80%8([01]))%([89ab][0-9a-f])", re.IGNORECASE)
"""Escapes of ASCII characters in two to four bytes, which careless servers decode."""
_WIDE_ESCAPE = re.compile(r"(?:%|\\)u([0-9a-fA-F]{4})|&#(?:[xX]([0-9a-fA-F]{1,6})|(\d{1,7}));?")
_SEGMENTS = re.compile(r"[/\\]")
_NUMBER = re.compile(
    r"(?:[A-Z]{3}\s?|[A-Za-z]{2,3}\s)?"
    r"([+-]?\d[\d.,'_ ]*\d|[+-]?\d+|[+-]?[\d.,]+[eE][+-]?\d{1,3}|0[xX][0-9a-fA-F]+)"
    r"[.,]?(-)?(?:\s?[A-Z]{3}|\s[A-Za-z]{3})?",
)
_ZEROS_BEFORE = re.compile(r"^([^\dA-Za-z]*)0+(?=\d)")
_AUTHORITY = re.compile(
    r"\s*(?:([a-z][a-z0-9+.-]*):/{2,}|(https?|wss?|ftp):/*|()/{2,})([^/?#\s]*)(.*)",
    re.IGNORECASE | re.DOTALL,
)
_EMAIL = re.compile(r"\s*(?:mailto:)?[^\s/?#@:]{1,64}@([^\s/?#@:,;<>]*)", re.IGNORECASE)
_BARE_HOST = re.compile(r"\s*((?:[^\s/?#@:.]{1,63}\.)+([^\s/?#@:.]{2,63}))\.?(?=[/?#:\s]|$)")
_MORE_HOSTS = re.compile(r"[\s,;<>@]")
_WORDS_OF_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?")
_BEFORE_HOST = re.compile(
    r"\s*(?:(?:[a-z][a-z0-9+.-]*:)?/{2,}|(?:https?|wss?|ftp):/*|mailto:)(?:[^\s/?#]*@)?",
    re.IGNORECASE,
)
_IP = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\]", re.IGNORECASE)
_FILE_NAMES = frozenset({"path", "file", "files", "filename", "folder", "directory", "paths"})
_NO_LETTERS = re.compile(r"[\W_]+")
_LETTER = re.compile(r"[^\W_]")
_PARTING = r",;|<>()\[\]{}\"'=:&\n"
"""Characters that separate a value from a label, a quotation mark or the other entries of a
list."""
_OUTER_SEPARATORS = re.compile(r"[^\w\s-]+")
"""Separators between the names of a path: slashes, dots, colons, brackets."""
_SEGMENT_PARAMS = re.compile(r";[^/?#]*(?=[/?#]|$)")
"""Parameters after the name of a folder, which servers ignore."""
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:/{2,}")
_GLOB = re.compile(r"\*|(?<=.)(?:{|\[(?![0-9a-f:.]*:[0-9a-f:.]*\]))")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


# Names


@cache_by_text
def list_name_forms(name: str) -> frozenset[str]:
    """List the forms of the name of a param, tool or action, with case, separators and look-alikes
    removed."""
    short = _VARIATION.sub("", name[:LONGEST_READ])
    return frozenset({reduce_to_joined_look(short), reduce_to_joined_look(short.casefold())})


def is_same_name(one: str, other: str) -> bool:
    """Return True if two names have a folded form in common: `record_id` and `recordId`."""
    return one == other or not list_name_forms(one).isdisjoint(list_name_forms(other))


def fold_name(name: str) -> str:
    """Fold a name to a key that all its spellings share."""
    short = _VARIATION.sub("", name[:LONGEST_READ])
    return reduce_to_joined_look(short.casefold()).replace("i", "l")


def ends_with_name(name: str, wanted: str) -> bool:
    """Return True if a name is the wanted name, or leads to it: `/order/amount`, `payment[amount]`,
    `$amount`."""
    last = [part for part in _OUTER_SEPARATORS.split(name[:LONGEST_READ]) if part][-1:]
    return is_same_name(name, wanted) or any(
        is_same_name(part, wanted) or _bare(part) == _bare(wanted) for part in last
    )


def _bare(name: str) -> str:
    return _NO_LETTERS.sub("", fold_characters(name)).casefold()


def names_param(text: str, name: str) -> bool:
    """Return True if a text has the name between a bracket, comma or quote and a colon or equals
    sign, as JSON and similar formats do."""
    readings = [
        text,
        unquote(text) if len(text) > LONGEST_READ else decode_completely(text) or text,
    ]
    search = _compile_name(name)
    return any(search.search(each) for each in readings)


@lru_cache(maxsize=256)
def _compile_name(name: str) -> re.Pattern[str]:
    letters = r"[-_ ]?".join(map(re.escape, _bare(name) or name))
    return re.compile(rf"[{{\[,\"']\s?{letters}[\\/\"'\]]{{0,9}}\s?[:=]", re.IGNORECASE)


def find_key(node: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the keys of an object that read like the name."""
    yield from (key for key in node if is_same_name(str(key), name))


# Numbers


@cache_by_text
def read_numbers(text: str) -> frozenset[Decimal]:
    """Return the numbers that a text can mean: 1,250 and 1.25 for `1,250`; empty if it is not a
    number.

    Digits of all scripts and styles, signs, currencies, separators and exponents are read.
    """
    if len(text) > LONGEST_NUMBER:
        text = _strip_zeros(text)
    if len(text) > LONGEST_NUMBER:
        return frozenset()
    text = "".join(
        char if unicodedata.category(char) != "Sc" else " " if before.isalpha() else ""
        for before, char in zip(f" {text}", text, strict=False)
    )
    plain = " ".join(fold_characters(text).split())
    plain = plain.strip("='\"").strip().replace("\u066c", ",").replace("\u2019", "'")
    is_negative = plain.startswith("(") and plain.endswith(")")
    match = _NUMBER.fullmatch(plain.strip("()").strip() if is_negative else plain)
    if match is None:
        return frozenset()
    digits = re.sub(r"[ '_]", "", match[1]).lower()
    is_negative = is_negative or match[2] is not None
    if digits.startswith("0x"):
        return frozenset({Decimal(int(digits, 16))})
    found = set()
    for form in (digits.replace(",", ""), digits.replace(".", "").replace(",", ".")):
        try:
            found.add(-Decimal(form) if is_negative else Decimal(form))
        except InvalidOperation:
            continue
    return frozenset(found)


def _strip_zeros(text: str) -> str:
    """Return a number without leading zeros and, in a fraction, without trailing zeros."""
    if len(text) > LONGEST_READ:
        return text
    plain = _ZEROS_BEFORE.sub(r"\1", fold_characters(text.strip()))
    is_fraction = len(plain) > LONGEST_NUMBER and ("." in plain or "," in plain)
    return plain.rstrip("0") if is_fraction else plain


# Texts


def decode_completely(text: str) -> str | None:
    """Decode escapes until the text no longer changes, and fold characters as servers do; None if
    there are too many layers, or the text grows too long.

    Control characters disappear, wide and look-alike punctuation becomes plain, `\\` becomes `/`.
    """
    longest = max(LONGEST_READ, len(text) * _MOST_GROWTH)
    for _ in range(_MOST_ROUNDS):
        decoded = _decode_once(text)
        if decoded == text:
            return text
        if len(decoded) > longest:
            return None
        text = decoded
    return None


def _decode_once(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        text = unicodedata.normalize("NFKC", _VARIATION.sub("", text))
        hidden = {char for char in set(text) if unicodedata.category(char) in _HIDDEN}
        text = text.translate(_PUNCTUATION | dict.fromkeys(map(ord, hidden)))
    if "%" in text:
        text = unquote(_OVERLONG.sub(_read_overlong, text))
    if "u" in text or "&#" in text:
        text = _WIDE_ESCAPE.sub(_read_wide, text)
    return text.replace("\\", "/")


def _read_overlong(escape: re.Match[str]) -> str:
    high = int(escape[1] or escape[2] or escape[3])
    return f"%{high << 6 | int(escape[4], 16) & 0x3F:02x}"


def _read_wide(escape: re.Match[str]) -> str:
    number = int(escape[1] or escape[2], 16) if escape[3] is None else int(escape[3])
    is_letter = number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF
    return chr(number) if is_letter else escape[0]


@cache_by_text
def list_spellings(text: str) -> frozenset[str]:
    """List the readings of a text: without differences of case, spaces, hidden and wide letters,
    look-alikes, escapes and path detours, and an address in the form in which a browser opens
    it."""
    text = text[:LONGEST_READ]
    plain = "".join(
        char
        for char in unicodedata.normalize("NFKC", _VARIATION.sub("", text))
        if unicodedata.category(char) != "Cf"
    )
    folded = plain.casefold().strip()
    found = {text, folded, "".join(folded.split()), reduce_to_look(text), reduce_to_look(folded)}
    found.add(unicodedata.normalize("NFC", fold_characters(folded)).replace("i\u0307", "i"))
    found.update(_read_address(folded))
    if (seen := decode_completely(text)) is not None:
        seen = seen.casefold().strip()
        path = _read_path(seen)
        found |= {seen, path, reduce_to_look(path), *_read_address(seen)}
        found |= {
            _read_path(_SEGMENT_PARAMS.sub("", seen)),
            *_read_address(_SEGMENT_PARAMS.sub("", seen)),
        }
    return frozenset(found)


@cache_by_text
def list_equal_spellings(text: str) -> frozenset[str]:
    """List the readings by which whole texts are compared, e.g. of an account number with any
    grouping."""
    own = list_spellings(text)
    joined = {f"\0{reduce_to_joined_look(each)}" for each in own}
    bare = {f"\0{_NO_LETTERS.sub('', each)}" for each in own}
    return (
        own
        | joined
        | {each.rstrip("/") for each in list_short_spellings(text)}
        | {each for each in bare if len(each) > SHORTEST_JOINED}
        | {each.rstrip("/") for each in own}
    )


def stands_in(wanted: str, text: str) -> bool:
    """Return True if the wanted text is a part of a text, alone or in a list, with a label or in
    quotes: `IBAN: DE89…`, `CEO <ceo@acme.example>`, `viewer,admin`. Spaces separate parts only if
    the wanted text is a single word.
    """
    part = _compile_part(wanted)
    return part is not None and any(part.search(each) for each in list_spellings(text))


def starts_a_part(prefix: str, text: str) -> bool:
    """Return True if a part of the text starts with the prefix, or if the text is a pattern that
    matches paths which may start with it."""
    starts = list_spellings(prefix)
    part = _compile_start(prefix)
    spellings = list_spellings(text)
    literals = {_GLOB.split(each, maxsplit=1)[0] for each in spellings if _GLOB.search(each)}
    short = tuple(list_short_spellings(prefix))
    if short and any(each.startswith(short) for each in list_short_spellings(text)):
        return True
    return any(part.search(each) for each in spellings) or (
        "/" in prefix and any(start.startswith(each) for start in starts for each in literals)
    )


@lru_cache(maxsize=256)
def _compile_part(wanted: str) -> re.Pattern[str] | None:
    """Compile a search for a whole part of a text; groups in an id or account may be separated."""
    readings = {each for each in list_spellings(wanted) if _LETTER.search(each)}
    between = _PARTING if any(char.isspace() for char in wanted.strip()) else rf"\s{_PARTING}"
    forms = {re.escape(each) for each in readings}
    letters = {_NO_LETTERS.sub("", each) for each in readings}
    forms |= {
        r"[ ./-]*".join(each) for each in letters if SHORTEST_JOINED <= len(each) <= LONGEST_NUMBER
    }
    if not forms:
        return None
    return re.compile(f"(?:^|(?<=[{between}]))(?:{'|'.join(sorted(forms))})(?=[{between}]|$)")


@lru_cache(maxsize=256)
def _compile_start(prefix: str) -> re.Pattern[str]:
    forms = "|".join(sorted(re.escape(each) for each in list_spellings(prefix)))
    return re.compile(f"(?:^|(?<=[{_PARTING}]))[ \\t]*(?:{forms})")


def _read_path(text: str) -> str:
    """Return the path without detours and repeated slashes; keep a slash at the end."""
    path = posixpath.normpath(text) if "/" in text else text
    path = f"/{path.lstrip('/')}" if path.startswith("/") else path
    return f"{path.rstrip('/')}/" if text.endswith("/") else path


def _read_address(text: str) -> Iterator[str]:
    """Yield the address that a browser opens, without the user and the port, and without detours in
    its path."""
    match = _AUTHORITY.match(text)
    if match is None or not match[4]:
        return
    path = _read_path(match[5]) if match[5].startswith("/") else f"/{match[5]}"
    schemes = [match[1] or match[2]] if match[1] or match[2] else ["", "http", "https"]
    for scheme in schemes:
        yield f"{scheme}{':' * bool(scheme)}//{read_host(match[4])}{path}"


def read_host(authority: str) -> str:
    """Return the host that a browser opens, with punycode decoded and IPv6 in its shortest form."""
    host = decode_host(find_opened_host(authority)).rstrip(".")
    if not host.startswith("["):
        return host
    try:
        number = IPv6Address(host.partition("]")[0][1:])
    except ValueError:
        return host
    return str(number.ipv4_mapped or f"[{number}]")


def list_short_spellings(text: str) -> frozenset[str]:
    """List the readings of a path or address without its scheme, leading slashes and fragment;
    empty for other texts."""
    plain = {_SCHEME.sub("", each) for each in list_spellings(text)} if "/" in text else set()
    return frozenset(
        {f"\0/{each.partition('#')[0].lstrip('/')}" for each in plain if each.strip("/")}
    )


# Paths and prefixes


def goes_upwards(text: str) -> bool:
    """Return True if the text contains a `..` path segment, in any spelling, or if it cannot be
    decoded."""
    seen = decode_completely(text)
    return seen is None or any(
        part[:2] == ".." and set(part) == {"."}
        for part in map(_trim_segment, _SEGMENTS.split(seen))
    )


def _trim_segment(segment: str) -> str:
    """Remove what servers ignore around the name of a folder: parameters and spaces."""
    return re.split(r"[;?#]", segment, maxsplit=1)[0].strip()


def starts_surely(value: Any, prefix: str, param: str = "") -> bool:
    """Return True if a text starts with the prefix in every reading, stays below it, and the prefix
    does not end inside a host.

    Args:
        param: the name of the value's param, which tells hosts from file names.
    """
    if not isinstance(value, str) or not value.startswith(prefix):
        return False
    seen, start = decode_completely(value), decode_completely(prefix)
    if seen is None or start is None or not seen.startswith(start) or goes_upwards(seen):
        return False
    pairs = ((seen, start), (value, prefix))  # a server may decode only after splitting
    return not any(
        _adds_host(text[len(known) :], known, param)
        or any(first < len(known) < end for first, end in _find_hosts_at_start(text, param))
        for text, known in pairs
    )


def _adds_host(rest: str, prefix: str, param: str) -> bool:
    """Return True if the text after a prefix could add a recipient or a host: `,eve@evil.test`
    after an email address, `@evil.test` after a host."""
    is_web = _AUTHORITY.match(prefix) is not None
    is_email = not is_web and "@" in prefix
    if is_email or (is_address_name(param.rpartition(".")[2]) and not is_web):
        return _MORE_HOSTS.search(rest) is not None or (
            prefix.endswith("]") and rest[:1] not in ("", "/", "?", "#", ":")
        )
    return False


def _find_hosts_at_start(text: str, param: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each host that may begin the text, with its user and port."""
    if match := _AUTHORITY.match(text):
        yield match.span(4)
    words = {word.lower() for word in _WORD.findall(param.rpartition(".")[2])}
    if match := _EMAIL.match(text):
        yield match.span(1) if words & _FILE_NAMES else (match.start(), match.end(1))
    if words & _FILE_NAMES:
        return
    match = _BARE_HOST.match(text)
    if match and (match[2].lower() in ENDINGS or is_address_name(param.rpartition(".")[2])):
        yield match.span(1)


def complete_prefix(prefix: str, param: str = "") -> str:
    """Return the prefix, with a slash after it if it ends with a whole host.

    Raises:
        ValueError: it ends inside or before a host, so other hosts start with it; the text is for
            people.
    """
    seen = decode_completely(prefix) or prefix
    inside = (
        f"{prefix!r} ends inside a host, so other hosts start with it, too: write the whole host"
    )
    if _BEFORE_HOST.fullmatch(seen):
        raise ValueError(
            f"{prefix!r} ends before a host, so all hosts start with it: write the host"
        )
    if (match := _AUTHORITY.match(seen)) and match[4] and not match[5]:
        if not _is_whole_host(match[4]):
            raise ValueError(f"{inside} and a slash")
        return f"{prefix}/"
    email = _EMAIL.fullmatch(seen)
    if email and not _is_whole_host(email[1]):
        raise ValueError(inside)
    is_of_host = is_address_name(param.rpartition(".")[2]) and _WORDS_OF_HOST.fullmatch(seen)
    if is_of_host and not _is_whole_host(seen):
        raise ValueError(inside)
    return prefix


def _is_whole_host(authority: str) -> bool:
    host = authority.rpartition("@")[2]
    host = re.sub(r":\d{1,5}$", "", host)
    if _IP.fullmatch(host) or host.lower() == "localhost":
        return True
    return "." in host and host.rpartition(".")[2].lower() in ENDINGS


# Values in provenance


def read_plainly(text: str, fold: Callable[[str], str] = fold_characters) -> str:
    """Return the text with escapes decoded and look-alikes replaced; unchanged if unreadable.

    Args:
        fold: replaces look-alikes.
    """
    if len(text) > LONGEST_READ or (text.isascii() and "%" not in text and "\\u" not in text):
        return text
    decoded = decode_completely(text) if "%" in text or "\\u" in text else text
    return text if decoded is None else fold(decoded)
