"""Hosts, email addresses, accounts and recipients in a call's values, and deceptive hosts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from itertools import islice
from typing import Any

from tools.caches import cache_by_text
from tools.contract.account_numbers import find_accounts, is_bank_code, is_card_number
from tools.contract.host_endings import ENDINGS
from tools.contract.links import list_links, list_named_hosts
from tools.contract.look_alikes import (
    fold_characters,
    is_one_apart,
    reduce_to_look,
    simplify_look,
)
from tools.contract.named_hosts import is_address_name
from tools.contract.odd_emails import find_odd_emails
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
    join_lines,
    list_readings,
    replace_punctuation,
    unescape_html,
)
from tools.contract.web_authorities import (
    HOST_PATTERN,
    LONGEST_READ,
    MOST_CHARACTERS,
    find_authorities,
    find_odd_slashes,
    find_two_readings,
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

_EMAIL = re.compile(rf"(?<![\w.+'-])[\w.+'-]{{1,256}}@{HOST_PATTERN}")
_BARE_HOST = re.compile(
    r"(?:(?<![\w@./\\%-])|(?<=\*\.))(?:[\w-]{1,63}\.){1,126}([\w-]{2,63})(?![\w-])(?!\.\w)"
)
_SHARE = re.compile(
    r"(?:^|(?<=\s))\\\\(?:[?.]\\UNC\\)?([\w-]{1,63}(?:\.[\w-]{1,63}){0,126})(?=\\)", re.IGNORECASE
)
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
_ADDRESS_WORDS = frozenset({"url", "urls", "uri", "uris", "href", "link", "links"})
"""Words in the names of fields that hold an address, even if it is the address of a file."""
_NUMBERED_FIELDS = frozenset({"ip", "ips", "host", "hosts", "hostname", "server", "servers"})
"""Words in the names of fields in which a number may stand for a host."""
_SERVER_FIELDS = frozenset({"server", "servers"})
"""Words for a host in whose fields `12.1` is a version."""
_FEWEST_IN_ONE_NUMBER = 8
_NAME_FIELDS = frozenset({"host", "hostname", "server"})
"""Names of fields whose value is a host even if it does not contain a dot."""
NAMELESS_FIELDS = frozenset({"id", "name", "value", "address", "number", "key"})
"""Names of fields that say nothing about their value unless the name of the outer field is known,
too."""
_HOST_VALUE = re.compile(HOST_PATTERN)
_WITHOUT_SIGNS = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)
"""The words of a link without the signs around them."""
_LABEL_OR_HOST = re.compile(r"(?:[\w-]{1,63}\.){0,126}[\w-]{2,63}")
_ADDRESS_IN_NUMBERS = re.compile(
    r"(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){0,3}", re.IGNORECASE
)
_LOWEST_NUMBER, _HIGHEST_NUMBER = 1 << 24, (1 << 32) - 1
"""The numbers that stand for a whole IPv4 address whose first part is not 0."""
_TWO_HOSTS = re.compile(
    r"\.(?:(?:co|com|ac|gov|org|net|edu)\.[a-z]{2}|com|org|net|gov|edu)[^\w/@]{1,5}(?:[\w-]+\.)+[\w-]+$"
)
"""A host that begins with another host: `acme.com.other.example`, `acme.co.uk-login.example`."""
_FILE_ENDINGS = frozenset(
    ["cc", "in", "md", "ml", "mov", "pl", "ps", "pub", "py", "rs", "sh", "so", "tf", "zip"]
)
"""Endings of hosts that are also common endings of files."""
_WWW = re.compile(r"(?<![\w./@-])www\.(?=\w)", re.IGNORECASE)
_PLAIN_IPV4 = 4
_HIGHEST_BYTE = 255
_BYTE = re.compile(r"0|[1-9][0-9]{0,2}")
_USER = re.compile(r"[a-z0-9_+-]{1,64}", re.IGNORECASE | re.ASCII)
_BROWSED_USER = re.compile(
    r"(?:\b(?:https?|ftp|wss?):[/\\]{0,9}|(?<![:/\\\w])//)([^\s/?#<>\"'\\@]{1,100})@", re.IGNORECASE
)
"""The user in a web address that browsers open. In other addresses, such as ssh://git@acme.com, a
user is usual."""
_I_FOR_L = re.compile(
    r"(?<=[a-z])I(?![A-Za-z])|(?<=[a-z])I(?=[aeiouy](?![A-Z]))|(?<=[A-Za-z])II(?=[a-z])"
)
"""A capital I within a word where no new word begins: it is read as a small l."""
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
    texts in fields for accounts, and in fields for hosts if they stand for an IPv4 address.
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
        elif not isinstance(value, bool | None) and _counts_as_text(split_name(field), value):
            yield field, str(value)


def _counts_as_text(words: frozenset[str], number: Any) -> bool:
    return bool(words & WORDS[NamedThing.ACCOUNT]) or (
        bool(words & _NUMBERED_FIELDS) and _LOWEST_NUMBER <= number <= _HIGHEST_NUMBER
    )


def _read_contacts(field: str, text: str) -> Iterator[Contact]:
    words = split_name(field)
    people: list[Contact] = []
    for reading in list_readings(text):
        found_here = list(_read_people(field, reading)) if "@" in reading else []
        people += found_here
        yield from found_here
        yield from (Contact(HOST, host, field) for host in _read_hosts(words, reading))
    if opened := find_numbered_host(field, text):
        yield Contact(HOST, opened, field)
    folded, plain = fold_characters(text), text.strip()
    yield from (Contact(ACCOUNT, found, field) for found in find_accounts(folded))
    yield from (Contact(PHONE, found, field) for found in _find_phones(folded, words))
    if not plain or len(plain) > MAX_NAME:
        return
    is_account = any(char.isdigit() for char in plain) or is_bank_code(plain)
    is_card = "card" in words and is_card_number(folded.strip())
    if is_card or (is_account and words & WORDS[NamedThing.ACCOUNT]):
        yield Contact(ACCOUNT, plain.replace(" ", ""), field)
    elif words & RECIPIENT_WORDS and ("@" not in plain or not (people or plain in _CRON_WORDS)):
        yield Contact(RECIPIENT, plain, field)


def _read_people(field: str, text: str) -> Iterator[Contact]:
    yield from (Contact(EMAIL, found.lower(), field) for found in _EMAIL.findall(text))
    yield from (Contact(EMAIL, email, field) for _, email in find_odd_emails(text))
    if text.strip() not in _CRON_WORDS:
        yield from (Contact(HANDLE, f"@{name}", field) for name in _HANDLE.findall(text))


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
    for authority in find_authorities(text):
        if opened := find_opened_host(authority):
            yield opened
    yield from map(str.lower, find_two_readings(text).values())
    yield from (found[1].lower() for found in _SHARE.finditer(text))
    pattern = _LABEL_OR_HOST if words & _NAME_FIELDS else _HOST_VALUE
    value = text.strip().removeprefix("*").removeprefix(".")
    if words & HOST_WORDS and pattern.fullmatch(value):
        yield value.lower()
        return
    yield from _find_ipv6(text)
    if "." not in text or (words & FILE_WORDS and not words & _ADDRESS_WORDS):
        return
    yield from (found[0] for found in _IPV4.finditer(text) if _is_plain_ipv4(found[0]))
    yield from (host.lower() for host in _find_bare_hosts(text))


def _find_bare_hosts(text: str) -> Iterator[str]:
    """Yield the hosts without a scheme, as they are written; `*.zip` and the like are files."""
    for found in _BARE_HOST.finditer(text):
        ending = found[1].lower()
        is_file = text.endswith("*.", 0, found.start()) and ending in _FILE_ENDINGS
        if ending in ENDINGS and not is_file:
            yield found[0]


def find_numbered_host(field: str, text: str) -> str:
    """Find the IPv4 address that the value of a field for hosts stands for if it is written in
    another notation, such as `0x7f.1` or `010.1.1.1`; empty for other values."""
    words, plain = split_name(field), text.strip().lower()
    if not words & _NUMBERED_FIELDS or not _ADDRESS_IN_NUMBERS.fullmatch(plain):
        return ""
    parts, opened = plain.split("."), _read_ipv4(plain)
    is_short = len(parts) == 1 and len(plain) < _FEWEST_IN_ONE_NUMBER
    is_version = len(parts) < _PLAIN_IPV4 and not words & (_NUMBERED_FIELDS - _SERVER_FIELDS)
    if "x" not in plain and (is_short or is_version):
        return ""
    is_host = opened != plain and _is_plain_ipv4(opened) and is_address_name(field)
    return opened if is_host else ""


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
    """Decode one label of a host; a label that is not valid punycode is returned unchanged."""
    if not label.lower().startswith(PUNYCODE) or len(label) > MAX_LABEL:
        return label
    try:
        decoded = label[4:].encode("ascii").decode("punycode")
        is_canonical = decoded.encode("punycode").decode().lower() == label[4:].lower()
    except UnicodeError:
        return label
    is_text = all(unicodedata.category(char) != "Cs" for char in decoded)
    return decoded if is_canonical and is_text else label


def find_false_addresses(text: str) -> Iterator[str]:
    """Explain each address that disguises where it leads."""
    users = {found[1].lower() for found in _BROWSED_USER.finditer(text)} if "@" in text else set()
    for authority in find_authorities(text):
        if disguise := _describe_disguise(authority, users):
            yield disguise
    written, authority = find_odd_slashes(text)
    if written:
        yield f"{quote_excerpt(written)} leads to {quote_excerpt(find_opened_host(authority))}"
    for address in find_two_readings(text):
        yield f"{quote_excerpt(address)} leads to different hosts in different programs"
    for address, _ in find_odd_emails(text):
        yield f"{quote_excerpt(address)} has two hosts"
    yield from _find_false_links(text)
    hosts = list(_read_hosts(frozenset(), text))
    yield from _find_spelled(text, hosts)
    emails = _EMAIL.findall(text) if "@" in text else []
    for host in (*hosts, *dict.fromkeys(email.rpartition("@")[2].lower() for email in emails)):
        if len(host) <= MOST_CHARACTERS and _TWO_HOSTS.search(host):
            yield f"{quote_excerpt(host)} merely begins with another host's name"
    if "I" in text:
        yield from _find_false_letters([*find_authorities(text), *_find_bare_hosts(text), *emails])


def _find_spelled(text: str, hosts: Iterable[str]) -> Iterator[str]:
    """Explain each host and email address that only another reading of the text contains."""
    readings = list_readings(text)
    spelled = [host for each in readings[1:] for host in _read_hosts(frozenset(), each)]
    known = set(hosts)
    if not text.isascii():
        known.update(map(str.lower, _EMAIL.findall(text)))
        spelled += map(str.lower, _EMAIL.findall(replace_punctuation(text)))
    found = [place for place in dict.fromkeys(spelled) if place not in known]
    start = join_lines(text)[1]
    if start and not found:
        found = [start]
    for place in found:
        yield f"{quote_excerpt(place)} is spelled in another way"


def _find_false_letters(addresses: Iterable[str]) -> Iterator[str]:
    for address in dict.fromkeys(addresses):
        host = address.rpartition("@")[2].partition(":")[0]
        if _I_FOR_L.search(host):
            yield f"{quote_excerpt(host)} contains a capital I that looks like a small l"


def _describe_disguise(authority: str, users: Collection[str]) -> str:
    """Describe how the part of a web address after its slashes disguises the host; empty if it does
    not.

    Args:
        users: the names of users in addresses that browsers open, where they are unusual.
    """
    host, written = find_opened_host(authority), authority.lower()
    user, sign, _ = decode_escapes(authority).rpartition("@")
    if has_false_separator(authority) or len(authority) >= LONGEST_READ:
        return f"{quote_excerpt(authority)} leads to different hosts in different programs"
    if sign and (user.lower() in users or not _is_user(user)):
        return f"leads to {quote_excerpt(host)}, not to {quote_excerpt(user.partition(':')[0])}"
    if "%" in authority.rpartition("@")[2]:
        return f"{quote_excerpt(authority)} hides the host {quote_excerpt(host)} in escapes"
    if host not in written:
        return f"{quote_excerpt(authority)} leads to {quote_excerpt(host)}"
    if _ADDRESS_IN_NUMBERS.fullmatch(host) and not _is_plain_ipv4(host):
        return f"{quote_excerpt(host)} is an IP address in disguise"
    return ""


def _is_user(text: str) -> bool:
    """Return True for the name and password of a user that cannot be taken for a host or an
    address."""
    name, _, password = text.partition(":")
    has_host = _HOST_VALUE.fullmatch(password) and password.rpartition(".")[2].lower() in ENDINGS
    return not has_host and _USER.fullmatch(name) is not None


def _find_false_links(text: str) -> Iterator[str]:
    """Explain each link whose words are an address at another host, and each email address with
    the name of another address."""
    pairs: dict[tuple[str, str], None] = {}
    for words, target in dict.fromkeys(list_links(text)):
        if shown := _find_shown_host(words, target):
            pairs[shown, find_opened_host(next(find_authorities(target), ""))] = None
    for shown, opened in list_named_hosts(text):
        if not f".{shown}".endswith(f".{opened}"):
            pairs[shown, opened] = None
    for shown, opened in pairs:
        if opened and not f".{opened}".endswith(f".{shown}"):
            yield f"{quote_excerpt(shown)} leads to {quote_excerpt(opened)}"


def _find_shown_host(words: str, target: str) -> str:
    """Find the host that the words of a link name; empty for a file that has the same name in the
    link's address."""
    authority = next(find_authorities(_WWW.sub(r"//\g<0>", words)), "")
    if authority:
        return find_opened_host(authority).removeprefix("www.")
    found = _WITHOUT_SIGNS.search(unescape_html(words))
    bare = found[0].lower() if found and "@" not in words else ""
    ending = bare.rpartition(".")[2]
    if ending not in ENDINGS or not _HOST_VALUE.fullmatch(bare):
        return ""
    is_file = ending in _FILE_ENDINGS and re.split("[?#]", target.lower())[0].endswith(f"/{bare}")
    return "" if is_file else bare


def _is_plain_ipv4(host: str) -> bool:
    parts = host.split(".")
    return len(parts) == _PLAIN_IPV4 and all(
        _BYTE.fullmatch(part) and int(part) <= _HIGHEST_BYTE for part in parts
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
