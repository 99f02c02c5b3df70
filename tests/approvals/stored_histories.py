"""Random histories of one card in the database; each step is decided both by the product's
functions and by the slow judge."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from agents.accounts.models import Membership, Role
from agents.approval_rules.models import ApprovalRule, ApproverGroup, Deputy
from agents.approvals.votes import find_standings
from agents.platform.refusals import Conflict, Forbidden, Refusal
from agents.runs import actions
from agents.runs.models import Approval, ApprovalStatus, CallStatus, ToolCall, Vote
from tests.tools.toolbox.voting_histories import (
    World,
    add_vote,
    judge_slowly,
    list_standing,
    list_stuck_slowly,
    make_rule,
)
from tests.workshop import Workshop, asking, call
from tools.contract import Level
from tools.toolbox.approval_rules import RuledCard, RuleTerms, Voter
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.rulings import Ruling

TOOL = "probe.effect"
PEOPLE = 5
STEPS = 14
AMOUNTS = {"small": 10, "large": 600}
"""The amount that each name in a probe's call represents. The slow judge compares amounts, but a
probe has only names."""
TWO_PEOPLE = RuleTerms(0, "two-person rule", excludes_requesters=True)
IF_LARGE = Condition("name", Rule.EQUALS, "large").as_json()
WEIGHTS = {"vote": 12, "change": 5, "edit": 1, "withdraw": 1, "deny": 0.3, "expire": 0.2}


class Office:
    """An organization whose people, groups and rules are changed for each history.

    Attributes:
        world: the slow judge's copy of the same data. In it, people have their user ids, and groups
            have the ids 1 and 2.
    """

    world: World
    _card: Approval

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        organization = workshop.organization
        strangers = Membership.objects.filter(organization=organization).exclude(
            pk=workshop.operator.pk
        )
        strangers.update(role=Role.VIEWER)
        users = [
            User.objects.create_user(f"{organization.slug}-voter-{number}")
            for number in range(PEOPLE)
        ]
        self._members = {
            user.pk: Membership.objects.create(organization=organization, user=user)
            for user in users
        }
        groups = ("Finance", "Legal")
        self._groups = {
            number: ApproverGroup.objects.create(organization=organization, name=name)
            for number, name in enumerate(groups, 1)
        }
        workshop.play(asking(call(TOOL, name="small")))

    def play(self, chance: random.Random) -> str:
        """Play one history until the card ends or the steps are used up; return its outcome, or
        "open"."""
        self._begin(chance)
        for step in range(STEPS):
            self._age(step)
            act = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            ended: str = getattr(self, f"_{act}")(chance)
            if ended:
                return ended
            self._check_words()
        return "open"

    # Actions

    def _vote(self, chance: random.Random) -> str:
        member = self._pick(chance)
        may_approve, completes, vote = judge_slowly(self.world, member.user_id)
        try:
            card = self._workshop.approve(self._card, by=member, grace_s=60)
        except Forbidden:
            assert not may_approve, (self.world, member.user_id)
            return ""
        assert may_approve, (self.world, member.user_id)
        assert (card.status == ApprovalStatus.APPROVED) == completes, (self.world, member.user_id)
        if vote is not None and not completes:
            add_vote(self.world, vote)
        if not completes:
            return ""
        assert card.decided_by_id == member.user_id
        if card.ruling is not None:
            level, employee = Level(card.level), self._workshop.employee.pk
            assert (
                Ruling.from_json(card.ruling).find_objection(TOOL, level, employee, card.params)
                is None
            )
        assert ToolCall.objects.get(pk=card.tool_call_id).status == CallStatus.APPROVED
        return self._undo(chance, member)

    def _undo(self, chance: random.Random, member: Membership) -> str:
        """Undo the member's approval with some probability, and check that other people's votes
        stay."""
        if chance.random() < 0.7:
            return "approved"
        self._card = self._workshop.undo(self._card, by=member)
        rows = Vote.objects.filter(approval=self._card, withdrawn_at=None).order_by("pk")
        kept: list[tuple[int, int | None]] = list(rows.values_list("voter_id", "deputy_for_id"))
        assert set(list_standing(self.world)) - set(kept) <= {
            vote for vote in self.world.votes if vote[0] == member.user_id
        }
        assert set(kept) <= {vote for vote in self.world.votes if vote[0] != member.user_id}
        self.world.votes = kept
        return ""

    def _withdraw(self, chance: random.Random) -> str:
        member = self._pick(chance)
        has_vote = any(voter == member.user_id for voter, _ in self.world.votes)
        may_undo = has_vote and self.world.people[member.user_id].may_approve
        try:
            self._workshop.undo(self._card, by=member)
        except (Forbidden, Conflict):
            assert not may_undo, (self.world, member.user_id)
            return ""
        assert may_undo, (self.world, member.user_id)
        self.world.votes = [vote for vote in self.world.votes if vote[0] != member.user_id]
        return ""

    def _deny(self, chance: random.Random) -> str:
        member = self._pick(chance)
        try:
            self._workshop.deny(self._card, by=member)
        except Forbidden:
            assert not self.world.people[member.user_id].may_approve
            return ""
        assert self.world.people[member.user_id].may_approve
        return "denied"

    def _edit(self, chance: random.Random) -> str:
        member = self._pick(chance)
        name = "small" if self._card.params["name"] == "large" else "large"
        try:
            self._card = self._workshop.edit(self._card, {"name": name}, by=member)
        except Forbidden:
            assert not self.world.people[member.user_id].may_approve
            return ""
        card = self.world.card
        requesters = card.requesters | {member.user_id}
        self.world.card = replace(card, params={"amount": AMOUNTS[name]}, requesters=requesters)
        self.world.votes = []
        return ""

    def _expire(self, chance: random.Random) -> str:
        Approval.objects.filter(pk=self._card.pk).update(expires_at=timezone.now())
        try:
            self._workshop.approve(self._card, by=self._pick(chance))
        except Refusal:
            return "expired"
        raise AssertionError("an expired card was approved")

    def _change(self, chance: random.Random) -> str:
        member = self._pick(chance)
        person = self.world.people[member.user_id]
        kind = chance.choice(("rule", "role", "active", "group", "deputy"))
        if kind == "rule":
            rules = [rule for rule in self.world.rules if rule.name != TWO_PEOPLE.name]
            self._set_rules([*rules[1:], *self._make_rules(chance, chance.randint(0, 1))])
        elif kind == "role":
            self._set_person(replace(person, may_approve=not person.may_approve))
        elif kind == "active":
            others = User.objects.filter(
                memberships__in=self._members.values(), is_active=True
            ).exclude(pk=person.id)
            User.objects.filter(pk=person.id).update(
                is_active=chance.random() < 0.5 or not others.exists()
            )
            self._set_person(person)
        elif kind == "group":
            self._set_person(replace(person, groups=person.groups ^ {chance.choice((1, 2))}))
        else:
            other = chance.choice([pk for pk in self._members if pk != person.id])
            self._set_deputies(self.world.deputies ^ {(person.id, other)})
        return ""

    # Checks

    def _begin(self, chance: random.Random) -> None:
        creator = self._workshop.operator
        groups = {
            pk: frozenset(number for number in (1, 2) if chance.random() < 0.5)
            for pk in self._members
        }
        people = {pk: Voter(pk, f"voter {pk}", groups=found) for pk, found in groups.items()}
        card = RuledCard(
            TOOL, "probe", Level.WRITE, self._workshop.employee.pk, {"amount": AMOUNTS["small"]}
        )
        self.world = World(people, [], card)
        for person in people.values():
            User.objects.filter(pk=person.id).update(is_active=True)
            self._set_person(replace(person, may_approve=True))
        if chance.random() < 0.5:
            creator = self._pick(chance)
            self.world.card = replace(card, requesters=frozenset({creator.user_id}))
        employee = self._workshop.employee.pk
        run, _ = actions.submit(creator, actions.Submission(employee_id=employee, task="Pay."))
        self._card = self._workshop.card(self._workshop.drive(run))
        for person in list(people.values()):
            self._set_person(
                replace(self.world.people[person.id], may_approve=chance.random() < 0.85)
            )
        pairs = {
            tuple(chance.sample(sorted(self._members), 2)) for _ in range(chance.randint(0, 3))
        }
        self._set_deputies({(pair[0], pair[1]) for pair in pairs})
        organization = self._workshop.organization
        organization.four_eyes = chance.random() < 0.2
        organization.save()
        self._set_rules(self._make_rules(chance, chance.randint(0, 3)))

    def _age(self, hours: int) -> None:
        self.world.card = replace(self.world.card, age=timedelta(hours=hours))
        began = timezone.now() - timedelta(hours=hours)
        ToolCall.objects.filter(pk=self._card.tool_call_id).update(created_at=began)

    def _pick(self, chance: random.Random) -> Membership:
        """Pick one of the people who can log in, as a request would load them."""
        rows = Membership.objects.filter(
            pk__in=[member.pk for member in self._members.values()], user__is_active=True
        )
        return chance.choice(list(rows.select_related("user", "organization").order_by("pk")))

    def _set_person(self, person: Voter) -> None:
        is_active = User.objects.get(pk=person.id).is_active
        member = self._members[person.id]
        role = Role.APPROVER if person.may_approve else Role.OPERATOR
        Membership.objects.filter(pk=member.pk).update(role=role)
        member.approver_groups.set([self._groups[number] for number in person.groups])
        self.world.people[person.id] = replace(person, may_approve=person.may_approve and is_active)

    def _set_deputies(self, pairs: set[tuple[int, int]]) -> None:
        Deputy.objects.filter(member__organization=self._workshop.organization).delete()
        soon = timezone.now() + timedelta(days=1)
        for deputy, other in sorted(pairs):
            Deputy.objects.create(
                member=self._members[other], deputy=self._members[deputy], ends_at=soon
            )
        self.world.deputies = pairs

    def _make_rules(self, chance: random.Random, count: int) -> list[RuleTerms]:
        """Make random rules: for the probe, for another tool, for their category, or
        for all tools."""
        names = {"crm.refund": TOOL, "other": "probe.gate", "crm": "probe", "": ""}
        return [
            replace(
                rule,
                tool=names[rule.tool],
                category=names.get(rule.category, rule.category),
                employee_id=rule.employee_id and self._workshop.employee.pk,
            )
            for rule in (make_rule(number, chance) for number in range(count))
        ]

    def _set_rules(self, rules: list[RuleTerms]) -> None:
        organization = self._workshop.organization
        ApprovalRule.objects.filter(organization=organization).delete()
        named = [replace(rule, name=f"rule {number}") for number, rule in enumerate(rules)]
        self.world.rules = [*named, TWO_PEOPLE] if organization.four_eyes else named
        for rule in named:
            hours = rule.escalates_after
            ApprovalRule.objects.create(
                organization=organization,
                name=rule.name,
                tool=rule.tool,
                category=rule.category,
                level=rule.level.value if rule.level else "",
                employee_id=rule.employee_id,
                conditions=[IF_LARGE] if rule.conditions else [],
                needed=rule.needed,
                group=self._groups[rule.group.id] if rule.group else None,
                excludes_requesters=rule.excludes_requesters,
                escalate_hours=hours.total_seconds() // 3600 if hours else None,
                second_group=self._groups[rule.second_group.id] if rule.second_group else None,
            )

    def _check_words(self) -> None:
        """Check that the waiting card says which approvals are missing, and says so if nobody can
        give them."""
        card = Approval.objects.select_related("run", "tool_call").get(pk=self._card.pk)
        assert card.status == ApprovalStatus.PENDING
        standing = find_standings(self._workshop.organization, [card]).get(card.pk)
        if standing is None:
            return
        assert standing.needs
        stuck = set(standing.stuck)
        assert stuck == list_stuck_slowly(self.world), (self.world, standing)
