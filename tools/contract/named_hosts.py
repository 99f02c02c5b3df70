"""Detection of hosts in a call's params, for tools that do not ship with Gadget.

A tool may contact any host in its params and send data to it, so the search is strict: an address
that could be read as two different hosts is returned as written, in quotes, and matches no list of
allowed hosts.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import unquote

from tools.contract.embedded_json import TOO_DEEP, parse_embedded_json
from tools.schemas.references import expand_forms, list_forms, resolve_reference


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FORMATS = frozenset(
    {
        "uri",
        "url",
        "iri",
        "uri-reference",
        "iri-reference",
        "uri-template",
        "hostname",
        "idn-hostname",
        "ipv4",
        "ipv6",
    }
)
_NAMES = _split_words(
    "url uri iri href host hostname endpoint webhook callback domain fqdn website webpage server proxy nameserver ip "
    "link redirect upstream dsn"
)
_ENDINGS = ("url", "uri", "href", "hostname", "webhook", "endpoint", "website")
"""Endings that also count in names written as one word, such as `imageurl`."""
_ADDRESS_PREFIXES = frozenset({"ip", "web", "host", "server", "proxy", "remote", "url", "site"})
_LOOSE_NAMES = _split_words(
    "target destination dest remote peer site page link source src origin redirect upstream feed gateway address "
    "addr where location mirror image repository repo query q"
)
"""Names of params in which any value that looks like a host is treated as a host, even with a rare
ending."""
_FILE_OR_FIELD_NAMES = _split_words(
    "path file filename filepath folder directory dir field column property sort order orderby select expand include "
    "fields columns properties"
)
"""Names of params that may hold `README.md` or `user.id`, which look like hosts."""
_NO_DOMAINS = _split_words("js ts gz db cs")
"""Two-letter endings that are not country codes."""
_COMMON_DOMAINS = _split_words(
    "com net org edu gov mil int arpa info biz name pro mobi app dev page cloud tech xyz online site store shop "
    "website space live blog news club top vip work works world today email link click host hosting agency digital "
    "systems solutions services support network media group global company business center zone one run tools software "
    "design studio art games game fun life team social chat video web wiki codes academy money finance bank cash "
    "internal local lan home corp intranet test example invalid localhost onion zip mov"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SCHEME = re.compile(
    r"(?:(?:https?|wss?|ftp):[/\\]*|(?<![a-z0-9+.-])[a-z0-9+.-]+:[/\\]{2,})([^\s/?#]*)",
    re.IGNORECASE,
)
"""A scheme and the host after it. Some parsers need no slash after `https:` and accept a backslash,
so the slashes are optional. The lookbehind prevents quadratic time on long words."""
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_AFTER_SLASHES = re.compile(r"(?:^|(?<=[\s='\"(<\[,;]))[/\\]{2,}([^\s/?#]*)")
"""`//host` at the start, or after a character that opens a value in HTML, Markdown or CSS."""
_PORT_OF_NAME = re.compile(r"((?=[^:]*[a-z])[a-z0-9_-]+):\d{1,5}(?P<rest>[/?#].*)?", re.IGNORECASE)
"""A host of one word with a port, such as `intranet:8080/x`."""
_PARTS = re.compile(r"[\s'\"<>()\[\],;=]+")
_OVER_SSH = re.compile(r"[^\s@/:]+@([^\s@/:]+):")
_BARE = re.compile(
    r"((?:[^\s./?#:@\\]+\.)+([^\W\d_]{2,63}|xn--[a-z0-9-]+)\.?)((?::\d+)?(?:[/?#].*)?)",
    re.IGNORECASE,
)
_NUMERIC = re.compile(
    r"(\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\])(?::\d+)?(?:[/?#].*)?", re.IGNORECASE
)
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")
_PORT = re.compile(r":\d{0,5}\Z")
_RELATIVE = re.compile(r"[/?#](?![/\\])|\.{1,2}/")
_TRAILING_PUNCTUATION = ".,;:!'\"`)>}*"
_SEPARATORS = re.compile(r"[\s,;|]+")
_DECODINGS = 3
_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")
"""A JSON escape of a letter; also matches in invalid JSON, for example with a trailing comma."""
_LONGEST_QUOTED = 80


def is_address_name(name: str) -> bool:
    """Return True for the name of a param that holds an address, such as `url`, `callbackUrl` or
    `target_hosts`, but not `url_id`."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words:
        return False
    last = words[-1] if words[-1] in _NAMES else words[-1].removesuffix("s")
    if last in ("address", "addr") or words[-1] in ("address", "addresses"):
        return len(words) > 1 and words[-2] in _ADDRESS_PREFIXES
    return (
        last in _NAMES
        or "".join(words).removesuffix("s").endswith(_ENDINGS)
        or words[-2:]
        in (
            ["host", "name"],
            ["server", "name"],
            ["domain", "name"],
        )
    )


def find_address_params(schema: Mapping[str, Any]) -> frozenset[str]:
    """Find the params, at every depth, that hold an address according to their format or name.

    Enumerations and numbers do not count, because the model cannot put a host into them.
    """
    return frozenset(_list_address_params(schema, schema))


def find_named_hosts(
    params: Mapping[str, Any], names: frozenset[str] = frozenset()
) -> frozenset[str]:
    """Find every host in these params, in lower case and ASCII, or in quotes if it is ambiguous.

    Args:
        names: params whose values are always addresses, from `find_address_params`.
    """
    found: set[str] = set()
    waiting: list[tuple[Any, str, bool]] = [(params, "", False)]
    while waiting:  # no recursion, because params may be nested as deeply as JSON allows
        value, name, is_named = waiting.pop()
        if isinstance(value, Mapping):
            for key, each in value.items():
                found.update(
                    _find_hosts(key, "", is_named=False) if "/" in key or "\\" in key else ()
                )
                waiting.append((each, key, is_named or key in names))
        elif isinstance(value, list):
            waiting += [(each, name, is_named) for each in value]
        elif value is TOO_DEEP:
            found.add(_quote(value))
        elif isinstance(value, str):
            found.update(_find_hosts(value, name, is_named=is_named))
            waiting += [(inner, name, is_named) for inner in parse_embedded_json(value)]
        elif name in names and isinstance(value, int | float) and not isinstance(value, bool):
            found.add(_quote(str(value)))
    return frozenset(found)


def _list_address_params(node: Any, root: Mapping[str, Any]) -> Iterator[str]:
    waiting, seen = [node], set[int]()
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        if isinstance(here, list):
            waiting += here
        elif isinstance(here, Mapping):
            properties = here.get("properties")
            for name, schema in properties.items() if isinstance(properties, Mapping) else ():
                if _holds_address(name, schema, root):
                    yield name
            waiting += here.values()


def _holds_address(name: str, schema: Any, root: Mapping[str, Any]) -> bool:
    kinds = list(_list_kinds(schema, root))
    if any(str(kind.get("format")) in _FORMATS for kind in kinds):
        return True
    is_free = any(_is_free_text(kind) for kind in kinds)
    is_script = any("jsonp" in str(kind.get("description", "")).lower() for kind in kinds)
    return is_address_name(name) and is_free and not is_script


def _is_free_text(kind: Mapping[str, Any]) -> bool:
    type_ = kind.get("type", "string")
    is_text = "string" in type_ if isinstance(type_, str | list) else True
    return is_text and not {"enum", "const"} & kind.keys()


def _list_kinds(schema: Any, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that apply to the value or to one of its entries."""
    for form in expand_forms(schema, root, with_entries=True):
        is_whole = resolve_reference(form, root) is form and not list_forms(form)
        if "format" in form or (is_whole and "items" not in form):
            yield form


def _find_hosts(text: str, name: str, *, is_named: bool) -> Iterator[str]:
    for plain in dict.fromkeys(_decode_variants(text)):
        found = [*_SCHEME.findall(plain), *_AFTER_SLASHES.findall(plain)]
        found = [authority for authority in found if authority.strip(_TRAILING_PUNCTUATION)] + list(
            _find_hosts_in_text(plain)
        )
        if not found:
            found = list(_find_bare_host(plain, "" if is_named else name))
        if not found and is_named and plain and not _RELATIVE.match(plain):
            found = [
                re.split("[/?#]", each, maxsplit=1)[0] or each
                for each in _SEPARATORS.split(plain)
                if each
            ]
        yield from map(_normalize_host, found)


def _decode_variants(text: str) -> Iterator[str]:
    """Yield the text in the forms in which other programs may read it: without ignored characters,
    and with escapes decoded."""
    for _ in range(_DECODINGS):
        text = _CONTROLS.sub("", text if text.isascii() else _fold(text)).strip()
        yield text
        text = unquote(text) if "%" in text else text
        text = _ESCAPE.sub(_unescape, text) if "\\u" in text else text


def _unescape(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16))


def _fold(text: str) -> str:
    """Normalize letters so that hosts can be compared, and drop invisible characters."""
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).replace("\u3002", ".")


def _find_bare_host(text: str, name: str) -> Iterator[str]:
    """Find a host without a scheme if it is the whole text; an email address is not a host.

    Args:
        name: the param's name; empty if it certainly holds an address.
    """
    if match := _NUMERIC.fullmatch(text):
        yield match[1]
    elif _is_ipv6(text):
        yield text
    elif (match := _OVER_SSH.match(text)) or (
        (match := _BARE.fullmatch(text)) and _is_host(match, name)
    ):
        yield match[1]
    elif match := _PORT_OF_NAME.fullmatch(text):
        yield from [match[1]] if match["rest"] or _is_loose(name) or match[1] == "localhost" else []


def _find_hosts_in_text(text: str) -> Iterator[str]:
    """Find hosts without a scheme among other words, if a path or query follows, as in
    `evil.com/?x`."""
    parts = _PARTS.split(text)
    for part in parts if len(parts) > 1 else []:
        match = _BARE.fullmatch(part) if "." in part else None
        if match and match[3].lstrip(":0123456789") and _is_host(match, "text"):
            yield match[1]


def _is_host(match: re.Match[str], name: str) -> bool:
    """Return True if `word.word` is probably a host, not a person's name, a file or a field."""
    words = [word.lower() for word in _WORD.findall(name)] or [""]
    ending = match[2].lower()
    if _is_loose(name):
        return True
    is_usual = (
        (len(ending) == 2 and ending not in _NO_DOMAINS)
        or ending in _COMMON_DOMAINS
        or not ending.isascii()
        or ending.startswith("xn--")
    )
    return words[-1] not in _FILE_OR_FIELD_NAMES and bool(match[3] or is_usual)


def _is_loose(name: str) -> bool:
    return not name or bool(_LOOSE_NAMES.intersection(word.lower() for word in _WORD.findall(name)))


def _is_ipv6(text: str) -> bool:
    try:
        return ":" in text and isinstance(ip_address(text), IPv6Address)
    except ValueError:
        return False


def _normalize_host(authority: str) -> str:
    """Return the host if every program reads the same host, else the text in quotes, shortened."""
    trimmed = authority.rstrip(_TRAILING_PUNCTUATION)
    if _is_ipv6(trimmed):
        return str(ip_address(trimmed))
    host = _PORT.sub("", trimmed).lower()
    if host.startswith("[") and host.endswith("]") and _is_ipv6(host[1:-1]):
        return str(ip_address(host[1:-1]))
    host = host.removesuffix(".")
    if not _HOST.fullmatch(host) or len(host) > 253:
        return _quote(trimmed)
    if not re.fullmatch(r"[0-9]+|0x[0-9a-f]*", host.rpartition(".")[2]):
        return host
    try:
        return str(ip_address(host))
    except ValueError:
        return _quote(trimmed)


def _quote(text: str) -> str:
    return ascii(text[:_LONGEST_QUOTED])
