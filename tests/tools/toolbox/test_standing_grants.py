"""A standing grant approves exactly the calls that its terms describe."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.features import feature
from tests.tools.toolbox.configurations import AnyTool
from tests.tools.toolbox.granted import Case, answers, make_case
from tools.contract import Level, Tool
from tools.contract.param_naming import FirstNaming
from tools.toolbox import Condition, Rule
from tools.toolbox.grant_conditions import list_value_paths
from tools.toolbox.objections import Objection
from tools.toolbox.permissions import Cause, CauseKind, Grants, Policy, judge_call
from tools.toolbox.provenance import OwnData, Provenance
from tools.toolbox.provenance.sightings import OutsideKeys
from tools.toolbox.standing_grants import (
    AskingCall,
    GrantTerms,
    find_mismatch,
    grants_for,
)

CASES = 10_000
CALL = AskingCall(
    tool="crm.update",
    definition="d",
    level=Level.WRITE,
    account="",
    employee_id=1,
    run_id=7,
    params={"record_id": "5", "changes": {"status": "active"}},
    causes=(Cause(CauseKind.LEVEL, "this changes data"),),
    provenance=Provenance(),
)
GRANT = GrantTerms(
    pk=1,
    tool="crm.update",
    definition="d",
    level=Level.WRITE,
    account="",
    params=frozenset({"record_id", "changes.status"}),
    conditions=(Condition("changes.status", Rule.EQUALS, "active"),),
)


@feature(
    "Figures and metrics",
    "A standing grant approves exactly what its words say",
    "tools/toolbox/standing_grants.py",
)
def test_random_grants_approve_exactly_the_documented_calls() -> None:
    choose = random.Random(20_261_124)
    found: Counter[bool] = Counter()
    for number in range(CASES):
        case: Case = make_case(choose)
        mismatch = find_mismatch(case.call, case.grant)
        said = mismatch is None
        assert said == answers(case), f"case {number}: {mismatch or 'approved'}\n{case}"
        found[said] += 1
    assert found[True] > CASES // 200, found


def test_the_first_matching_grant_approves() -> None:
    other = replace(GRANT, pk=2, tool="crm.delete")
    assert grants_for(CALL, [other, replace(GRANT, pk=3), GRANT]) == [replace(GRANT, pk=3), GRANT]
    assert not grants_for(CALL, [other])


@pytest.mark.parametrize(
    "changed",
    [
        replace(GRANT, definition="other"),
        replace(GRANT, level=Level.READ),
        replace(GRANT, account="other"),
        replace(GRANT, employee_id=2),
        replace(GRANT, run_id=8),
        replace(GRANT, params=frozenset({"record_id"}), conditions=()),
        replace(GRANT, conditions=(Condition("changes.status", Rule.EQUALS, "inactive"),)),
        replace(GRANT, conditions=(*GRANT.conditions, Condition("reason", Rule.EQUALS, "x"))),
    ],
)
def test_each_term_must_match(changed: GrantTerms) -> None:
    assert grants_for(CALL, [GRANT])
    assert not grants_for(CALL, [changed])


@pytest.mark.parametrize(
    "changed",
    [
        replace(CALL, level=Level.DESTRUCTIVE),
        replace(CALL, causes=()),
        replace(CALL, causes=(Cause(CauseKind.LIMIT, "too many"),)),
        replace(CALL, causes=(*CALL.causes, Cause(CauseKind.OWN_DATA, "sends data"))),
        replace(CALL, causes=(Cause(CauseKind.RAISED_LEVEL, "raised"),)),
        replace(CALL, provenance=None),
        replace(CALL, provenance=Provenance(unsearched=1)),
        replace(CALL, provenance=Provenance(is_partial=True)),
        replace(CALL, provenance=Provenance(unlisted=(OutsideKeys("record_id", "Page", ("k",)),))),
        replace(CALL, naming=FirstNaming(frozenset({"record_id"}))),
        replace(CALL, params={**CALL.params, "reason": "x"}),
    ],
)
def test_each_fact_about_the_call_must_match(changed: AskingCall) -> None:
    assert not grants_for(changed, [replace(GRANT, level=changed.level)])


@pytest.mark.parametrize(
    "unknown",
    [
        None,
        Provenance(unsearched=1),
        Provenance(is_partial=True),
        Provenance(unlisted=(OutsideKeys("changes.status", "Page", ("k",)),)),
    ],
)
def test_an_unknown_origin_prevents_approval_only_if_a_param_has_no_fixed_value(
    unknown: Provenance | None,
) -> None:
    call = replace(CALL, params={"record_id": "5"}, provenance=unknown)
    fixed = replace(
        GRANT,
        params=frozenset({"record_id"}),
        conditions=(Condition("record_id", Rule.EQUALS, "5"),),
    )
    assert grants_for(call, [fixed])
    for conditions in ((), (Condition("record_id", Rule.PREFIX, "5"),)):
        loose = replace(fixed, conditions=conditions)
        assert find_mismatch(call, loose) == Objection(
            "the origin of the call's values is not known"
        )
        assert grants_for(replace(call, provenance=Provenance()), [loose])


@dataclass(frozen=True)
class Seen:
    """The provenance check of a run that has read these values of the organization's own data."""

    own: tuple[str, ...] = ()

    def trace(self, _tool: Tool, _params: Mapping[str, Any]) -> Provenance:
        return Provenance()

    def find_own_data(self, _tool: Tool, _params: Mapping[str, Any]) -> OwnData:
        return OwnData(self.own)


@pytest.mark.parametrize("hosts", [None, frozenset({"new.example"})])
def test_own_data_and_a_host_that_is_not_allowed_are_separate_causes(
    hosts: frozenset[str] | None,
) -> None:
    tool = AnyTool(hosts, open_world=True, level=Level.READ)
    terms = replace(
        GRANT, tool=tool.name, level=Level.READ, params=frozenset({"text"}), conditions=()
    )
    for own, kinds in (
        ((), [CauseKind.HOSTS]),
        (("Globex",), [CauseKind.HOSTS, CauseKind.OWN_DATA]),
    ):
        verdict = judge_call(
            tool, {"text": "hi"}, Grants(frozenset({tool.name})), Policy(), values=Seen(own)
        )
        assert [cause.kind for cause in verdict.causes] == kinds
        assert verdict.reason == "; ".join(cause.text for cause in verdict.causes)
        call = replace(
            CALL, tool=tool.name, level=verdict.level, params={"text": "hi"}, causes=verdict.causes
        )
        assert bool(grants_for(call, [terms])) == (not own)


def test_paths_name_every_value_but_null_only_where_it_says_something() -> None:
    params = {"a": 1, "b": {"c": [{"d": 1}, {"e": [2]}], "f": None}, "g": [], "h": {}}
    assert sorted(list_value_paths(params, None) or ()) == ["a", "b.c.d", "b.c.e", "g", "h"]
    assert sorted(list_value_paths(params) or ()) == ["a", "b.c.d", "b.c.e", "b.f", "g", "h"]
    assert list_value_paths({"a": {"b.c": 1}}) is None
