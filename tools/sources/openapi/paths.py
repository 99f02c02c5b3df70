"""Detection of path traversal, even in segments that are encoded several times."""

import re
from urllib.parse import unquote

_SEPARATORS = re.compile(r"[/\\]")
_MAX_DECODINGS = 8


def has_path_traversal(segment: str) -> bool:
    """Return True if a path segment contains `.` or `..` as a part, plain or encoded.

    Some servers decode a path before they split it, some even twice. Some read `\\` as a slash, and
    some cut a part at its semicolon. A segment that is encoded more than eight times is treated as
    traversal, because valid values never need this.
    """
    for _ in range(_MAX_DECODINGS):
        if any(
            part.partition(";")[0].strip() in (".", "..") for part in _SEPARATORS.split(segment)
        ):
            return True
        decoded = unquote(segment)
        if decoded == segment:
            return False
        segment = decoded
    return True
