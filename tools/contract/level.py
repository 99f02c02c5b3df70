"""How far a tool reaches: the level decides whether a person is asked."""

from enum import StrEnum


class Level(StrEnum):
    """Ordered from harmless to dangerous; compare with `rank`."""

    READ = "read"
    """Looks things up; changes nothing."""
    DRAFT = "draft"
    """Prepares something that nobody outside sees until a person uses it."""
    WRITE = "write"
    """Creates or changes; a person approves each call."""
    DESTRUCTIVE = "destructive"
    """Deletes or cannot be taken back; a person approves and confirms each call."""

    @property
    def rank(self) -> int:
        """Position from 0 (read) to 3 (destructive)."""
        return _RANKS[self]

    @property
    def has_side_effects(self) -> bool:
        """True above draft: such a call waits for a person and is started at most once."""
        return self.rank > Level.DRAFT.rank


_RANKS = {level: rank for rank, level in enumerate(Level)}
