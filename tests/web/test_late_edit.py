"""An edit that arrives after the decision: the response names the person who decided the card, and
the typed texts are kept."""

from __future__ import annotations

from typing import Any

import pytest

from agents.approvals import decisions
from agents.runs.models import Approval
from tests.world import World, change

pytestmark = pytest.mark.django_db(transaction=True)  # previews run in separate threads


def post(world: World, card: Approval, **fields: Any) -> Any:
    return world.client("approver").post(
        f"/approvals/{card.pk}/edit/", {"digest": card.digest, **fields}
    )


@pytest.mark.parametrize("typed", ["+1 555 0199", "", "unreadable"])
def test_an_edit_of_a_decided_card_names_the_decider_and_keeps_the_typed_texts(
    world: World, typed: str
) -> None:
    card = world.card()
    decisions.deny(world.member("admin"), card.pk, decisions.Decision(card.digest))
    field = "param.changes.score" if typed == "unreadable" else "param.changes.phone"
    response = post(world, card, **{field: typed, "param.changes.name": "Acme Ltd"})
    html = response.content.decode()
    assert response.status_code == 409
    assert "The card was denied by admin; the edit was not applied." in html
    kept = html.split("Your edit was not applied")[1].split("</section>")[0]
    assert "Acme Ltd" in kept
    assert (typed or "changes · phone") in kept
    assert "record_id" not in kept, "only what was changed"


def test_an_edit_of_an_edited_card_shows_the_other_edit_and_keeps_the_typed_texts(
    world: World,
) -> None:
    card = world.card()
    theirs = change(world.records[0], "+1 555 0111")
    decisions.edit(world.member("admin"), card.pk, decisions.Decision(card.digest), theirs)
    html = post(world, card, **{"param.changes.phone": "+1 555 0199"}).content.decode()
    assert "The card was replaced by admin; the edit was not applied." in html
    assert "+1 555 0199" in html.split("Your edit was not applied")[-1]
    assert "+1 555 0111" in html.split('<div class="changed">')[1]
