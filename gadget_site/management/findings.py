"""One line of the doctor's report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The result of one check of one subject; `fix` is empty if all is well."""

    subject: str
    text: str
    fix: str = ""

    @property
    def is_well(self) -> bool:
        return not self.fix
