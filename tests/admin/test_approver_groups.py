"""The admin pages for groups of approvers and for deputies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.accounts.models import AuditEntry, Membership, Organization, Role
from agents.approval_rules.loading import load_voters
from agents.approval_rules.models import ApprovalRule, ApproverGroup, Deputy
from tests.admin.rows import address, faults, filled_form, make_deputy
from tests.admin.ruling import added, asked, make_group, make_rule, new_rule, refusal, saved
from tests.features import feature
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.once]


# Groups


def test_a_group_accepts_only_members_of_its_organization(world: World, admin: Client) -> None:
    Membership.objects.create(organization=world.globex, user=world.users["admin"], role=Role.ADMIN)
    ours, theirs = world.member("approver"), Membership.objects.get(user=world.users["outsider"])
    sent = {"organization": world.acme.pk, "name": "Finance", "members": [ours.pk]}
    found = refusal(admin, ApproverGroup, {**sent, "members": [ours.pk, theirs.pk]})
    assert found == {"members": ["outsider is not a member of Acme. Untick this person."]}
    group = added(admin, ApproverGroup, sent)
    assert load_voters(world.acme.pk)[ours.user_id].groups == {group.pk}
    path = address(group, "change")
    assert "outsider" not in admin.get(path).content.decode()
    assert "members" in faults(admin.post(path, filled_form(admin, path, members=[theirs.pk])))


def test_shrinking_a_group_lists_the_rules_that_nobody_can_meet(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    make_rule(world, needed=2, group=finance)
    make_rule(world, name="off", needed=2, group=finance, is_active=False)
    make_rule(world, name="one", group=finance)
    sentence = asked(admin, finance, members=[world.member("admin").pk, world.member("viewer").pk])
    assert sentence.startswith(
        "“payments” needs 2 approvals from Finance, which now has 1 active approver."
    )
    saved(admin, finance, members=[world.member("admin").pk])


def test_adding_people_to_a_group_used_by_a_rule_needs_confirmation(
    world: World, admin: Client
) -> None:
    finance, board = make_group(world, "Finance", "admin"), make_group(world, "Board")
    make_rule(world, group=finance)
    make_rule(world, name="late", group=board, escalate_hours=4, second_group=finance)
    make_rule(world, name="off", group=finance, is_active=False)
    both = [world.member("admin").pk, world.member("approver").pk]
    assert (
        asked(admin, finance, members=both)
        == "From now on, approvals by approver count for “late”, “payments”."
    )
    saved(admin, finance, members=[world.member("admin").pk, world.member("viewer").pk])
    assert set(finance.members.all()) == {world.member("admin"), world.member("viewer")}, (
        "a viewer's never counts"
    )


@feature(
    "The gate",
    "A group that an approval rule names is not deleted",
    "agents/admin/approval_rules.py",
)
def test_a_group_used_by_a_rule_cannot_be_deleted(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    board = make_group(world, "Board", "admin")
    rule = make_rule(world, group=finance, escalate_hours=4, second_group=board)
    for group in (finance, board):
        path = address(group, "delete")
        for response in (admin.get(path), admin.post(path, {"post": "yes"})):
            assert (
                "cannot be deleted, because it is named by “payments”." in response.content.decode()
            )
    assert ApproverGroup.objects.count() == 2
    rule.delete()
    path = address(finance, "delete")
    assert "cannot be deleted" not in admin.get(path).content.decode()
    assert admin.post(path, {"post": "yes"}).status_code == 302
    assert ApproverGroup.objects.get() == board


# Deputies


def new_deputy(world: World, **changes: Any) -> dict[str, Any]:
    now = timezone.now().replace(microsecond=0)
    sent = {"member": world.member("approver").pk, "deputy": world.member("admin").pk}
    times = {"starts_at": now - timedelta(hours=1), "ends_at": now + timedelta(hours=1)}
    return {
        **sent,
        **{name: time.strftime("%Y-%m-%dT%H:%M:%S") for name, time in times.items()},
        **changes,
    }


def test_adding_a_deputy_is_recorded_in_the_audit_and_gives_the_right_to_approve(
    world: World, admin: Client
) -> None:
    row = added(admin, Deputy, new_deputy(world))
    (other,) = load_voters(world.acme.pk)[world.users["admin"].pk].deputy_for
    assert other.name == "approver"
    entry = AuditEntry.objects.get(organization=world.acme)
    assert (entry.action, entry.subject) == ("deputy_added", f"deputy:{row.pk}")
    assert admin.post(address(row, "delete"), {"post": "yes"}).status_code == 302
    assert AuditEntry.objects.latest("seq").action == "deputy_deleted"


def test_a_deputy_must_be_another_member_of_the_same_organization(
    world: World, admin: Client
) -> None:
    assert set(refusal(admin, Deputy, new_deputy(world, deputy=world.member("approver").pk))) == {
        "deputy"
    }
    theirs = Membership.objects.get(user=world.users["outsider"])
    assert set(refusal(admin, Deputy, new_deputy(world, deputy=theirs.pk))) == {"deputy"}
    added(admin, Deputy, new_deputy(world))
    sent = new_deputy(world, deputy=theirs.pk)
    Membership.objects.create(organization=world.globex, user=world.users["admin"], role=Role.ADMIN)
    found = refusal(admin, Deputy, sent)
    assert found == {"deputy": ["outsider is not a member of Acme. Choose one who is."]}


@pytest.mark.parametrize(
    "times",
    [
        {"starts_at": "2999-01-01T00:00", "ends_at": "2999-01-01T00:00"},
        {"starts_at": "2999-01-02T00:00", "ends_at": "2999-01-01T00:00"},
        {"starts_at": "2001-01-01T00:00", "ends_at": "2001-01-02T00:00"},
        {"ends_at": "soon"},
        {"ends_at": ""},
    ],
)
def test_a_deputy_needs_a_valid_period(world: World, admin: Client, times: dict[str, str]) -> None:
    assert set(refusal(admin, Deputy, new_deputy(world, **times))) == {"ends_at"}
    added(
        admin, Deputy, new_deputy(world, starts_at="2999-01-01T00:00", ends_at="2999-01-02T00:00")
    )


def test_a_deputy_can_be_ended_early_but_the_people_cannot_be_changed(
    world: World, admin: Client
) -> None:
    row = make_deputy(world)
    Deputy.objects.update(starts_at=timezone.now().replace(microsecond=0) - timedelta(hours=2))
    over = (timezone.now() - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S")
    saved(
        admin,
        row,
        ends_at=over,
        member=world.member("viewer").pk,
        deputy=world.member("operator").pk,
    )
    assert (row.member, row.deputy) == (world.member("approver"), world.member("admin"))
    assert load_voters(world.acme.pk)[world.users["admin"].pk].deputy_for == ()
    assert set(AuditEntry.objects.get().payload["fields"]) == {"ends_at"}


# Scope


def test_an_admin_of_another_organization_cannot_choose_the_groups_and_deputies_of_acme(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    sent = new_rule(world, organization=world.acme.pk)
    outsider = world.client("outsider")
    assert set(refusal(outsider, ApprovalRule, sent)) == {"organization"}
    page = outsider.get(address(ApprovalRule, "add")).content.decode()
    assert "Finance" not in page
    assert "Finance" in admin.get(address(ApprovalRule, "add")).content.decode()
    assert "approver in Acme" not in outsider.get(address(Deputy, "add")).content.decode()
    assert Organization.objects.count() == 2
