"""The marks of cards, for pages; see `agents.approvals.warnings.marks`."""

from agents.approvals.warnings.marks import Mark, find_marks

__all__ = ("Mark", "find_marks")
