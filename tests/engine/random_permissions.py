"""Runs under random permissions that change while cards are open; every start of a tool is judged by the documentation.

The tools here tell the moment at which they start; what was permitted then is known without asking the product.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel, Field

from agents import stops
from agents.engine.toolbox import installed_toolbox
from agents.models import ENDED, Approval, ApprovalStatus, CallStatus, Grant, Run, ToolCall, ToolRule
from agents.refusals import Refusal
from tests.engine.workshop import Workshop, again, asking
from tests.probes import reach
from tests.recorder import Recorder
from tests.toolbox.configurations import Arguments, Configuration, Expected, expected
from tools.contract import Level, Tool, ToolContext, ToolResult
from tools.records.models import Record
from tools.toolbox import Condition, Decision, Grants, Otherwise, Rule

CALLS_PER_PASS = 6
PASSES = 2
_ROUNDS = 8
_STATUS = {
    Decision.AUTO: CallStatus.SUCCEEDED,
    Decision.ASK: CallStatus.AWAITING_APPROVAL,
    Decision.FORBIDDEN: CallStatus.REJECTED,
}
_LEVELS = ["write", "destructive"]


class Watched(Tool):
    """Tells the world that it starts; a write reaches the recorder, a transactional one makes a record."""

    description = "Is watched."

    class Params(BaseModel):
        name: str = Field(min_length=1)
        amount: int = Field(1, ge=0, le=9)
        area: Literal["EU", "US"] = "EU"

    def __init__(self, world: World, name: str, level: Level, **attributes: Any) -> None:
        self.world, self.name, self.level = world, name, level
        for attribute, value in attributes.items():
            setattr(self, attribute, value)

    def hosts(self, params: Any) -> frozenset[str]:
        return frozenset({f"{params.area}.example.com"})

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        self.world.started(self, params.model_dump(mode="json"), context)
        if self.transactional:
            Record.objects.create(organization_id=context.organization_id, name=context.idempotency_key)
        elif self.level.has_side_effects:
            reach(params.name, context.idempotency_key)
        return ToolResult.ok({"did": params.name}, f"Did {params.name}")


@dataclass
class Truth:
    """What is permitted now, as the test knows it."""

    granted: dict[str, tuple[str, tuple[Condition, ...]]] = field(default_factory=dict)
    raised: dict[str, str] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    capabilities: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    mode: str = "general"

    def grants(self, stopped_by: str) -> Grants:
        levels = {}
        for tool, (own, _) in self.granted.items():
            highest = max(own or "read", self.raised.get(tool, "read"), key=["read", "draft", *_LEVELS].index)
            levels[tool] = Level(highest)
        return Grants(
            tools=frozenset(self.granted),
            mode=self.mode,
            capabilities=frozenset(self.capabilities),
            features=frozenset(self.features),
            raised=levels,
            conditions={tool: conditions for tool, (_, conditions) in self.granted.items()},
            stopped=dict.fromkeys(self.stopped & self.granted.keys(), stopped_by),
        )


class World:
    """One workshop, whose employee's permissions are drawn anew for each run; use as a context manager."""

    def __init__(self, workshop: Workshop, recorder: Recorder, chance: random.Random) -> None:
        self.figures: Counter[str] = Counter()
        self.faults: list[str] = []
        self._workshop, self._recorder, self._chance = workshop, recorder, chance
        self._toolbox = installed_toolbox()
        self._policy = self._toolbox.policy
        self._truth = Truth()
        self._starts: list[tuple[str, Expected]] = []
        self._number = 0
        self._tools = {tool.name: tool for tool in self._made()}

    def __enter__(self) -> World:
        for tool in self._tools.values():
            self._toolbox.register(tool)
        return self

    def __exit__(self, *_: object) -> None:
        self._toolbox.policy = self._policy
        for name in self._tools:
            self._toolbox.unregister(name)

    def started(self, tool: Tool, params: dict[str, Any], context: ToolContext) -> None:
        """In the tool's own thread: what should have been decided about this call, by what is permitted now."""
        self._starts.append((context.call_id, self._expected(tool, Arguments(params, params))))

    def live(self) -> None:
        """One configuration: a run of a dozen calls, decided and disturbed at random until it ends."""
        self._configure()
        asked = [[self._call() for _ in range(CALLS_PER_PASS)] for _ in range(PASSES)]
        self._workshop.play(
            *[asking(*[{"tool": name, "params": said.said} for name, said in calls]) for calls in asked]
        )
        run = self._workshop.work()
        self._check_verdicts(run, asked)
        for _ in range(_ROUNDS):
            self._change()
            run = self._decide(run, ["approve", "approve", "deny", "edit", "leave", "intrude"])
        for _ in range(_ROUNDS):
            run = self._decide(run, ["approve"])
        self.figures["configurations"] += 1
        self._check_end(run)

    def _made(self) -> list[Tool]:
        kinds: list[tuple[str, Level, dict[str, Any]]] = [
            ("sure.look", Level.READ, {}),
            ("sure.visit", Level.READ, {"open_world": True}),
            ("sure.sketch", Level.DRAFT, {}),
            ("sure.pay", Level.WRITE, {}),
            ("sure.file", Level.WRITE, {"transactional": True}),
            ("sure.wipe", Level.DESTRUCTIVE, {}),
        ]
        return [Watched(self, name, level, **more) for name, level, more in kinds]

    def _configure(self) -> None:
        chance, workshop = self._chance, self._workshop
        for tool in self._tools.values():
            tool.modes = chance.choice([*[None] * 9, frozenset({"general"}), frozenset({"code"}), frozenset()])
            tool.capabilities, tool.features = frozenset(self._some(0.1)), frozenset(self._some(0.1))
        by_tool = {name: frozenset(self._some(0.03)) for name in self._tools}
        self._toolbox.policy = replace(
            self._policy,
            strict_capabilities=chance.random() < 0.5,
            features_by_tool=by_tool,
            allowed_hosts=frozenset({"eu.example.com"}),
        )
        for name in sorted(self._truth.stopped):
            stops.release_tool(workshop.admin, name)
        Grant.objects.filter(employee=workshop.employee).delete()
        ToolRule.objects.filter(organization=workshop.organization).delete()
        self._truth = Truth(mode=chance.choice(["general", "general", "code"]))
        workshop.employee.mode = self._truth.mode
        self._set_haves()
        for name in self._tools:
            if chance.random() < 0.9:
                self._grant(name)
            if chance.random() < 0.1:
                self._raise(name)
            if chance.random() < 0.05:
                self._stop_or_release(name)
            if chance.random() < 0.05:
                self._toolbox.disable(name)

    def _some(self, share: float) -> list[str]:
        return [word for word in "abc" if self._chance.random() < share]

    def _set_haves(self, _name: str = "") -> None:
        self._truth.capabilities, self._truth.features = self._some(0.85), self._some(0.85)
        employee, organization = self._workshop.employee, self._workshop.organization
        employee.capabilities, organization.plan_features = self._truth.capabilities, self._truth.features
        employee.save()
        organization.save()

    def _grant(self, name: str) -> None:
        level = self._chance.choice(["", "", "", "", "", *_LEVELS])
        conditions = tuple(self._condition() for _ in range(self._chance.choice([0, 0, 0, 1, 2])))
        self._truth.granted[name] = (level, conditions)
        Grant.objects.update_or_create(
            employee=self._workshop.employee,
            tool=name,
            defaults={"level": level, "conditions": [each.as_json() for each in conditions]},
        )

    def _condition(self) -> Condition:
        param, rule, value = self._chance.choice(
            [
                ("amount", Rule.MAXIMUM, 4),
                ("amount", Rule.MINIMUM, 2),
                ("area", Rule.EQUALS, "EU"),
                ("area", Rule.ONE_OF, ["EU", "US"]),
                ("name", Rule.PATTERN, "n.*[0-4]"),
                ("name", Rule.MAX_LENGTH, 3),
                ("missing", Rule.EQUALS, 1),
            ]
        )
        return Condition(param, rule, value, self._chance.choice([Otherwise.ASK, Otherwise.ASK, Otherwise.FORBID]))

    def _revoke(self, name: str) -> None:
        self._truth.granted.pop(name, None)
        Grant.objects.filter(employee=self._workshop.employee, tool=name).delete()

    def _raise(self, name: str) -> None:
        level = self._chance.choice(_LEVELS)
        self._truth.raised[name] = level
        ToolRule.objects.update_or_create(
            organization=self._workshop.organization, tool=name, defaults={"level": level}
        )

    def _stop_or_release(self, name: str) -> None:
        if name in self._truth.stopped:
            stops.release_tool(self._workshop.admin, name)
            self._truth.stopped.discard(name)
        else:
            stops.stop_tool(self._workshop.operator, name)
            self._truth.stopped.add(name)

    def _switch(self, name: str) -> None:
        is_off = name in self._toolbox.policy.disabled
        (self._toolbox.enable if is_off else self._toolbox.disable)(name)

    def _change(self) -> None:
        """Sometimes an admin changes something while cards are open."""
        if self._chance.random() < 0.5:
            return
        name = self._chance.choice(list(self._tools))
        acts: list[Callable[[str], None]] = [self._grant, self._grant, self._revoke, self._raise]
        acts += [self._stop_or_release, self._switch, self._set_haves]
        act = self._chance.choice(acts)
        act(name)
        self.figures["changes"] += 1

    def _call(self) -> tuple[str, Arguments]:
        """A name, and params that fit in most cases; no two calls are equal."""
        self._number += 1
        name = self._chance.choice([*self._tools, *self._tools, *self._tools, "sure.nothing"])
        said = {
            "name": f"n{self._number}",
            "amount": self._chance.randrange(10),
            "area": self._chance.choice(["EU", "US"]),
        }
        if self._chance.random() < 0.12:
            return name, Arguments(said | self._chance.choice([{"amount": 10}, {"area": "UK"}, {"more": 1}]), None)
        return name, Arguments(said, said)

    def _expected(self, tool: Tool | None, arguments: Arguments) -> Expected:
        grants = self._truth.grants(self._workshop.operator.user.get_username())
        return expected(Configuration(tool, arguments, grants, self._toolbox.policy))

    def _check_verdicts(self, run: Run, asked: list[list[tuple[str, Arguments]]]) -> None:
        """Nothing has changed since the run began: each call has the documented verdict, and is where that leads."""
        for row in ToolCall.objects.filter(run=run):
            name, arguments = asked[row.pass_number - 1][row.index]
            wanted = self._expected(self._tools.get(name), arguments)
            self.figures[f"calls judged {wanted.decision}"] += 1
            if (row.status, row.level) != (_STATUS[wanted.decision], wanted.level):
                self.faults.append(f"call {row.pk} of {name} is {row.status} at {row.level}; documented: {wanted}")
            if not all(text in row.why for text in wanted.says):
                self.faults.append(f"call {row.pk} says {row.why!r}; documented: {wanted.says}")

    def _decide(self, run: Run, acts: list[str]) -> Run:
        for card in self._workshop.cards(run):
            act = self._chance.choice(acts)
            self.figures[act] += 1
            try:
                self._act(card, act)
            except Refusal as refusal:
                self.figures[f"refused: {type(refusal).__name__}"] += 1
        return self._workshop.drive(run)

    def _act(self, card: Approval, act: str) -> None:
        workshop = self._workshop
        if act == "approve":
            workshop.approve(card)
        elif act == "deny":
            workshop.deny(card)
        elif act == "edit":
            workshop.edit(card, {**card.params, "amount": self._chance.randrange(11)})
        elif act == "intrude":
            workshop.approve(card, by=workshop.operator)
            self.faults.append(f"card {card.pk} was approved by an operator")

    def _check_end(self, run: Run) -> None:
        run = again(run)
        rows = list(ToolCall.objects.filter(run=run))
        if run.status not in ENDED:
            self.faults.append(f"run {run.pk} is {run.status} {[(row.tool, row.status) for row in rows]}")
        starts = Counter(pk for pk, _ in self._starts)
        executed = Counter(str(row.pk) for row in rows if row.attempts)
        if starts != executed:
            self.faults.append(f"run {run.pk}: started {starts - executed} unrecorded, {executed - starts} never began")
        used = Approval.objects.filter(run=run, status=ApprovalStatus.CONSUMED)
        approved = Counter(str(pk) for pk in used.values_list("tool_call_id", flat=True))
        for pk, wanted in self._starts:
            if wanted.decision is Decision.FORBIDDEN:
                self.faults.append(f"call {pk} started, though {wanted.says}")
            if wanted.decision is Decision.ASK and approved[pk] != 1:
                self.faults.append(f"call {pk} started with {approved[pk]} approvals, though {wanted.says}")
        self.faults += [f"call {row.pk} does not say why" for row in rows if not row.why]
        self._check_effects(rows)
        self.figures["executed"] += len(self._starts)
        self._starts.clear()

    def _check_effects(self, rows: list[ToolCall]) -> None:
        """The world outside and the records have exactly what was executed."""
        outside = Counter(row.idempotency_key for row in rows if row.attempts and row.tool in ("sure.pay", "sure.wipe"))
        inside = Counter(row.idempotency_key for row in rows if row.attempts and row.tool == "sure.file")
        made = Counter(Record.objects.filter(organization=self._workshop.organization).values_list("name", flat=True))
        if (self._recorder.effects, made) != (outside, inside):
            self.faults.append(f"effects {self._recorder.effects} and {made}; executed {outside} and {inside}")
        self.figures["writes executed"] += outside.total() + inside.total()
        self._recorder.reset()
        Record.objects.filter(organization=self._workshop.organization).delete()
