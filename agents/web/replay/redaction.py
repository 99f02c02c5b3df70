"""The parts that an exported replay leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

REDACTED = "redacted"


@dataclass(frozen=True)
class ReplayRedaction:
    """The choice of what to leave out.

    Attributes:
        values: inputs and results of calls, with the sentences and summaries that repeat them.
        texts: texts of the employee and of people, such as the task, messages, reasons and answers.
    """

    values: bool = False
    texts: bool = False

    def redact_value(self, value: Any) -> Any:
        """Replace a value; names of fields stay."""
        if not self.values or value in (None, "", [], {}):
            return value
        if isinstance(value, dict):
            return {name: self.redact_value(each) for name, each in value.items()}
        return REDACTED

    def redact_summary(self, text: str) -> str:
        """Replace a text that may repeat inputs or results."""
        return _redact(text) if self.values else text

    def redact_text(self, text: str) -> str:
        """Replace a text that a person or the employee wrote."""
        return _redact(text) if self.texts else text


NOTHING_REDACTED = ReplayRedaction()


def _redact(text: str) -> str:
    return f"{REDACTED}, {len(text):,} characters" if text else ""
