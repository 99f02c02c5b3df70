"""Suggested standing grants: a grant is suggested after five careful approvals of one shape, and a
single denial narrows or withdraws the suggestion."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from agents.employees.models import Employee
from agents.insight import suggestions
from agents.platform.refusals import Conflict
from agents.runs.models import Approval, ApprovalStatus, Run
from agents.standing_grants import making
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.past_calls import PastFigure
from tests.features import feature
from tests.web.granting import answer, decide, read_inputs, read_page, waiting_card
from tests.world import World, change

pytestmark = [pytest.mark.django_db, pytest.mark.once]

PHONES = ("+1 555 0100", "+1 555 0101", "+1 555 0100", "+1 555 0101", "+1 555 0100")
BULK = UUID(int=1)


def approve_five(world: World, seconds: int = 5) -> list[Approval]:
    """Approve five calls that set the phone of one record."""
    cards = [waiting_card(world, **change(world.records[0], phone)) for phone in PHONES]
    for card in cards:
        decide(world, card, ApprovalStatus.CONSUMED, seconds)
    return cards


def deny(world: World, phone: str, days_ago: int = 0, **changes: str) -> Approval:
    """Deny a call that sets the phone, and any other given fields, of the same record."""
    params = change(world.records[0], phone)
    params["changes"] |= changes
    card = waiting_card(world, **params)
    Approval.objects.filter(pk=card.pk).update(
        requested_at=F("requested_at") - timedelta(days=days_ago)
    )
    decide(world, card, ApprovalStatus.DENIED)
    return card


def read_words(page: str) -> str:
    """Return the text of a page, with single spaces."""
    return " ".join(re.sub(r"<[^>]+>", "", page).split())


def find_counts(world: World) -> list[int]:
    """Return the number of approvals on which each suggestion is based."""
    return [len(each.cards) for each in suggestions.find_suggestions(world.member("approver"))]


def test_five_approvals_suggest_the_narrowest_grant(world: World) -> None:
    card = approve_five(world)[-1]
    client = world.client("approver")
    assert "People approved 5 calls like these" in read_page(client, "/grants/")
    assert "People approved 5 calls like these" in read_page(
        client, f"/employees/{world.employee.pk}/trust/"
    )
    values = read_inputs(read_page(client, f"/grants/new/?card={card.pk}&suggested=1"))
    assert (values["rule.record_id"], values["rule.changes.phone"]) == ("equals", "one_of")


def test_a_suggestion_says_how_well_terms_from_some_approvals_predict_the_others(
    world: World,
) -> None:
    card = approve_five(world)[-1]
    client = world.client("approver")
    says = "Terms made from four fifths of the approvals would have approved 5 of the 5 others."
    assert says in read_page(client, "/grants/")
    assert says in read_page(client, f"/grants/new/?card={card.pk}&suggested=1")
    assert says not in read_page(client, f"/grants/new/?card={card.pk}")


def test_the_list_shows_denied_cards_first_that_a_suggestion_would_have_approved(
    world: World,
) -> None:
    old = deny(world, PHONES[0], days_ago=40)
    deny(world, "+1 555 9999")
    card = approve_five(world)[-1]
    waiting_card(world, **change(world.records[0], PHONES[1]))
    (found,) = suggestions.find_suggestions(world.member("approver"))
    assert found.past == PastFigure(compared=8, denied=(old.pk,), others=6)
    client = world.client("approver")
    page = read_page(client, "/grants/")
    says = "Of the last 8 cards of this tool, it would have approved 1 that a person denied"
    assert f"{says} (card {old.pk}) and 6 others." in read_words(page)
    form = read_page(client, f"/grants/new/?card={card.pk}&suggested=1")
    assert "It would have approved 7 of the last 8 cards of this tool." in read_words(form)


def test_the_list_mentions_no_denied_cards_if_there_are_none(world: World) -> None:
    approve_five(world)
    page = read_words(read_page(world.client("approver"), "/grants/"))
    assert "Of the last 5 cards of this tool, it would have approved 5." in page


def test_no_grant_is_suggested_for_values_that_never_repeat(
    world: World,
) -> None:
    """A grant for exactly these values would not match any new call."""
    for number in range(5):
        card = waiting_card(world, **change(world.records[0], f"+1 555 020{number}"))
        decide(world, card, ApprovalStatus.CONSUMED)
    assert find_counts(world) == []


@pytest.mark.parametrize("spoil", ["denied", "fast", "bulk", "break-glass", "other shape"])
def test_no_grant_is_suggested_after_careless_approvals(world: World, spoil: str) -> None:
    card = approve_five(world, seconds=1 if spoil == "fast" else 5)[-1]
    rows = Approval.objects.filter(pk=card.pk)
    if spoil == "break-glass":
        rows.update(broke_glass=True)
    if spoil == "bulk":
        rows.update(bulk_id=BULK)
    elif spoil == "other shape":
        rows.update(shape="other")
    elif spoil == "denied":
        deny(world, PHONES[0])
    assert "People approved" not in read_page(world.client("approver"), "/grants/")


class TestADenialWithdrawsTheSuggestion:
    def test_unless_the_grant_would_not_match_the_denied_call(self, world: World) -> None:
        approve_five(world)
        deny(world, "+1 555 9999")
        deny(world, PHONES[0], notes="Call back")
        assert find_counts(world) == [5]

    @feature(
        "Figures and metrics",
        "A single denied call withdraws the suggestion of a standing grant",
        "agents/insight/suggestions.py",
    )
    def test_even_if_it_was_part_of_a_bulk_request(self, world: World) -> None:
        approve_five(world)
        denied = deny(world, PHONES[0])
        Approval.objects.filter(pk=denied.pk).update(bulk_id=BULK)
        assert find_counts(world) == []

    def test_even_if_the_denied_call_lacks_a_param_that_the_grant_leaves_free(
        self, world: World
    ) -> None:
        for number in range(12):
            params = change(world.records[0], PHONES[0])
            params["changes"]["notes"] = f"Call {number}"
            decide(world, waiting_card(world, **params), ApprovalStatus.CONSUMED)
        assert find_counts(world) == [12]
        deny(world, PHONES[0])
        assert find_counts(world) == []

    def test_even_if_it_is_older_than_all_decisions_that_are_read(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deny(world, PHONES[0])
        approve_five(world)
        monkeypatch.setattr(suggestions, "MAX_READ", 5)
        assert find_counts(world) == []

    def test_for_thirty_days(self, world: World) -> None:
        approve_five(world)
        deny(world, PHONES[0], days_ago=31)
        assert find_counts(world) == [5]
        deny(world, PHONES[0], days_ago=29)
        assert find_counts(world) == []

    def test_only_for_the_employee_who_requested_the_denied_call(self, world: World) -> None:
        approve_five(world)
        denied = deny(world, PHONES[0])
        robin = Employee.objects.create(
            organization=world.acme, name="Robin", provider=world.employee.provider
        )
        Run.objects.filter(pk=denied.run_id).update(employee=robin)
        assert find_counts(world) == [5]

    def test_also_on_a_card(self, world: World) -> None:
        cards = approve_five(world)
        assert suggestions.suggest_for_card(cards[0]) is not None
        deny(world, PHONES[0])
        assert suggestions.suggest_for_card(cards[0]) is None


class TestTheTimeOfADecision:
    def test_begins_with_the_persons_preceding_decision(self, world: World) -> None:
        cards = approve_five(world, seconds=1)
        Approval.objects.filter(pk=cards[0].pk).update(
            requested_at=F("requested_at") - timedelta(seconds=9)
        )
        assert find_counts(world) == []

    def test_does_not_begin_with_an_approval_by_the_persons_standing_grant(
        self, world: World
    ) -> None:
        cards = approve_five(world)
        grant = world.standing_grant()
        for card in cards:
            card.refresh_from_db()
            assert card.decided_at is not None
            answer(world, grant, at=card.decided_at - timedelta(seconds=1))
        assert find_counts(world) == [5]


class TestAGrantForTheSameCalls:
    def cover(self, world: World) -> StandingGrant:
        """Create the suggested grant, with a single use."""
        (found,) = suggestions.find_suggestions(world.member("approver"))
        return making.make_grant(world.member("approver"), replace(found.proposal, max_uses=1))

    def test_prevents_the_suggestion_until_it_is_used_up(self, world: World) -> None:
        approve_five(world)
        grant = self.cover(world)
        assert find_counts(world) == []
        answer(world, grant)
        assert find_counts(world) == [5]

    def test_is_no_longer_in_force_once_it_is_used_up(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(making, "MAX_IN_FORCE", 1)
        approve_five(world)
        grant = self.cover(world)
        with pytest.raises(Conflict, match="already 1 standing grants in force"):
            world.standing_grant()
        answer(world, grant)
        assert world.standing_grant().pk


def test_the_number_of_queries_is_independent_of_the_number_of_shapes(world: World) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            found = find_counts(world)
        assert found == [5] * len(found)
        return len(queries)

    approve_five(world)
    deny(world, "+1 555 9999")
    few = count()
    for number in range(3):
        for card in approve_five(world):
            Approval.objects.filter(pk=card.pk).update(shape=f"shape {number}")
    assert count() == few
