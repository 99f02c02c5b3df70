"""The error of a failed delivery, and the pause that a receiver asks for."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass


@dataclass(eq=False)
class DeliveryError(Exception):
    """A batch could not be delivered.

    Attributes:
        problem: the reason, for people.
        is_final: True if trying again would not help.
        is_gone: True if the address seems to be gone.
        is_ours: True if this installation, not the receiver, is the cause of the failure.
        answer_status: the status of the receiver's response; None if there was none.
        retry_after_s: the seconds for which the receiver asked us to wait; 0 if it did not.
    """

    problem: str
    _: KW_ONLY
    is_final: bool = False
    is_gone: bool = False
    is_ours: bool = False
    answer_status: int | None = None
    retry_after_s: float = 0.0

    def __str__(self) -> str:
        return self.problem


def read_retry_after(value: str, longest_s: float) -> float:
    """Return the seconds of a Retry-After header, up to `longest_s`; 0 if the header is not a
    number."""
    return min(float(value), longest_s) if re.fullmatch(r"[0-9]{1,9}", value) else 0.0
