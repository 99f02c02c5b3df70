"""The languages that each organization writes, as this process last read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.caches import Cache
from tools.contract.languages import find_language, get_main_code

MAX_ORGANIZATIONS = 10_000
"""The maximum number of organizations whose languages a process remembers."""
_read: Cache[int, frozenset[str]] = Cache(MAX_ORGANIZATIONS)


@dataclass(frozen=True)
class LearnedLanguages:
    """The languages that an organization has learned to write, and the reasons.

    Attributes:
        members: the number of members who chose each language, by its code.
        tasks: the number of typed tasks that are written mostly in each script, by the script's
            name.
    """

    members: Mapping[str, int]
    tasks: Mapping[str, int]

    @classmethod
    def from_json(cls, stored: Any) -> "LearnedLanguages":
        """Build the object from a stored value; None means that no languages have been learned
        yet."""
        found = stored if isinstance(stored, dict) else {}
        return cls(found.get("members", {}), found.get("tasks", {}))

    def to_json(self) -> dict[str, Any]:
        """Return the value to store."""
        return {"members": dict(self.members), "tasks": dict(self.tasks)}

    @property
    def languages(self) -> frozenset[str]:
        """The codes of the learned languages: those that members chose, and one language for each
        script of the tasks."""
        return frozenset(
            {*map(get_main_code, self.members), *map(find_language, self.tasks)} - {""}
        )


def record_languages(organization_id: int, languages: frozenset[str]) -> None:
    """Record the languages that were read from an organization's row."""
    if _read.get(organization_id) != languages:
        _read.put(organization_id, languages)


def get_read_languages(organization_id: int) -> frozenset[str] | None:
    """Return the languages that this process last read from the organization's row; None if it has
    not read the row yet."""
    return _read.get(organization_id)
