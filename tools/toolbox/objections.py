"""Objections: the reason against a call or a standing grant; None means that there is no
objection."""

from dataclasses import dataclass

from tools.contract import ToolError


@dataclass(frozen=True)
class Objection:
    """The reason why a call may not run as it is, or why a standing grant does not approve it.

    Attributes:
        why: the reason in plain words.
        error: the error for the model if the call cannot run at all; None if a person may still
            allow it.
    """

    why: str
    error: ToolError | None = None
