"""Search tasks for the regular expressions in scripts. RE2 runs the searches, in time proportional
to the text's length."""

import functools
from typing import Any

import re2

MAX_PATTERN = 500
_LARGEST_PROGRAM = 5_000
_MEMORY = 2**20
"""The maximum amount of memory, in bytes, that one pattern may use."""


def check_pattern(pattern: str) -> None:
    """Raise ValueError, with a text for the pattern's author, if RE2 cannot search for the
    pattern."""
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"the regular expression is longer than {MAX_PATTERN} characters")
    try:
        compiled = _compile(pattern)
    except re2.error as error:
        reason = error.args[0] if error.args else "it is not understood"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(
            f"the regular expression {pattern!r} is not valid in RE2: {text}"
        ) from error
    if max(compiled.programsize, compiled.reverseprogramsize) > _LARGEST_PROGRAM:
        raise ValueError("the regular expression has repetitions that make it too large")


def find_groups(pattern: str, text: str) -> dict[str, Any] | None:
    """Return the named groups of the first match; None if nothing matches."""
    # Replace lone surrogates, because RE2 refuses texts that contain them.
    found = _compile(pattern).search(text.encode("utf-8", "replace").decode())
    return None if found is None else dict(found.groupdict())


@functools.lru_cache(maxsize=512)
def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return re2.compile(pattern, options)
