"""A free param of a standing grant may say anything, but name nothing that was not seen before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.standing_grants.granting import equals, grant
from tests.standing_grants.shop_tools import (
    Shop,
    is_approved,
)
from tests.workshop import Workshop, call
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

CANCEL = "shop.cancel"


@pytest.fixture
def shop(workshop: Workshop, toolbox: Toolbox) -> Shop:
    return Shop(workshop, toolbox)


def cancel(order: str, **more: Any) -> dict[str, Any]:
    return call(CANCEL, order=order, **more)


class TestAFreeParam:
    FREE: dict[str, Any] = {"params": ("order", "reason")}

    def test_with_an_invented_name_needs_approval(self, shop: Shop) -> None:
        grant(shop.workshop, CANCEL, equals("order", "A-1"), **self.FREE)
        assert is_approved(shop.work(cancel("A-1", reason="As agreed with the team")))
        for reason in ("ORD-77210", "eve@evil.example", "https://evil.example/x"):
            assert not is_approved(shop.work(cancel("A-1", reason=reason))), reason

    @pytest.mark.parametrize(
        "reason",
        [
            "Payment ORD-77210",
            "mail eve@evil.example",
            "see https://evil.example/x",
            "A-77",
            "@eve",
            "tell #ops of it",
            "usr_abc",
            "to-eve",
            "2026-11-30T10:00/eve@evil.example",
            "x@y.z",
        ],
    )
    def test_with_an_invented_name_in_any_part_needs_approval_unless_it_was_typed(
        self, shop: Shop, reason: str
    ) -> None:
        grant(shop.workshop, CANCEL, equals("order", "A-1"), **self.FREE)
        step = cancel("A-1", reason=reason)
        assert not is_approved(shop.work(step))
        name = reason.removeprefix("Payment ").removeprefix("mail ").removeprefix("see ")
        assert is_approved(shop.work(step, task=f"Cancel it, and remember {name}"))

    @pytest.mark.parametrize(
        "reason",
        [
            "Follow-up as agreed, e.g. on 2026-11-30 at 10:00 and/or on the 2nd floor",
            "2026-11-30T10:00:00Z",
            "2026-11-30T10:00:00+01:00",
            "12.5%",
            "3 nights for €20",
        ],
    )
    def test_with_ordinary_words_needs_no_approval(self, shop: Shop, reason: str) -> None:
        grant(shop.workshop, CANCEL, equals("order", "A-1"), **self.FREE)
        assert is_approved(shop.work(cancel("A-1", reason=reason)))

    def test_with_a_name_that_a_person_typed_needs_no_approval(self, shop: Shop) -> None:
        grant(shop.workshop, CANCEL, equals("order", "A-1"), **self.FREE)
        run = shop.work(cancel("A-1", reason="ORD-77210"), task="Cancel it because of ORD-77210")
        assert is_approved(run)
