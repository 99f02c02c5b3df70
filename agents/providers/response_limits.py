"""Limit a response while it streams, to cut off a model that repeats itself or never ends."""

from agents.providers.base import ProviderError

MAX_CHARACTERS = 1_000_000
"""The maximum length of one response, in characters, including its reasoning and the params of its
calls."""
BLOCK = 200
"""The number of characters at the end of the text that are searched for in the text before them.
These characters may themselves repeat a shorter unit."""
REPETITIONS = 20
LONGEST_UNIT = 2_000
_STEP = 1_000
"""The number of new characters after which a response is checked again."""
_KEPT = LONGEST_UNIT * REPETITIONS + BLOCK


class ResponseLimits:
    """Watches the pieces of one response, and raises ProviderError once the response is too long or
    only repeats itself."""

    def __init__(self) -> None:
        self._length = 0
        self._tail = ""
        self._new: list[str] = []
        self._new_length = 0

    def add(self, piece: str) -> None:
        """Add a piece.

        Raises:
            ProviderError: the response is too long, or only repeats itself.
        """
        self._length += len(piece)
        self._new.append(piece)
        self._new_length += len(piece)
        if self._length > MAX_CHARACTERS:
            raise _build_cut_error(f"The response was cut off at {MAX_CHARACTERS:,} characters")
        if self._new_length < _STEP:
            return
        self._tail = (self._tail + "".join(self._new))[-_KEPT:]
        self._new, self._new_length = [], 0
        if is_repeating(self._tail):
            raise _build_cut_error("The response was cut off because the model repeated itself")


def is_repeating(text: str) -> bool:
    """Return True if the text ends with at least 20 repetitions of the same unit, over at least
    4,000 characters, and is not a table."""
    last = text.rfind(text[-BLOCK:], 0, len(text) - 1)
    unit = len(text) - BLOCK - last
    length = max(unit, BLOCK) * REPETITIONS
    if last < 0 or length > len(text):
        return False
    end = text[-length:]
    return end[unit:] == end[:-unit] and not _is_table(end[-3 * max(unit, BLOCK) :])


def _is_table(text: str) -> bool:
    """Return True if every complete row has cells between bars, tabs, commas or semicolons, or if
    there are only numbers between these separators."""
    has_letters = any(letter.isalpha() for letter in text)
    rows = [row.strip() for row in text.splitlines()[1:-1] if row.strip()]
    has_rows = bool(rows) and all(
        "|" in row or "\t" in row or row.count(",") + row.count(";") >= 2 for row in rows
    )
    return has_rows or (not has_letters and any(separator in text for separator in ",;|\t"))


def _build_cut_error(message: str) -> ProviderError:
    return ProviderError("answer_cut", message, transient=True)
