"""Parts: the values in a call's params, and the needles that find them in earlier results."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain, islice
from typing import Any
from urllib.parse import unquote

from tools.contract.param_naming import ParamNaming
from tools.toolbox.provenance.folding import split_words
from tools.toolbox.value_readings import LONGEST_NUMBER, read_numbers, read_plainly

KEY_LENGTH = 32
SMALLEST_NUMBER = 100
_SHORTEST_NUMBER = len(str(SMALLEST_NUMBER))
MAX_LEAVES = 2_000
"""The maximum number of values of one call that are looked for."""
MAX_PARTS = 2_000
"""The maximum number of parts of one value; even a record's longest text rarely has more."""
MAX_WORDS = 60
"""The maximum number of words in a text that is looked for as a whole. Longer texts are looked for
line by line and sentence by sentence."""
_SHORTEST = 4
_SHORTEST_SENTENCE = 4
"""The minimum number of words in a sentence that is looked for."""
_SHORTEST_CODE = 8
_COMMON = frozenset(
    b"true false null none yes no not and or the a an of in on at to for from by with as is are was be it this that "
    b"all any other others new old open closed active inactive pending done draft high low medium normal default "
    b"unknown available general public private internal external today tomorrow yesterday now never always daily "
    b"weekly monthly yearly name email mail address phone status region category score note notes text title subject "
    b"date time type id url http https www com org net info contact sales support admin hello office team service "
    b"news index home about page html json csv pdf txt md europe africa asia america north south east west central "
    b"english german french spanish italian monday tuesday wednesday thursday friday saturday sunday january february "
    b"march april may june july august september october november december company customer customers lead leads "
    b"partner software hardware manufacturing retail finance health energy education logistics media services "
    b"consulting thank you please regards dear best kind summary report record records list file files".split()
)
_TOKEN = re.compile(r"[^\s<>\"'`(),;\[\]{}|]+")
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://.+")
_MAIL = re.compile(r"([^:@/?=&]{1,64})@([^:@/?=&]{3,253})")
_HOST = re.compile(
    r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,30}(?:[^\W\d_]{2,63}|xn--[a-z0-9-]{1,59})", re.IGNORECASE
)
_IP = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_CODE = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{0,4}\d[\dA-Za-z]*(?:[ ./()-]{1,2}(?=[A-Z]{0,4}\d)[\dA-Z]+)*(?![A-Za-z0-9])"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?")
_CODE_WITH_ZERO = re.compile(r"(?:[A-Z]{3}|[$€£¥])?\s?[+-]?0[ ']?\d[\d ']*\s?(?:[A-Z]{3}|[$€£¥])?")
_SENTENCE_END = re.compile(r"[\r\n]+|(?<=[.!?])\s+")
_DOMAIN_LABELS = 2
_LONGEST_HOST = 253


def make_key(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()[:KEY_LENGTH]


@dataclass(frozen=True)
class Needle:
    """One form of a value that is looked for; exactly one of the fields is set.

    Attributes:
        words: folded words in a row.
        number: a number in any usual spelling.
        code: letters and digits, regardless of the characters between them.
    """

    words: tuple[bytes, ...] = ()
    number: Decimal | None = None
    code: bytes = b""

    @property
    def key(self) -> str:
        """A digest that is the same for every spelling of a value."""
        number = b"" if self.number is None else f"{self.number.normalize():f}".encode()
        return make_key(b"\0".join((b" ".join(self.words), number, self.code)))


@dataclass(frozen=True)
class Part:
    """A value of the params, or a part of a value; each of its needles can identify it."""

    text: str
    needles: tuple[Needle, ...]
    is_host: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the part's needles."""
        return tuple(needle.key for needle in self.needles)


@dataclass(frozen=True)
class Leaf:
    """A single value in the params.

    Attributes:
        path: as in `Sighting`.
        names: the names of the params that lead to it.
        whole: the value itself; None if it is too short or too common to be looked for.
        parts: the hosts, addresses, codes and sentences inside it.
    """

    path: str
    names: tuple[str, ...]
    stands_out: bool
    whole: Part | None
    parts: tuple[Part, ...]

    @property
    def param(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True)
class LeafList:
    """The values of some params that are worth looking for.

    Attributes:
        unread: the number of values and parts of values that are not looked for, because there are
            too many.
    """

    leaves: tuple[Leaf, ...]
    unread: int


def list_leaves(
    params: Mapping[str, Any], offered: frozenset[Any], naming: ParamNaming | None = None
) -> LeafList:
    """List each value worth looking for, up to `MAX_LEAVES`.

    Args:
        offered: values that the tool's own definition offers, such as those of an enum; a match is
            not evidence of their origin.
        naming: tells if a value from outside must stand out; None to judge only by known names.
    """
    leaves, unread = list[Leaf](), 0
    naming = naming or ParamNaming({}, is_known=True)
    values = walk_values(params)
    for path, names, value in values:
        if value in offered:
            continue
        stands_out = naming.stands_out(names, value)
        whole = _read_whole(value, stands_out)
        found = _list_parts(value, whole) if isinstance(value, str) else iter(())
        if isinstance(value, str) and (plain := read_plainly(value)) != value:
            whole = _add_needles(value, whole, _read_whole(plain, stands_out))
            found = chain(found, _list_parts(plain, whole))
        parts = tuple(islice(found, MAX_PARTS + 1))
        unread += len(parts) > MAX_PARTS
        if whole or parts:
            leaves.append(Leaf(path, names, stands_out, whole, parts[:MAX_PARTS]))
        if len(leaves) == MAX_LEAVES:
            unread += sum(1 for _ in values)
    return LeafList(tuple(leaves), unread)


def walk_values(
    params: Mapping[str, Any],
) -> Iterator[tuple[str, tuple[str, ...], str | int | float]]:
    """Yield (path, names, value) of each text and number, without recursion, because params may be
    nested deeply."""
    waiting: list[tuple[str, tuple[str, ...], Any]] = [("", (), params)]
    while waiting:
        path, names, value = waiting.pop()
        prefix = f"{path}." if path else ""
        if isinstance(value, Mapping):
            waiting += [
                (f"{prefix}{key}", (*names, str(key)), each)
                for key, each in reversed([*value.items()])
            ]
        elif isinstance(value, list):
            waiting += [
                (f"{prefix}{place}", names, each) for place, each in reversed([*enumerate(value)])
            ]
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield path, names, value


def list_offered(schema: Any) -> frozenset[Any]:
    """List the values that a schema itself offers: its enums, constants and defaults."""
    found: set[Any] = set()
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Mapping):
            listed = here.get("enum")
            offered = [
                *(listed if isinstance(listed, list) else ()),
                here.get("const"),
                here.get("default"),
            ]
            found.update(
                each for each in offered if isinstance(each, str | int | float) and each != ""
            )
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
    return frozenset(found)


def _read_whole(value: str | float, stands_out: bool) -> Part | None:
    if not isinstance(value, str):
        number = Decimal(repr(value)) if abs(value) < 10**LONGEST_NUMBER else None
        needles = [*build_number_needles([number] if number is not None else [])]
        if isinstance(value, int) and len(str(abs(value))) >= _SHORTEST_CODE:
            needles.append(Needle(code=str(abs(value)).encode()))
        return Part(str(value), tuple(needles)) if needles else None
    text = value.strip()
    is_host = _is_host(text)
    if not is_host and (numbers := _parse_numbers(text)) is not None:
        code = build_code_needle(text)
        needles = [*build_number_needles(numbers), *code]
        return Part(text, tuple(needles)) if needles else None
    words = split_words(text)
    if len(words) > MAX_WORDS or _is_common(text, words, stands_out):
        return None
    forms = _spell_host(text) if is_host else [tuple(words)]
    code = () if is_host else build_code_needle(text)
    return Part(text, (*map(Needle, forms), *code), is_host)


def _add_needles(text: str, whole: Part | None, plain: Part | None) -> Part | None:
    """Return the value with the needles of its plain reading, in which it may be found as well."""
    if whole is None or plain is None:
        return replace(plain, text=text) if plain is not None else whole
    return replace(whole, needles=tuple(dict.fromkeys((*whole.needles, *plain.needles))))


def _list_parts(text: str, whole: Part | None) -> Iterator[Part]:
    """Yield the parts of a text, without the text itself."""
    seen = {whole.text} if whole else set()
    for part in _find_parts(text):
        if part.text not in seen:
            seen.add(part.text)
            yield part


def _find_parts(text: str) -> Iterator[Part]:
    for match in _TOKEN.finditer(text):
        yield from _read_token(match[0].rstrip(".:!?*_").removeprefix("mailto:"))
    for code in _CODE.findall(text):
        if needles := build_code_needle(code):
            yield Part(code.strip(), needles)
    sentences = (
        [each.strip() for each in _SENTENCE_END.split(text)] if len(text) > _SHORTEST else []
    )
    for sentence in sentences:
        words = split_words(sentence)
        if len(sentences) > 1 and _SHORTEST_SENTENCE <= len(words) <= MAX_WORDS:
            yield Part(sentence, (Needle(tuple(words)),))
        elif len(words) > MAX_WORDS:
            yield from _split_sentence(words)


def _split_sentence(words: list[bytes]) -> Iterator[Part]:
    """Split a sentence that is too long into pieces of at most half of MAX_WORDS."""
    for start in range(0, len(words), MAX_WORDS // 2):
        piece = words[min(start, len(words) - _SHORTEST_SENTENCE) : start + MAX_WORDS // 2]
        yield Part(b" ".join(piece).decode(), (Needle(tuple(piece)),))


def _read_token(token: str) -> Iterator[Part]:
    """Yield the parts of a token: an address, an email address, or a host, perhaps with a path."""
    token = unquote(token)
    address, _, query = token.partition("?")
    if _ADDRESS.fullmatch(token):
        yield from _split_address(token)
    elif mail := _MAIL.fullmatch(address):
        yield from _build_part(address)
        yield from _build_part(mail[1])
        yield from _build_host(mail[2])
        yield from _split_path(query)
    elif "." in token[:_LONGEST_HOST] and _is_host(re.split(r"[:/?#]", token, maxsplit=1)[0]):
        yield from _split_address(f"//{token}")


def _split_address(address: str) -> Iterator[Part]:
    """Yield the address, its host, and each part of its path, query and fragment."""
    yield from _build_part(address.removeprefix("//"))
    authority, _, rest = (
        address.partition("//")[2].replace("?", "/", 1).replace("#", "/", 1).partition("/")
    )
    user, _, server = authority.rpartition("@")
    yield from _build_host(re.sub(r":\d*$", "", server))
    for part in user.split(":"):
        yield from _build_part(unquote(part))
    yield from _split_path(rest)


def _split_path(path: str) -> Iterator[Part]:
    """Yield each part of a path, query and fragment; of `name=value`, only the value."""
    for part in re.split(r"[/&;#?]", path):
        if len(part) >= _SHORTEST_NUMBER:
            yield from _build_part(unquote(part.partition("=")[2] or part))


def _build_part(text: str) -> Iterator[Part]:
    """Yield the part unless it is too short or too common."""
    text = text.strip()
    numbers = _parse_numbers(text)
    if numbers is not None:
        needles = (*build_number_needles(numbers), *build_code_needle(text))
        yield from [Part(text, needles)] if needles else []
    elif (
        not _is_common(text, words := split_words(text), stands_out=False)
        and len(words) <= MAX_WORDS
    ):
        yield Part(text, (Needle(tuple(words)), *build_code_needle(text)))


def _build_host(host: str) -> Iterator[Part]:
    """Yield the host in all its forms, then its parent domains; skip a host that is too long."""
    if len(host) > _LONGEST_HOST:
        return
    labels = host.lower().removeprefix("www.").rstrip(".").split(".")
    for start in range(max(len(labels) - _DOMAIN_LABELS + 1, 1) if _HOST.fullmatch(host) else 1):
        domain = ".".join(labels[start:])
        is_suffix = (
            start > 0 and len(labels) - start == _DOMAIN_LABELS and len(labels[-2]) <= len("com")
        )
        if "." in domain and not is_suffix and len(domain) >= _SHORTEST:
            yield Part(domain, tuple(map(Needle, _spell_host(domain))), is_host=True)


def _is_host(text: str) -> bool:
    return len(text) <= _LONGEST_HOST and bool(_HOST.fullmatch(text) or _IP.fullmatch(text))


def _spell_host(host: str) -> list[tuple[bytes, ...]]:
    """Return the folded words of the host, in ASCII (punycode) and in Unicode."""
    forms = [host]
    with suppress(UnicodeError):
        forms.append(host.encode("idna").decode("ascii"))
        forms.append(forms[-1].encode("ascii").decode("idna"))
    return list(dict.fromkeys(tuple(split_words(form)) for form in forms))


def _is_common(text: str, words: list[bytes], stands_out: bool) -> bool:
    """Return True for texts whose match is not evidence: short texts, common words, dates."""
    joined = b"".join(words)
    if (
        len(joined) < _SHORTEST
        or _COMMON.issuperset(words)
        or all(len(word) == 1 for word in words)
    ):
        return True
    if stands_out:
        return False
    is_plain_word = text.isascii() and text.isalpha() and text.islower()
    return is_plain_word or _DATE.fullmatch(text) is not None


def _parse_numbers(text: str) -> list[Decimal] | None:
    """Return the numbers that a text can mean, such as 1,250 and 1.25; None if it is not a
    number."""
    if _DATE.fullmatch(text):
        return None
    if _CODE_WITH_ZERO.fullmatch(text):
        return []  # an account or phone number, in which a leading zero matters
    return sorted(read_numbers(text)) or None


def build_number_needles(numbers: Iterable[Decimal]) -> tuple[Needle, ...]:
    """Return the needles of numbers that are large enough to be looked for."""
    return tuple(Needle(number=abs(number)) for number in numbers if abs(number) >= SMALLEST_NUMBER)


def build_code_needle(text: str) -> tuple[Needle, ...]:
    """Return the needle of an account, phone or serial number; empty for any other text."""
    words = split_words(text)
    code = b"".join(words)
    is_long = _SHORTEST_CODE <= len(code) <= LONGEST_NUMBER
    has_digits = sum(48 <= byte <= 57 for byte in code) >= len(code) / 2
    is_date = _DATE.fullmatch(text.strip()) is not None
    return (Needle(code=code),) if is_long and has_digits and code.isalnum() and not is_date else ()
