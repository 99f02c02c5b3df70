"""A policy draft is simulated over recorded calls of only its own organization, and does not change
any row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.test.utils import CaptureQueriesContext

from agents.accounts.models import Organization
from agents.employees.models import Employee, Grant, ToolRule
from agents.platform.refusals import Invalid
from agents.policy.policy_drafts import ChangeKind, PolicyChange, apply_changes
from agents.policy.recorded_calls import PREAPPROVED, ReplayOutcome
from agents.policy.simulation import SimulationReport, simulate
from agents.policy.typed_changes import read_change, read_changes
from agents.runs.models import CallStatus, PolicySnapshot, Run, ToolCall
from agents.runs.snapshots import load_snapshot
from tests.features import feature
from tests.recorder import Recorder
from tests.standing_grants.granting import equals, propose_for
from tests.tools.toolbox.sample_tools import Echo
from tests.workshop import Workshop, asking, build_workshop, call
from tools.contract import Level, NoParams
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

UPDATE = "data.updateRecord"
SEARCH = "data.searchRecords"


def run_simulation(
    workshop: Workshop, *changes: PolicyChange, limit: int = 1_000
) -> SimulationReport:
    return simulate(workshop.organization.pk, changes, limit)


def search(workshop: Workshop, limit: int) -> Run:
    workshop.play(asking(call(SEARCH, limit=limit)))
    return workshop.work()


def deny_update(workshop: Workshop) -> ToolCall:
    record = workshop.record()
    workshop.play(asking(call(UPDATE, record_id=str(record.pk), changes={"phone": "+1 555 0100"})))
    run = workshop.work()
    workshop.deny(workshop.card(run))
    return ToolCall.objects.get(run=run)


def test_every_kind_of_change_has_its_effect(workshop: Workshop) -> None:
    search(workshop, 5)
    expected = {
        ChangeKind.REVOKE: ("auto", "forbidden"),
        ChangeKind.STOP: ("auto", "forbidden"),
        ChangeKind.GRANT: ("auto", "auto"),
        ChangeKind.NO_LIMITS: ("auto", "auto"),
    }
    for kind, pair in expected.items():
        assert run_simulation(workshop, PolicyChange(kind, SEARCH)).verdicts == Counter([pair]), (
            kind
        )
    raised = PolicyChange(ChangeKind.LEVEL, SEARCH, level=Level.WRITE)
    assert run_simulation(workshop, raised).verdicts == Counter([("auto", "ask")])
    limited = PolicyChange(ChangeKind.LIMIT, SEARCH, condition=Condition("limit", Rule.MAXIMUM, 4))
    assert run_simulation(workshop, limited).verdicts == Counter([("auto", "ask")])
    assert (
        run_simulation(workshop, limited, PolicyChange(ChangeKind.NO_LIMITS, SEARCH)).changed_count
        == 0
    )


def test_a_limit_applies_to_the_params_of_each_call(workshop: Workshop) -> None:
    for limit in (3, 4, 5):
        search(workshop, limit)
    limited = PolicyChange(ChangeKind.LIMIT, SEARCH, condition=Condition("limit", Rule.MAXIMUM, 4))
    report = run_simulation(workshop, limited)
    assert report.verdicts == Counter({("auto", "auto"): 2, ("auto", "ask"): 1})
    assert [each.judged.reason for each in report.listed] == ["limit is 5, but must be at most 4"]


def test_a_host_can_be_allowed_in_a_policy_draft(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.visit", host="api.example.com")))
    workshop.work()
    report = run_simulation(workshop, PolicyChange(ChangeKind.ALLOW_HOST, host="api.example.com"))
    assert report.verdicts == Counter([("ask", "auto")])


@feature(
    "The gate",
    "A policy draft is simulated over recorded calls, with a warning for those that people denied",
    "agents/policy/simulation.py",
)
def test_a_denied_call_that_would_now_run_is_listed_first_with_a_warning(
    workshop: Workshop, recorder: Recorder
) -> None:
    effect = asking(call("probe.effect", name="a"))
    workshop.play(effect)
    run = workshop.work()
    workshop.deny(workshop.card(run))
    assert ToolCall.objects.get(run=run).status == CallStatus.DENIED
    workshop.work()
    report = run_simulation(
        workshop,
        PolicyChange.from_grant(propose_for(workshop, "probe.effect", equals("name", "a"))),
    )
    assert report.verdicts == Counter({("ask", PREAPPROVED): 2})
    assert report.alarming_count == 1
    assert not report.listed[1].is_alarming, "nobody denied the newer one"
    assert report.listed[0].row.run_id == run.pk


def test_a_denied_call_that_still_needs_approval_gets_no_warning(workshop: Workshop) -> None:
    denied = deny_update(workshop)
    report = run_simulation(
        workshop, PolicyChange(ChangeKind.LEVEL, UPDATE, level=Level.DESTRUCTIVE)
    )
    assert report.verdicts == Counter([("ask", "ask")])
    assert report.alarming_count == 0
    assert denied.status == CallStatus.DENIED


def test_a_change_for_one_employee_does_not_affect_others(workshop: Workshop) -> None:
    search(workshop, 1)
    other = Employee.objects.create(
        organization=workshop.organization, name="Kim", provider=workshop.employee.provider
    )
    assert (
        run_simulation(workshop, PolicyChange(ChangeKind.STOP, SEARCH, other.pk)).changed_count == 0
    )
    assert (
        run_simulation(
            workshop, PolicyChange(ChangeKind.STOP, SEARCH, workshop.employee.pk)
        ).changed_count
        == 1
    )


def test_unrecorded_facts_are_unknown_and_counted_separately(workshop: Workshop) -> None:
    search(workshop, 1)
    outside = Condition("limit", Rule.NOT_FROM_OUTSIDE, value=True)
    report = run_simulation(workshop, PolicyChange(ChangeKind.LIMIT, SEARCH, condition=outside))
    assert report.skipped == Counter({ReplayOutcome.UNKNOWN: 1})
    assert report.unknown == Counter(["the fact 'provenance' was not recorded"])
    assert not report.verdicts


def test_calls_of_another_organization_never_appear(workshop: Workshop) -> None:
    other = build_workshop("globex")
    search(workshop, 1)
    search(other, 2)
    report = run_simulation(workshop, PolicyChange(ChangeKind.STOP, SEARCH))
    assert report.total == 1
    assert {each.row.organization_id for each in report.listed} == {workshop.organization.pk}
    empty = Organization.objects.create(name="Initech", slug="initech")
    assert simulate(empty.pk, [PolicyChange(ChangeKind.STOP, SEARCH)], 10).total == 0


def test_a_simulation_writes_nothing(workshop: Workshop) -> None:
    search(workshop, 1)
    before = list_live_rows()
    with CaptureQueriesContext(connection) as queries:
        run_simulation(
            workshop,
            PolicyChange(ChangeKind.STOP, SEARCH),
            PolicyChange(ChangeKind.ALLOW_HOST, host="example.com"),
        )
    assert {query["sql"].lstrip("( ").split(" ", 1)[0] for query in queries} <= {
        "SELECT",
        "BEGIN",
        "DECLARE",
    }
    assert list_live_rows() == before
    snapshot = PolicySnapshot.objects.get()
    rules = load_snapshot(snapshot.organization_id, snapshot.hash)
    changed = apply_changes(rules, [PolicyChange(ChangeKind.STOP, SEARCH)])
    assert changed != rules
    assert load_snapshot(snapshot.organization_id, snapshot.hash) == rules


def list_live_rows() -> list[dict[str, Any]]:
    live: tuple[type[Model], ...] = (Grant, ToolRule, Employee, PolicySnapshot, ToolCall)
    return [row for model in live for row in model._default_manager.values()]


def test_a_change_is_parsed_and_survives_json(workshop: Workshop) -> None:
    given = {
        "kind": "limit",
        "tool": UPDATE,
        "employee": str(workshop.employee.pk),
        "param": "changes.status",
        "rule": "one_of",
        "value": "active, pending",
        "otherwise": "forbid",
    }
    change = read_change(workshop.organization.pk, given)
    assert change.condition is not None
    assert change.condition.value == ["active", "pending"]
    assert PolicyChange.from_json(change.as_json()) == change
    words = change.describe({workshop.employee.pk: "Dana"})
    assert words.startswith(f"Dana: add a limit to {UPDATE} (changes.status must be one of")


def test_a_change_for_a_pinned_employee_has_the_params_of_its_version(
    workshop: Workshop, toolbox: Toolbox
) -> None:
    toolbox.register(Echo(version="1.2"))
    toolbox.register(Echo(version="2.0", Params=NoParams))
    Grant.objects.create(employee=workshop.employee, tool=Echo.name, version="1.2")
    given = {"kind": "limit", "tool": Echo.name, "param": "times", "rule": "maximum", "value": "3"}
    change = read_change(workshop.organization.pk, {**given, "employee": str(workshop.employee.pk)})
    assert (change.condition is not None, change.tool) == (True, Echo.name)
    with pytest.raises(Invalid, match="has no parameter 'times'"):
        read_change(workshop.organization.pk, given)


COUNT = {
    "kind": "limit",
    "tool": SEARCH,
    "rule": "call_count",
    "most": "20",
    "period": "hour",
    "param": "ignored",
}
AFTER = {
    "kind": "limit",
    "tool": UPDATE,
    "rule": "only_after",
    "param": "record_id",
    "after": "data.getRecordDetail",
}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (COUNT, "At most 20 calls per hour; otherwise a person decides."),
        (
            {
                **COUNT,
                "rule": "sum",
                "param": "limit",
                "most": "1,500",
                "period": "day",
                "otherwise": "forbid",
            },
            "The sum of limit must be at most 1,500 per day; otherwise it is refused.",
        ),
        (
            AFTER,
            "Only after data.getRecordDetail with the same record_id in this run; otherwise a person decides.",
        ),
        (
            {**AFTER, "after": SEARCH, "same": "text"},
            "Only after data.searchRecords with text equal to record_id in this run; otherwise a person decides.",
        ),
    ],
)
def test_a_limit_over_history_is_parsed_and_survives_json(
    workshop: Workshop, given: dict[str, str], words: str
) -> None:
    change = read_change(workshop.organization.pk, given)
    assert change.describe({}) == f"All employees: add a limit to {given['tool']} ({words})"
    assert PolicyChange.from_json(change.as_json()) == change


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"kind": "nothing"}, "kind", "Choose what to change"),
        ({"kind": "stop", "tool": "no.such"}, "tool", "Choose a tool"),
        ({"kind": "stop", "tool": SEARCH, "employee": "999999"}, "employee", "Choose an employee"),
        (
            {"kind": "level", "tool": UPDATE, "level": "read"},
            "level",
            "Only a higher level can be set",
        ),
        (
            {"kind": "limit", "tool": SEARCH, "param": "nothing", "rule": "equals"},
            "param",
            "has no parameter 'nothing'",
        ),
        (
            {"kind": "limit", "tool": SEARCH, "param": "limit", "rule": "often"},
            "rule",
            "Choose a rule",
        ),
        (
            {"kind": "limit", "tool": SEARCH, "param": "limit", "rule": "maximum", "value": "x"},
            "value",
            "not a number",
        ),
        ({"kind": "standing_grant", "tool": UPDATE}, "kind", "Choose what to change"),
        ({**COUNT, "most": ""}, "value", "Limit of Search records: fill in “Limit”"),
        ({**COUNT, "most": "0"}, "value", "not a whole number from 1"),
        ({**COUNT, "period": "year"}, "value", "'year' is not a period"),
        ({**COUNT, "rule": "sum", "param": ""}, "value", "fill in “Parameter”"),
        (
            {**COUNT, "rule": "sum", "param": "text"},
            "value",
            "text of data.searchRecords is not a number",
        ),
        ({**AFTER, "after": ""}, "value", "fill in “Earlier tool”"),
        ({**AFTER, "after": "no.such"}, "value", "there is no tool 'no.such'"),
        ({**AFTER, "same": "nothing"}, "value", "has no parameter 'nothing'"),
        ({"kind": "allow_host", "host": "https://a.b/c"}, "host", "Enter the name of a host"),
    ],
)
def test_invalid_input_is_refused_with_the_field(
    workshop: Workshop, given: dict[str, str], field: str, message: str
) -> None:
    with pytest.raises(Invalid, match=message) as refused:
        read_change(workshop.organization.pk, given)
    assert refused.value.extra["field"] == field


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '[{"kind": "x"}]',
        '{"kind": "stop"}',
        '[{"kind":"stop","employee":999}]',
        '[{"kind":"stop","employee":[]}]',
        '[{"kind":"standing_grant","params":"name"}]',
    ],
)
def test_manipulated_changes_are_refused(workshop: Workshop, text: str) -> None:
    with pytest.raises(Invalid, match="Start over"):
        read_changes(workshop.organization.pk, text)
