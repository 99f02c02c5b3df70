"""Paths inside an organization's folder: parsing, and the reasons for refusing a path."""

import re
import unicodedata
from collections.abc import Callable

from tools.contract import ErrorCode, ToolError
from tools.registries.files import Names

MAX_DEPTH = 20
LONGEST_NAME = 255
"""The maximum length of a name, in bytes of UTF-8, in common file systems."""
LONGEST_PATH = MAX_DEPTH * (LONGEST_NAME + 1)

_LONGEST_QUOTE = 200
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_UNPORTABLE = frozenset('<>:"|?*\\')
# Look-alikes of periods, slashes and backslashes.
_LOOKALIKES = frozenset(
    "\u2024\u2025\ufe52\uff0e\u2044\u2215\u27cb\u27cd\u29f5\u29f8\u29f9\u2571\u2572\u2216\ufe68\uff0f\uff3c"
)
_ENCODED = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|clock\$|(com|lpt)[0-9])( *\..*)?", re.IGNORECASE
)


def _is_hidden(name: str) -> bool:
    return any(unicodedata.category(char) in _HIDDEN for char in name)


def _has_unsafe_edge(name: str) -> bool:
    return name[0].isspace() or name[-1].isspace() or name[-1] == "."


_FAULTS: tuple[tuple[Callable[[str], object], str], ...] = (
    (lambda name: not name, "a name in it is empty"),
    (_is_hidden, "it contains a hidden or a control character"),
    (
        lambda name: len(name.encode("utf-8")) > LONGEST_NAME,
        f"a name in it is longer than {LONGEST_NAME} bytes",
    ),
    (_LOOKALIKES.intersection, "it contains a character that only looks like a dot or a slash"),
    (_UNPORTABLE.intersection, 'it contains a backslash or one of < > : " | ? *'),
    (lambda name: name[0] in ".~…", "a name in it starts with a dot or a tilde"),
    (_has_unsafe_edge, "a name in it starts or ends with a space, or ends with a dot"),
    (_ENCODED.search, "it contains an encoded character such as %2e"),
    (
        lambda name: _DEVICE.fullmatch(unicodedata.normalize("NFKC", name)),
        "a name in it is reserved for a device",
    ),
)
"""The checks of a name, in order: each check may assume that those before it have passed."""


def parse_path(path: str) -> Names:
    """Parse a path into its names, in composed form (NFC); empty for the organization's folder.

    Raises:
        ToolError: INVALID_PARAMETER, with the fault.
    """
    if not path:
        return ()
    if path.startswith("/"):
        raise build_path_error(
            path, "it starts with a slash, but paths are relative to your organization's folder"
        )
    names = tuple(unicodedata.normalize("NFC", path).split("/"))
    if len(names) > MAX_DEPTH:
        raise build_path_error(path, f"it has {len(names)} levels; the limit is {MAX_DEPTH}")
    for name in names:
        if (fault := find_fault(name)) is not None:
            raise build_path_error(path, fault)
    return names


def parse_file_path(path: str) -> Names:
    """Parse the path of an entry inside the folder; it cannot be empty.

    Raises:
        ToolError: INVALID_PARAMETER
    """
    names = parse_path(path)
    if not names:
        raise build_path_error(path, "it is empty")
    return names


def is_valid_name(name: str) -> bool:
    """Return True if a path can contain this name."""
    return find_fault(name) is None and unicodedata.is_normalized("NFC", name)


def find_fault(name: str) -> str | None:
    """Return why a name is invalid, or None; valid names work on every system."""
    return next((why for is_at_fault, why in _FAULTS if is_at_fault(name)), None)


def quote_path(path: str) -> str:
    """Quote at most 200 characters of the path for a sentence; escape hidden characters."""
    return repr(path if len(path) <= _LONGEST_QUOTE else f"{path[:_LONGEST_QUOTE]}…")


def build_path_error(path: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"{quote_path(path)} cannot be used as a path: {why}.",
        parameter="path",
        expected="names separated by '/', relative to your organization's folder",
        example="reports/2026/summary.md",
        attempted=False,
    )
