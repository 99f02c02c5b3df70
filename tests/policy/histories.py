"""Random histories without a database: verdicts on random calls, stored and read back as a database
would do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.tools.toolbox.configurations import CONFIGURATIONS, NAME, AnyTool, Configuration
from tools.contract import Tool, fingerprint
from tools.toolbox import Condition, Grants, Policy, Rule, Verdict, judge_call
from tools.toolbox.history import Period
from tools.toolbox.provenance import OwnData, Provenance, SeenIn, Sighting
from tools.toolbox.recorded_facts import RecordedCall
from tools.toolbox.snapshots import RecordedRules

PLACES = ("text", "style", "changes.status", "ids")


@dataclass(frozen=True)
class History:
    """One random call, with what its run has seen.

    Attributes:
        carries: the organization's own values that the call would send outside.
        has_unseen_text: the call has text in which private data can hide.
        is_approved: a person has approved such a call before.
        bias: a rare fact on which the verdict is made to depend; empty if there is none.
    """

    configuration: Configuration
    outside: frozenset[str]
    carries: tuple[str, ...]
    is_partial: bool
    has_run: bool
    source: str
    bias: str = ""
    has_unseen_text: bool = False
    is_approved: bool = False

    @property
    def call(self) -> Configuration:
        """The call, changed so that its verdict needs the fact of the bias."""
        drawn = self.configuration
        if not self.bias or drawn.tool is None:
            return drawn
        origin = {NAME: (Condition("text", Rule.NOT_FROM_OUTSIDE, value=True),)}
        grants = Grants(frozenset({NAME}), conditions=origin if self.bias == "is_traced" else {})
        tool = AnyTool(frozenset({"example.com"}), open_world=True, level=drawn.tool.level)
        return Configuration(
            tool, drawn.arguments, grants, Policy(allowed_hosts=frozenset({"example.com"}))
        )

    def trace(self, tool: Tool, params: Mapping[str, Any]) -> Provenance:
        found = tuple(
            Sighting(place, place, "a value", SeenIn.OUTSIDE, title="Page")
            for place in sorted(self.outside)
        )
        return Provenance(found, is_partial=self.is_partial)

    def find_own_data(self, tool: Tool, params: Mapping[str, Any]) -> OwnData:
        return OwnData(self.carries, self.is_partial, self.has_unseen_text)


@dataclass(frozen=True)
class Approved:
    """The calls before a random call; only the approved reads among them are looked up."""

    is_approved: bool

    @property
    def now(self) -> datetime:
        raise AssertionError("no limit needs it")

    def count_started(self, tool: str, period: Period) -> int:
        raise AssertionError("no limit needs it")

    def sum_started(self, tool: str, param: str, period: Period) -> Decimal:
        raise AssertionError("no limit needs it")

    def find_unseen(self, tool: str, param: str, values: Sequence[Any]) -> int | None:
        raise AssertionError("no limit needs it")

    def has_approved_read(self, tool: str, hosts: frozenset[str]) -> bool:
        return self.is_approved


HISTORIES = st.builds(
    History,
    CONFIGURATIONS,
    st.frozensets(st.sampled_from(PLACES), max_size=2),
    st.sampled_from([(), (), ("Acme Corp",), ("a", "b", "c", "d", "e", "f", "x" * 100)]),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
    st.sampled_from([Tool.source, Tool.source, "a plugin"]),
    st.sampled_from(["", "", "", "is_traced", "own_data"]),
    st.booleans(),
    st.booleans(),
)


@dataclass(frozen=True)
class Kept:
    """A verdict, and its record after a round trip through JSON."""

    verdict: Verdict
    call: RecordedCall
    rules: RecordedRules


def keep(history: History) -> Kept:
    """Judge the call of a history live, and record it as the engine does."""
    one = history.call
    tool = one.tool
    if tool is not None:
        tool.source = history.source
    values = history if history.has_run else None
    earlier = Approved(history.is_approved) if history.has_run else None
    verdict = judge_call(tool, one.arguments.said, one.grants, one.policy, NAME, values, earlier)
    rules = RecordedRules.of(one.grants, one.policy, {tool.id: tool} if tool else {})
    provenance = verdict.provenance.as_json() if verdict.provenance else None
    call = RecordedCall(
        NAME, verdict.params, provenance, verdict.as_json(), verdict.level.value, verdict.reason
    )
    return Kept(verdict, _store_call(call), _store_rules(rules))


def _store_call(call: RecordedCall) -> RecordedCall:
    stored = json.loads(json.dumps([call.params, call.provenance, call.judgment]))
    return replace(call, params=stored[0], provenance=stored[1], judgment=stored[2])


def _store_rules(rules: RecordedRules) -> RecordedRules:
    loaded = RecordedRules.from_json(json.loads(json.dumps(rules.as_json())))
    assert fingerprint(loaded.as_json()) == fingerprint(rules.as_json())
    return loaded
