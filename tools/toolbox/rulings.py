"""Rulings: the rules and votes that approved a card, kept so that it can be judged again.

A ruling names people, groups and rules by their ids, so it need not be changed when a person is
erased; the conditions of the rules are kept as they were.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tools.contract import Level
from tools.toolbox.approval_rules import CastVote, Group, RuledCard, RuleTerms, Voter, may_decide
from tools.toolbox.conditions import Condition
from tools.toolbox.objections import Objection
from tools.toolbox.rule_matching import NO_FACTS, SchemaFacts
from tools.toolbox.value_readings import TODAY, Reading


@dataclass(frozen=True)
class Ruling:
    """The rules, votes and people at the moment when a card was approved.

    Attributes:
        person: the person who completed the approval, with the people whose deputy they were.
        votes: the votes that had been cast before.
        rules: the rules that matched the card.
        category: the category of the card's tool.
        requesters: the ids of the people who asked for the call, if a rule excludes them.
        age: the time for which the card had waited.
        breaks_glass: an admin approved it alone in an emergency, although the rules need other
            people.
        facts: the facts about the params that were only in the tool's schema.
        reading: the version of the rules for reading values that was used to match the card.
    """

    person: Voter
    votes: tuple[CastVote, ...]
    rules: tuple[RuleTerms, ...]
    category: str
    requesters: frozenset[int]
    age: timedelta
    breaks_glass: bool = False
    facts: SchemaFacts = NO_FACTS
    reading: Reading = TODAY

    @classmethod
    def of(
        cls, person: Voter, card: RuledCard, votes: Sequence[CastVote], rules: Collection[RuleTerms]
    ) -> "Ruling":
        """Build the ruling on a card; `rules` are those that match it."""
        return cls(
            person,
            tuple(votes),
            tuple(rules),
            card.category,
            card.requesters,
            card.age,
            facts=card.facts,
        )

    def find_objection(
        self, tool: str, level: Level, employee_id: int, params: Mapping[str, Any]
    ) -> Objection | None:
        """Judge the approval again; return the reason why it was not enough, or None if it was
        enough."""
        card = RuledCard(
            tool, self.category, level, employee_id, params, self.requesters, self.age, self.facts
        )
        strangers = [rule.id for rule in self.rules if not rule.matches(card)]
        if strangers:
            return Objection(
                f"approval rule {strangers[0]} does not match the card that it was applied to"
            )
        if self.breaks_glass:
            has_asked = self.person.id in self.requesters
            return (
                Objection("whoever used break-glass had asked for the call") if has_asked else None
            )
        found = may_decide(self.person, card, self.votes, self.rules)
        if found.completes:
            return None
        return Objection(f"the approval was not enough: {found.refusal or 'votes are missing'}")

    def as_json(self) -> dict[str, Any]:
        """Return the ruling for storage."""
        kept = {
            "person": _store_person(self.person),
            "deputy_for": [_store_person(other) for other in self.person.deputy_for],
            "votes": [[_store_person(one) for one in vote.people] for vote in self.votes],
            "rules": [store_rule(rule) for rule in self.rules],
            "category": self.category,
            "requesters": sorted(self.requesters),
            "age_s": self.age.total_seconds(),
            "breaks_glass": self.breaks_glass,
            "facts": self.facts.as_json(),
            "reading": self.reading.value,
        }
        return {name: value for name, value in kept.items() if value}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Ruling":
        """Read a stored ruling.

        Raises:
            KeyError, TypeError, ValueError: the stored ruling is damaged.
        """
        person = _read_person(stored["person"])
        others = tuple(map(_read_person, stored.get("deputy_for", ())))
        reading = Reading(stored.get("reading", Reading.FIRST))
        return cls(
            person=Voter(person.id, "", person.may_approve, person.groups, others),
            votes=tuple(CastVote(*map(_read_person, people)) for people in stored.get("votes", ())),
            rules=tuple(read_rule(each, reading) for each in stored["rules"]),
            category=str(stored.get("category", "")),
            requesters=frozenset(map(int, stored.get("requesters", ()))),
            age=timedelta(seconds=float(stored.get("age_s", 0))),
            breaks_glass=bool(stored.get("breaks_glass", False)),
            facts=SchemaFacts.from_json(stored.get("facts", {})),
            reading=reading,
        )


def _store_person(person: Voter) -> dict[str, Any]:
    return {"id": person.id, "may_approve": person.may_approve, "groups": sorted(person.groups)}


def _read_person(stored: Mapping[str, Any]) -> Voter:
    return Voter(
        int(stored["id"]), "", bool(stored["may_approve"]), frozenset(map(int, stored["groups"]))
    )


def store_rule(rule: RuleTerms) -> dict[str, Any]:
    """Return the terms of a rule for storage; the names of the rule and of its groups
    are left out."""
    kept = {
        "tool": rule.tool,
        "category": rule.category,
        "level": rule.level and rule.level.value,
        "employee": rule.employee_id,
        "conditions": [condition.as_json() for condition in rule.conditions],
        "group": rule.group and rule.group.id,
        "excludes_requesters": rule.excludes_requesters,
        "escalates_after_s": rule.escalates_after and rule.escalates_after.total_seconds(),
        "second_group": rule.second_group and rule.second_group.id,
    }
    return {"id": rule.id, "needed": rule.needed} | {
        name: value for name, value in kept.items() if value not in ("", None, False, [])
    }


def read_rule(stored: Mapping[str, Any], reading: Reading = TODAY) -> RuleTerms:
    """Read the stored terms of a rule; the rule reads values as in this version.

    Raises:
        KeyError, TypeError, ValueError: the stored terms are damaged.
    """
    group, second, after = (
        stored.get(name) for name in ("group", "second_group", "escalates_after_s")
    )
    return RuleTerms(
        id=int(stored["id"]),
        name="",
        tool=str(stored.get("tool", "")),
        category=str(stored.get("category", "")),
        level=Level(stored["level"]) if stored.get("level") else None,
        employee_id=stored.get("employee"),
        conditions=tuple(
            Condition.from_json(each, reading) for each in stored.get("conditions", ())
        ),
        needed=int(stored["needed"]),
        group=None if group is None else Group(int(group), f"group {group}"),
        excludes_requesters=bool(stored.get("excludes_requesters", False)),
        escalates_after=None if after is None else timedelta(seconds=float(after)),
        second_group=None if second is None else Group(int(second), f"group {second}"),
        reading=reading,
    )
