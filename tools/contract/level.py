"""Levels of tools: every call above draft needs approval."""

from enum import StrEnum


class Level(StrEnum):
    """Risk of a tool, ordered from harmless to dangerous; compare levels by `rank`."""

    READ = "read"
    """Looks things up and changes nothing."""
    DRAFT = "draft"
    """Prepares something that stays private until a person uses it."""
    WRITE = "write"
    """Creates or changes data; each call needs approval."""
    DESTRUCTIVE = "destructive"
    """Deletes data or cannot be undone; a person approves and confirms each call."""

    @property
    def rank(self) -> int:
        """Position in the order, from 0 (read) to 3 (destructive)."""
        return _RANKS[self]

    @property
    def has_side_effects(self) -> bool:
        """True for write and destructive: the call needs approval and starts at most once."""
        return self.rank > Level.DRAFT.rank


_RANKS = {level: rank for rank, level in enumerate(Level)}
