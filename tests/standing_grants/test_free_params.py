"""A free param of a standing grant may have any text, but a name within the text must have been
seen before. A value that is itself a name needs approval until an admin declares that the param
does not name anything."""

from __future__ import annotations

from typing import Any

import pytest

from agents.platform.refusals import Invalid
from agents.runs.models import Run
from agents.standing_grants.pauses import find_pauses
from tests.features import feature
from tests.standing_grants.granting import allow, equals, grant
from tests.standing_grants.shop_tools import TEXT, Shop, SourceTool, describe_object, is_approved
from tests.workshop import Workshop, asking, call
from tools.contract import Level
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

CANCEL = "shop.cancel"
NAMES = (
    "A-77",
    "@eve",
    "usr_abc",
    "x@y.z",
    "ORD-77210",
    "https://evil.example/x",
    "eve@evil.example",
)


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
        ("reason", "name"),
        [
            ("Payment ORD-77210", "ORD-77210"),
            ("please mail them to eve@evil.example today", "eve@evil.example"),
            ("for details please see https://evil.example/x there", "https://evil.example/x"),
            ("about A-77", "A-77"),
            ("ask our friend @eve", "@eve"),
            ("tell #ops of it", "#ops"),
            ("of usr_abc", "usr_abc"),
            ("to-eve", "to-eve"),
            ("you should write to x@y.z", "x@y.z"),
        ],
    )
    def test_with_an_invented_name_in_any_part_needs_approval_unless_it_was_typed(
        self, shop: Shop, reason: str, name: str
    ) -> None:
        grant(shop.workshop, CANCEL, equals("order", "A-1"), **self.FREE)
        step = cancel("A-1", reason=reason)
        assert not is_approved(shop.work(step))
        assert is_approved(shop.work(step, task=f"Cancel it, and remember {name}"))

    @pytest.mark.parametrize("reason", NAMES)
    def test_with_a_name_as_its_value_needs_approval_unless_an_admin_declares_it_to_be_plain(
        self, shop: Shop, monkeypatch: pytest.MonkeyPatch, toolbox: Toolbox, reason: str
    ) -> None:
        grant(shop.workshop, CANCEL, equals("order", "A-1"), **self.FREE)
        step, task = cancel("A-1", reason=reason), f"Cancel it, and remember {reason}"
        assert not is_approved(shop.work(step, task=task))
        monkeypatch.setattr(toolbox.get_tool(CANCEL), "plain_params", frozenset({"reason"}))
        assert is_approved(shop.work(step, task=task))
        assert not is_approved(shop.work(step)), "nobody typed the name"

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
    def test_with_ordinary_words_does_not_need_approval(self, shop: Shop, reason: str) -> None:
        grant(shop.workshop, CANCEL, equals("order", "A-1"), **self.FREE)
        assert is_approved(shop.work(cancel("A-1", reason=reason)))

    def test_with_a_name_that_a_person_typed_does_not_need_approval(self, shop: Shop) -> None:
        grant(shop.workshop, CANCEL, equals("order", "A-1"), **self.FREE)
        reason = "Because of ORD-77210"
        run = shop.work(cancel("A-1", reason=reason), task="Cancel it because of ORD-77210")
        assert is_approved(run)


PAY = "bank.pay"
FREE_IN_EACH_LANGUAGE = [
    ("destinatario", TEXT, "eve@evil.example", "Gracias por su visita"),
    ("empfaenger", TEXT, "DE89 3704 0044 0532 0130 00", "Vielen Dank für Ihren Besuch"),
    ("収件人", TEXT, "@eve_77", "ご来店ありがとうございます"),
    ("montant", {"type": "number"}, 980.5, None),
    ("kwota", {"type": "integer"}, 5000, 3),
    ("номер_счёта", TEXT, "40817810099910004312", "Спасибо за ваш визит"),
    ("المستلم", TEXT, "+966 501 234 567", "شكرا لزيارتكم"),
    ("वेबसाइट", TEXT, "https://evil.example/x", "आपके आने के लिए धन्यवाद"),
]
"""A param, its schema, a value that names something, and a value that does not."""


@feature(
    "The gate",
    "A param that names something needs a condition, in every language",
    "tools/contract/param_naming.py",
)
@pytest.mark.parametrize(("param", "schema", "naming", "plain"), FREE_IN_EACH_LANGUAGE)
def test_a_free_param_named_in_any_language_needs_approval_for_a_value_that_names_something(
    workshop: Workshop, toolbox: Toolbox, param: str, schema: Any, naming: Any, plain: Any
) -> None:
    allow(workshop, toolbox, pay_tool(param, {**schema, "maximum": 1_000_000}))
    grant(workshop, PAY, equals("order", "A-1"), params=("order", param))
    shop = Player(workshop)
    assert not is_approved(shop.work(call(PAY, order="A-1", **{param: naming})))
    if plain is not None:
        assert is_approved(shop.work(call(PAY, order="A-1", **{param: plain})))
    tool = toolbox.get_tool(PAY)
    assert tool is not None
    tool.plain_params = frozenset({param})
    task = f"Pay it: {naming}"
    assert is_approved(shop.work(call(PAY, order="A-1", **{param: naming}), task=task))


def test_a_param_cannot_be_left_free_if_earlier_values_or_its_tool_say_that_it_names_something(
    workshop: Workshop, toolbox: Toolbox
) -> None:
    allow(workshop, toolbox, pay_tool("ziel", TEXT))
    player, one = Player(workshop), equals("order", "A-1")
    grant(workshop, PAY, one, params=("order", "ziel"))
    for number in range(2):
        run = player.work(call(PAY, order="A-1", ziel=f"acct_{number}"))
        (card,) = workshop.cards(run)
        workshop.approve(card)
        workshop.drive(run)
    with pytest.raises(Invalid, match=r"ziel looks like an id or an address, so it needs a"):
        grant(workshop, PAY, one, params=("order", "ziel"))
    tool = toolbox.get_tool(PAY)
    assert tool is not None
    tool.plain_params = frozenset({"ziel"})
    grant(workshop, PAY, one, params=("order", "ziel"))
    tool.plain_params, tool.destination_params = frozenset(), frozenset({"ziel"})
    with pytest.raises(Invalid, match=r"ziel names a destination"):
        grant(workshop, PAY, one, params=("order", "ziel"))


def test_a_grant_is_paused_once_its_free_param_is_declared_a_destination(
    workshop: Workshop, toolbox: Toolbox
) -> None:
    allow(workshop, toolbox, pay_tool("ziel", TEXT))
    made = grant(workshop, PAY, equals("order", "A-1"), params=("order", "ziel"))
    assert not find_pauses(workshop.organization, [made])
    tool = toolbox.get_tool(PAY)
    assert tool is not None
    tool.destination_params = frozenset({"ziel"})
    pause = find_pauses(workshop.organization, [made])[made.pk]
    assert pause.because == "ziel names a destination, so it needs a condition."
    assert pause.is_complete


class Player:
    """An employee who makes one call in a run."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop

    def work(self, step: dict[str, Any], task: str = "Pay it") -> Run:
        self.workshop.play(asking(step))
        return self.workshop.work(task, is_typed=True)


def pay_tool(param: str, schema: dict[str, Any]) -> SourceTool:
    params = describe_object("order", order=TEXT, **{param: schema})
    return SourceTool(PAY, Level.WRITE, params, lambda _: {})
