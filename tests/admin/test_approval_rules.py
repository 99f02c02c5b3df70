"""The admin pages for approval rules: refusals, confirmations and stored values."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.accounts.models import AuditEntry, Membership, Role
from agents.approval_rules.loading import load_rules
from agents.approval_rules.models import ApprovalRule, ApproverGroup
from tests.admin.rows import address, consequences, faults, filled_form
from tests.admin.ruling import added, asked, make_group, make_rule, new_rule, refusal, saved
from tests.features import feature
from tests.world import DELETE, UPDATE, World
from tools.contract import Level

pytestmark = [pytest.mark.django_db, pytest.mark.once]

GREAT = {"condition_param": "score", "condition_comparison": "minimum", "condition_value": "50"}


def test_a_rule_for_every_card_needs_only_a_name(world: World, admin: Client) -> None:
    rule = added(admin, ApprovalRule, new_rule(world))
    (terms,) = load_rules(world.acme)
    assert (terms.name, terms.needed, terms.group, terms.conditions) == ("payments", 1, None, ())
    assert (terms.tool, terms.category, terms.level, terms.employee_id) == ("", "", None, None)
    entry = AuditEntry.objects.get(organization=world.acme)
    assert (entry.action, entry.subject) == ("approval_rule_added", f"approval_rule:{rule.pk}")


def test_each_part_of_a_rule_is_stored_and_shown_again(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    board = make_group(world, "Board", "admin")
    people = {"needed": "2", "group": finance.pk, "escalate_hours": "4", "second_group": board.pk}
    parts = {
        "tool": UPDATE,
        "level": "destructive",
        "employee": world.employee.pk,
        "excludes_requesters": "on",
    }
    condition = {
        "condition_param": "record_id",
        "condition_comparison": "prefix",
        "condition_value": "7",
    }
    rule = added(admin, ApprovalRule, new_rule(world, **people, **parts, **condition))
    (terms,) = load_rules(world.acme)
    assert (terms.tool, terms.level, terms.employee_id) == (
        UPDATE,
        Level.DESTRUCTIVE,
        world.employee.pk,
    )
    assert (terms.needed, terms.excludes_requesters, terms.escalates_after) == (
        2,
        True,
        timedelta(hours=4),
    )
    assert (terms.group, terms.second_group) == (finance.as_group(), board.as_group())
    assert terms.conditions[0].as_json()["value"] == "7"
    saved(admin, rule)
    assert load_rules(world.acme) == [terms]


@pytest.mark.parametrize(
    ("comparison", "typed", "stored"),
    [
        ("minimum", "1,000", 1000),
        ("maximum", "2.5", 2.5),
        ("equals", "EU", "EU"),
        ("one_of", "EU\nUS", ["EU", "US"]),
        ("prefix", "reports/", "reports/"),
    ],
)
def test_a_condition_survives_a_round_trip_through_its_sentence(
    world: World, admin: Client, comparison: str, typed: str, stored: Any
) -> None:
    blanks = {
        "condition_param": "amount",
        "condition_comparison": comparison,
        "condition_value": typed,
    }
    rule = added(admin, ApprovalRule, new_rule(world, **blanks))
    assert rule.conditions == [
        {"param": "amount", "rule": comparison, "value": stored, "otherwise": "ask"}
    ]
    saved(admin, rule)
    assert [condition["value"] for condition in rule.conditions] == [stored]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"condition_value": ""}, "fill in “Value”"),
        ({"condition_param": ""}, "fill in “Parameter”"),
        ({"condition_value": "many"}, "'many' is not a number"),
        ({"tool": UPDATE, "condition_param": "nonsense"}, "nonsense"),
        (
            {"tool": UPDATE, "condition_param": "record_id"},
            "record_id of data.updateRecord is not a number",
        ),
        (
            {
                "tool": UPDATE,
                "condition_param": "changes.score",
                "condition_comparison": "equals",
                "condition_value": '"many"',
            },
            "changes.score of data.updateRecord is integer, so",
        ),
        (
            {
                "tool": "content.generateSummary",
                "condition_param": "record_ids",
                "condition_comparison": "prefix",
                "condition_value": "7",
            },
            "record_ids of content.generateSummary is array, so “starts with '7'” can never apply",
        ),
        (
            {
                "condition_param": "url",
                "condition_comparison": "prefix",
                "condition_value": "https://files.acme",
            },
            "ends inside a host",
        ),
    ],
)
def test_an_unusable_condition_is_refused(
    world: World, admin: Client, changes: dict[str, str], reason: str
) -> None:
    (message,) = refusal(admin, ApprovalRule, new_rule(world, **{**GREAT, **changes}))[
        "condition_param"
    ]
    assert reason in message
    added(admin, ApprovalRule, new_rule(world, **GREAT))


def test_comparing_text_with_a_number_needs_confirmation(world: World, admin: Client) -> None:
    sent = new_rule(world, **{**GREAT, "condition_param": "record_id"})
    response = admin.post(address(ApprovalRule, "add"), sent)
    assert list(faults(response)) == ["confirmed"]
    (sentence,) = consequences(response).values()
    assert "does not say that record_id can be compared like this" in sentence
    added(admin, ApprovalRule, new_rule(world, **GREAT))


def test_conditions_that_the_form_cannot_show_stay_unchanged(world: World, admin: Client) -> None:
    stored = [{"param": "q", "rule": "max_length", "value": 9, "otherwise": "ask"}]
    for conditions in (stored, stored * 2, ["nonsense"]):
        rule = make_rule(
            world, name=f"rule {len(ApprovalRule.objects.all())}", conditions=conditions
        )
        saved(admin, rule, needed="2", condition_param="other", condition_value="1")
        assert (rule.needed, rule.conditions) == (2, conditions)


@feature(
    "The gate",
    "Approval rules that nobody can meet are refused, and weaker ones are confirmed",
    "agents/admin/approval_rule_forms.py",
)
def test_a_rule_that_needs_more_people_than_exist_is_refused(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    found = refusal(admin, ApprovalRule, new_rule(world, needed="3"))
    assert found == {"needed": ["Acme has 2 active approvers, but this rule needs 3."]}
    finance.members.remove(world.member("approver"))
    found = refusal(admin, ApprovalRule, new_rule(world, needed="2", group=finance.pk))
    assert found == {"needed": ["Finance has 1 active approver, but this rule needs 2."]}
    added(admin, ApprovalRule, new_rule(world, needed="2"))
    added(
        admin,
        ApprovalRule,
        new_rule(world, name="later", needed="2", group=finance.pk, is_active=""),
    )


def test_people_who_cannot_approve_do_not_count_toward_a_rule(world: World, admin: Client) -> None:
    group = make_group(world, "Finance", "viewer", "operator", "approver")
    sent = new_rule(world, group=group.pk)
    User.objects.filter(username="approver").update(is_active=False)
    assert refusal(admin, ApprovalRule, sent) == {
        "needed": ["Finance has 0 active approvers, but this rule needs 1."]
    }
    User.objects.filter(username="approver").update(is_active=True)
    added(admin, ApprovalRule, sent)


@pytest.mark.parametrize("needed", ["0", "11", "-1", "many", ""])
def test_a_rule_requires_1_to_10_people(world: World, admin: Client, needed: str) -> None:
    assert set(refusal(admin, ApprovalRule, new_rule(world, needed=needed))) == {"needed"}
    for number in range(8):
        user = User.objects.create_user(f"approver {number}")
        Membership.objects.create(organization=world.acme, user=user, role=Role.APPROVER)
    assert added(admin, ApprovalRule, new_rule(world, needed="10")).needed == 10


def test_an_escalation_requires_a_time_and_two_groups(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    board = make_group(world, "Board", "admin")
    whole = {"group": finance.pk, "escalate_hours": "4", "second_group": board.pk}
    for left_out, field in (
        ("escalate_hours", "escalate_hours"),
        ("second_group", "second_group"),
        ("group", "group"),
    ):
        sent = new_rule(world, **{**whole, left_out: ""})
        assert set(refusal(admin, ApprovalRule, sent)) == {field}, left_out
    assert set(
        refusal(admin, ApprovalRule, new_rule(world, **{**whole, "second_group": finance.pk}))
    ) == {"second_group"}
    for hours in ("0", "168"):
        sent = new_rule(world, **{**whole, "escalate_hours": hours})
        assert set(refusal(admin, ApprovalRule, sent)) == {"escalate_hours"}, hours
    added(admin, ApprovalRule, new_rule(world, **whole))


def test_an_escalation_to_an_empty_group_is_refused(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    board = make_group(world, "Board", "viewer")
    whole = {"group": finance.pk, "escalate_hours": "4", "second_group": board.pk}
    found = refusal(admin, ApprovalRule, new_rule(world, **whole))
    assert found == {"second_group": ["Board has no active approver. Add one first."]}
    board.members.add(world.member("admin"))
    added(admin, ApprovalRule, new_rule(world, **whole))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tool": "no.suchTool"}, "tool"),
        ({"category": "nothing"}, "category"),
        ({"tool": DELETE, "category": "files"}, "category"),
        ({"tool": DELETE, "level": "write"}, "level"),
        ({"level": "highest"}, "level"),
    ],
)
def test_a_rule_for_cards_that_cannot_exist_is_refused(
    world: World, admin: Client, changes: dict[str, str], field: str
) -> None:
    assert set(refusal(admin, ApprovalRule, new_rule(world, **changes))) == {field}
    added(admin, ApprovalRule, new_rule(world, tool=DELETE, level="destructive"))


def test_a_removed_tool_stays_in_its_rule(world: World, admin: Client) -> None:
    rule = make_rule(world, tool="gone.tool", category="gone")
    saved(admin, rule, needed="2")
    assert (rule.tool, rule.category, rule.needed) == ("gone.tool", "gone", 2)


def test_the_names_of_rules_and_groups_are_unique_within_an_organization(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    make_rule(world)
    ApprovalRule.objects.create(organization=world.globex, name="theirs")
    assert set(refusal(admin, ApprovalRule, new_rule(world))) == {"name"}
    assert set(
        refusal(admin, ApproverGroup, {"organization": world.acme.pk, "name": "Finance"})
    ) == {"name"}
    second, board = make_rule(world, name="second"), make_group(world, "Board")
    for row, name in ((second, "payments"), (board, "Finance")):
        path = address(row, "change")
        assert set(faults(admin.post(path, filled_form(admin, path, name=name)))) == {"name"}
    saved(admin, second, name="theirs")


def test_a_rule_cannot_use_a_group_or_employee_of_another_organization(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    theirs = ApproverGroup.objects.create(organization=world.globex, name="Theirs")
    assert set(refusal(admin, ApprovalRule, new_rule(world, group=theirs.pk))) == {"group"}
    Membership.objects.create(organization=world.globex, user=world.users["admin"], role=Role.ADMIN)
    theirs.members.add(Membership.objects.get(organization=world.globex, user=world.users["admin"]))
    found = refusal(admin, ApprovalRule, new_rule(world, group=theirs.pk))
    assert found == {"group": ["Theirs does not belong to Acme. Choose another one."]}
    found = refusal(admin, ApprovalRule, new_rule(world, employee=world.others_employee.pk))
    assert set(found) == {"employee"}
    rule = added(admin, ApprovalRule, new_rule(world, group=finance.pk, employee=world.employee.pk))
    page = admin.get(address(rule, "change")).content.decode()
    assert "Theirs" not in page
    assert "Hank" not in page


# Weaker rules


def test_a_stricter_rule_is_saved_without_confirmation(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    rule = make_rule(world, tool=UPDATE)
    saved(admin, rule, needed="2", group=finance.pk, excludes_requesters="on", tool="")
    assert (rule.needed, rule.group, rule.tool) == (2, finance, "")


def test_requiring_fewer_people_needs_confirmation(world: World, admin: Client) -> None:
    rule = make_rule(world, needed=2)
    assert (
        asked(admin, rule, needed="1") == "From now on, “payments” needs 1 instead of 2 approvals."
    )
    assert rule.needed == 1


def test_switching_off_a_rule_needs_confirmation_and_later_changes_do_not(
    world: World, admin: Client
) -> None:
    rule = make_rule(world, needed=2)
    assert asked(admin, rule, is_active=None).startswith(
        "From now on, “payments” no longer applies."
    )
    assert load_rules(world.acme) == []
    saved(admin, rule, needed="1")
    saved(admin, rule, is_active="on")
    assert len(load_rules(world.acme)) == 1


def test_changing_who_approves_needs_confirmation(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    board = make_group(world, "Board", "admin")
    rule = make_rule(world, group=finance, excludes_requesters=True)
    assert "people of Board count" in asked(admin, rule, group=board.pk)
    assert "all approvers count" in asked(admin, rule, group="")
    assert "even if they asked for the call" in asked(admin, rule, excludes_requesters=None)


def test_changing_an_escalation_needs_confirmation_unless_it_is_delayed_or_removed(
    world: World, admin: Client, finance: ApproverGroup
) -> None:
    board = make_group(world, "Board", "admin")
    rule = make_rule(world, group=finance)
    sentence = asked(admin, rule, escalate_hours="4", second_group=board.pk)
    assert sentence == "After 4 hours, approvals by people of Board also count for “payments”."
    assert "After 2 hours" in asked(admin, rule, escalate_hours="2")
    saved(admin, rule, escalate_hours="8")
    saved(admin, rule, escalate_hours="", second_group="")


@pytest.mark.parametrize(
    "changes", [{"tool": UPDATE}, {"level": "destructive"}, GREAT, {"category": "data"}]
)
def test_letting_a_rule_match_fewer_cards_needs_confirmation_and_more_cards_does_not(
    world: World, admin: Client, changes: dict[str, str]
) -> None:
    rule = make_rule(world)
    assert "will match fewer cards" in asked(admin, rule, **changes)
    saved(admin, rule, **(dict.fromkeys(changes, "") | {"condition_comparison": "minimum"}))
    assert (rule.tool, rule.level, rule.category, rule.conditions) == ("", "", "", [])


def test_deleting_a_rule_states_the_consequences(world: World, admin: Client) -> None:
    rule = make_rule(world)
    path = address(rule, "delete")
    sentence = "From now on, this rule no longer applies."
    assert sentence in admin.get(path).content.decode()
    ApprovalRule.objects.update(is_active=False)
    assert sentence not in admin.get(path).content.decode()
    assert admin.post(path, {"post": "yes"}).status_code == 302
    assert not ApprovalRule.objects.exists()
    assert AuditEntry.objects.get().action == "approval_rule_deleted"
