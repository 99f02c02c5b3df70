"""Registries of the operations that data owners offer to pages, cards, the engine and backups.

An owner registers its operations when its Django app is ready; modules that use the operations
import only what is declared here, never the owner.
"""

from typing import Generic, TypeVar

Offer = TypeVar("Offer")


class Registry(Generic[Offer]):
    """A registry for one set of operations, such as those on files."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._offer: Offer | None = None

    def register(self, offer: Offer) -> None:
        """Register the operations, in place of any that were registered earlier."""
        self._offer = offer

    def get(self) -> Offer:
        """Return the operations.

        Raises:
            LookupError: no operations are registered.
        """
        if self._offer is None:
            raise LookupError(f"no installed app has registered the {self._subject}")
        return self._offer
