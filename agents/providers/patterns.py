"""Regular expressions that cannot run away: Python's search has no time limit and stops everything else meanwhile."""

import re
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]  # the only way to see how a pattern is built
from typing import Any

MAX_PATTERN = 500
MAX_VARIABLE = 6
MAX_ENDLESS = 2
ENDLESS = 100
_REPEATS = frozenset({_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT})
_REFERENCES = frozenset({_constants.GROUPREF, _constants.GROUPREF_EXISTS})


def check_pattern(pattern: re.Pattern[str]) -> None:
    """Raise ValueError, for the person who wrote it, if a hostile text could keep its search busy for long."""
    if len(pattern.pattern) > MAX_PATTERN:
        raise ValueError(f"the regular expression is longer than {MAX_PATTERN} characters")
    repeats = list(_repeats(_parser.parse(pattern.pattern, pattern.flags), is_repeated=False))
    variable = [most for least, most in repeats if least != most]
    if len(variable) > MAX_VARIABLE:
        raise ValueError(f"the regular expression has more than {MAX_VARIABLE} repetitions; leave some out")
    if sum(most > ENDLESS for most in variable) > MAX_ENDLESS:
        raise ValueError(
            f"the regular expression has more than {MAX_ENDLESS} endless repetitions such as .*; "
            "bound some, as in .{0,40}"
        )


def _repeats(items: Any, *, is_repeated: bool) -> Iterator[tuple[int, int]]:
    """The bounds of every repetition, in all groups and branches."""
    for operation, value in items:
        if operation in _REFERENCES:
            raise ValueError("the regular expression refers back to a group, which may take endlessly long")
        if is_repeated and (operation in _REPEATS or operation is _constants.BRANCH):
            raise ValueError(
                "the regular expression repeats what has repetitions or alternatives itself, as (a+)+ and (a|b)* do, "
                "which may take endlessly long; repeat single characters only, as in [\\w ,]+"
            )
        inner = is_repeated
        if operation in _REPEATS:
            yield int(value[0]), int(value[1])
            inner = inner or int(value[1]) > 1
        for part in _parts(value):
            yield from _repeats(part, is_repeated=inner)


def _parts(value: Any) -> Iterator[Any]:
    """The sub-patterns that an operation holds, wherever it keeps them."""
    if isinstance(value, _parser.SubPattern):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _parts(each)
