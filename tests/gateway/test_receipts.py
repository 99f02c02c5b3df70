"""Receipts: an approval is redeemed once, with exactly its own receipt, and anybody can verify a
receipt."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from pytest_django import Settings

from agents.accounts.models import Membership, Role
from agents.approval_rules.models import ApprovalRule
from agents.approvals.withheld_bulks import withhold
from agents.employees.models import ToolRule
from agents.gateway import redemptions
from agents.gateway.keys import revoke_key
from agents.gateway.models import AgentKey, Ask, SigningKey
from agents.gateway.receipts import (
    KEYS_ARE_KNOWN,
    InvalidReceipt,
    Receipt,
    digest_params,
    list_public_keys,
    read_receipt,
    rotate_signing_key,
    sign_receipt,
)
from agents.gateway.redemptions import expire_approval, load_state, load_states
from agents.platform.refusals import Conflict, Expired, Invalid, NotFound
from agents.runs import stops
from agents.runs.models import Approval, ApprovalStatus, ToolCall, WithheldBulk
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.gateway.conftest import make_key
from tests.gateway.test_asks import ACTION, PARAMS, SPELLINGS, approve, ask, redeem
from tests.workshop import LONG_AGO, Workshop, all_at_once, build_workshop


def make_approver(workshop: Workshop, name: str) -> Membership:
    user = User.objects.create_user(name)
    return Membership.objects.create(
        organization=workshop.organization, user=user, role=Role.APPROVER
    )


CLAIMS = Receipt(
    "gadget", "acme", "1", "agent_key:1", ACTION, "write", "0", "approved", "ada", "", 1, 2
)


class TestRedeemingAReceipt:
    def test_is_possible_once(self, workshop: Workshop, key: AgentKey) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        redeem(key, asked, receipt)
        with pytest.raises(Conflict, match="already redeemed"):
            redeem(key, asked, receipt)

    def test_is_refused_once_the_bulk_of_its_approval_is_undone(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked, other = ask(key), ask(key)
        receipts = [approve(workshop, one).sign() for one in (asked, other)]
        bulk_id = uuid4()
        card = Approval.objects.filter(run=asked.run, status="approved")
        card.update(bulk_id=bulk_id)
        decided_by = workshop.approver.user
        WithheldBulk.objects.create(
            organization=workshop.organization, user=decided_by, bulk_id=bulk_id
        )
        with pytest.raises(Conflict):
            redeem(key, asked, receipts[0])
        assert redeem(key, other, receipts[1]).status == "redeemed"

    def test_is_impossible_while_the_ask_of_an_undone_bulk_waits_again_without_a_receipt(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked, other = ask(key), ask(key)
        for one in (asked, other):
            assert approve(workshop, one).sign()
        bulk_id = uuid4()
        Approval.objects.filter(run=asked.run, status="approved").update(bulk_id=bulk_id)
        withhold(workshop.approver, bulk_id)
        states = load_states([asked, other])
        assert [(state.status, bool(state.sign())) for state in states] == [
            ("waiting", False),
            ("approved", True),
        ]

    def test_does_not_use_up_another_approval(self, workshop: Workshop, key: AgentKey) -> None:
        before, asked, after = (ask(key) for _ in range(3))
        receipts = [approve(workshop, one).sign() for one in (before, asked, after)]
        redeem(key, asked, receipts[1])
        states = load_states(list(Ask.objects.order_by("pk")))
        assert [state.status for state in states] == ["approved", "redeemed", "approved"]
        assert [state.ask.redeemed_at is None for state in states] == [True, False, True]
        assert [state.sign() for state in states] == [receipts[0], "", receipts[2]]

    @feature(
        "Agents elsewhere", "A receipt is signed and works once", "agents/gateway/redemptions.py"
    )
    def test_succeeds_once_for_simultaneous_requests(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        responses: list[str] = []

        def try_once() -> None:
            try:
                responses.append(redeem(key, asked, receipt).status)
            except Conflict as refusal:
                responses.append(refusal.code)

        all_at_once([try_once] * 8)
        assert sorted(responses) == [*["conflict"] * 7, "redeemed"]

    def test_with_another_key_is_refused_as_not_found(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        with pytest.raises(NotFound):
            redeem(make_key(workshop, "approver"), asked, receipt)

    def test_for_another_ask_is_refused(self, workshop: Workshop, key: AgentKey) -> None:
        one, two = ask(key), ask(key)
        approve(workshop, one)
        with pytest.raises(Invalid, match="differs from this ask in: ask"):
            redeem(key, one, approve(workshop, two).sign())

    def test_from_another_organization_is_refused(self, workshop: Workshop, key: AgentKey) -> None:
        others = build_workshop("globex")
        foreign_key = make_key(others)
        foreign = approve(others, ask(foreign_key))
        asked = ask(key)
        approve(workshop, asked)
        with pytest.raises(Invalid, match="org"):
            redeem(key, asked, foreign.sign())

    @pytest.mark.parametrize("claim", [field.name for field in fields(Receipt)])
    def test_compares_each_claim(self, workshop: Workshop, key: AgentKey, claim: str) -> None:
        """Even a validly signed receipt is refused if a claim differs."""
        asked = ask(key)
        state = approve(workshop, asked)
        claims = read_receipt(state.sign())
        other: dict[str, Any] = {claim: 1 if claim in ("iat", "exp") else "another"}
        changed = replace(claims, **other)
        with pytest.raises(Invalid, match=claim):
            redeem(key, asked, sign_receipt(changed))

    def test_is_refused_once_the_receipt_has_expired(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        Approval.objects.update(valid_until=Now() - LONG_AGO)
        assert (load_state(asked).has_ended, load_state(asked).sign()) == (True, "")
        with pytest.raises(Expired):
            redeem(key, asked, receipt)
        sweep_once()
        assert load_state(asked).status == "expired"
        with pytest.raises(Conflict, match="it is expired"):
            redeem(key, asked, receipt)
        workshop.drive(asked.run)

    def test_is_refused_if_the_receipt_expires_during_the_request(
        self, workshop: Workshop, key: AgentKey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()

        def take_long(_: ToolCall) -> None:
            Approval.objects.update(valid_until=Now() - LONG_AGO)

        monkeypatch.setattr(redemptions, "_check_rule", take_long)
        with pytest.raises(Conflict, match="or its approval has expired"):
            redeem(key, asked, receipt)

    def test_in_time_prevents_the_approval_from_expiring(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        late, in_time, used, waiting = (ask(key) for _ in range(4))
        cards = [approve(workshop, one).card for one in (late, in_time, used)]
        redeem(key, used, load_state(used).sign())
        Approval.objects.filter(pk__in=[cards[0].pk, cards[2].pk]).update(
            valid_until=Now() - LONG_AGO
        )
        Approval.objects.filter(run=waiting.run).update(valid_until=Now() - LONG_AGO)
        assert not any(expire_approval(one.pk) for one in [*cards[1:], workshop.card(waiting.run)])
        assert expire_approval(cards[0].pk)
        assert Approval.objects.get(pk=cards[0].pk).status == ApprovalStatus.CANCELLED
        assert not expire_approval(cards[0].pk)
        assert [load_state(one).status for one in (in_time, used, waiting)] == [
            "approved",
            "redeemed",
            "waiting",
        ]
        workshop.drive(late.run)

    def test_is_refused_for_changed_params(self, workshop: Workshop, key: AgentKey) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        ToolCall.objects.update(params={"version": "6.6.6"})
        with pytest.raises(Invalid, match="params_digest"):
            redeem(key, asked, receipt)
        ToolCall.objects.update(params=PARAMS)

    def test_is_refused_during_a_stop(self, workshop: Workshop, key: AgentKey) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        stops.stop_everything(workshop.operator)
        with pytest.raises(Conflict, match=r"nothing may start now: .*acme-operator"):
            redeem(key, asked, receipt)

    @feature(
        "Agents elsewhere",
        "An action that was stopped or raised since its approval is not redeemed",
        "agents/gateway/redemptions.py",
    )
    @pytest.mark.parametrize("action", SPELLINGS)
    def test_is_refused_for_a_stopped_action(
        self, workshop: Workshop, key: AgentKey, action: str
    ) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        rules = {"organization": workshop.organization, "tool": f"ask/{action}"}
        ToolRule.objects.create(**rules, stopped_at=Now(), stopped_by="grace")
        with pytest.raises(Conflict, match="was stopped by grace"):
            redeem(key, asked, receipt)

    def test_is_unaffected_by_rules_of_other_organizations_or_about_other_actions(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        others = build_workshop("globex").organization
        for organization, tool in (
            (workshop.organization, "ask/deploy.staging"),
            (others, f"ask/{ACTION}"),
        ):
            ToolRule.objects.create(
                organization=organization, tool=tool, stopped_at=Now(), stopped_by="grace"
            )
        assert redeem(key, asked, receipt).status == "redeemed"

    @pytest.mark.parametrize("level_again", ["read", "write", ""])
    def test_is_refused_for_an_action_with_a_raised_level(
        self, workshop: Workshop, key: AgentKey, level_again: str
    ) -> None:
        rule = ToolRule.objects.create(
            organization=workshop.organization, tool=f"ask/{ACTION}", level="write"
        )
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        rule.level = "destructive"
        rule.save()
        with pytest.raises(Conflict, match="the level of this action is destructive now"):
            redeem(key, asked, receipt)
        rule.level = level_again
        rule.save()
        assert redeem(key, asked, receipt).status == "redeemed"

    def test_is_refused_for_a_card_changed_in_the_database(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        Approval.objects.filter(run=asked.run).update(
            sentence="Something else", preview={"changed": True}
        )
        with pytest.raises(Conflict, match="changed in the database"):
            redeem(key, asked, receipt)

    def test_is_refused_for_a_revoked_key(self, workshop: Workshop, key: AgentKey) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        revoke_key(workshop.operator, key.pk)
        with pytest.raises(Conflict):
            redeem(key, asked, receipt)
        assert load_state(asked).status == "cancelled"


class TestAReceipt:
    @feature(
        "Agents elsewhere",
        "The public keys check a receipt without Gadget",
        "agents/gateway/receipts.py",
    )
    def test_can_be_verified_with_only_the_public_keys(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key, audience="deployer")
        claims = read_receipt(approve(workshop, asked).sign())
        assert (claims.org, claims.ask, claims.action, claims.aud) == (
            "acme",
            str(asked.pk),
            ACTION,
            "deployer",
        )
        assert claims.params_digest == digest_params(PARAMS)
        assert claims.decided_by == workshop.approver.user.get_username()
        assert 3599 <= claims.exp - claims.iat <= 3600, "both are whole seconds"

    def test_names_everybody_whose_vote_counted(self, workshop: Workshop, key: AgentKey) -> None:
        ApprovalRule.objects.create(
            organization=workshop.organization, name="two", needed=2, tool=f"ask/{ACTION}"
        )
        first, second = ask(key), ask(key)
        voters = {
            first: [workshop.approver, workshop.admin],
            second: [workshop.admin, make_approver(workshop, "fay")],
        }
        for asked, people in voters.items():
            card = workshop.card(asked.run)
            workshop.approve(card, by=make_approver(workshop, f"doubter-{asked.pk}"))
            workshop.undo(card, by=Membership.objects.get(user__username=f"doubter-{asked.pk}"))
            for person in people:
                workshop.approve(card, by=person)
        names = [read_receipt(load_state(asked).sign()).decided_by for asked in voters]
        assert names == ["acme-approver, acme-admin", "acme-admin, fay"]

    def test_names_the_installation(
        self, workshop: Workshop, key: AgentKey, settings: Settings
    ) -> None:
        state = approve(workshop, ask(key))
        for origin, issuer in (
            ("", "gadget"),
            ("https://gadget.example", "https://gadget.example"),
        ):
            settings.GADGET_ORIGIN = origin
            assert read_receipt(state.sign()).iss == issuer

    def test_is_the_same_for_the_same_state(self, workshop: Workshop, key: AgentKey) -> None:
        asked = ask(key)
        assert approve(workshop, asked).sign() == load_state(asked).sign()

    def test_is_not_genuine_if_changed(self, workshop: Workshop, key: AgentKey) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        head, body, signature = receipt.split(".")
        for forged in (
            f"{head}.{body[:-2]}AA.{signature}",
            f"{head}.{body}.{signature[:-4]}AAAA",
            "",
            "a.b.c",
            "ä.ö.ü",
            f"{'W1tb' * 2_600}.a.b",
            f"eyJraWQiOiJub2JvZHkifQ.{body}.{signature}",  # an unknown key
        ):
            with pytest.raises(InvalidReceipt):
                read_receipt(forged)
        with pytest.raises(Invalid, match="not genuine"):
            redeem(key, asked, forged)

    def test_is_not_genuine_in_another_encoding(self, workshop: Workshop, key: AgentKey) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        head, body, signature = receipt.split(".")
        spare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        last = spare[spare.index(signature[-1]) ^ 1]  # differs only in unused bits
        respelled = (
            f"{signature}==",
            f"{signature}\n",
            f" {signature}",
            f"{signature[:9]}!{signature[9:]}",
        )
        for other in (
            *respelled,
            signature[:-1] + last,
            signature.replace("-", "+").replace("_", "/") + "=",
        ):
            with pytest.raises(Invalid, match="not genuine"):
                redeem(key, asked, f"{head}.{body}.{other}")
        redeem(key, asked, receipt)

    def test_is_still_redeemed_after_its_key_is_retired(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        asked = ask(key)
        receipt = approve(workshop, asked).sign()
        assert rotate_signing_key().is_current
        assert len(list_public_keys()) == 2
        assert redeem(key, asked, receipt).status == "redeemed"

    def test_is_signed_with_the_new_key_after_a_rotation(
        self, workshop: Workshop, key: AgentKey
    ) -> None:
        ended = sign_receipt(CLAIMS).partition(".")[0]
        rotate_signing_key()
        assert read_receipt(sign_receipt(CLAIMS)) == CLAIMS
        assert sign_receipt(CLAIMS).partition(".")[0] != ended

    def test_has_no_served_public_key_long_after_its_key_was_retired(self, db: None) -> None:
        rotate_signing_key()
        rotate_signing_key()
        SigningKey.objects.filter(is_current=False).update(
            retired_at=Now() - KEYS_ARE_KNOWN - timedelta(seconds=1)
        )
        rotate_signing_key()
        served = [one["kid"] for one in list_public_keys()]
        assert served == list(
            SigningKey.objects.order_by("-pk").values_list("key_id", flat=True)[:2]
        )

    def test_can_be_checked_with_public_keys_served_to_everyone(self, db: None) -> None:
        served = json.loads(Client().get("/.well-known/gadget-keys.json").content)
        assert served == {"keys": list_public_keys()}
        assert set(served["keys"][0]) == {"kty", "crv", "alg", "use", "kid", "x"}, "no private part"
