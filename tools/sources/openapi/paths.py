"""Whether a path stays in its place for whoever reads it, however often it is decoded on the way."""

import re
from urllib.parse import unquote

_SEPARATORS = re.compile(r"[/\\]")
_MOST_DECODINGS = 8


def leads_elsewhere(segment: str) -> bool:
    """Whether one segment of a path holds `.` or `..` as a part, as it is or decoded any number of times.

    Some servers decode before they look for parts, and some twice. To some `\\` is a slash, and some cut a part at
    its semicolon. What is encoded more than eight times is not followed further: nobody means that.
    """
    for _ in range(_MOST_DECODINGS):
        if any(part.partition(";")[0].strip() in (".", "..") for part in _SEPARATORS.split(segment)):
            return True
        decoded = unquote(segment)
        if decoded == segment:
            return False
        segment = decoded
    return True
