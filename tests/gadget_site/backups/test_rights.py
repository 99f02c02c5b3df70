"""A restore ends everything that grants rights, and keeps limits until an admin has confirmed
them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts.models import AuditEntry, Membership, Organization, PasswordReset, Role
from agents.approval_rules.models import ApprovalRule, ApproverGroup, Deputy
from agents.approvals.models import Claim
from agents.employees.models import Employee, Grant, ToolRule
from agents.gateway.models import SigningKey
from agents.gateway.receipts import ensure_current_key, list_public_keys
from agents.platform.refusals import Conflict, Forbidden
from agents.restores import confirming
from agents.restores.limits import KINDS
from agents.restores.models import RestoredLimit
from agents.runs import schedules, stops
from agents.runs.models import Approval, ApprovalStatus, RunStatus, Vote
from agents.standing_grants.models import StandingGrant
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookDeliveryStatus
from gadget_site.backup import restored, rights
from gadget_site.backup.archive import Manifest
from gadget_site.backup.restoring import RestoredBackup
from tests.features import feature
from tests.gadget_site.backups.confirmed import confirm_all
from tests.recorder import Recorder
from tests.standing_grants.granting import equals, grant
from tests.workshop import Workshop, asking, call
from tools.schedules.models import Schedule

Take = Callable[[], Manifest]
PutBack = Callable[[], RestoredBackup]


@pytest.mark.once
class TestTheListsOfTablesInTheCode:
    def test_contain_each_table_once(self) -> None:
        tables = {model._meta.label for model in apps.get_models(include_auto_created=True)}
        lists = (rights.ENDED, rights.CONFIRMED, rights.WITHOUT_RIGHTS.keys())
        listed = [label for one in lists for label in one]
        assert tables - set(listed) == set(), (
            "say in gadget_site/backup/rights.py what a restore does with it"
        )
        assert set(listed) - tables == set()
        assert len(listed) == len(set(listed))

    def test_match_the_page_of_limits_to_confirm(self) -> None:
        shown = {kind.model._meta.label for kind in KINDS}
        parts = {
            "approval_rules.ApproverGroup_members",
            "auth.User",
            "connections.SourceTool",
            "employees.Grant",
        }
        assert shown | parts == rights.CONFIRMED


class TestARestore:
    @feature(
        "Agents elsewhere",
        "A restore ends standing grants, deputies, claims, votes and keys, and pauses schedules",
        "gadget_site/backup/restored.py",
    )
    def test_ends_standing_grants(
        self, workshop: Workshop, recorder: Recorder, take: Take, put_back: PutBack
    ) -> None:
        made = grant(workshop, "probe.effect", equals("name", "a"), max_uses=5)
        workshop.play(asking(call("probe.effect", name="a")))
        assert workshop.work().status == RunStatus.SUCCEEDED
        take()
        put_back()
        made = StandingGrant.objects.get(pk=made.pk)
        assert (made.ended_at is not None, made.ended_because) == (True, "A backup was restored.")
        confirm_all(workshop.admin)
        stops.release_everything(workshop.admin)
        assert workshop.work().status == RunStatus.WAITING
        assert recorder.effects.total() == 1

    def test_lets_a_person_decide_an_unstarted_call_that_a_standing_grant_had_approved(
        self, workshop: Workshop, recorder: Recorder, take: Take, put_back: PutBack
    ) -> None:
        grant(workshop, "probe.effect", equals("name", "a"))
        workshop.play(asking(call("probe.effect", name="a")))
        recorder.hold("a")
        take()
        put_back()
        confirm_all(workshop.admin)
        stops.release_everything(workshop.admin)
        run = workshop.work()
        assert [card.status for card in workshop.cards(run)] == [ApprovalStatus.PENDING]

    def test_removes_the_password_of_a_superuser_who_has_no_limit_to_confirm(
        self, workshop: Workshop
    ) -> None:
        User.objects.create_superuser("root", password="a long password")
        User.objects.filter(pk=workshop.admin.user_id).update(is_superuser=True)
        before = User.objects.get(pk=workshop.admin.user_id).password
        restored.stop_everything()
        assert not User.objects.get(username="root").has_usable_password()
        assert User.objects.get(pk=workshop.admin.user_id).password == before, (
            "this account has a line to confirm"
        )

    def test_ends_the_rights_of_deputies(self, workshop: Workshop) -> None:
        soon = timezone.now() + timedelta(days=1)
        for start in (timezone.now() - timedelta(hours=1), soon):
            Deputy.objects.create(
                member=workshop.approver,
                deputy=workshop.admin,
                starts_at=start,
                ends_at=soon + timedelta(days=1),
            )
        restored.stop_everything()
        assert not Deputy.objects.filter(ends_at__gt=Now()).exists()
        assert Deputy.objects.count() == 1, "the future deputy was removed"

    def test_ends_claims_and_votes_on_open_cards(self, workshop: Workshop) -> None:
        ApprovalRule.objects.create(organization=workshop.organization, name="Two people", needed=2)
        workshop.play(asking(call("probe.effect", name="a")))
        card = workshop.card(workshop.work())
        workshop.approve(card)
        assert Vote.objects.filter(withdrawn_at=None).count() == 1
        Claim.objects.create(
            tool_call=card.tool_call, user=workshop.admin.user, until=Now() + timedelta(minutes=15)
        )
        restored.settle()
        assert not Vote.objects.filter(withdrawn_at=None).exists()
        assert not Claim.objects.exists()
        assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING

    def test_switches_schedules_off_with_an_audit_entry(self, workshop: Workshop) -> None:
        schedule = schedules.create(
            workshop.operator, workshop.employee.pk, "Report", ("0 9 * * *", "UTC")
        )
        assert restored.settle()["schedules_paused"] == 1
        schedule = Schedule.objects.get(pk=schedule.pk)
        assert (schedule.is_active, schedule.next_at, schedule.problem) == (
            False,
            None,
            "A backup was restored.",
        )
        assert AuditEntry.objects.filter(action="schedule_switched_off").count() == 1

    def test_replaces_the_key_that_signs_receipts(self, workshop: Workshop) -> None:
        ensure_current_key()
        (before,) = list_public_keys()
        restored.stop_everything()
        assert not SigningKey.objects.filter(is_current=True).exists()
        ensure_current_key()
        assert list_public_keys()[0] != before

    def test_revokes_links_for_new_passwords(self, workshop: Workshop) -> None:
        tomorrow = timezone.now() + timedelta(days=1)
        PasswordReset.objects.create(
            membership=workshop.approver, hash="h", made_by=workshop.admin.user, expires_at=tomorrow
        )
        restored.stop_everything()
        assert PasswordReset.objects.get().revoked_at is not None

    def test_switches_webhooks_off_and_does_not_send_events(self, workshop: Workshop) -> None:
        webhook = Webhook.objects.create(
            organization=workshop.organization, name="A", address="https://a.example/"
        )
        WebhookDelivery.objects.create(webhook=webhook, kind="run.started", run_id=1, seq=1)
        restored.stop_everything()
        webhook.refresh_from_db()
        assert (webhook.is_active, webhook.off_reason) == (False, "a backup was restored")
        assert WebhookDelivery.objects.get().status == WebhookDeliveryStatus.FAILED


class TestLimitsAfterARestore:
    @feature(
        "Agents elsewhere",
        "An admin confirms each restored limit before the stop can be lifted; the "
        "stricter of old and newer values is preselected",
        "agents/restores/confirming.py",
    )
    def test_must_all_be_confirmed_before_the_stop_is_lifted(self, workshop: Workshop) -> None:
        restored.settle()
        with pytest.raises(Conflict, match="Confirm the restored limits first"):
            stops.release_everything(workshop.admin)
        first, *others = RestoredLimit.objects.all()
        confirming.confirm(workshop.admin, {line.pk: "restored" for line in others})
        with pytest.raises(Conflict, match="1 line"):
            stops.release_everything(workshop.admin)
        confirming.confirm(workshop.admin, {first.pk: "restored"})
        stops.release_everything(workshop.admin)
        assert Organization.objects.get().stopped_at is None
        assert (
            AuditEntry.objects.filter(action="restored_limit_confirmed").count() == len(others) + 1
        )

    def test_can_be_confirmed_only_by_admins(self, workshop: Workshop) -> None:
        restored.settle()
        line = RestoredLimit.objects.first()
        assert line is not None
        with pytest.raises(Forbidden):
            confirming.confirm(workshop.approver, {line.pk: "restored"})

    def test_include_a_line_for_each_row_that_limits_something_even_without_newer_data(
        self, workshop: Workshop
    ) -> None:
        ApprovalRule.objects.create(organization=workshop.organization, name="Two people", needed=2)
        call_command("after_restore")
        lines = RestoredLimit.objects.values_list("kind", "name")
        assert ("approval_rule", "Two people") in lines
        assert ("employee", "Dana") in lines
        assert [kind for kind, _ in lines].count("member") == len(Role)
        assert not any(shown.differs for shown in confirming.list_lines(workshop.organization.pk))


class TestNewerData:
    """The replaced database shows which limits were tightened after the backup; the stricter values
    are preselected."""

    def stricter(self, workshop: Workshop, put_back: PutBack) -> None:
        put_back()
        confirm_all(workshop.admin)
        stops.release_everything(workshop.admin)

    def test_removes_or_demotes_people_again(
        self, workshop: Workshop, take: Take, put_back: PutBack
    ) -> None:
        take()
        workshop.members["operator"].delete()
        Membership.objects.filter(pk=workshop.approver.pk).update(role=Role.VIEWER)
        viewer = workshop.members["viewer"]
        Membership.objects.filter(pk=viewer.pk).update(role=Role.ADMIN)
        workshop.admin.user.set_password("a new one")
        workshop.admin.user.save()
        self.stricter(workshop, put_back)
        roles = dict(Membership.objects.values_list("user__username", "role"))
        assert roles == {"acme-admin": "admin", "acme-approver": "viewer", "acme-viewer": "viewer"}
        assert Membership.objects.get(role=Role.ADMIN).user.check_password("a new one")

    def test_keeps_the_stricter_budgets_and_switches(
        self, workshop: Workshop, take: Take, put_back: PutBack
    ) -> None:
        Employee.objects.update(month_cost=Decimal(5), month_tokens=None, max_passes=9)
        Organization.objects.update(break_glass=True, confirm_count=10)
        take()
        Employee.objects.update(month_cost=Decimal(50), month_tokens=1000, max_passes=3)
        Organization.objects.update(four_eyes=True, break_glass=False, confirm_count=99)
        self.stricter(workshop, put_back)
        employee, organization = Employee.objects.get(), Organization.objects.get()
        assert (employee.month_cost, employee.month_tokens, employee.max_passes) == (
            Decimal(5),
            1000,
            3,
        )
        assert (organization.four_eyes, organization.break_glass, organization.confirm_count) == (
            True,
            False,
            10,
        )

    def test_revokes_tools_or_raises_their_levels_again(
        self, workshop: Workshop, take: Take, put_back: PutBack
    ) -> None:
        take()
        Grant.objects.filter(tool="data.bulkDelete").delete()
        Grant.objects.filter(tool="probe.effect").update(level="destructive")
        Grant.objects.create(employee=workshop.employee, tool="web.fetch")
        workshop.raise_for_all("utility.calculate", "write")  # type: ignore[arg-type]
        stops.stop_tool(workshop.admin, "data.updateRecord")
        self.stricter(workshop, put_back)
        tools = dict(Grant.objects.values_list("tool", "level"))
        assert "data.bulkDelete" not in tools
        assert tools["probe.effect"] == "destructive"
        assert "web.fetch" not in tools, (
            "only a person allows a tool again that was allowed since the backup"
        )
        assert ToolRule.objects.get(tool="utility.calculate").level == "write"
        assert ToolRule.objects.get(tool="data.updateRecord").stopped_at is not None

    def test_pins_tools_to_their_versions_again(
        self, workshop: Workshop, take: Take, put_back: PutBack
    ) -> None:
        take()
        Grant.objects.filter(tool="probe.effect").update(version="1.0")
        self.stricter(workshop, put_back)
        assert Grant.objects.get(tool="probe.effect").version == "1.0"

    def test_adds_newer_rules_again_with_their_group_and_tightens_a_restored_rule(
        self, workshop: Workshop, take: Take, put_back: PutBack
    ) -> None:
        weaker = ApprovalRule.objects.create(
            organization=workshop.organization, name="Old", needed=1
        )
        take()
        ApprovalRule.objects.filter(pk=weaker.pk).update(needed=2)
        group = ApproverGroup.objects.create(organization=workshop.organization, name="Finance")
        group.members.add(workshop.admin)
        ApprovalRule.objects.create(
            organization=workshop.organization, name="New", group=group, needed=1
        )
        self.stricter(workshop, put_back)
        assert ApprovalRule.objects.get(name="Old").needed == 2
        made = ApprovalRule.objects.select_related("group").get(name="New")
        assert made.group is not None
        assert list(made.group.members.values_list("user__username", flat=True)) == ["acme-admin"]

    def test_removes_a_former_superuser_again(
        self, workshop: Workshop, take: Take, put_back: PutBack
    ) -> None:
        User.objects.filter(pk=workshop.approver.user_id).update(is_superuser=True)
        take()
        Membership.objects.filter(pk=workshop.approver.pk).delete()
        User.objects.filter(pk=workshop.approver.user_id).update(is_superuser=False)
        self.stricter(workshop, put_back)
        assert not Membership.objects.filter(pk=workshop.approver.pk).exists()
        assert not User.objects.get(pk=workshop.approver.user_id).is_superuser

    def test_can_be_rejected_in_favor_of_the_restored_values(
        self, workshop: Workshop, take: Take, put_back: PutBack
    ) -> None:
        take()
        Employee.objects.update(max_passes=2)
        put_back()
        confirming.confirm(
            workshop.admin, {line.pk: "restored" for line in RestoredLimit.objects.all()}
        )
        assert Employee.objects.get().max_passes == 10

    def test_does_not_let_admins_remove_their_own_rights(
        self, workshop: Workshop, take: Take, put_back: PutBack
    ) -> None:
        take()
        Membership.objects.filter(pk=workshop.admin.pk).delete()
        put_back()
        own = RestoredLimit.objects.get(kind="member", name__startswith="acme-admin")
        with pytest.raises(Conflict, match="your own rights"):
            confirming.confirm(workshop.admin, {own.pk: "newer"})
        assert RestoredLimit.objects.filter(pk=own.pk).exists()

    def test_survives_a_second_restore(
        self, workshop: Workshop, take: Take, put_back: PutBack
    ) -> None:
        take()
        Employee.objects.update(max_passes=2)
        put_back()
        self.stricter(workshop, put_back)
        assert Employee.objects.get().max_passes == 2

    def test_is_ignored_if_it_comes_from_another_installation_with_the_same_ids(
        self, workshop: Workshop, take: Take, put_back: PutBack
    ) -> None:
        take()
        Employee.objects.update(max_passes=2)
        Organization.objects.update(created_at=timezone.now())
        put_back()
        assert not RestoredLimit.objects.filter(is_compared=True).exists()
