"""Paths inside an organisation's folder: which texts name a file or a folder there, and why others do not."""

import re
import unicodedata
from collections.abc import Callable

from tools.contract import ErrorCode, ToolError

MOST_DEPTH = 20
LONGEST_NAME = 255
"""Bytes in UTF-8, the limit of every usual file system."""
LONGEST_PATH = MOST_DEPTH * (LONGEST_NAME + 1)

Names = tuple[str, ...]
"""The names on the way from the organisation's folder, the last one included; empty for the folder itself."""

_LONGEST_QUOTE = 200
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_UNPORTABLE = frozenset('<>:"|?*\\')
# One and two dot leaders, small and full-width full stop; slashes and backslashes of other kinds.
_LOOKALIKES = frozenset(
    "\u2024\u2025\ufe52\uff0e\u2044\u2215\u27cb\u27cd\u29f5\u29f8\u29f9\u2571\u2572\u2216\ufe68\uff0f\uff3c"
)
_ENCODED = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|clock\$|(com|lpt)[0-9])( *\..*)?", re.IGNORECASE)


def _is_hidden(name: str) -> bool:
    return any(unicodedata.category(char) in _HIDDEN for char in name)


def _has_loose_end(name: str) -> bool:
    return name[0].isspace() or name[-1].isspace() or name[-1] == "."


_FAULTS: tuple[tuple[Callable[[str], object], str], ...] = (
    (lambda name: not name, "a name in it is empty"),
    (_is_hidden, "it holds a hidden or a control character"),
    (lambda name: len(name.encode("utf-8")) > LONGEST_NAME, f"a name in it is longer than {LONGEST_NAME} bytes"),
    (_LOOKALIKES.intersection, "it holds a character that only looks like a dot or a slash"),
    (_UNPORTABLE.intersection, 'it holds a backslash or one of < > : " | ? *'),
    (lambda name: name[0] in ".~…", "a name in it starts with a dot or a tilde"),
    (_has_loose_end, "a name in it starts or ends with a space, or ends with a dot"),
    (_ENCODED.search, "it holds an encoded character such as %2e"),
    (lambda name: _DEVICE.fullmatch(unicodedata.normalize("NFKC", name)), "a name in it is that of a device"),
)
"""In this order: each may rely on the ones before it."""


def names_of(path: str) -> Names:
    """The path's names, with composed characters (NFC); an empty path is the organisation's whole folder.

    Raises:
        ToolError: INVALID_PARAMETER, saying which name is wrong and why.
    """
    if not path:
        return ()
    if path.startswith("/"):
        raise refused(path, "it starts with a slash, and paths start in your organisation's folder")
    names = tuple(unicodedata.normalize("NFC", path).split("/"))
    if len(names) > MOST_DEPTH:
        raise refused(path, f"it goes {len(names)} levels deep, and at most {MOST_DEPTH} are possible")
    for name in names:
        if fault := fault_in(name):
            raise refused(path, fault)
    return names


def file_names_of(path: str) -> Names:
    """Like `names_of`, for something inside the folder.

    Raises:
        ToolError: INVALID_PARAMETER
    """
    names = names_of(path)
    if not names:
        raise refused(path, "it is empty")
    return names


def path_of(names: Names) -> str:
    return "/".join(names)


def is_name(name: str) -> bool:
    """Whether something of this name can be reached by a path."""
    return not fault_in(name) and unicodedata.is_normalized("NFC", name)


def fault_in(name: str) -> str:
    """Why nothing may have this name; empty if it may. The same names are good on every system and in every archive."""
    return next((why for is_at_fault, why in _FAULTS if is_at_fault(name)), "")


def quoted(path: str) -> str:
    """The path for a sentence, hidden characters escaped, at most 200 characters of it."""
    return repr(path if len(path) <= _LONGEST_QUOTE else f"{path[:_LONGEST_QUOTE]}…")


def refused(path: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        f"{quoted(path)} cannot be used as a path: {why}.",
        parameter="path",
        expected="names separated by '/', from your organisation's folder",
        example="reports/2026/summary.md",
        attempted=False,
    )
