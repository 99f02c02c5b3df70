"""The marks of cards, for pages; see `agents.approvals.marks`."""

from agents.approvals.marks import Mark, find_marks

__all__ = ("Mark", "find_marks")
