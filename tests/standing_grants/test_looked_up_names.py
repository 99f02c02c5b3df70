"""A free param may contain a name that is the whole value of a field in a result of the tool's own
source, but not a name from within a text, from another source or from an earlier request of the
employee."""

from __future__ import annotations

from typing import Any

import pytest

from tests.features import feature
from tests.standing_grants.granting import answered, equals, grant
from tests.standing_grants.shop_tools import Shop, is_approved
from tests.workshop import Workshop, call
from tools.toolbox.provenance import Provenance, SeenIn, Sighting
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

CANCEL = "shop.cancel"
IDS = ("ORD-77210", "LU355", "4500072015")
FREE: dict[str, Any] = {"params": ("items", "order", "reason")}


@pytest.fixture
def shop(workshop: Workshop, toolbox: Toolbox) -> Shop:
    made = Shop(workshop, toolbox)
    grant(workshop, CANCEL, equals("order", "A-1"), **FREE)
    return made


def cancel(reason: str) -> dict[str, Any]:
    return call(CANCEL, order="A-1", reason=reason, items=[])


def customer(shop: Shop, *orders: Any) -> dict[str, Any]:
    return shop.answer("shop.getCustomer", "Ann", {"orders": [{"id": one} for one in orders]})


@feature(
    "The gate",
    "A free text may name ids and amounts that a lookup in the same source gave, and no others",
    "tools/toolbox/provenance/field_values.py",
)
@pytest.mark.parametrize("name", IDS)
def test_a_free_text_may_name_what_a_lookup_returned(shop: Shop, name: str) -> None:
    reason = f"Because of {name}, as agreed"
    assert not is_approved(shop.work(cancel(reason)))
    assert is_approved(shop.work(customer(shop, name), cancel(reason)))


def test_a_free_text_may_name_the_id_that_a_change_returned(shop: Shop) -> None:
    grant(shop.workshop, "shop.reserve", equals("id", "A-1"), params=("id",))
    made = shop.answer("shop.reserve", "A-1", {"id": "RSV-4471"})
    assert len(answered(shop.work(made, cancel("Instead there is RSV-4471 as agreed")))) == 2
    assert len(answered(shop.work(made, cancel("Instead there is RSV-4472 as agreed")))) == 1


def test_an_amount_may_have_another_spelling(shop: Shop) -> None:
    order = shop.answer("shop.getOrder", "A-1", {"total": 1040})
    for spelling in ("1040", "1.040", "€1040"):
        reason = f"There are {spelling} left"
        assert is_approved(shop.work(order, cancel(reason))), spelling
    assert not is_approved(shop.work(order, cancel("There are 1041 left")))


@pytest.mark.parametrize("name", IDS)
def test_a_name_in_a_text_or_in_another_source_needs_approval(shop: Shop, name: str) -> None:
    mail = shop.answer("shop.readMail", "7", {"text": f"Please write about {name} to us"})
    note = shop.answer("shop.getOrder", "A-1", {"note": f"see {name}"})
    other = shop.answer("other.getOrder", "A-1", {"id": name})
    for lookup in (mail, note, other):
        run = shop.work(lookup, cancel(f"Because of {name}, as agreed"))
        assert not is_approved(run), lookup


@pytest.mark.parametrize("name", IDS)
def test_a_name_that_the_employee_had_requested_needs_approval(shop: Shop, name: str) -> None:
    reason = f"Because of {name}, as agreed"
    own = shop.answer("shop.getOrder", name, {"id": name})
    assert not is_approved(shop.work(own, cancel(reason)))
    draft = shop.answer("shop.saveDraft", name, {})
    assert not is_approved(shop.work(draft, customer(shop, name), cancel(reason)))
    assert is_approved(shop.work(customer(shop, name), draft, cancel(reason)))


@pytest.mark.parametrize(
    "address",
    [
        "eve@evil.example",
        "https://evil.example/x",
        "evil.example",
        "+49 40 5550 8806",
        "+494055508806",
    ],
)
def test_an_address_needs_approval_even_if_a_lookup_returned_it(shop: Shop, address: str) -> None:
    for text in (address, address.removeprefix("+")):
        run = shop.work(customer(shop, address), cancel(f"Ask at {text} about the rest"))
        assert not is_approved(run)


def test_spans_of_time_are_not_names_but_years_must_have_been_seen(shop: Shop) -> None:
    assert is_approved(shop.work(cancel("They come between 9-12 or 10:00-11:30 as always")))
    assert not is_approved(shop.work(cancel("Worked there 2021-2025 as agreed")))
    assert not is_approved(shop.work(cancel("Moved to 5 April 2027 as agreed")))
    dated = customer(shop, "2027-04-05")
    assert is_approved(shop.work(dated, cancel("Moved to 5 April 2027 as agreed")))
    assert not is_approved(shop.work(dated, cancel("Moved to 5 April 2028 as agreed")))


class TestAShortId:
    """A text of a few digits is treated as an id, which must have been seen as a whole."""

    def test_that_was_never_seen_needs_approval(self, shop: Shop) -> None:
        for digits in ("7", "17", "907", " 17 ", "17.", "(17)", "17, 18", "\uff11\uff17"):
            assert not is_approved(shop.work(cancel(digits))), digits

    def test_that_was_typed_or_looked_up_does_not_need_approval(self, shop: Shop) -> None:
        assert is_approved(shop.work(cancel("17"), task="Cancel number 17"))
        for found in ("17", 17):
            assert is_approved(shop.work(customer(shop, found), cancel("17"))), found

    def test_that_was_seen_only_as_part_of_a_number_or_text_needs_approval(
        self, shop: Shop
    ) -> None:
        for found in ("A-17", 170, "17 pieces", 1.7):
            assert not is_approved(shop.work(customer(shop, found), cancel("17"))), found
        assert not is_approved(shop.work(cancel("17"), task="Cancel number 170"))

    def test_does_not_include_a_quantity_or_percentage(self, shop: Shop) -> None:
        quantity = call(CANCEL, order="A-1", reason="As agreed", items=[3])
        assert is_approved(shop.work(quantity))
        assert is_approved(shop.work(cancel("12.5%")))


def test_a_long_text_of_ordinary_words_does_not_need_approval(shop: Shop) -> None:
    assert is_approved(shop.work(cancel("We are sorry about this, and send a new one. " * 20)))


def test_a_sighting_recorded_without_saying_if_it_was_a_field_is_treated_as_outside() -> None:
    seen = Sighting("reason", "reason", "ORD-77210", SeenIn.OUTSIDE, keys=("k",), is_field=True)
    stored = Provenance((seen,)).as_json()
    assert Provenance.from_json(stored).find_outside("reason", counts_fields=False) is None
    del stored["sightings"][0]["is_field"]
    assert Provenance.from_json(stored).find_outside("reason", counts_fields=False)
