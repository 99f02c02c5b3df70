"""A standing grant is a change in a policy draft: calls that need approval and match its terms are
simulated as approved."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now

from agents.accounts.models import Organization
from agents.employees.models import Employee, Grant
from agents.platform.refusals import Invalid
from agents.policy import shadow
from agents.policy.models import PolicyDraft, ShadowVerdict
from agents.policy.policy_drafts import ChangeKind, PolicyChange
from agents.policy.recorded_calls import PREAPPROVED, ReplayOutcome
from agents.policy.simulation import SimulationReport, simulate
from agents.policy.typed_changes import read_changes
from agents.runs.models import Run, ToolCall
from tests.features import feature
from tests.recorder import Recorder
from tests.standing_grants.granting import equals, propose_for
from tests.workshop import Workshop, asking, build_workshop, call
from tools.connections.models import AllowedHost
from tools.contract import Level
from tools.toolbox.conditions import Condition, Rule

pytestmark = pytest.mark.django_db(transaction=True)

EFFECT = "probe.effect"
VISIT = "probe.visit"
ASKS, IS_PREAPPROVED = ("ask", "ask"), ("ask", PREAPPROVED)
A = equals("name", "a")


@pytest.fixture(autouse=True)
def _recorder(recorder: Recorder) -> None:
    """Let the probes have effects."""


def ask(workshop: Workshop, tool: str = EFFECT, **params: Any) -> Run:
    """Let the employee request a call of the tool, and leave its card open."""
    workshop.play(asking(call(tool, **(params or {"name": "a"}))))
    return workshop.work()


def answering(
    workshop: Workshop, *conditions: Condition, tool: str = EFFECT, **more: Any
) -> PolicyChange:
    return PolicyChange.from_grant(propose_for(workshop, tool, *conditions, **more))


def run_simulation(workshop: Workshop, *changes: PolicyChange) -> SimulationReport:
    return simulate(workshop.organization.pk, changes, 1_000)


def test_only_calls_that_match_the_terms_are_approved(workshop: Workshop) -> None:
    ask(workshop)
    ask(workshop, name="b")
    report = run_simulation(workshop, answering(workshop, A))
    assert report.verdicts == Counter([IS_PREAPPROVED, ASKS])
    assert [each.row.run_id for each in report.listed] == [
        ToolCall.objects.order_by("pk")[0].run_id
    ]


@feature(
    "The gate",
    "A standing grant is simulated before it is made: it approves only calls of its employee that fit its terms",
    "agents/policy/changed_rules.py",
)
def test_a_grant_for_one_employee_approves_only_its_calls(workshop: Workshop) -> None:
    ask(workshop)
    other = Employee.objects.create(
        organization=workshop.organization, name="Eve", provider=workshop.employee.provider
    )
    Grant.objects.create(employee=other, tool=EFFECT)
    run = ask(replace(workshop, employee=other))
    assert run_simulation(workshop, answering(workshop, A)).verdicts == Counter(
        [IS_PREAPPROVED, ASKS]
    )
    theirs = run_simulation(workshop, answering(workshop, A, employee_id=other.pk))
    assert [each.row.run_id for each in theirs.listed] == [run.pk]
    every = run_simulation(workshop, answering(workshop, A, employee_id=None))
    assert every.verdicts == Counter([IS_PREAPPROVED, IS_PREAPPROVED])


@pytest.mark.parametrize(
    "stricter",
    [
        {"kind": ChangeKind.LEVEL, "level": Level.DESTRUCTIVE},
        {"kind": ChangeKind.LIMIT, "condition": Condition("name", Rule.ONE_OF, ["b", "c"])},
    ],
)
def test_a_call_that_needs_approval_due_to_a_limit_or_a_raised_level_is_not_approved(
    workshop: Workshop, stricter: dict[str, Any]
) -> None:
    ask(workshop)
    proposed = answering(workshop, A)
    assert run_simulation(workshop, proposed).verdicts == Counter([IS_PREAPPROVED])
    assert run_simulation(
        workshop, proposed, PolicyChange(tool=EFFECT, **stricter)
    ).verdicts == Counter([ASKS])


def test_a_forbidden_call_stays_forbidden(workshop: Workshop) -> None:
    ask(workshop)
    report = run_simulation(workshop, answering(workshop, A), PolicyChange(ChangeKind.STOP, EFFECT))
    assert report.verdicts == Counter([("ask", "forbidden")])


def test_a_param_that_the_grant_does_not_name_must_be_absent(workshop: Workshop) -> None:
    ask(workshop, VISIT, host="a.example.com", code="NOT_FOUND")
    host = equals("host", "a.example.com")
    code = equals("code", "NOT_FOUND")
    with_code = answering(workshop, host, code, tool=VISIT, params=("host", "code"))
    assert run_simulation(workshop, answering(workshop, host, tool=VISIT)).verdicts == Counter(
        [ASKS]
    )
    assert run_simulation(workshop, with_code).verdicts == Counter([IS_PREAPPROVED])


def test_the_origin_of_a_param_without_a_condition_is_unknown_if_it_was_not_recorded(
    workshop: Workshop,
) -> None:
    AllowedHost.objects.create(
        organization=workshop.organization, host="a.example.com", without_card=True
    )
    Organization.objects.filter(pk=workshop.organization.pk).update(
        tools_version=F("tools_version") + 1
    )
    ask(workshop, VISIT, host="a.example.com")
    again = PolicyChange(ChangeKind.FORBID_HOST, host="a.example.com")
    exact = answering(
        workshop, equals("host", "a.example.com"), tool=VISIT, params=("host", "code")
    )
    assert run_simulation(workshop, again).verdicts == Counter([("auto", "ask")])
    report = run_simulation(workshop, again, exact)
    assert report.skipped == Counter({ReplayOutcome.UNKNOWN: 1})
    fixed = answering(workshop, equals("host", "a.example.com"), equals("code", ""), tool=VISIT)
    assert run_simulation(workshop, again, fixed).verdicts == Counter([("auto", PREAPPROVED)])


def test_a_grant_for_a_removed_tool_approves_nothing(workshop: Workshop) -> None:
    ask(workshop)
    gone = replace(answering(workshop, A), tool="probe.gone")
    assert run_simulation(workshop, gone).verdicts == Counter([ASKS])


def test_the_shadow_of_a_policy_draft_records_approved_calls(workshop: Workshop) -> None:
    policy_draft = shadow.save_policy_draft(workshop.admin, "Answer", (answering(workshop, A),))
    shadow.start_shadow(workshop.admin, policy_draft.pk, 7)
    run = ask(workshop)
    ToolCall.objects.update(created_at=Now() - timedelta(minutes=5))
    assert shadow.compare(PolicyDraft.objects.get(pk=policy_draft.pk)) == 1
    verdict = ShadowVerdict.objects.get()
    assert (verdict.call.run_id, verdict.before, verdict.after) == (run.pk, *IS_PREAPPROVED)
    assert workshop.card(run).standing_grant is None, "nothing is applied"


def test_the_change_survives_json_and_does_not_include_a_limit_on_uses(workshop: Workshop) -> None:
    change = answering(workshop, A, max_uses=7)
    (read,) = read_changes(workshop.organization.pk, json.dumps([change.as_json()]))
    assert read == change
    assert read.as_json().keys() == {"kind", "tool", "employee", "params", "conditions"}
    assert (
        read.describe({workshop.employee.pk: "Dana"})
        == f"Dana: approve calls to {EFFECT} with a standing grant"
    )


@pytest.mark.parametrize(
    ("tool", "conditions", "params", "message"),
    [
        ("probe.gone", [A], ("name",), "There is no tool 'probe.gone'"),
        ("probe.doom", [A], ("name",), "A person decides every destructive call"),
        (EFFECT, [A], ("name", "nothing"), "has no parameter 'nothing'"),
        (
            EFFECT,
            [Condition("name", Rule.PATTERN, "a+")],
            ("name",),
            "cannot have the condition 'pattern'",
        ),
        (EFFECT, [A], (), "calls may not have this param"),
        (
            "data.updateRecord",
            [equals("record_id", "1")],
            ("record_id", "changes.email"),
            "needs a condition",
        ),
    ],
)
def test_terms_that_no_standing_grant_can_have_are_refused(
    workshop: Workshop,
    tool: str,
    conditions: list[Condition],
    params: tuple[str, ...],
    message: str,
) -> None:
    change = answering(workshop, *conditions, tool=tool, params=params)
    with pytest.raises(Invalid, match=message):
        read_changes(workshop.organization.pk, json.dumps([change.as_json()]))


def test_a_grant_for_an_employee_of_another_organization_is_refused(workshop: Workshop) -> None:
    other = build_workshop("globex")
    text = json.dumps([answering(other, A).as_json()])
    with pytest.raises(Invalid, match="no longer exists"):
        read_changes(workshop.organization.pk, text)
    assert read_changes(other.organization.pk, text)
