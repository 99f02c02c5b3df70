"""Asks: before an agent acts on its own, it asks; it redeems the receipt once, and reports the
outcome."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from agents.accounts.models import AuditEntry
from agents.approvals import decisions
from agents.approvals.bulk import decide_many
from agents.approvals.decisions import Decision
from agents.employees.models import ToolRule
from agents.gateway import asks, redemptions
from agents.gateway.asks import MAX_HEADLINE, MAX_OPEN_ASKS, MAX_PARAMS, AskedRequest
from agents.gateway.keys import revoke_key
from agents.gateway.levels import set_level
from agents.gateway.models import AgentKey, Ask
from agents.gateway.redemptions import AskState, load_state
from agents.platform.refusals import Conflict, Forbidden, Invalid
from agents.runs import stops
from agents.runs.models import Approval, ApprovalStatus, Run, RunStatus, ToolCall
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.gateway.conftest import make_key
from tests.workshop import Workshop, again, all_at_once, build_workshop, event_types, expire_card
from tools.contract import Level

ACTION, PARAMS = "deploy.production", {"version": "1.4.2", "region": "zürich"}
SPELLINGS = (
    ACTION,
    "DEPLOY.PRODUCTION",
    "deploy_production",
    "Deploy:Production",
    "depl0y-production",
)


def ask(key: AgentKey, action: str = ACTION, **more: Any) -> Ask:
    """Ask about the action."""
    return asks.submit(key, AskedRequest(action, **{"params": PARAMS, "level": "write", **more}))[0]


def approve(workshop: Workshop, asked: Ask, **more: Any) -> AskState:
    card = workshop.card(asked.run)
    decision = decisions.Decision(digest=card.digest, confirm=asked.action, **more)
    decisions.approve(workshop.approver, card.pk, decision)
    return load_state(asked)


def redeem(key: AgentKey, asked: Ask, receipt: str) -> AskState:
    return redemptions.redeem(key, str(asked.pk), receipt)


def report(
    key: AgentKey, asked: Ask, outcome: str = "succeeded", summary: str = "Done."
) -> AskState:
    return redemptions.report_outcome(key, str(asked.pk), outcome, summary)


class TestAnAsk:
    @feature(
        "Agents elsewhere",
        "An agent that acts on its own asks, and a person decides on a card that says so",
        "agents/gateway/asks.py",
    )
    def test_is_recorded_from_the_request_to_its_outcome(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key, sentence="Deploy 1.4.2", effect="The site restarts.")
        assert load_state(asked).status == "waiting"
        assert again(asked.run).status == RunStatus.WAITING
        state = approve(workshop, asked)
        assert state.status == "approved"
        assert state.sign()
        sweep_once()
        assert load_state(asked).status == "approved", "nothing starts it"
        redeemed = redeem(key, asked, state.sign())
        assert (redeemed.status, redeemed.ask.redeemed_at is not None) == ("redeemed", True)
        assert again(asked.run).status == RunStatus.WAITING
        reported = report(key, asked)
        assert (reported.status, reported.ask.reported_at is not None) == ("succeeded", True)
        run = workshop.drive(asked.run)
        assert (run.status, run.answer) == (
            RunStatus.SUCCEEDED,
            "The agent reported success. Done.",
        )
        assert ToolCall.objects.get().attempts == 1
        assert Approval.objects.get().status == ApprovalStatus.CONSUMED
        assert event_types(run) == [
            *("run_started", "pass_started", "approval_requested", "approval_decided"),
            *("tool_start", "tool_result", "run_finished"),
        ]
        actions = set(AuditEntry.objects.values_list("action", flat=True))
        assert {"card_approved", "receipt_redeemed", "outcome_reported"} <= actions

    def test_with_a_reported_failure_is_recorded_as_failed(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        redeem(key, asked, approve(workshop, asked).sign())
        assert report(key, asked, "failed", "No space.").status == "failed"
        assert "No space." in workshop.drive(asked.run).answer

    def test_that_was_denied_includes_the_reason(self, workshop: Workshop, key: AgentKey) -> None:
        asked = ask(key)
        workshop.deny(workshop.card(asked.run), "not on a Friday")
        state = load_state(asked)
        assert (state.status, state.card.reason, state.sign()) == ("denied", "not on a Friday", "")
        workshop.drive(asked.run)

    def test_without_a_decision_expires(self, workshop: Workshop, key: AgentKey) -> None:
        asked = ask(key, expires_s=60)
        card = workshop.card(asked.run)
        assert card.expires_at - card.requested_at < timedelta(seconds=61)
        expire_card(card)
        sweep_once()
        assert load_state(asked).status == "expired"
        workshop.drive(asked.run)

    def test_can_be_withdrawn_repeatedly_and_is_audited_once(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        assert redemptions.cancel(key, str(asked.pk)).status == "cancelled"
        assert redemptions.cancel(key, str(asked.pk)).status == "cancelled"
        assert AuditEntry.objects.filter(action="ask_cancelled").count() == 1, (
            "again changes nothing"
        )
        workshop.drive(asked.run)

    def test_does_not_get_more_time_after_an_undone_approval(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key, expires_s=60)
        workshop.undo(approve(workshop, asked).card)
        card = workshop.card(asked.run)
        assert timedelta(seconds=0) < card.expires_at - card.requested_at < timedelta(seconds=61)

    def test_cannot_be_decided_by_the_member_of_its_key_under_the_two_person_rule(
        self, workshop: Workshop
    ) -> None:
        workshop.organization.four_eyes = True
        workshop.organization.save()
        asked = ask(make_key(workshop, "approver"))
        with pytest.raises(Forbidden):
            approve(workshop, asked)

    def test_with_a_key_revoked_since_it_was_checked_is_refused_and_not_recorded(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        revoke_key(workshop.admin, key.pk)
        with pytest.raises(Conflict, match="no longer works"):
            ask(key)
        assert not Run.objects.exists()

    def test_cannot_be_withdrawn_once_it_is_redeemed(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        redeem(key, asked, approve(workshop, asked).sign())
        assert redemptions.cancel(key, str(asked.pk)).status == "redeemed"

    def test_has_an_approval_that_a_person_can_undo_until_it_is_redeemed(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        state = approve(workshop, asked)
        workshop.undo(state.card)
        assert load_state(asked).status == "waiting"
        with pytest.raises(Conflict, match="not approved"):
            redeem(key, asked, state.sign())
        redeem(key, asked, approve(workshop, asked).sign())
        with pytest.raises(Conflict):
            workshop.undo(Approval.objects.latest("pk"))

    def test_is_approved_only_after_the_time_to_undo(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        state = approve(workshop, asked, grace_s=30)
        assert (state.status, state.sign()) == ("waiting", "")
        Approval.objects.update(start_after=Now())
        assert load_state(asked).status == "approved"

    def test_cannot_be_edited(self, workshop: Workshop, key: AgentKey) -> None:
        card = workshop.card(ask(key).run)
        with pytest.raises(Invalid, match="the agent acts with the parameters that it asked about"):
            workshop.edit(card, {"version": "2"})

    def test_has_a_card_that_names_the_agent_and_the_action(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        first = workshop.card(ask(key, params={"version": "1.4.2", "hosts": ["a", "b"]}).run)
        assert (
            first.sentence
            == 'Run **deploy.production** (“version: 1.4.2, hosts: ["a","b"]”), asked by **Laptop**'
        )
        inner = workshop.card(
            ask(key, params={"tool": "Bash", "input": {"command": "make deploy"}}).run
        )
        assert (
            inner.sentence
            == "Run **deploy.production** (“command: make deploy, tool: Bash”), asked by **Laptop**"
        )
        second = workshop.card(ask(key, params={"text": "x\n" * 1_000}).run)
        assert len(second.sentence) < 220
        assert "\n" not in second.sentence

    def test_cannot_be_approved_in_bulk(self, workshop: Workshop, key: AgentKey) -> None:
        card = workshop.card(ask(key).run)
        decision = Decision(card.digest, confirm="deploy")
        (outcome,) = decide_many(workshop.approver, [(card.pk, "approve", decision)])
        assert "Not run by Gadget" in outcome.detail


class TestLevelsOfActions:
    @pytest.mark.parametrize("has_rule", [False, True])
    def test_are_destructive_unless_a_level_is_set(
        self, workshop: Workshop, key: AgentKey, has_rule: bool
    ) -> None:
        if has_rule:
            ToolRule.objects.create(organization=workshop.organization, tool=f"ask/{ACTION}")
        card = workshop.card(ask(key, level="read").run)
        assert (card.level, "nobody has set a level" in card.why) == (Level.DESTRUCTIVE, True)

    @feature(
        "Agents elsewhere",
        "The organization's level of an action raises the agent's, and never lowers it",
        "agents/gateway/levels.py",
    )
    @pytest.mark.parametrize(
        ("asked", "ruled", "level"),
        [
            ("read", "write", "write"),
            ("destructive", "write", "destructive"),
            ("read", "draft", "draft"),
        ],
    )
    def test_can_be_raised_and_never_lowered_by_an_ask(
        self, workshop: Workshop, key: AgentKey, asked: str, ruled: str, level: str
    ) -> None:
        workshop.raise_for_all(f"ask/{ACTION}", Level(ruled))
        assert workshop.card(ask(key, level=asked).run).level == level

    def test_require_a_card_even_for_a_read(self, workshop: Workshop, key: AgentKey) -> None:
        workshop.raise_for_all(f"ask/{ACTION}", Level.READ)
        assert workshop.card(ask(key, level="read").run).level == Level.READ

    def test_are_not_affected_by_rules_of_other_organizations_or_about_other_actions(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        build_workshop("globex").raise_for_all(f"ask/{ACTION}", Level.WRITE)
        workshop.raise_for_all("ask/deploy.staging", Level.WRITE)
        assert workshop.card(ask(key).run).level == Level.DESTRUCTIVE

    @pytest.mark.parametrize(
        ("own", "other", "level"),
        [
            ("read", "write", "write"),
            ("write", "read", "write"),
            ("", "read", "destructive"),
            ("", "", "destructive"),
        ],
    )
    def test_are_the_highest_of_all_spellings_but_destructive_if_the_asks_spelling_has_none(
        self, workshop: Workshop, key: AgentKey, own: str, other: str, level: str
    ) -> None:
        for action, ruled in ((ACTION, own), ("Deploy_Production", other)):
            ToolRule.objects.create(
                organization=workshop.organization, tool=f"ask/{action}", level=ruled
            )
        card = workshop.card(ask(key, level="read").run)
        assert (card.level, "nobody has set a level" in card.why) == (level, not own)

    @pytest.mark.parametrize("action", SPELLINGS)
    def test_do_not_allow_an_ask_about_a_stopped_action_in_any_spelling(
        self, workshop: Workshop, key: AgentKey, action: str
    ) -> None:
        ToolRule.objects.create(
            organization=workshop.organization,
            tool=f"ask/{ACTION}",
            stopped_at=Now(),
            stopped_by="Ada",
        )
        with pytest.raises(Forbidden, match="stopped by Ada"):
            ask(key, action=action)
        assert ask(key, action="deploy.staging")

    def test_do_not_allow_asks_for_an_inactive_employee(self, key: AgentKey) -> None:
        key.employee.is_active = False
        with pytest.raises(Conflict, match="not active"):
            ask(key)

    def test_do_not_allow_asks_while_everything_is_stopped(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        stops.stop_everything(workshop.operator)
        key.employee.organization.refresh_from_db()
        with pytest.raises(Conflict):
            ask(key)

    def test_can_be_set_by_simultaneous_requests(self, workshop: Workshop, key: AgentKey) -> None:
        all_at_once([lambda: set_level(workshop.admin, ACTION, "write")] * 4)
        assert workshop.card(ask(key).run).level == Level.WRITE


class TestInputOfAnAsk:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("action", "rm -rf /"),
            ("action", ""),
            ("action", "x" * 101),
            ("level", "harmless"),
            ("params", {"x": "y" * 70_000}),
            ("params", {"x": float("nan")}),
            ("sentence", "x" * 2_001),
            ("effect", "\0"),
            ("effect_key", "x" * 201),
            ("audience", "x" * 201),
            ("client_request_id", "x" * 151),
            ("client_request_id", "\0"),
            ("expires_s", 9),
            ("expires_s", 8 * 24 * 3600),
        ],
    )
    def test_with_an_invalid_field_is_reported(self, key: AgentKey, field: str, value: Any) -> None:
        with pytest.raises(Invalid) as refusal:
            ask(key, **{field: value})
        assert refusal.value.extra["field"] == field
        assert not Run.objects.exists()

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("params", {"x": "y" * (MAX_PARAMS - len('{"x":""}'))}),
            ("client_request_id", "x" * 150),
            ("action", "x" * 100),
            ("sentence", "x" * 2_000),
            ("effect", "x" * 2_000),
            ("effect_key", "x" * 200),
            ("audience", "x" * 200),
            ("expires_s", 10),
            ("expires_s", 7 * 24 * 3600),
        ],
    )
    def test_at_its_limit_is_accepted(
        self, workshop: Workshop, key: AgentKey, field: str, value: Any
    ) -> None:
        assert load_state(ask(key, **{field: value})).is_waiting

    @pytest.mark.parametrize(
        ("length", "is_cut"), [(MAX_HEADLINE, False), (MAX_HEADLINE + 1, True)]
    )
    def test_is_truncated_in_the_cards_sentence_if_it_is_too_long(
        self, workshop: Workshop, key: AgentKey, length: int, is_cut: bool
    ) -> None:
        asked = ask(key, params={"x": "y" * (length - len("x: "))})
        assert ("…" in workshop.card(asked.run).sentence) == is_cut

    @pytest.mark.parametrize("number", [1e17, -0.0, 1e300])
    def test_with_a_number_that_cannot_be_stored_exactly_is_refused(
        self, key: AgentKey, number: float
    ) -> None:
        with pytest.raises(Invalid, match="cannot be stored exactly"):
            ask(key, params={"amount": number})

    def test_is_refused_beyond_the_limit_of_open_asks(
        self, workshop: Workshop, key: AgentKey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert MAX_OPEN_ASKS == 100
        monkeypatch.setattr(asks, "MAX_OPEN_ASKS", 2)
        ask(make_key(workshop, name="Server"))
        first, _ = ask(key), ask(key)
        with pytest.raises(Conflict, match="at most 2 asks"):
            ask(key)
        workshop.deny(workshop.card(first.run))
        assert load_state(ask(key)).is_waiting, "those that people have decided do not count"

    def test_cannot_be_edited_on_the_card_or_covered_by_a_standing_grant(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        client = Client()
        client.force_login(workshop.approver.user)
        page = client.get(f"/approvals/{workshop.card(asked.run).pk}/").content.decode()
        assert "Gadget does not run this; the agent will." in page
        assert "Allow more like this" not in page
        assert "Edit…" not in page
