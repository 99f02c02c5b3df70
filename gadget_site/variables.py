"""Read environment variables by name and type; hidden characters and misspelled names are errors."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Mapping
from ipaddress import ip_address
from itertools import takewhile

from gadget_site.faults import NearMissError, SettingError

YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"0", "false", "no", "off"})
LARGEST_PORT = 65535
PREFIX = "GADGET_"
PREFIX_OF_TESTS = re.compile(r"GADGET_TESTS?_")
"""Only the tests read variables with this prefix. No setting may begin with it."""
SERVICE_LINK = re.compile(
    r"GADGET_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_\w+)?)=.*"
    r"|GADGET_(\w+_)?PORT=(tcp|udp|sctp)://.*"
)
"""`NAME=value` as Kubernetes sets it in every container next to a service named `gadget`."""
OWN_NAMES = {
    "GADGET_AUDIT_KEYS": "new-key,old-key",
    "GADGET_CHAT_HOSTS": "ntfy.example.com",
    "GADGET_CONFIG": "gadget.yaml",
    "GADGET_DATA_DIR": "var",
    "GADGET_DEMO_PACE": "0.7",
    "GADGET_ENCRYPTION_KEYS": "new-key,old-key",
    "GADGET_METRICS_TOKEN": "at-least-20-characters",
    "GADGET_PRIVATE_PUSH_HOSTS": "push.internal",
    "GADGET_QUEUE": "gadget",
    "GADGET_TIMING_SCALE": "1.0",
}
"""Every setting with our prefix, with an example. Reading one that is not here fails."""
DISTINCTIVE_NAMES = (
    *("ALLOWED_HOSTS", "ALLOWED_ORIGINS", "ALLOWED_PRIVATE_HOSTS", "DATABASE_POOL", "TRUSTED_PROXIES"),
    "WORKER_THREADS",
)
"""Settings without our prefix whose misspellings mean nothing else. Names close to our others are in wide use."""
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of invisible characters: control, format, surrogates, line separators."""
UNEXPANDED = re.compile(r"\$\(|\$\{|`")
"""The beginning of a command or variable that a shell would have replaced."""
_ENDING = re.compile(r"(IES|Y|ES|S)(?=_|$)")
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")


class Variables:
    """The environment, read by name and type; an empty value counts as unset."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def text(self, name: str, default: str = "") -> str:
        if name.startswith(PREFIX) and name not in OWN_NAMES:
            raise LookupError(f"{name} is missing from OWN_NAMES")
        value = self._environ.get(name, "")
        if hidden := next((char for char in value if unicodedata.category(char) in HIDDEN), ""):
            raise SettingError(name, f"its value contains {_describe(hidden)}", "one line of visible characters")
        if found := UNEXPANDED.search(value):
            fault = f"its value contains {found[0]!r}: a settings file runs no commands and expands no variables"
            raise SettingError(name, fault, "the value itself, or its output")
        return value.strip() or default

    def flag(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if not value:
            return default
        if value.lower() in YES | NO:
            return value.lower() in YES
        raise SettingError(name, f"{value!r} is neither on nor off", "off")

    def number(self, name: str, default: int, bounds: tuple[int, int]) -> int:
        low, high = bounds
        value = self.text(name, str(default))
        if not re.fullmatch(r"[0-9]{1,9}", value) or not low <= int(value) <= high:
            raise SettingError(name, f"{value!r} is not a whole number from {low} to {high}", str(default))
        return int(value)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self.text(name, default)
        for choice in choices:
            if value.lower() == choice.lower():
                return choice
        raise SettingError(name, f"{value!r} is not one of {', '.join(choices)}", default)

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in self.text(name).split(",") if word.strip())


def refuse_unknown_name(name: str, environ: Mapping[str, str], used_by_tools: frozenset[str]) -> None:
    """Raise SettingError for an unknown name with our prefix, and for a misspelled distinctive setting.

    Args:
        used_by_tools: the variables that `gadget.yaml` refers to.
    """
    if name in used_by_tools:
        return
    is_known = name in OWN_NAMES or PREFIX_OF_TESTS.match(name) or SERVICE_LINK.fullmatch(f"{name}={environ[name]}")
    if name.startswith(PREFIX) and not is_known:
        nearest = difflib.get_close_matches(name, sorted(OWN_NAMES), n=1, cutoff=0.0)[0]
        fault = f"there is no such setting; the nearest name is {nearest}"
        raise SettingError(name, fault, OWN_NAMES[nearest], example_name=nearest)
    if environ[name] and name not in DISTINCTIVE_NAMES:
        meant = next((setting for setting in DISTINCTIVE_NAMES if _is_one_slip_away(name, setting)), "")
        if meant and not environ.get(meant):
            raise NearMissError(name, meant)


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


def _is_one_slip_away(name: str, setting: str) -> bool:
    """Return True if only case, underscores, plurals, or one letter (or two in the wrong order) differ."""
    pairs = ((name.upper(), setting), (_ENDING.sub("", name.upper()), _ENDING.sub("", setting)))
    return any(_is_one_letter_away(one.replace("_", ""), other.replace("_", "")) for one, other in pairs)


def _is_one_letter_away(one: str, other: str) -> bool:
    start = _count_shared(one, other)
    end = _count_shared(one[start:][::-1], other[start:][::-1])
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    return max(len(left), len(right)) <= 1 or (len(left) == 2 and left[::-1] == right)


def _count_shared(one: str, other: str) -> int:
    """Count the leading letters that both share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _describe(char: str) -> str:
    return "a newline" if char in "\r\n" else f"the hidden character U+{ord(char):04X}"
