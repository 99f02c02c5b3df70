"""/api/asks: an agent makes asks and sees only its own asks; members read the asks of
their organization."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from agents.approvals import decisions
from agents.approvals.decisions import Decision
from agents.gateway.keys import issue_key
from agents.gateway.models import Ask
from agents.runs.models import Approval
from tests.world import World, nobody, post, problem

pytestmark = pytest.mark.django_db(transaction=True)


class Agent:
    """A client with an agent key of this member."""

    def __init__(self, world: World, member: str = "operator", name: str = "Laptop") -> None:
        self.secret = issue_key(world.member(member), world.employee.pk, name, 30)[1]
        self.client = Client(headers={"Authorization": f"Bearer {self.secret}"})

    def ask(self, **more: Any) -> dict[str, Any]:
        body = {"action": "deploy", "level": "write", **more}
        response = self.client.post("/api/asks", body, content_type="application/json")
        assert response.status_code == 201, response.content
        return dict(response.json())

    def get(self, ask: dict[str, Any]) -> dict[str, Any]:
        return dict(self.client.get(f"/api/asks/{ask['id']}").json())


@pytest.fixture
def agent(world: World) -> Agent:
    return Agent(world)


def decide(world: World, ask: dict[str, Any], *, approves: bool, **more: Any) -> Approval:
    """Let the approver decide the card of the ask."""
    card = Approval.objects.get(pk=ask["approval_id"])
    decision = Decision(digest=card.digest, confirm=ask["action"] if approves else "", **more)
    if approves:
        decisions.approve(world.member("approver"), card.pk, decision)
    else:
        decisions.deny(world.member("approver"), card.pk, decision)
    card.refresh_from_db()
    return card


def list_ids(client: Client, query: str = "") -> list[str]:
    return [item["id"] for item in client.get(f"/api/asks{query}").json()["items"]]


def test_people_see_all_marks_of_an_ask_and_its_agent_only_marks_of_its_own_text(
    world: World, agent: Agent
) -> None:
    ask = agent.ask(params={"to": "ann@new.example", "text": "H\u0430rbor"})
    seen = world.client("viewer").get(f"/api/asks/{ask['id']}").json()["marks"]
    assert [mark["kind"] for mark in seen] == ["alphabets", "new", "elsewhere", "destructive"]
    assert [mark["kind"] for mark in agent.get(ask)["marks"]] == ["alphabets"]
    listed = world.client("viewer").get("/api/asks").json()["items"]
    assert listed[0]["marks"] == seen


def test_an_agent_can_withdraw_the_asks_of_one_session(world: World, agent: Agent) -> None:
    mine = [
        agent.ask(effect_key=f"session:1:{number}", action=f"deploy.{number}")
        for number in range(3)
    ]
    kept = [
        agent.ask(effect_key="session:2:0"),
        agent.ask(effect_key="SESSION:1:0", action="x"),
        agent.ask(action="y"),
    ]
    others = Agent(world, name="Server").ask(effect_key="session:1:9", action="z")
    response = post(agent.client, "/api/asks/cancel", {"effect_key_prefix": "session:1:"})
    assert response.json() == {"cancelled": 3}
    assert {agent.get(each)["status"] for each in mine} == {"cancelled"}
    assert {agent.get(each)["status"] for each in kept} == {"waiting"}
    assert world.client("viewer").get(f"/api/asks/{others['id']}").json()["status"] == "waiting"
    assert post(agent.client, "/api/asks/cancel", {"effect_key_prefix": "session:1:"}).json() == {
        "cancelled": 0
    }


def test_the_agents_polling_is_recorded_on_the_ask_and_a_persons_request_is_not(
    world: World, agent: Agent
) -> None:
    ask = agent.ask()
    Ask.objects.update(last_asked_at=Now() - timedelta(hours=1))
    lately = Ask.objects.filter(pk=ask["id"], last_asked_at__gt=Now() - timedelta(minutes=1))
    assert world.client("approver").get(f"/api/asks/{ask['id']}").status_code == 200
    assert not lately.exists(), "a person has looked"
    agent.get(ask)
    assert lately.exists()


def test_a_prefix_of_effect_keys_that_is_too_short_is_refused(agent: Agent) -> None:
    problem(post(agent.client, "/api/asks/cancel", {"effect_key_prefix": "s"}), 422)
    problem(post(agent.client, "/api/asks/cancel", {"effect_key_prefix": ""}), 422)


class TestVisibilityOfAsks:
    def test_is_limited_for_agents_to_asks_made_with_their_own_key(
        self, world: World, agent: Agent
    ) -> None:
        own, others = agent.ask(), Agent(world, name="Server").ask()
        assert list_ids(agent.client) == [own["id"]]
        for path in ("", "/redeem", "/outcome", "/cancel"):
            body = {"/redeem": {"receipt": "x"}, "/outcome": {"outcome": "failed"}}.get(path)
            send = agent.client.post if path else agent.client.get
            problem(
                send(f"/api/asks/{others['id']}{path}", body, content_type="application/json"), 404
            )

    def test_extends_to_members_of_the_organization_and_not_to_outsiders(
        self, world: World, agent: Agent
    ) -> None:
        asks = [agent.ask(), Agent(world, name="Server").ask()]
        assert list_ids(world.client("viewer")) == [each["id"] for each in reversed(asks)]
        assert list_ids(world.client("outsider")) == []
        problem(world.client("outsider").get(f"/api/asks/{asks[0]['id']}"), 404)

    def test_excludes_requests_without_a_login(self, agent: Agent) -> None:
        agent.ask()
        problem(nobody().get("/api/asks"), 401)

    def test_does_not_let_a_member_make_or_withdraw_an_ask(
        self, world: World, agent: Agent
    ) -> None:
        operator = world.client("operator")
        assert (
            "Only an agent key"
            in problem(post(operator, "/api/asks", {"action": "deploy"}), 403)["detail"]
        )
        ask = agent.ask()
        problem(post(operator, f"/api/asks/{ask['id']}/cancel"), 403)
        assert agent.get(ask)["status"] == "waiting"

    def test_can_be_narrowed_by_effect_key_in_the_list(self, agent: Agent) -> None:
        asks = [agent.ask(effect_key=key) for key in ("a", "", "b")]
        assert list_ids(agent.client, "?effect_key=b") == [asks[2]["id"]]
        assert list_ids(agent.client, "?effect_key=c") == []
        assert len(list_ids(agent.client)) == 3


DECISION = ("status", "decided_by", "reason", "receipt", "receipt_expires_at")


def pick(ask: dict[str, Any], *names: str) -> list[Any]:
    return [ask[name] for name in names]


class TestDecisionOfAnAsk:
    def test_is_empty_while_the_ask_waits(self, agent: Agent) -> None:
        ask = agent.ask()
        assert pick(ask, *DECISION) == ["waiting", "", "", None, None]
        assert ask["decided_at"] is None

    def test_includes_a_receipt_for_the_agent_alone(self, world: World, agent: Agent) -> None:
        ask = agent.ask()
        card = decide(world, ask, approves=True)
        told = agent.get(ask)
        assert pick(told, "status", "decided_by", "reason") == ["approved", "approver", ""]
        assert told["receipt"].count(".") == 2
        assert told["decided_at"] is not None
        assert told["receipt_expires_at"] is not None
        assert card.valid_until is not None
        shown = world.client("approver").get(f"/api/asks/{ask['id']}").json()
        assert pick(shown, "status", "decided_by", "receipt") == ["approved", "approver", None]

    def test_stays_hidden_while_it_can_still_be_undone(self, world: World, agent: Agent) -> None:
        ask = agent.ask()
        card = decide(world, ask, approves=True, grace_s=60)
        told = agent.get(ask)
        assert pick(told, *DECISION) == ["waiting", "", "", None, None]
        assert told["decided_at"] is None
        Approval.objects.filter(pk=card.pk).update(start_after=Now() - timedelta(seconds=1))
        assert pick(agent.get(ask), "status", "decided_by") == ["approved", "approver"]

    def test_includes_the_reason_of_a_denial(self, world: World, agent: Agent) -> None:
        ask = agent.ask()
        decide(world, ask, approves=False, reason="Not on Fridays.")
        told = agent.get(ask)
        assert pick(told, *DECISION) == ["denied", "approver", "Not on Fridays.", None, None]
        assert told["decided_at"] is not None

    def test_does_not_include_the_receipt_once_it_is_redeemed(
        self, world: World, agent: Agent
    ) -> None:
        ask = agent.ask()
        decide(world, ask, approves=True)
        receipt = agent.get(ask)["receipt"]
        path = f"/api/asks/{ask['id']}/redeem"
        redeemed = agent.client.post(
            path, {"receipt": receipt}, content_type="application/json"
        ).json()
        assert pick(redeemed, *DECISION) == ["redeemed", "approver", "", None, None]
        assert redeemed["redeemed_at"] is not None
        assert redeemed["decided_at"] is not None


@pytest.mark.parametrize("levels", [100, 470, 900])
def test_params_with_100_levels_are_accepted_and_params_with_470_or_more_are_refused(
    agent: Agent, levels: int
) -> None:
    # Written as text, because encoding it would exceed the recursion limit here too.
    params = '{"a":' * levels + "1" + "}" * levels
    body = f'{{"action": "deploy", "level": "write", "params": {params}}}'
    response = agent.client.post("/api/asks", body, content_type="application/json")
    if levels == 100:
        assert response.status_code == 201, response.content
        assert agent.get(response.json())["params"] == json.loads(params)
    else:
        assert response.status_code in (400, 422), (
            "the parser may give up first, by how deep the caller is"
        )
        assert re.search("levels|nested too deeply", response.json()["detail"])
