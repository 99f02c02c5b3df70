"""One line of the doctor's report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A subject and the finding about it; `mend` is empty when all is well."""

    subject: str
    text: str
    mend: str = ""

    @property
    def is_well(self) -> bool:
        return not self.mend
