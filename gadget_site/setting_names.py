"""Refuse misspelled names of settings, which would leave a setting unset."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from itertools import takewhile

from gadget_site.faults import NearMissError, SettingError
from gadget_site.settings_table import SETTINGS

PREFIX = "GADGET_"
PREFIX_OF_TESTS = re.compile(r"GADGET_TESTS?_")
"""Only the tests read variables with this prefix. No setting may begin with it."""
SERVICE_LINK = re.compile(
    r"GADGET_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_\w+)?)=.*"
    r"|GADGET_(\w+_)?PORT=(tcp|udp|sctp)://.*"
)
"""`NAME=value` as Kubernetes sets it in every container next to a service named `gadget`."""
OWN_NAMES = {
    setting.name: setting.example for setting in SETTINGS if setting.name.startswith(PREFIX)
}
"""The examples of the settings whose names begin with our prefix, by name."""
DISTINCTIVE_NAMES = tuple(setting.name for setting in SETTINGS if setting.is_distinctive)
_ENDING = re.compile(r"(IES|Y|ES|S)(?=_|$)")


def refuse_unknown_name(
    name: str, environ: Mapping[str, str], used_by_tools: frozenset[str]
) -> None:
    """Raise SettingError for an unknown name with our prefix, and for a misspelled distinctive
    setting.

    Args:
        used_by_tools: the variables that `gadget.yaml` refers to.
    """
    if name in used_by_tools:
        return
    is_known = (
        name in OWN_NAMES
        or PREFIX_OF_TESTS.match(name)
        or SERVICE_LINK.fullmatch(f"{name}={environ[name]}")
    )
    if name.startswith(PREFIX) and not is_known:
        nearest = difflib.get_close_matches(name, sorted(OWN_NAMES), n=1, cutoff=0.0)[0]
        fault = f"there is no such setting; the nearest name is {nearest}"
        raise SettingError(name, fault, OWN_NAMES[nearest], example_name=nearest)
    if environ[name] and name not in DISTINCTIVE_NAMES:
        meant = next(
            (setting for setting in DISTINCTIVE_NAMES if _is_one_slip_away(name, setting)), ""
        )
        if meant and not environ.get(meant):
            raise NearMissError(name, meant)


def _is_one_slip_away(name: str, setting: str) -> bool:
    """Return True if the names differ only in case, underscores, plurals or one letter, or if two
    letters are in the wrong order."""
    pairs = ((name.upper(), setting), (_ENDING.sub("", name.upper()), _ENDING.sub("", setting)))
    return any(
        _is_one_letter_away(one.replace("_", ""), other.replace("_", "")) for one, other in pairs
    )


def _is_one_letter_away(one: str, other: str) -> bool:
    start = _count_shared(one, other)
    end = _count_shared(one[start:][::-1], other[start:][::-1])
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    return max(len(left), len(right)) <= 1 or (len(left) == 2 and left[::-1] == right)


def _count_shared(one: str, other: str) -> int:
    """Count the leading letters that both names share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
