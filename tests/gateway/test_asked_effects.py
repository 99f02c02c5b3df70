"""Asks about the same business effect, and repeated asks: two asks about one effect are never open
at the same time."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError
from django.db.models.functions import Now
from django.test import Client

from agents.employees.models import ToolRule
from agents.gateway import asks
from agents.gateway.asks import AskedRequest, SameEffect
from agents.gateway.models import AgentKey, Ask, RefusedAsk
from agents.gateway.redemptions import load_state
from agents.platform.refusals import Conflict, Invalid
from agents.web.cards.asks import SILENT_AFTER
from tests.features import feature
from tests.gateway.conftest import make_key
from tests.gateway.test_asks import ACTION, PARAMS, SPELLINGS, ask
from tests.workshop import Workshop, all_at_once, build_workshop


class TestAsksAboutOneEffect:
    def test_return_the_open_ask_to_the_same_request(self, key: AgentKey) -> None:
        first = asks.submit(key, AskedRequest(ACTION, PARAMS, "write", effect_key="refund:4711"))
        again_ = asks.submit(key, AskedRequest(ACTION, PARAMS, "write", effect_key="refund:4711"))
        assert (first[1], again_[1], again_[0].pk) == (True, False, first[0].pk)

    def test_are_refused_and_recorded_if_their_params_or_agent_keys_differ(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        first = ask(key, effect_key="refund:4711")
        other = make_key(workshop, "approver", name="Server")
        for asker, params in ((key, {"version": "2"}), (other, PARAMS)):
            with pytest.raises(SameEffect) as refusal:
                asks.submit(asker, AskedRequest(ACTION, params, "write", effect_key="refund:4711"))
            assert (refusal.value.status, refusal.value.code) == (409, "same_effect")
            assert "1.4.2" not in str(refusal.value.__dict__)
        assert [one.key_id for one in RefusedAsk.objects.filter(ask=first).order_by("pk")] == [
            key.pk,
            other.pk,
        ]
        assert Ask.objects.count() == 1

    @pytest.mark.parametrize("other", [True, 1.0, "1"])
    def test_are_refused_if_their_params_only_look_the_same(
        self, key: AgentKey, other: Any
    ) -> None:
        ask(key, params={"force": 1}, effect_key="refund:4711", client_request_id="a")
        with pytest.raises(SameEffect):
            ask(key, params={"force": other}, effect_key="refund:4711")
        with pytest.raises(Conflict, match="other params"):
            ask(key, params={"force": other}, client_request_id="a")

    def test_are_refused_if_their_level_or_audience_differs(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        ToolRule.objects.create(
            organization=workshop.organization, tool=f"ask/{ACTION}", level="read"
        )
        ask(key, effect_key="refund:4711", audience="a")
        for more in ({"level": "destructive", "audience": "a"}, {"audience": "b"}):
            with pytest.raises(SameEffect):
                ask(key, effect_key="refund:4711", **more)

    @pytest.mark.parametrize("spelling", SPELLINGS[1:])
    def test_are_refused_if_only_their_actions_spelling_differs(
        self, key: AgentKey, spelling: str
    ) -> None:
        ask(key, effect_key="refund:4711")
        with pytest.raises(SameEffect):
            ask(key, action=spelling, effect_key="refund:4711")
        ask(key, action=f"{ACTION}.other", effect_key="refund:4711")

    def test_are_stored_only_up_to_a_limit_if_they_are_refused(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        ask(key, effect_key="refund:4711")
        for number in range(asks.MAX_REFUSED + 5):
            with pytest.raises(SameEffect):
                ask(key, params={"version": str(number)}, effect_key="refund:4711")
        assert RefusedAsk.objects.count() == asks.MAX_REFUSED
        with pytest.raises(SameEffect):
            ask(make_key(workshop, name="Server"), effect_key="refund:4711")
        assert RefusedAsk.objects.count() == asks.MAX_REFUSED + 1
        second = ask(key, effect_key="refund:4712")
        with pytest.raises(SameEffect):
            ask(key, params={}, effect_key="refund:4712")
        assert RefusedAsk.objects.filter(ask=second).count() == 1, "beside each open one"

    def test_show_the_refused_params_to_people(self, workshop: Workshop, key: AgentKey) -> None:
        first = ask(key, effect_key="refund:4711")
        with pytest.raises(SameEffect):
            ask(key, params={"version": "6.6.6"}, effect_key="refund:4711")
        client = Client()
        client.force_login(workshop.approver.user)
        assert "6.6.6" in client.get(f"/approvals/{workshop.card(first.run).pk}/").content.decode()

    def test_are_allowed_at_the_same_time_for_different_actions_or_organizations(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        ask(key, effect_key="refund:4711")
        ask(key, action="refund.pay", effect_key="refund:4711")
        ask(make_key(build_workshop("globex")), effect_key="refund:4711")
        assert Ask.objects.count() == 3

    @feature("Agents elsewhere", "One business effect has one open ask", "agents/gateway/asks.py")
    def test_become_one_ask_if_six_arrive_at_the_same_time(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        made: list[bool] = []
        all_at_once(
            [
                lambda: made.append(
                    asks.submit(key, AskedRequest(ACTION, PARAMS, "write", effect_key="e"))[1]
                )
            ]
            * 6
        )
        assert sorted(made) == [False] * 5 + [True]
        assert Ask.objects.count() == 1

    def test_create_a_new_ask_after_a_decided_ask(self, workshop: Workshop, key: AgentKey) -> None:
        first = ask(key, effect_key="refund:4711")
        assert load_state(ask(key)).is_waiting, "an open ask about something else"
        workshop.deny(workshop.card(first.run))
        workshop.drive(first.run)
        second = ask(key, effect_key="refund:4711")
        assert (second.pk != first.pk, load_state(second).status) == (True, "waiting")
        client = Client()
        client.force_login(workshop.approver.user)
        page = client.get(f"/approvals/{workshop.card(second.run).pk}/").content.decode()
        assert "Earlier request about the same effect" in page

    @feature(
        "Agents elsewhere",
        "The card of an ask says since when its agent has not asked again",
        "agents/web/cards/asks.py",
    )
    def test_show_on_the_card_how_long_the_agent_has_been_silent(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key, effect_key="refund:4711")
        client = Client()
        client.force_login(workshop.approver.user)

        def is_told() -> bool:
            page = client.get(f"/approvals/{workshop.card(asked.run).pk}/").content.decode()
            return "The agent has not asked again since" in page

        assert not is_told(), "it has just asked"
        Ask.objects.update(last_asked_at=Now() - SILENT_AFTER)
        assert is_told()
        assert ask(key, effect_key="refund:4711").pk == asked.pk, "a retry finds the ask"
        assert not is_told()

    def test_return_the_same_ask_for_a_repeated_request_id(self, key: AgentKey) -> None:
        first = ask(key, client_request_id="a")
        assert ask(key, params={}, client_request_id="b").pk != first.pk
        key.employee.is_active = False
        assert ask(key, client_request_id="a").pk == first.pk, "whatever has changed meanwhile"
        for other in (
            {"params": {"version": "2"}},
            {"action": "deploy.staging"},
            {"audience": "b"},
        ):
            with pytest.raises(Conflict, match="other params or another audience"):
                ask(key, client_request_id="a", **other)

    def test_raise_an_unrelated_integrity_error_instead_of_treating_it_as_a_repeat(
        self, key: AgentKey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise IntegrityError("a broken index")

        monkeypatch.setattr(asks, "_create", fail)
        with pytest.raises(IntegrityError, match="broken index"):
            ask(key, client_request_id="a")

    def test_have_separate_request_ids_for_each_key(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        other = make_key(workshop, "approver")
        assert ask(key, client_request_id="a").pk != ask(other, client_request_id="a").pk

    def test_have_reserved_request_ids_that_no_person_can_use(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        with pytest.raises(Invalid, match="reserved"):
            workshop.submit(client_request_id=f"ask:{key.pk}:a")
