"""A call records every fact that its verdict used: from these facts alone, random calls get the
same verdict again."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings

from tests.policy.histories import HISTORIES, History, keep
from tests.tools.toolbox.sample_tools import Echo
from tools.contract import Level
from tools.toolbox import Condition, Grants, Otherwise, Permission, Policy, Rule, judge_call
from tools.toolbox.facts import ToolTraits
from tools.toolbox.provenance import OwnData, Provenance
from tools.toolbox.recorded_facts import MissingFact, RecordedCall, RecordedTraits
from tools.toolbox.snapshots import RecordedRules, judge_recorded, list_differences
from tools.toolbox.value_readings import TODAY, Reading

NAME = Echo.name
GRANTED = Grants(tools=frozenset({NAME}))
LOUD = Condition("text", Rule.EQUALS, "hi", Otherwise.FORBID)
NOT_OUTSIDE = Condition("text", Rule.NOT_FROM_OUTSIDE, value=True)


class Nothing:
    """A run that has seen nothing."""

    def trace(self, tool: Any, params: Any) -> Provenance:
        return Provenance()

    def find_own_data(self, tool: Any, params: Any) -> OwnData:
        return OwnData()


def record(
    tool: Any, params: Any, grants: Grants, policy: Policy | None = None
) -> tuple[RecordedCall, RecordedRules]:
    verdict = judge_call(tool, params, grants, policy or Policy(), NAME, Nothing())
    provenance = verdict.provenance.as_json() if verdict.provenance else None
    call = RecordedCall(
        NAME, verdict.params, provenance, verdict.as_json(), verdict.level.value, verdict.reason
    )
    return call, RecordedRules.of(grants, policy or Policy(), {tool.id: tool})


@given(HISTORIES)
def test_random_calls_get_the_same_verdict_from_their_recorded_facts(history: History) -> None:
    kept = keep(history)
    assert list_differences(kept.call, judge_recorded(kept.call, kept.rules)) == []


def test_the_random_calls_cover_every_kind_of_fact_and_verdict() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=150)
    @given(HISTORIES)
    def look(history: History) -> None:
        kept = keep(history)
        seen.update([kept.verdict.permission.value, *kept.call.facts])

    look()
    wanted = {
        "auto",
        "ask",
        "forbidden",
        "hosts",
        "is_traced",
        "own_data",
        "error",
        "params",
        "tool",
    }
    assert wanted <= seen.keys()


def test_recorded_traits_and_rules_have_every_field() -> None:
    declared = {name for name, value in vars(ToolTraits).items() if isinstance(value, property)}
    assert {each.name for each in fields(RecordedTraits)} == declared
    stored = RecordedRules.of(Grants(pinned={"a": "1"}), Policy(modes=frozenset()), {}).as_json()
    assert stored["grants"].keys() == {each.name for each in fields(Grants)}
    assert stored["policy"].keys() == {each.name for each in fields(Policy)}


def test_rules_without_pins_or_lost_modes_are_stored_in_the_old_form() -> None:
    stored = RecordedRules.of(Grants(), Policy(modes=frozenset({"general"})), {}).as_json()
    assert "pinned" not in stored["grants"]
    assert "modes" not in stored["policy"]


@pytest.mark.parametrize("taken", ["hosts", "own_data", "error", "params"])
def test_a_removed_fact_is_detected(taken: str) -> None:
    allowed = Policy(allowed_hosts=frozenset({"example.com"}))
    call, rules = {
        "hosts": lambda: record(Fetch(), {"text": "evil.example.com"}, GRANTED),
        "own_data": lambda: record(Fetch(), {"text": "example.com"}, GRANTED, allowed),
        "error": lambda: record(Echo(), {"text": ""}, GRANTED),
        "params": lambda: record(
            Echo(), {"text": "ho"}, replace(GRANTED, conditions={NAME: (LOUD,)})
        ),
    }[taken]()
    assert list_differences(call, judge_recorded(call, rules)) == []
    assert taken in call.facts
    less = {name: value for name, value in call.facts.items() if name != taken}
    poorer = replace(call, judgment={**call.judgment, "facts": less})
    try:
        found = list_differences(poorer, judge_recorded(poorer, rules))
    except MissingFact as missing:
        found = [str(missing)]
    assert found


class Fetch(Echo):
    """A tool that contacts the host in its text."""

    open_world = True

    def hosts(self, params: Any) -> frozenset[str]:
        return frozenset({params.text})


def test_a_policy_draft_that_needs_an_unrecorded_fact_names_the_fact() -> None:
    call, rules = record(Echo(), {"text": "hi"}, GRANTED)
    limited = replace(rules, grants=replace(rules.grants, conditions={NAME: (NOT_OUTSIDE,)}))
    with pytest.raises(MissingFact, match="'provenance'"):
        judge_recorded(call, limited)


def test_params_and_hosts_of_a_refused_call_are_not_recorded() -> None:
    call, rules = record(Echo(), {"text": "hi"}, Grants())
    granted = replace(rules, grants=GRANTED)
    with pytest.raises(MissingFact, match="'params'"):
        judge_recorded(call, granted)
    limited, _ = record(Fetch(), {"text": "ho"}, replace(GRANTED, conditions={NAME: (LOUD,)}))
    with pytest.raises(MissingFact, match="'hosts'"):
        judge_recorded(limited, RecordedRules.of(GRANTED, Policy(), {Fetch().id: Fetch()}))


def test_other_rules_change_the_verdict_on_the_same_facts() -> None:
    call, rules = record(Echo(), {"text": "hi"}, GRANTED)
    raised = replace(rules, grants=replace(rules.grants, raised={NAME: Level.WRITE}))
    verdict = judge_recorded(call, raised)
    assert verdict.permission is Permission.ASK
    assert [line.partition(" ")[0] for line in list_differences(call, verdict)] == [
        "verdict",
        "level",
        "reason",
        "causes",
    ]


def test_rules_of_an_older_snapshot_read_values_as_the_older_version_did() -> None:
    limit = Condition("url", Rule.PREFIX, "https://acme.example")
    rules = RecordedRules.of(Grants(conditions={"a": (limit,)}), Policy(), {})
    stored = rules.as_json()
    assert RecordedRules.from_json(stored) == rules
    old = RecordedRules.from_json(
        {name: each for name, each in stored.items() if name != "reading"}
    )
    assert old.grants.conditions["a"][0].reading is Reading.FIRST
    assert old.read_as(TODAY) == rules
