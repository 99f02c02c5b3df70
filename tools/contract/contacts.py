"""Hosts, email addresses, accounts and recipients in a call's values, and deceptive hosts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from itertools import islice
from typing import Any

from tools.caches import cache_by_text
from tools.contract.account_numbers import find_accounts, is_bank_code, is_card_number
from tools.contract.host_endings import ENDINGS
from tools.contract.look_alikes import (
    fold_characters,
    is_one_apart,
    reduce_to_look,
    simplify_look,
)
from tools.contract.outside_text import quote_excerpt
from tools.contract.param_words import (
    FILE_WORDS,
    HOST_WORDS,
    PHONE_WORDS,
    RECIPIENT_WORDS,
    WORDS,
    NamedThing,
    split_name,
)
from tools.contract.spelled_addresses import (
    decode_escapes,
    has_false_separator,
    list_readings,
    replace_punctuation,
)

HOST, EMAIL, ACCOUNT, RECIPIENT, HANDLE, PHONE = (
    "host",
    "email address",
    "account number",
    "recipient",
    "handle",
    "phone number",
)
LOOKS_LIKE, ONE_APART = "looks like, but is not,", "differs by one character from"
MAX_CONTACTS = 200
MAX_TEXT = 200_000
MAX_NAME = 120
MIN_LENGTH_TO_COMPARE = 4
MAX_LABEL = 63
PUNYCODE = "xn--"

_EMAIL = re.compile(r"(?<![\w.+'-])[\w.+'-]{1,64}@(?:[\w-]{1,63}\.){1,10}[\w-]{2,63}")
_AUTHORITY = (
    r"((?:(?!\]\([^\s@)]{0,40}[/#?]|\]\[[^\[\]\s@]{0,100}\](?![^\s/]{0,400}@))[^\s/?#<>\"'\\])+)"
)
"""The part of an address after its slashes. If the text of a Markdown link looks like an address,
the part ends before `](` or `][`."""
_URL = re.compile(rf"\b[a-z][a-z0-9+.-]{{1,20}}:[/\\]{{2,}}{_AUTHORITY}", re.IGNORECASE)
_SHORT_URL = re.compile(
    rf"(?:\b(?:https?|wss?|ftp):[/\\]?|(?<![\w:/\\])[/\\]{{2}})(?![/\\]){_AUTHORITY}", re.IGNORECASE
)
"""`https:host` and `//host`, which a browser opens like an address with two slashes."""
_BARE_HOST = re.compile(r"(?<![\w@./\\%-])(?:[\w-]{1,63}\.){1,10}([\w-]{2,63})(?![\w-])(?!\.\w)")
_SHARE = re.compile(r"(?:^|(?<=\s))\\\\([\w-]{1,63})(?=\\)")
"""The host of a Windows share: `\\\\host\\folder`."""
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w)")
_IPV6 = re.compile(
    r"(?<![\w:.])(?<!//\[)[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:\d{0,3}(?:\.\d{1,3}){3})?(?![\w:])",
    re.IGNORECASE,
)
_RESERVED_BITS, _FEWEST_COLONS = 125, 7
"""IPv6 addresses whose first three bits are 0, such as `1::2`, do not belong to any host. Addresses
without `::` have seven colons."""
_PHONE = re.compile(
    r"(?<![\w+.])(?:\+|(?<!\d[ .-])00(?=[1-9]\d{0,2}[ (-]))(\d{1,3}\)?(?:[ /.-]{0,2}(?:\(\d{1,4}\) ?)?\d){6,14})"
    r"(?![\w.,]*\d)(?!\s?(?:[A-Z]{3}\b|[%$€£]))"
)
"""A phone number in international form; a number with a currency after it is an amount instead."""
_FEWEST_DIGITS, _MOST_DIGITS = 9, 15
_NORTH_AMERICAN_DIGITS = 11
_HANDLE = re.compile(r"(?<![\w@./\\])@([A-Za-z_][\w.]{2,31})(?![\w(/@])")
_CRON_WORDS = frozenset(
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@reboot"]
)
"""Words that stand for a time in a crontab, and not for a person."""
_NAME_FIELDS = frozenset({"host", "hostname", "server"})
"""Names of fields whose value is a host even if it does not contain a dot."""
NAMELESS_FIELDS = frozenset({"id", "name", "value", "address", "number", "key"})
"""Names of fields that say nothing about their value unless the name of the outer field is known,
too."""
_HOST_VALUE = re.compile(r"(?:[\w-]{1,63}\.){1,10}[\w-]{2,63}")
_LABEL_OR_HOST = re.compile(r"(?:[\w-]{1,63}\.){0,10}[\w-]{2,63}")
_ADDRESS_IN_NUMBERS = re.compile(
    r"(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){0,3}", re.IGNORECASE
)
_IPV4_IN_ONE_NUMBER = re.compile(r"(?:0x[0-9a-f]{7,8}|\d{8,11})(?!\w)", re.IGNORECASE)
_TWO_HOSTS = re.compile(
    r"\.(?:(?:co|com|ac|gov|org|net|edu)\.[a-z]{2}|com|org|net|gov|edu)[.-](?:[\w-]+\.)+[\w-]+$"
)
"""A host that begins with another host: `acme.com.other.example`, `acme.co.uk-login.example`."""
_LINK = re.compile(
    r"\[([^\[\]]{1,400})\]\(\s*<?([^\s)>]+)|<a\s[^<>]{0,400}?href\s*=\s*[\"']?([^\s\"'>]+)[^<>]{0,400}>([^<]{1,400})",
    re.IGNORECASE,
)
"""A link in Markdown or HTML: its text and its address."""
_REFERENCE = re.compile(r"\[([^\[\]]{1,400})\](?:\[([^\[\]]{0,100})\])?(?![\[(:])")
"""A Markdown link that refers to an address by name: `[words][name]`, `[name][]`, `[name]`."""
_DEFINITION = re.compile(r"^ {0,3}\[([^\[\]]{1,100})\]:\s{0,9}<?([^\s>]{1,2000})", re.MULTILINE)
"""The definition of such an address: `[name]: https://acme.com`."""
_FILE_ENDINGS = frozenset(
    ["cc", "in", "md", "ml", "mov", "pl", "ps", "pub", "py", "rs", "sh", "so", "tf", "zip"]
)
"""Endings of hosts that are also common endings of files."""
_TWO_READINGS = re.compile(
    r"\b(?!file:)[a-z][a-z0-9+.-]{1,20}:[/\\]{2,}[^\s/?#@\\\"'<>]{1,400}"
    r"(?:\\[^\s/]{0,400}|[?#][^\s/=&]{0,400})@[\w.-]{1,400}",
    re.IGNORECASE,
)
"""A web address with an `@` after a sign that ends the host only in some programs."""
_TWO_AT_SIGNS = re.compile(
    r"(?<![\w.+'@/-])[\w.+'-]{1,64}@(?:[\w-]{1,63}\.){1,10}[a-z]{2,63}@(?:[\w-]{1,63}\.){1,10}[a-z]{2,63}",
    re.IGNORECASE,
)
"""An email address with two hosts."""
_WWW = re.compile(r"(?<![\w./@-])www\.(?=\w)", re.IGNORECASE)
_PLAIN_IPV4 = 4
_HIGHEST_BYTE = 255
_DIGITS = re.compile(r"\d")


@dataclass(frozen=True)
class Contact:
    """A place or person that a call may reach.

    Attributes:
        kind: HOST, EMAIL, ACCOUNT, RECIPIENT, HANDLE or PHONE.
        value: as written, except that accounts and phone numbers have no spaces, and hosts and
            email addresses are in lower case.
        field: the name of the field that holds it.
    """

    kind: str
    value: str
    field: str = ""


def list_contacts(values: Any) -> tuple[Contact, ...]:
    """List the contacts in a JSON value in their order, each once and at most 200. Only the first
    MAX_TEXT characters of a long text are read."""
    found: dict[tuple[str, str], Contact] = {}
    for field, text in walk_texts(values):
        for contact in _read_contacts(field, text[:MAX_TEXT]):
            found.setdefault((contact.kind, contact.value), contact)
        if len(found) >= MAX_CONTACTS:
            break
    return tuple(islice(found.values(), MAX_CONTACTS))


def walk_texts(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field name, text) for each text in a JSON value, and ("", name) for each name.

    A field such as `id` within another one is named after both: `account.id`. Numbers count as
    texts in fields for accounts.
    """
    stack: list[tuple[str, Any]] = [(field, value)]
    while stack:
        field, value = stack.pop()
        if isinstance(value, str):
            yield field, value
        elif isinstance(value, Mapping):
            for name in value:
                yield "", str(name)
            stack += reversed(
                [
                    (
                        f"{field}.{name}" if field and name in NAMELESS_FIELDS else str(name),
                        child,
                    )
                    for name, child in value.items()
                ]
            )
        elif isinstance(value, (list, tuple)):
            stack += reversed([(field, child) for child in value])
        elif split_name(field) & WORDS[NamedThing.ACCOUNT] and not isinstance(value, bool | None):
            yield field, str(value)


def _read_contacts(field: str, text: str) -> Iterator[Contact]:
    words = split_name(field)
    for reading in list_readings(text):
        if "@" in reading:
            yield from (Contact(EMAIL, found.lower(), field) for found in _EMAIL.findall(reading))
            if reading.strip() not in _CRON_WORDS:
                yield from (Contact(HANDLE, f"@{name}", field) for name in _HANDLE.findall(reading))
        yield from (Contact(HOST, host, field) for host in _read_hosts(words, reading))
    folded, plain = fold_characters(text), text.strip()
    yield from (Contact(ACCOUNT, found, field) for found in find_accounts(folded))
    yield from (Contact(PHONE, found, field) for found in _find_phones(folded, words))
    if not plain or len(plain) > MAX_NAME:
        return
    is_account = any(char.isdigit() for char in plain) or is_bank_code(plain)
    is_card = "card" in words and is_card_number(folded.strip())
    if is_card or (is_account and words & WORDS[NamedThing.ACCOUNT]):
        yield Contact(ACCOUNT, plain.replace(" ", ""), field)
    elif words & RECIPIENT_WORDS and "@" not in plain:
        yield Contact(RECIPIENT, plain, field)


def _find_phones(text: str, words: frozenset[str]) -> Iterator[str]:
    """Yield the international phone numbers in a text, except one that is the whole value of a
    phone field.

    A number that begins with +1 has exactly 11 digits.
    """
    if "+" not in text and "00" not in text:
        return
    for found in _PHONE.finditer(text):
        digits = "".join(filter(str.isdecimal, found[1].replace("(0)", "")))
        is_complete = (
            len(digits) == _NORTH_AMERICAN_DIGITS
            if digits[0] == "1"
            else (digits[0] != "0" and _FEWEST_DIGITS <= len(digits) <= _MOST_DIGITS)
        )
        is_whole = bool(words & PHONE_WORDS) and found[0] == text.strip()
        if is_complete and not is_whole:
            yield f"+{digits}"


def _find_ipv6(text: str) -> Iterator[str]:
    for found in _IPV6.finditer(text) if "::" in text or text.count(":") >= _FEWEST_COLONS else ():
        try:
            address = IPv6Address(found[0])
        except ValueError:
            continue
        has_digit = any(char.isdigit() for char in found[0])
        if has_digit and (int(address) >> _RESERVED_BITS or address.ipv4_mapped):
            yield str(address)


def _read_hosts(words: frozenset[str], text: str) -> Iterator[str]:
    for authority in _find_authorities(text):
        yield find_opened_host(authority)
    yield from (found[1].lower() for found in _SHARE.finditer(text))
    pattern = _LABEL_OR_HOST if words & _NAME_FIELDS else _HOST_VALUE
    if words & HOST_WORDS and pattern.fullmatch(text.strip()):
        yield text.strip().lower()
        return
    yield from _find_ipv6(text)
    if "." not in text or words & FILE_WORDS:
        return
    yield from (found[0] for found in _IPV4.finditer(text) if _is_plain_ipv4(found[0]))
    for found in _BARE_HOST.finditer(text):
        if found[1].lower() in ENDINGS:
            yield found.group().lower()


def _find_authorities(text: str) -> Iterator[str]:
    """Yield the part of each web address after its slashes, as it is written."""
    if ":" in text:
        yield from (found[1] for found in _URL.finditer(text))
    if ":" in text or "//" in text or "\\\\" in text:
        for found in _SHORT_URL.finditer(text):
            if "." in found[1] or _IPV4_IN_ONE_NUMBER.match(found[1]):
                yield found[1]


def find_opened_host(authority: str) -> str:
    """Find the host that a browser opens for an authority, the part of an address after `//`.

    User name, password and port do not count, escapes are decoded, and an IPv4 address in any
    notation becomes four numbers.
    """
    written = decode_escapes(authority.rpartition("@")[2]).rpartition("@")[2]
    host = unicodedata.normalize("NFKC", written).lower().replace("\u3002", ".")
    if host.startswith("["):
        return host
    host = re.split(r"[/\\?#:]", host, maxsplit=1)[0].rstrip(".,;)!\u2019\u201d")
    return _read_ipv4(host) if _ADDRESS_IN_NUMBERS.fullmatch(host) else host


def _read_ipv4(host: str) -> str:
    """Convert an IPv4 address in any notation to four decimal numbers, as browsers do; return an
    invalid address unchanged."""
    try:
        *first, last = map(_read_number, host.split("."))
        rest = last.to_bytes(_PLAIN_IPV4 - len(first), "big")
        return ".".join(map(str, (*bytes(first), *rest)))
    except (ValueError, OverflowError):
        return host  # too large, or not a number


def _read_number(part: str) -> int:
    """Read a number: hexadecimal after 0x, octal after 0, otherwise decimal."""
    is_octal = part.startswith("0") and part.isdecimal()
    return int(part, 16 if part.startswith("0x") else 8 if is_octal else 10)


def decode_host(host: str) -> str:
    """Decode the punycode of a host: `xn--bcher-kva.example` becomes `bücher.example`."""
    return ".".join(decode_label(label) for label in host.split("."))


@cache_by_text
def decode_label(label: str) -> str:
    """Decode one label of a host; a label that is not punycode is returned unchanged."""
    if not label.lower().startswith(PUNYCODE) or len(label) > MAX_LABEL:
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return label


def find_false_addresses(text: str) -> Iterator[str]:
    """Explain each address that disguises where it leads."""
    for authority in _find_authorities(text):
        if disguise := _describe_disguise(authority):
            yield disguise
    if "@" in text:
        for found in _TWO_READINGS.finditer(text):
            yield f"{quote_excerpt(found[0])} leads to different hosts in different programs"
        for found in _TWO_AT_SIGNS.finditer(text):
            yield f"{quote_excerpt(found[0])} has two hosts"
    yield from _find_false_links(text)
    readings = list(list_readings(text))
    known = set(_read_hosts(frozenset(), text)) if len(readings) > 1 else set()
    spelled = [host for each in readings[1:] for host in _read_hosts(frozenset(), each)]
    if not text.isascii():
        known.update(map(str.lower, _EMAIL.findall(text)))
        spelled += map(str.lower, _EMAIL.findall(replace_punctuation(text)))
    for place in dict.fromkeys(spelled):
        if place not in known:
            yield f"{quote_excerpt(place)} is spelled in another way"
    for host in _read_hosts(frozenset(), text):
        if _TWO_HOSTS.search(host):
            yield f"{quote_excerpt(host)} merely begins with another host's name"


def _describe_disguise(authority: str) -> str:
    """Describe how the part of a web address after its slashes disguises the host; empty if it does
    not."""
    host, written = find_opened_host(authority), authority.lower()
    name, sign, _ = decode_escapes(authority).rpartition("@")
    if has_false_separator(authority):
        return f"{quote_excerpt(authority)} leads to different hosts in different programs"
    if sign:
        return f"leads to {quote_excerpt(host)}, not to {quote_excerpt(name.partition(':')[0])}"
    if "%" in authority:
        return f"{quote_excerpt(authority)} hides the host {quote_excerpt(host)} in escapes"
    if host not in written:
        return f"{quote_excerpt(authority)} leads to {quote_excerpt(host)}"
    if _ADDRESS_IN_NUMBERS.fullmatch(host) and not _is_plain_ipv4(host):
        return f"{quote_excerpt(host)} is an IP address in disguise"
    return ""


def _find_false_links(text: str) -> Iterator[str]:
    """Explain each link in Markdown or HTML whose words are an address at another host."""
    for words, target in dict.fromkeys(_list_links(text)):
        shown = _find_shown_host(words, target)
        authority = next(_find_authorities(target), "") if shown else ""
        opened = find_opened_host(authority)
        if opened and not f".{opened}".endswith(f".{shown}"):
            yield f"{quote_excerpt(shown)} leads to {quote_excerpt(opened)}"


def _list_links(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words and the address of each link in Markdown or HTML."""
    for found in _LINK.finditer(text):
        yield (found[1], found[2]) if found[2] else (found[4], found[3])
    addresses: dict[str, str] = {}
    for found in _DEFINITION.finditer(text) if "]:" in text else ():
        addresses.setdefault(_fold_label(found[1]), found[2])
    for found in _REFERENCE.finditer(text) if addresses else ():
        yield found[1], addresses.get(_fold_label(found[2] or found[1]), "")


def _fold_label(label: str) -> str:
    return " ".join(label.split()).casefold()


def _find_shown_host(words: str, target: str) -> str:
    """Find the host that the words of a link name; empty for a file that has the same name in the
    link's address."""
    authority = next(_find_authorities(_WWW.sub(r"//\g<0>", words)), "")
    if authority:
        return find_opened_host(authority).removeprefix("www.")
    bare = words.strip().lower()
    ending = bare.rpartition(".")[2]
    if ending not in ENDINGS or not _HOST_VALUE.fullmatch(bare):
        return ""
    is_file = ending in _FILE_ENDINGS and re.split("[?#]", target.lower())[0].endswith(f"/{bare}")
    return "" if is_file else bare


def _is_plain_ipv4(host: str) -> bool:
    parts = host.split(".")
    return len(parts) == _PLAIN_IPV4 and all(
        part.isdecimal() and str(int(part)) == part and int(part) <= _HIGHEST_BYTE for part in parts
    )


def describe_likeness(value: str, other: str, *, is_number: bool = False) -> str:
    """Describe how a value resembles another, e.g. `differs by one character from`; empty if it
    does not.

    Args:
        is_number: True for account numbers and the like, in which a single different digit is
            suspicious. In names such as mail1 and mail2 it is not.
    """
    one, two = value.casefold(), other.casefold()
    if one == two or min(len(one), len(two)) < MIN_LENGTH_TO_COMPARE:
        return ""
    if simplify_look(reduce_to_look(value)) == simplify_look(reduce_to_look(other)):
        return LOOKS_LIKE
    if not is_number and _DIGITS.sub("", one) == _DIGITS.sub("", two):
        return ""
    return ONE_APART if is_one_apart(one, two) else ""
