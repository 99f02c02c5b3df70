"""The simulator's pages: admins simulate changes, save them as policy drafts, and run these drafts
in shadow mode."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry
from agents.employees.models import Grant
from agents.employees.toolboxes import load_toolbox
from agents.policy.models import PolicyDraft, ShadowCard, ShadowVerdict
from agents.policy.policy_drafts import ChangeKind, PolicyChange
from agents.runs.engine.context import load_grants
from agents.runs.models import Approval, Pass, RunStatus, ToolCall
from agents.runs.snapshots import keep_snapshot
from tests.standing_grants.granting import equals
from tests.world import SEARCH, UPDATE, World, change
from tools.toolbox.approval_rules import RuleTerms
from tools.toolbox.permissions import judge_call

pytestmark = [pytest.mark.django_db, pytest.mark.once]

STOP = {"kind": "stop", "tool": SEARCH}


def record_call(world: World, tool: str = SEARCH, **params: Any) -> ToolCall:
    """Create an ended run with one recorded call, which was judged by the employee's rules."""
    Grant.objects.get_or_create(employee=world.employee, tool=tool)
    run = world.run(RunStatus.SUCCEEDED)
    grants, toolbox = load_grants(world.employee.pk, run.mode), load_toolbox(world.acme.pk)
    verdict = judge_call(
        toolbox.get_tool(tool), params or {"text": "acme"}, grants, toolbox.policy, tool
    )
    Pass.objects.create(
        run=run,
        number=1,
        response={},
        messages_upto=1,
        snapshot=keep_snapshot(world.acme.pk, grants, toolbox),
    )
    return world.call(
        run,
        tool,
        params=verdict.params,
        judgment=verdict.as_json(),
        level=verdict.level.value,
        why=verdict.reason,
    )


def simulate(world: World, **given: str) -> str:
    response = world.client("admin").get("/simulator/", given)
    assert response.status_code == 200
    return unescape(response.content.decode())


def test_the_result_shows_both_verdicts_and_links_to_the_call(world: World) -> None:
    call = record_call(world)
    page = simulate(world, **STOP)
    assert "Result for 1 recorded call" in page
    assert f'href="/runs/{call.run_id}/calls/{call.pk}/"' in page
    assert "runs automatically → <b>is refused</b>" in page
    assert "stopped by this policy draft" in page
    assert "No verdict would have changed" not in page


def test_several_changes_are_simulated_together(world: World) -> None:
    record_call(world)
    first = json.dumps([{"kind": "stop", "tool": UPDATE}])
    page = simulate(world, changes=first, kind="allow_host", host="api.example.com")
    assert "No verdict would have changed" in page
    assert f"All employees: stop {UPDATE}" in page
    assert "Allow a host without approval: api.example.com" in page


def propose_grant(record_id: str, phone: str) -> str:
    """Return a standing grant for one change of a phone number, as the page sends it."""
    conditions = (equals("record_id", record_id), equals("changes.phone", phone))
    params = ("record_id", "changes.phone")
    return json.dumps(
        [
            PolicyChange(
                ChangeKind.STANDING_GRANT, UPDATE, params=params, conditions=conditions
            ).as_json()
        ]
    )


def test_a_simulated_standing_grant_shows_its_terms_and_what_it_approves(world: World) -> None:
    params = change(world.records[0], "+1 555 0100")
    call = record_call(world, UPDATE, **params)
    page = " ".join(
        simulate(world, changes=propose_grant(params["record_id"], "+1 555 0100")).split()
    )
    assert f"All employees: approve calls to {UPDATE} with a standing grant, if:" in page
    assert '<bdi class="field-name">changes.phone</bdi> is <q>+1 555 0100</q>' in page
    assert "needs approval → <b>is approved by a standing grant</b>" in page
    assert f'href="/runs/{call.run_id}/calls/{call.pk}/"' in page
    assert "Limits on uses and days, approval rules, and warnings on cards are ignored." in page


def test_a_long_policy_draft_is_sent_in_the_body_of_a_request(world: World) -> None:
    short, long = (propose_grant("1", phone) for phone in ("1", "<1>" * 1_500))
    assert '<form method="get" action="/simulator/" class="change-form">' in simulate(
        world, changes=short
    )
    response = world.client("admin").post("/simulator/", {"changes": long, **STOP})
    page = unescape(response.content.decode())
    assert response.status_code == 200
    assert '<form method="post" action="/simulator/" class="change-form">' in page
    assert "<1><1>" not in response.content.decode(), "it stays text"
    assert f"stop {SEARCH}" in page


def test_a_limit_over_history_is_edited_as_a_sentence_with_fields(world: World) -> None:
    ToolCall.objects.filter(pk=record_call(world).pk).update(started_at=Now())
    given = {
        "kind": "limit",
        "tool": SEARCH,
        "rule": "call_count",
        "most": "1",
        "period": "day",
        "otherwise": "forbid",
    }
    page = " ".join(simulate(world, **given).split())
    assert (
        "add a limit to data.searchRecords (At most 1 call per day; otherwise it is refused.)"
        in page
    )
    assert "No verdict would have changed" in page
    assert "Limits count what really ran" in page
    record_call(world)
    assert "runs automatically → <b>is refused</b>" in simulate(world, **given)
    response = world.client("admin").get("/simulator/", {**given, "most": "many"})
    assert response.status_code == 422
    page = unescape(response.content.decode())
    assert "'many' is not a number" in page
    assert 'name="most" value="many"' in page


def test_an_invalid_change_leaves_the_other_changes_in_the_policy_draft(world: World) -> None:
    given = {"changes": json.dumps([STOP]), "kind": "allow_host", "host": "https://x/"}
    response = world.client("admin").get("/simulator/", given)
    assert response.status_code == 422
    assert f"stop {SEARCH}" in unescape(response.content.decode())


def test_calls_without_a_recorded_verdict_are_counted_separately(world: World) -> None:
    world.call(world.run(RunStatus.SUCCEEDED))
    page = simulate(world, **STOP)
    assert "No recorded verdict: 1 call, not counted above." in page


def test_invalid_input_is_explained_and_kept(world: World) -> None:
    response = world.client("admin").get(
        "/simulator/", {"kind": "allow_host", "host": "https://x/"}
    )
    assert response.status_code == 422
    page = unescape(response.content.decode())
    assert "Enter the name of a host" in page
    assert 'value="https://x/"' in page


@pytest.mark.parametrize("employee", [[1], {"a": 1}, True, "1", 1.5])
def test_changes_with_an_employee_id_that_is_not_an_integer_are_refused(
    world: World, employee: object
) -> None:
    changes = json.dumps([{**STOP, "employee": employee}])
    response = world.client("admin").get("/simulator/", {"changes": changes})
    assert response.status_code == 422
    assert "These changes cannot be read. Start over." in unescape(response.content.decode())
    own = json.dumps([{**STOP, "employee": world.employee.pk}])
    assert world.client("admin").get("/simulator/", {"changes": own}).status_code == 200


def test_hostile_input_stays_text(world: World) -> None:
    for given in (
        {"changes": "<script>alert(1)</script>"},
        {"kind": "allow_host", "host": "<script>alert(1)</script>"},
    ):
        response = world.client("admin").get("/simulator/", given)
        assert response.status_code == 422
        assert b"<script>alert(1)" not in response.content


def test_a_policy_draft_can_be_saved_run_in_shadow_mode_and_deleted(world: World) -> None:
    client = world.client("admin")
    changes = json.dumps([STOP])
    response = client.post("/simulator/save/", {"changes": changes, "name": "No search"})
    draft = PolicyDraft.objects.get()
    assert response["Location"] == f"/simulator/{draft.pk}/"
    assert client.post(f"/simulator/{draft.pk}/shadow/", {"days": "40"}).status_code == 422
    assert client.post(f"/simulator/{draft.pk}/shadow/", {"days": "30"}).status_code == 302
    call = record_call(world)
    ShadowVerdict.objects.create(
        draft=draft, call=call, before="auto", after="forbidden", reason="Stopped."
    )
    PolicyDraft.objects.update(counts={"auto forbidden": 1, "unknown": 2})
    page = unescape(client.get(f"/simulator/{draft.pk}/").content.decode())
    assert f'href="/runs/{call.run_id}/calls/{call.pk}/"' in page
    assert "runs automatically → <b>is refused</b>" in page
    assert (
        "Verdict unknown, because the policy draft needs a fact that was not recorded: 2 calls"
        in page
    )
    assert "1 different so far" in unescape(client.get("/simulator/").content.decode())
    PolicyDraft.objects.update(shadow_from=Now())
    client.post(f"/simulator/{draft.pk}/delete/")
    assert not PolicyDraft.objects.exists()
    actions = AuditEntry.objects.filter(subject=f"policy_draft:{draft.pk}").order_by("seq")
    assert list(actions.values_list("action", flat=True)) == [
        "policy_draft_saved",
        "policy_shadow_started",
        "policy_draft_deleted",
    ]


def test_a_policy_draft_without_a_name_is_refused_and_its_changes_are_kept(world: World) -> None:
    response = world.client("admin").post(
        "/simulator/save/", {"changes": json.dumps([STOP]), "name": " "}
    )
    assert response.status_code == 422
    page = unescape(response.content.decode())
    assert "Give the policy draft a name" in page
    assert f"stop {SEARCH}" in page


def test_the_employee_form_links_to_the_simulator(world: World) -> None:
    world.users["admin"].is_staff = True
    world.users["admin"].save()
    page = (
        world.client("admin")
        .get(f"/admin/employees/employee/{world.employee.pk}/change/")
        .content.decode()
    )
    assert f'href="/simulator/?employee={world.employee.pk}"' in page


def propose_rule(**terms: Any) -> str:
    """Return a new approval rule, as the page sends it."""
    rule = RuleTerms(**{"id": 0, "name": "<b>payments", "needed": 2, **terms})
    return json.dumps([PolicyChange(ChangeKind.APPROVAL_RULE, rule=rule).as_json()])


def test_a_simulated_approval_rule_lists_its_cards_and_the_approvals_that_each_would_need(
    world: World,
) -> None:
    card = world.card()
    Approval.objects.filter(pk=card.pk).update(
        status="approved",
        decided_by=world.users["approver"],
        decided_at=Now(),
        sentence="Update a record",
    )
    response = world.client("admin").get("/simulator/", {"changes": propose_rule()})
    assert b"<b>payments" not in response.content, "it stays text"
    page = " ".join(unescape(response.content.decode()).split())
    assert "Approval rule “<b>payments”: needs 2 approvers; for every tool" in page
    assert "Result for 1 recorded card" in page
    assert f'href="/approvals/{card.pk}/"' in page
    assert "approved → <b>needs more or other people</b>" in page
    assert "1 of 2: an approver" in page
    assert "1 of 1 approval has no stored groups" in page
    assert "recorded call" not in page, "no verdict of a call depends on it"
    assert "This policy draft matches none of these cards." in simulate(
        world, changes=propose_rule(tool=SEARCH)
    )


def test_a_policy_draft_with_a_rule_and_another_change_shows_both_results(world: World) -> None:
    record_call(world)
    page = simulate(world, changes=propose_rule(), **STOP)
    assert "Result for 1 recorded call" in page
    assert "There are no recorded cards yet." in page


def test_the_page_of_a_drafted_rule_lists_the_cards_that_it_would_change(world: World) -> None:
    client = world.client("admin")
    client.post("/simulator/save/", {"changes": propose_rule(), "name": "Two people"})
    draft = PolicyDraft.objects.get()
    page = unescape(client.get(f"/simulator/{draft.pk}/").content.decode())
    assert "needs 2 approvers; for every tool" in page
    assert client.post(f"/simulator/{draft.pk}/shadow/", {"days": "7"}).status_code == 302
    card = world.card()
    ShadowCard.objects.create(
        draft=draft, card=card, outcome="more", needs="1 of 2: <b>x", is_stuck=True
    )
    PolicyDraft.objects.update(card_counts={"more": 1, "enough": 2, "stuck": 1})
    response = client.get(f"/simulator/{draft.pk}/")
    assert b"<b>x" not in response.content, "it stays text"
    page = " ".join(unescape(response.content.decode()).split())
    assert f'href="/approvals/{card.pk}/"' in page
    assert "waiting → <b>needs more or other people</b>; no one could approve it" in page
    assert "Compared calls" not in page
    assert "1 different so far" in unescape(client.get("/simulator/").content.decode())
