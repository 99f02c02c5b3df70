"""Members' language, units and time zone, which tools read from the context of a call."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from django.db import transaction

from agents.accounts import audit
from agents.accounts.languages import LANGUAGE_CODE
from agents.accounts.models import Membership, Preferences, Units
from agents.platform.database_threads import beside_event_loop
from agents.platform.refusals import Invalid

TIME_ZONES: list[Callable[[int, int], str]] = []
"""Functions that take an organization id and a user id, and return the time zone that the user
chose, or an empty text if there is none. `notices`, which stores time zones, adds its own
function."""


@dataclass(frozen=True)
class ChosenPreferences(Mapping[str, str]):
    """A user's preferences in an organization. They are loaded on first use, because most tools do
    not need them."""

    organization_id: int
    user_id: int

    def __getitem__(self, name: str) -> str:
        return self._chosen[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._chosen)

    def __len__(self) -> int:
        return len(self._chosen)

    @cached_property
    @beside_event_loop
    def _chosen(self) -> dict[str, str]:
        mine = Preferences.objects.filter(
            membership__organization_id=self.organization_id, membership__user_id=self.user_id
        )
        language, units = mine.values_list("language", "units").first() or ("", "")
        zones = [find(self.organization_id, self.user_id) for find in TIME_ZONES]
        chosen = {"language": language, "units": units, "time_zone": "".join(zones)}
        return {name: value for name, value in chosen.items() if value}


def load_own_preferences(member: Membership) -> Preferences:
    """Load the member's preferences; return a new, unsaved row if they have none."""
    return Preferences.objects.filter(membership=member).first() or Preferences(membership=member)


def save_preferences(member: Membership, language: str, units: str) -> Preferences:
    """Save the language, such as `en` or `de-CH`, and the units; an empty text means no choice.

    Raises:
        Invalid: the text is not a language code, or these units do not exist.
    """
    if language and not LANGUAGE_CODE.fullmatch(language):
        raise Invalid("language", f"{language[:40]!r} is not a language code such as en or de-CH.")
    if units and units not in Units.values:
        raise Invalid("units", f"{units[:40]!r} is not one of {', '.join(Units.values)}.")
    row = load_own_preferences(member)
    row.language, row.units = language, units
    with transaction.atomic():
        row.save()
        subject = f"member:{member.pk}"
        audit.record(member, "preferences_changed", subject, language=language, units=units)
    return row
