"""Parse the texts of settings; each parser raises WrongValueError with the fault."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from gadget_site.faults import WrongValueError

YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"0", "false", "no", "off"})
LARGEST_PORT = 65535
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of invisible characters: control, format, surrogates, line separators."""
UNEXPANDED = re.compile(r"\$\(|\$\{|`")
"""The beginning of a command or variable that a shell would have replaced."""
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")


def clean(text: str) -> str:
    """Return the text without surrounding spaces; refuse hidden characters and unexpanded
    variables."""
    if hidden := next((char for char in text if unicodedata.category(char) in HIDDEN), ""):
        fault = f"its value contains {_describe(hidden)}"
        raise WrongValueError(fault, "one line of visible characters")
    if found := UNEXPANDED.search(text):
        fault = f"its value contains {found[0]!r}: a settings file runs no commands and expands no variables"
        raise WrongValueError(fault, "the value itself, or its output")
    return text.strip()


def parse_flag(text: str) -> bool:
    if text.lower() not in YES | NO:
        raise WrongValueError(f"{text!r} is neither on nor off")
    return text.lower() in YES


def whole_number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise WrongValueError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return parse


def decimal_number(low: float, high: float, unit: str = "") -> Callable[[str], float]:
    def parse(text: str) -> float:
        if not re.fullmatch(r"\d{1,3}(\.\d{1,6})?", text) or not low <= float(text) <= high:
            raise WrongValueError(f"{text!r} is not a number{unit} from {low} to {high}")
        return float(text)

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        for choice in choices:
            if text.lower() == choice.lower():
                return choice
        raise WrongValueError(f"{text!r} is not one of {', '.join(choices)}")

    return parse


def secret(smallest: int, example: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if len(text) < smallest:
            raise WrongValueError(
                f"is {len(text)} characters long; at least {smallest} are needed", example
            )
        return text

    return parse


def token(smallest: int, example: str) -> Callable[[str], str]:
    """Return a parser of tokens that have at least `smallest` characters and fit a header; an empty
    text stays empty."""

    def parse(text: str) -> str:
        if text and (len(text) < smallest or not re.fullmatch(r"[!-~]+", text)):
            fault = f"must have at least {smallest} letters, digits or symbols, without spaces"
            raise WrongValueError(fault, example)
        return text

    return parse


def split_words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def parse_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise WrongValueError(f"{text!r} is not 1 to 64 letters, digits, - or _")
    return text


def parse_host(text: str) -> str:
    if not is_host(text):
        raise WrongValueError(f"{text!r} is neither an IP address nor a host name")
    return text


def parse_host_names(text: str) -> tuple[str, ...]:
    """Parse names as in HTTP's header Host, `*` for all, and `.example.com` for a domain."""
    hosts = split_words(text)
    for host in hosts:
        is_ipv6 = (
            host.startswith("[") and host.endswith("]") and ":" in host and is_host(host[1:-1])
        )
        if not (host == "*" or is_ipv6 or (":" not in host and is_host(host.removeprefix(".")))):
            raise WrongValueError(f"{host!r} is not a host name (no scheme, no port)")
    return hosts


def parse_networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(map(_parse_network, split_words(text)))


def _parse_network(word: str) -> IPv4Network | IPv6Network:
    try:
        network = ip_network(word)
    except ValueError as error:
        raise WrongValueError(f"{word!r} is not an IP address or network: {error}") from error
    if not network.prefixlen:
        raise WrongValueError(f"{word!r} trusts everybody")
    return network


def is_host(text: str) -> bool:
    """Return True for an IP address or a valid host name, whose last label is not a number."""
    try:
        ip_address(text)
    except ValueError:
        labels = text.removesuffix(".").split(".")
        return len(text) <= 253 and all(map(_LABEL.fullmatch, labels)) and not labels[-1].isdigit()
    return True


def is_port(text: str) -> bool:
    return bool(re.fullmatch(r"[0-9]{1,5}", text)) and 1 <= int(text) <= LARGEST_PORT


def _describe(char: str) -> str:
    return "a newline" if char in "\r\n" else f"the hidden character U+{ord(char):04X}"
