"""Break-glass: an admin approves alone, without the approval rules, and all admins are notified."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import time

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from pytest_django import Settings

from agents.accounts.members import update_admin_access
from agents.accounts.membership import issue_token
from agents.accounts.models import AuditEntry, Membership, Organization, Role
from agents.accounts.notice_facts import NoticeKind
from agents.approval_rules.models import ApproverGroup
from agents.approvals import decisions
from agents.deliveries.engine import send_next
from agents.deliveries.models import DeliveryStatus
from agents.employees.models import Employee, ToolRule
from agents.notices.channels import (
    add_known_email,
    ensure_break_glass_channel,
    list_channels,
    remove_channel,
)
from agents.notices.choices import CHOSEN_KINDS
from agents.notices.models import Channel, ChannelKind, Delivery, Notice, NoticeChoices
from agents.notices.spreading import spread_notices
from agents.platform.refusals import Conflict, Expired, Forbidden, Invalid, NotFound, StaleDigest
from agents.policy.recorded_calls import CallFilter
from agents.policy.recorded_rulings import CheckedApproval, check_ruling, read_ruled
from agents.runs.models import Approval, ApprovalStatus
from tests.approvals.test_votes import add_member, make_rule
from tests.features import feature
from tests.mail_server import MailServer
from tests.recorder import Recorder
from tests.workshop import Workshop, asking, call, read_everything

pytestmark = pytest.mark.django_db(transaction=True)

REASON = "The customer's shop is down and Finance is asleep."


@pytest.fixture
def ada(workshop: Workshop, settings: Settings) -> Membership:
    """An admin of an organization that allows break-glass and has another admin with an address."""
    settings.GADGET_SHOWS_MESSAGES = True
    Organization.objects.update(break_glass=True)
    add_known_email(add_member(workshop, "zoe", role=Role.ADMIN), "zoe@example.com")
    return add_member(workshop, "ada", role=Role.ADMIN)


@pytest.fixture
def card(workshop: Workshop, recorder: Recorder, ada: Membership) -> Approval:
    """A waiting card that two people of Finance must approve."""
    finance = ApproverGroup.objects.create(organization=workshop.organization, name="Finance")
    make_rule(workshop, needed=2, group=finance, tool="probe.effect")
    workshop.play(asking(call("probe.effect", name="pay")))
    return workshop.card(workshop.work())


def break_glass(
    member: Membership, card: Approval, reason: str = REASON, digest: str = ""
) -> Approval:
    decision = decisions.Decision(digest or card.digest, reason=reason, breaks_glass=True)
    return decisions.approve(Membership.objects.get(pk=member.pk), card.pk, decision)


def log_in(member: Membership) -> Client:
    client = Client()
    client.force_login(member.user)
    return client


def test_the_call_runs_after_an_admin_approves_alone(
    workshop: Workshop, recorder: Recorder, card: Approval, ada: Membership
) -> None:
    with pytest.raises(Forbidden):
        workshop.approve(card, by=ada)
    assert break_glass(ada, card).status == ApprovalStatus.APPROVED
    workshop.drive(card.run)
    assert sum(recorder.effects.values()) == 1


@feature(
    "The inbox",
    "An admin approves alone in an emergency, and all admins are notified",
    "agents/approvals/break_glass.py",
)
def test_break_glass_is_reported_on_the_card_in_the_audit_and_by_a_notice(
    workshop: Workshop, card: Approval, ada: Membership
) -> None:
    break_glass(ada, card)
    workshop.drive(card.run)
    card.refresh_from_db()
    assert (card.broke_glass, card.reason) == (True, REASON)
    entry = AuditEntry.objects.get(action="glass_broken")
    assert (entry.actor, entry.subject, entry.payload["reason"]) == (
        "user:ada",
        f"approval:{card.pk}",
        REASON,
    )
    read_everything()
    assert Notice.objects.get(kind=NoticeKind.BREAK_GLASS).approval_id == card.pk


def test_nobody_can_opt_out_of_notices_about_break_glass() -> None:
    assert NoticeKind.BREAK_GLASS not in CHOSEN_KINDS


def test_an_ordinary_approval_is_not_recorded_as_break_glass(
    workshop: Workshop, recorder: Recorder, ada: Membership
) -> None:
    workshop.play(asking(call("probe.effect", name="pay")))
    card = workshop.card(workshop.work())
    workshop.approve(card, by=ada)
    card.refresh_from_db()
    assert not card.broke_glass
    read_everything()
    assert not Notice.objects.filter(kind=NoticeKind.BREAK_GLASS).exists()


def test_break_glass_is_off_by_default(card: Approval, ada: Membership) -> None:
    assert not Organization._meta.get_field("break_glass").default
    Organization.objects.update(break_glass=False)
    with pytest.raises(Forbidden, match="does not allow"):
        break_glass(ada, card)


@pytest.mark.parametrize("reason", ["", "urgent", " " * 30, "x" * 19, "\u200b" * 30])
def test_a_short_reason_is_refused(card: Approval, ada: Membership, reason: str) -> None:
    with pytest.raises(Invalid, match="20 characters"):
        break_glass(ada, card, reason)


def test_only_admins_can_use_break_glass(
    workshop: Workshop, card: Approval, ada: Membership
) -> None:
    with pytest.raises(Forbidden, match="only admins"):
        break_glass(add_member(workshop, "ben"), card)


def test_an_admin_who_requested_or_edited_the_call_cannot_use_break_glass(
    workshop: Workshop, card: Approval, ada: Membership
) -> None:
    edited = decisions.edit(
        ada, card.pk, decisions.Decision(card.digest), card.params | {"name": "less"}
    )
    with pytest.raises(Forbidden, match="asked for this call or edited it"):
        break_glass(ada, edited)
    add_known_email(ada, "ada@example.com")
    zoe = Membership.objects.get(user__username="zoe")
    assert break_glass(zoe, edited).status == ApprovalStatus.APPROVED


def test_break_glass_requires_another_admin_who_is_notified(
    workshop: Workshop, card: Approval, ada: Membership
) -> None:
    Membership.objects.filter(role=Role.ADMIN).exclude(pk=ada.pk).update(role=Role.APPROVER)
    with pytest.raises(Forbidden, match="no other admin"):
        break_glass(ada, card)


@pytest.mark.parametrize("how", ["no address", "unconfirmed", "no mail server"])
def test_break_glass_is_refused_if_no_other_admin_can_be_notified(
    card: Approval, ada: Membership, settings: Settings, how: str
) -> None:
    if how == "no address":
        Channel.objects.all().delete()
    elif how == "unconfirmed":
        Channel.objects.update(confirmed_at=None)
    else:
        settings.GADGET_SHOWS_MESSAGES = False
    with pytest.raises(Forbidden, match="no other admin has a confirmed address"):
        break_glass(ada, card)


def test_the_notice_is_sent_immediately_to_everyone_who_was_an_admin_at_that_time(
    card: Approval, ada: Membership
) -> None:
    zoe = Membership.objects.get(user__username="zoe")
    NoticeChoices.objects.create(membership=zoe, quiet_from=time(0), quiet_until=time(23, 59))
    break_glass(ada, card)
    read_everything()
    spread_notices()
    Membership.objects.filter(pk=zoe.pk).update(role=Role.VIEWER)
    send_next(ChannelKind.EMAIL)
    (delivery,) = Delivery.objects.filter(notice__kind=NoticeKind.BREAK_GLASS)
    assert delivery.status == DeliveryStatus.SHOWN


def test_break_glass_on_a_destructive_card_requires_the_typed_confirmation(
    workshop: Workshop, recorder: Recorder, ada: Membership, card: Approval
) -> None:
    Approval.objects.filter(pk=card.pk).update(level="destructive")
    with pytest.raises((Invalid, Conflict)):
        break_glass(ada, card)
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_break_glass_is_refused_if_all_other_admins_are_deactivated_or_elsewhere(
    card: Approval, ada: Membership
) -> None:
    User.objects.filter(username="zoe").update(is_active=False)
    Membership.objects.filter(role=Role.ADMIN, user__is_active=True).exclude(pk=ada.pk).update(
        role=Role.APPROVER
    )
    elsewhere = Organization.objects.create(name="Globex", slug="globex")
    user = User.objects.create_user("elsewhere")
    Membership.objects.create(organization=elsewhere, user=user, role=Role.ADMIN)
    with pytest.raises(Forbidden, match="no other admin"):
        break_glass(ada, card)


def test_break_glass_is_refused_if_an_ordinary_approval_is_possible(
    workshop: Workshop, recorder: Recorder, ada: Membership
) -> None:
    make_rule(workshop, name="one approver", needed=1, tool="probe.effect")
    workshop.play(asking(call("probe.effect", name="pay")))
    card = workshop.card(workshop.work())
    with pytest.raises(Conflict, match="ordinary way"):
        break_glass(ada, card)


@pytest.mark.parametrize("what", ["everything", "the employee", "the tool"])
def test_break_glass_does_not_override_a_stop(
    workshop: Workshop, card: Approval, ada: Membership, what: str
) -> None:
    if what == "everything":
        Organization.objects.update(stopped_at=Now())
    elif what == "the employee":
        Employee.objects.update(stopped_at=Now())
    else:
        ToolRule.objects.create(
            organization=workshop.organization, tool="probe.effect", stopped_at=Now()
        )
    with pytest.raises(Conflict, match="never overrides a stop"):
        break_glass(ada, card)


def test_a_stop_of_another_tool_does_not_prevent_break_glass(
    workshop: Workshop, card: Approval, ada: Membership
) -> None:
    ToolRule.objects.create(
        organization=workshop.organization, tool="probe.other", stopped_at=Now()
    )
    assert break_glass(ada, card).status == ApprovalStatus.APPROVED


def test_break_glass_is_refused_with_a_stale_digest_and_on_an_expired_card(
    card: Approval, ada: Membership
) -> None:
    with pytest.raises(StaleDigest):
        break_glass(ada, card, digest="0" * 64)
    Approval.objects.filter(pk=card.pk).update(expires_at=card.requested_at)
    with pytest.raises(Expired):
        break_glass(ada, card)


def test_replay_recognizes_break_glass_and_reports_use_by_a_requester(
    workshop: Workshop, card: Approval, ada: Membership
) -> None:
    break_glass(ada, card)
    (row,) = read_ruled(CallFilter(workshop.organization.pk))
    assert check_ruling(row) == CheckedApproval(None)
    stored = Approval.objects.get(pk=card.pk).ruling
    assert stored is not None
    (row,) = [
        row._replace(
            ruling=row.ruling.replace('"person"', f'"requesters": [{ada.user_id}], "person"')
        )
    ]
    assert check_ruling(row) == CheckedApproval("whoever used break-glass had asked for the call")
    (row,) = [row._replace(ruling=row.ruling.replace('"breaks_glass"', '"other"'))]
    checked = check_ruling(row)
    assert checked is not None
    assert "not enough" in (checked.problem or "")


class TestTheBreakGlassAddress:
    ADDRESS = "board@example.com"

    @pytest.fixture
    def mail(self, settings: Settings, redis_url: str) -> Iterator[MailServer]:
        with MailServer() as server:
            server.use_in(settings)
            yield server

    @pytest.fixture
    def alone(self, ada: Membership) -> Membership:
        """The only admin of an organization with an address for break-glass."""
        Membership.objects.filter(role=Role.ADMIN).exclude(pk=ada.pk).update(role=Role.APPROVER)
        Organization.objects.update(break_glass_address=self.ADDRESS)
        return ada

    def test_is_notified_if_there_is_only_one_admin(
        self, card: Approval, alone: Membership, mail: MailServer
    ) -> None:
        break_glass(alone, card)
        read_everything()
        while spread_notices() or send_next(ChannelKind.EMAIL):
            pass
        (told,) = [each for each in mail.received if each.recipient == self.ADDRESS]
        assert told.subject.startswith("Break-glass: an admin approved alone: ")

    def test_gets_no_other_notices_and_cannot_be_removed_by_admins(
        self, card: Approval, alone: Membership, mail: MailServer
    ) -> None:
        channel = ensure_break_glass_channel(card.organization)
        assert channel is not None
        assert list_channels(alone) == []
        with pytest.raises(NotFound):
            remove_channel(alone, channel.pk)
        spread_notices()
        assert not Delivery.objects.filter(channel=channel).exists()

    def test_can_be_set_only_by_a_superuser(self, ada: Membership) -> None:
        update_admin_access(ada.user)
        client, path = log_in(ada), f"/admin/accounts/organization/{ada.organization_id}/change/"
        assert 'name="break_glass"' in client.get(path).content.decode()
        assert 'name="break_glass_address"' not in client.get(path).content.decode()
        User.objects.filter(pk=ada.user_id).update(is_superuser=True)
        assert 'name="break_glass_address"' in client.get(path).content.decode()

    def test_is_ignored_without_a_mail_server(self, card: Approval, alone: Membership) -> None:
        with pytest.raises(Forbidden, match="no break-glass address"):
            break_glass(alone, card)


class TestBreakGlassForm:
    """Break-glass is possible only in a browser, on the card's own page. It is not possible with a
    token, in bulk or over REST."""

    def test_is_offered_only_to_an_admin(
        self, workshop: Workshop, card: Approval, ada: Membership
    ) -> None:
        assert "Break glass" in self._read_page(ada, card)
        assert "Break glass" not in self._read_page(add_member(workshop, "ben"), card)
        Organization.objects.update(break_glass=False)
        assert "Break glass" not in self._read_page(ada, card)

    def test_has_no_counterpart_in_rest(self, card: Approval, ada: Membership) -> None:
        client, body = log_in(ada), {"digest": card.digest, "reason": REASON, "breaks_glass": True}
        assert (
            client.post(f"/api/approvals/{card.pk}/approve", body, "application/json").status_code
            == 422
        )
        item = body | {"approval_id": str(card.pk), "action": "approve"}
        assert (
            client.post(
                "/api/approvals/decide", {"decisions": [item]}, "application/json"
            ).status_code
            == 422
        )

    def test_cannot_be_sent_with_a_token(self, card: Approval, ada: Membership) -> None:
        token = issue_token(ada, "script")
        body = {"digest": card.digest, "reason": REASON}
        response = Client().post(
            f"/approvals/{card.pk}/break-glass/", body, headers={"Authorization": f"Bearer {token}"}
        )
        assert response.status_code == 302
        assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING

    def test_shows_a_refused_reason_again(self, card: Approval, ada: Membership) -> None:
        body = {"digest": card.digest, "reason": "too     few     letters"}
        html = log_in(ada).post(f"/approvals/{card.pk}/break-glass/", body).content.decode()
        form = html.partition('<details class="break-glass surface" open>')[2].partition(
            "</details>"
        )[0]
        assert "too     few     letters</textarea>" in form
        assert "at least 20 characters" in html

    def test_approves_the_card_and_says_so(
        self, workshop: Workshop, card: Approval, ada: Membership
    ) -> None:
        client = log_in(ada)
        body = {"digest": card.digest, "reason": "short"}
        assert client.post(f"/approvals/{card.pk}/break-glass/", body).status_code == 422
        client.post(f"/approvals/{card.pk}/break-glass/", body | {"reason": REASON})
        assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.APPROVED
        assert "under break-glass" in client.get(f"/approvals/{card.pk}/").content.decode()
        assert "under break-glass" in client.get("/approvals/?history=1").content.decode()

    def test_returns_the_first_response_when_it_is_sent_twice(
        self, card: Approval, ada: Membership
    ) -> None:
        client, path = log_in(ada), f"/approvals/{card.pk}/break-glass/"
        (decision_id,) = set(
            re.findall(r'name="decision_id" value="(\w+)"', self._read_page(ada, card))
        )
        body = {"digest": card.digest, "reason": REASON, "decision_id": decision_id}
        answers = [client.post(path, body).status_code for _ in range(2)]
        another = client.post(path, body | {"decision_id": "another"}).status_code
        assert (answers, another) == ([302, 302], 409)
        assert AuditEntry.objects.filter(action="glass_broken").count() == 1

    def _read_page(self, member: Membership, card: Approval) -> str:
        return log_in(member).get(f"/approvals/{card.pk}/").content.decode()
