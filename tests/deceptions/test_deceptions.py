"""Each planted deception is visible at first sight, or Approve is disabled until it has been
seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, ViewportSize

from agents.runs.models import Approval, ApprovalStatus
from tests.deceptions.harmless import COUNT, make_harmless
from tests.deceptions.planting import EFFECT, make_office, update
from tests.deceptions.plants import PLANTS
from tests.deceptions.reading_page import SIZES, ReadingPage
from tests.deceptions.signs import Signs
from tests.features import feature
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.once]

MAX_FALSE_WARNINGS = 0.02
ORDINARY = frozenset({"confirm", "emptied", "new-here"})
"""Facts that honest cards have, too."""


@pytest.fixture
def office(settings: object, tmp_path: Path) -> World:
    return make_office()


def test_there_are_enough_planted_deceptions() -> None:
    assert len(PLANTS) >= 60
    assert len({plant.kind for plant in PLANTS}) >= 20
    assert len({(plant.kind, plant.name) for plant in PLANTS}) == len(PLANTS)


@feature(
    "The gate",
    "Planted deceptions are in view or keep Approve disabled, and ordinary cards show no warning",
    "agents/approvals/warnings/surroundings.py",
)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size["width"]))
def test_each_deception_is_visible_before_its_card_can_be_approved(
    office: World, chromium: Browser, size: ViewportSize
) -> None:
    faults = []
    with ReadingPage(chromium, office.client("approver"), size) as reader:
        for plant in PLANTS:
            card = plant.make(office)
            reader.show(card)
            sight = reader.look(plant.place, plant.sees)
            # Leave no open card.
            Approval.objects.filter(pk__gte=card.pk).update(status=ApprovalStatus.CANCELLED)
            may_be_off = plant.is_folded or plant.place.startswith(EFFECT)
            if not ((sight.is_in_view and not plant.is_folded) or (sight.is_off and may_be_off)):
                faults.append(f"{plant.kind}: {plant.name}: {plant.place} {plant.sees!r}: {sight}")
            if sight.is_too_wide:
                faults.append(f"{plant.kind}: {plant.name}: the page is too wide")
    assert not faults, "\n".join(faults)


def test_200_ordinary_cards_show_at_most_four_warnings(office: World) -> None:
    client = office.client("approver")

    def find_signs(card: Approval) -> set[str]:
        html = client.get(f"/approvals/{card.pk}/card/").content.decode()
        Approval.objects.filter(pk=card.pk).update(status=ApprovalStatus.CANCELLED)
        return {sign for sign in Signs(html).marks if sign not in ORDINARY}

    assert find_signs(update(notes="\u0410cme")(office)), "a deceptive card shows a warning"
    false_warnings = []
    for card in make_harmless(office):
        found = find_signs(card)
        false_warnings += [f"{sign}: {card.sentence} {card.params}" for sign in found]
    assert len(false_warnings) <= COUNT * MAX_FALSE_WARNINGS, "\n".join(false_warnings)


def test_an_honest_card_has_no_warning_and_can_be_approved(
    office: World, chromium: Browser
) -> None:
    with ReadingPage(chromium, office.client("approver"), SIZES[0]) as reader:
        reader.show(update(phone="+1 555 0123")(office))
        sight = reader.look(".warnings > .warning, .similar, .stale, .same-target, .new-here", "")
    assert not sight.is_in_view
    assert not sight.is_off
