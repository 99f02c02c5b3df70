"""Find cards whose employee imitates Gadget in its own words: in the text of the pass that
requested the call."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import OuterRef, Subquery

from agents.approvals.warnings.card_reading import MAX_CACHED
from agents.approvals.warnings.imitations import find_imitation
from agents.runs.models import Approval, Pass
from tools.caches import Cache

_IMITATIONS: Cache[tuple[int, str], str] = Cache(MAX_CACHED)
"""The words that imitate Gadget, by organization and card digest; empty if there are none."""


def find_imitations(organization_id: int, digests: Mapping[int, str]) -> dict[int, str]:
    """Return the words that imitate Gadget, by card id, for the cards that have such words. One
    query loads all cards that are not cached.

    Results are cached by digest, because the digest seals the call and therefore its pass, which
    never changes.

    Args:
        digests: the digest of each card by its id.
    """
    found = {pk: _IMITATIONS.get((organization_id, digest)) for pk, digest in digests.items()}
    unread = [pk for pk, imitation in found.items() if imitation is None]
    for pk, text in _load_words(organization_id, unread) if unread else ():
        found[pk] = _note(organization_id, digests[pk], text or "")
    return {pk: imitation for pk, imitation in found.items() if imitation}


def note_words(organization_id: int, words: Mapping[str, str]) -> None:
    """Cache the findings about words that are already loaded, by card digest, to save the query."""
    for digest, text in words.items():
        _note(organization_id, digest, text)


def _note(organization_id: int, digest: str, text: str) -> str:
    imitation = find_imitation(text)
    _IMITATIONS.put((organization_id, digest), imitation)
    return imitation


def _load_words(organization_id: int, ids: list[int]) -> list[tuple[int, str | None]]:
    cards = Approval.objects.filter(organization_id=organization_id, pk__in=ids).order_by()
    return list(cards.values_list("pk", select_words()))


def select_words() -> Subquery:
    """Select the employee's words for each card of a query."""
    passes = Pass.objects.filter(
        run_id=OuterRef("run_id"), number=OuterRef("tool_call__pass_number")
    )
    return Subquery(passes.values("text")[:1])
