"""Policy snapshots: the rules by which a call was judged, as JSON, and the replay of its
verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tools.contract import Level, Tool
from tools.toolbox.conditions import Condition
from tools.toolbox.facts import ToolTraits
from tools.toolbox.history import ToolHistory
from tools.toolbox.permissions import Grants, Policy, Verdict, judge_facts, judge_missing_tool
from tools.toolbox.recorded_facts import RecordedCall, RecordedFacts, RecordedTraits
from tools.toolbox.value_readings import TODAY, Reading

FORMAT = 1


@dataclass(frozen=True)
class RecordedRules:
    """The rules by which an employee's calls are judged.

    Attributes:
        tools: the traits of its tools in every installed version, by id.
        standing_grants: the ids of the standing grants in force, if a card was compared with them.
            Only the ids are recorded, because the terms never change, and may have to be erased.
        reading: the version of the rules by which limits and standing grants read values.
    """

    grants: Grants
    policy: Policy
    tools: Mapping[str, RecordedTraits] = field(default_factory=dict)
    standing_grants: tuple[int, ...] = ()
    reading: Reading = TODAY

    @classmethod
    def of(
        cls,
        grants: Grants,
        policy: Policy,
        tools: Mapping[str, Tool],
        standing_grants: tuple[int, ...] = (),
    ) -> "RecordedRules":
        """Collect the rules, with granted tools only, because no other tool matters."""
        granted = {
            id_: RecordedTraits.of(tool) for id_, tool in tools.items() if tool.name in grants.tools
        }
        withheld = {name: why for name, why in policy.withheld.items() if name in grants.tools}
        modes = None if policy.has_mode(grants.mode) else frozenset[str]()
        return cls(
            grants, replace(policy, withheld=withheld, modes=modes), granted, standing_grants
        )

    def as_json(self) -> dict[str, Any]:
        """Return the rules as JSON; the same rules always give the same JSON."""
        return {
            "format": FORMAT,
            "reading": self.reading.value,
            "grants": _dump_grants(self.grants),
            "policy": _dump_policy(self.policy),
            "tools": [self.tools[id_].as_json() for id_ in sorted(self.tools)],
            **({"standing_grants": list(self.standing_grants)} if self.standing_grants else {}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "RecordedRules":
        """Load rules.

        Raises:
            KeyError, TypeError, ValueError: this is not a snapshot, or comes from a later version
                of Gadget.
        """
        if stored["format"] != FORMAT:
            raise ValueError(f"the format {stored['format']!r} is unknown")
        tools = [RecordedTraits.from_json(each) for each in stored["tools"]]
        reading = Reading(stored.get("reading", Reading.FIRST))
        return cls(
            _load_grants(stored["grants"], reading),
            _load_policy(stored["policy"]),
            {each.id: each for each in tools},
            tuple(map(int, stored.get("standing_grants", ()))),
            reading,
        )

    def read_as(self, reading: Reading) -> "RecordedRules":
        """Return the rules with limits that read values as in this version."""
        limits = {
            tool: tuple(replace(each, reading=reading) for each in found)
            for tool, found in self.grants.conditions.items()
        }
        return replace(self, grants=replace(self.grants, conditions=limits), reading=reading)

    def find_traits(self, call: RecordedCall) -> ToolTraits | None:
        """Return the traits of the call's tool; None if there was no such tool.

        Raises:
            KeyError: the snapshot lacks the tool.
        """
        kept = call.facts.get("tool")
        if kept is None:
            return None
        return RecordedTraits.from_json(kept) if isinstance(kept, Mapping) else self.tools[kept]


def judge_recorded(
    call: RecordedCall, rules: RecordedRules, rebuilt: ToolHistory | None = None
) -> Verdict:
    """Judge a recorded call by these rules and its stored facts.

    Args:
        rebuilt: the source of facts about earlier calls that are not stored; None means that they
            are missing facts.

    Raises:
        MissingFact: the rules need a fact that is not stored.
        KeyError: the rules lack the call's tool.
    """
    traits = rules.find_traits(call)
    if traits is None:
        return judge_missing_tool(call.facts.get("name", call.tool), rules.grants, rules.policy)
    return judge_facts(traits, RecordedFacts(call, traits, rebuilt), rules.grants, rules.policy)


def list_differences(call: RecordedCall, verdict: Verdict) -> list[str]:
    """List the differences between a call's recorded verdict and another verdict, with both
    values."""
    judged = verdict.as_json()
    pairs = (
        ("verdict", call.judgment["verdict"], judged["verdict"]),
        ("level", call.level, verdict.level.value),
        ("reason", call.why, verdict.reason),
        ("causes", call.judgment["causes"], judged["causes"]),
    )
    return [
        f"{name} {recorded!r}, replayed {replayed!r}"
        for name, recorded, replayed in pairs
        if recorded != replayed
    ]


def _dump_grants(grants: Grants) -> dict[str, Any]:
    return {
        "tools": sorted(grants.tools),
        "mode": grants.mode,
        "capabilities": sorted(grants.capabilities),
        "features": sorted(grants.features),
        "raised": {tool: level.value for tool, level in grants.raised.items()},
        "conditions": {
            tool: [each.as_json() for each in found] for tool, found in grants.conditions.items()
        },
        "stopped": dict(grants.stopped),
        "delegates": sorted(grants.delegates),
        **({"pinned": dict(grants.pinned)} if grants.pinned else {}),
    }


def _load_grants(stored: Mapping[str, Any], reading: Reading) -> Grants:
    return Grants(
        tools=frozenset(stored["tools"]),
        mode=stored["mode"],
        capabilities=frozenset(stored["capabilities"]),
        features=frozenset(stored["features"]),
        raised={tool: Level(level) for tool, level in stored["raised"].items()},
        conditions={
            tool: tuple(Condition.from_json(each, reading) for each in found)
            for tool, found in stored["conditions"].items()
        },
        stopped=dict(stored["stopped"]),
        delegates=frozenset(stored["delegates"]),
        pinned=dict(stored.get("pinned", {})),
    )


def _dump_policy(policy: Policy) -> dict[str, Any]:
    return {
        "disabled": sorted(policy.disabled),
        "strict_capabilities": policy.strict_capabilities,
        "features_by_tool": {
            name: sorted(features) for name, features in policy.features_by_tool.items()
        },
        "allowed_hosts": sorted(policy.allowed_hosts),
        "withheld": dict(policy.withheld),
        **({} if policy.modes is None else {"modes": sorted(policy.modes)}),
    }


def _load_policy(stored: Mapping[str, Any]) -> Policy:
    return Policy(
        disabled=frozenset(stored["disabled"]),
        strict_capabilities=stored["strict_capabilities"],
        features_by_tool={
            name: frozenset(features) for name, features in stored["features_by_tool"].items()
        },
        allowed_hosts=frozenset(stored["allowed_hosts"]),
        withheld=dict(stored["withheld"]),
        modes=frozenset(stored["modes"]) if "modes" in stored else None,
    )
