"""Runs under random permissions that change at random moments; every start of a tool is checked
against the documentation.

Permissions change while cards are open, while the model responds, and while tools preview or run.
`permission_truth` knows, without the product, which permissions applied when a call was recorded
and when it started.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from django.db import connection, transaction
from pydantic import BaseModel, Field

from agents.employees.models import Grant, ToolRule
from agents.employees.toolboxes import get_installed_toolbox
from agents.platform.refusals import Refusal
from agents.runs import stops
from agents.runs.engine.judgment import MAX_ROUNDS
from agents.runs.models import ENDED, Approval, ApprovalStatus, CallStatus, Run, ToolCall
from tests.employees.permission_truth import LEVELS, Era, Eras, Truth, lock
from tests.model_server import Call, ModelServer, Response
from tests.probes import reach
from tests.recorder import Recorder
from tests.tools.toolbox.configurations import Arguments
from tests.workshop import Workshop, again, error_code
from tools.contract import Level, Tool, ToolContext, ToolResult
from tools.office.records.models import Record
from tools.toolbox import Condition, Otherwise, Permission, Rule

CALLS_PER_PASS = 6
PASSES = 2
_ROUNDS = 8
_RAISED = LEVELS[2:]
_AT_WORK, _IN_A_PREVIEW = 0.3, 0.2
"""The probabilities that permissions change while a tool runs, and while it computes its
preview."""


class Watched(Tool):
    """A tool that reports its start to the world; writes reach the recorder, and transactional
    writes create records."""

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

    def preview(self, params: Any, context: ToolContext) -> None:
        if not self.transactional:
            self.world.disturb(_IN_A_PREVIEW, self.name)

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        self.world.started(self, params.model_dump(mode="json"), context)
        if not self.transactional:
            self.world.disturb(_AT_WORK, self.name)
        if self.transactional:
            Record.objects.create(
                organization_id=context.organization_id, name=context.idempotency_key
            )
        elif self.level.has_side_effects:
            reach(params.name, context.idempotency_key)
        return ToolResult.ok({"did": params.name}, f"Did {params.name}")


class World:
    """One workshop, whose employee gets random permissions for each run; use it as a context
    manager."""

    def __init__(self, workshop: Workshop, recorder: Recorder, chance: random.Random) -> None:
        self.figures: Counter[str] = Counter()
        self.faults: list[str] = []
        self._workshop, self._recorder, self._chance = workshop, recorder, chance
        self._toolbox = get_installed_toolbox()
        self._policy, self._limits = self._toolbox.policy, self._toolbox.limits
        self._model = ModelServer()
        self._changing, self._is_calm = threading.Lock(), True
        self._truth = Truth()
        self._run = Run()
        self._eras = Eras(self._era())
        self._starts: list[tuple[int, Tool, Arguments]] = []
        self._number = 0
        self._tools = {tool.name: tool for tool in self._made()}

    def __enter__(self) -> World:
        for tool in self._tools.values():
            self._toolbox.register(tool)
        self._workshop.connect(self._model.__enter__().url)
        return self

    def __exit__(self, *_: object) -> None:
        self._model.close()
        self._toolbox.policy, self._toolbox.limits = self._policy, self._limits
        for name in self._tools:
            self._toolbox.unregister(name)

    def started(self, tool: Tool, params: dict[str, Any], context: ToolContext) -> None:
        """Check the start of a call; called in the tool's own thread."""
        self._starts.append((int(context.call_id), tool, Arguments(params, params)))

    def disturb(self, likelihood: float, name: str = "") -> None:
        """Sometimes let an admin change something while a run is driven, outside the driver's
        thread.

        Args:
            name: the running tool; about half of the changes concern it.
        """
        with self._changing:
            if not self._is_calm and self._chance.random() < likelihood:
                self._change(name if self._chance.random() < 0.5 else "")
                self.figures["changes while driven"] += 1
        connection.close()

    def live(self) -> None:
        """Play one configuration: a run of a dozen calls, decided and disturbed at random until it
        ends."""
        self._configure()
        asked = [[self._call() for _ in range(CALLS_PER_PASS)] for _ in range(PASSES)]
        self._run = run = self._workshop.submit()
        self._eras = Eras(self._era())
        self._model.respond_with(lambda body: self._answer(body, asked))
        self._is_calm = False
        run = self._workshop.drive(run)
        for _ in range(_ROUNDS):
            if self._chance.random() < 0.5:
                self._change()
                self.figures["changes between drives"] += 1
            run = self._decide(run, ["approve", "approve", "deny", "edit", "leave", "intrude"])
        self._is_calm = True
        if self._truth.halted:
            self._halt_or_release()
        for _ in range(_ROUNDS):
            run = self._decide(run, ["approve"])
        self.figures["configurations"] += 1
        self._check_verdicts(run, asked)
        self._check_end(run)

    def _answer(self, body: dict[str, Any], asked: list[list[tuple[str, Arguments]]]) -> Response:
        """Return the scripted response of this pass, sometimes after a change; called in the
        model's server."""
        self.disturb(_AT_WORK)
        number = sum(message["role"] == "assistant" for message in body["messages"])
        if number >= len(asked):
            return Response(text="Done.")
        told = [{"name": name, "arguments": json.dumps(said.said)} for name, said in asked[number]]
        calls = tuple(Call("", extra={"function": each}) for each in told)
        return Response(calls=calls, style="whole")

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
            tool.modes = chance.choice(
                [*[None] * 9, frozenset({"general"}), frozenset({"code"}), frozenset()]
            )
            tool.capabilities, tool.features = (
                frozenset(self._some(0.1)),
                frozenset(self._some(0.1)),
            )
        by_tool = {name: frozenset(self._some(0.03)) for name in self._tools}
        self._toolbox.policy = replace(
            self._policy,
            strict_capabilities=chance.random() < 0.5,
            features_by_tool=by_tool,
            allowed_hosts=frozenset({"eu.example.com"}),
        )
        self._toolbox.limits = replace(self._limits, calls_at_once=chance.choice([1, 2, 10]))
        for name in sorted(self._truth.stopped):
            stops.release_tool(workshop.admin, name)
        Grant.objects.filter(employee=workshop.employee).delete()
        ToolRule.objects.filter(organization=workshop.organization).delete()
        self._truth = Truth(mode=chance.choice(["general", "general", "code"]))
        workshop.employee.mode = self._truth.mode
        workshop.employee.save(update_fields=["mode"])
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
        employee.capabilities, organization.plan_features = (
            self._truth.capabilities,
            self._truth.features,
        )
        employee.save(update_fields=["capabilities"])
        organization.save(update_fields=["plan_features"])

    def _grant(self, name: str) -> None:
        level = self._chance.choice(["", "", "", "", "", *_RAISED])
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
        return Condition(
            param,
            rule,
            value,
            self._chance.choice([Otherwise.ASK, Otherwise.ASK, Otherwise.FORBID]),
        )

    def _revoke(self, name: str) -> None:
        self._truth.granted.pop(name, None)
        Grant.objects.filter(employee=self._workshop.employee, tool=name).delete()

    def _raise(self, name: str) -> None:
        level = self._chance.choice(_RAISED)
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

    def _set_mode(self, _name: str) -> None:
        """Set the mode of the employee, which applies to later runs."""
        self._workshop.employee.mode = self._chance.choice(["general", "code", "debug"])
        self._workshop.employee.save(update_fields=["mode"])

    def _halt_or_release(self) -> None:
        """Stop the employee, or let an admin resume it."""
        workshop, halts = self._workshop, not self._truth.halted
        if halts:
            stops.stop_employee(workshop.operator, workshop.employee.pk)
        self._truth.halted = halts
        with transaction.atomic():
            lock(self._run.pk)
            self._eras.turn(self._run.pk, self._era())
        if not halts:
            stops.release_employee(workshop.admin, workshop.employee.pk)

    def _change(self, name: str = "") -> None:
        """Let an admin change something between two moments at which calls are recorded or
        started."""
        if self._chance.random() < 0.2:
            self._halt_or_release()
            return
        name = name or self._chance.choice(list(self._tools))
        acts: list[Callable[[str], None]] = [self._grant, self._grant, self._revoke, self._raise]
        acts += [self._stop_or_release, self._switch, self._set_haves, self._set_mode]
        with transaction.atomic():
            lock(self._run.pk)
            self._chance.choice(acts)(name)
            self._eras.turn(self._run.pk, self._era())

    def _call(self) -> tuple[str, Arguments]:
        """Make a call with params that are mostly valid; no two calls are the same."""
        self._number += 1
        name = self._chance.choice([*self._tools, *self._tools, *self._tools, "sure.nothing"])
        said = {
            "name": f"n{self._number}",
            "amount": self._chance.randrange(10),
            "area": self._chance.choice(["EU", "US"]),
        }
        if self._chance.random() < 0.12:
            return name, Arguments(
                said | self._chance.choice([{"amount": 10}, {"area": "UK"}, {"more": 1}]), None
            )
        return name, Arguments(said, said)

    def _era(self) -> Era:
        grants = self._truth.grants(self._workshop.operator.user.get_username())
        return Era(grants, self._toolbox.policy, self._truth.halted)

    def _check_verdicts(self, run: Run, asked: list[list[tuple[str, Arguments]]]) -> None:
        """Check that each call got the documented verdict when it was recorded, and the matching
        status."""
        first_cards = {
            card.tool_call_id: card for card in Approval.objects.filter(run=run, sequence=1)
        }
        for row in ToolCall.objects.filter(run=run):
            name, arguments = asked[row.pass_number - 1][row.index]
            tool, card = self._tools.get(name), first_cards.get(row.pk)
            wanted = self._eras.at_record(row.pk).says(tool, arguments)
            self.figures[f"calls judged {wanted.permission}"] += 1
            later = {
                era.says(tool, arguments).permission for era in self._eras.since_record(row.pk)
            }
            went = {
                Permission.ASK: card is not None,
                Permission.FORBIDDEN: card is None and row.status == CallStatus.REJECTED,
                Permission.AUTO: card is None and row.status == CallStatus.SUCCEEDED,
            }
            if later != {Permission.AUTO}:
                went[Permission.AUTO] |= went[Permission.FORBIDDEN]
            if went[Permission.FORBIDDEN] and error_code(row) == "LIMIT_EXCEEDED":
                self.figures["refused since what is permitted changed"] += 1
                went = {Permission.ASK: self._may_be_refused(row, tool, arguments)}
            if not went[wanted.permission] or (card or row).level != wanted.level:
                self.faults.append(
                    f"call {row.pk} of {name} is {row.status} at {row.level}; documented: {wanted}"
                )
            why = (card or row).why
            if not all(text in why for text in wanted.says):
                self.faults.append(f"call {row.pk} says {why!r}; documented: {wanted.says}")

    def _may_be_refused(self, row: ToolCall, tool: Tool | None, arguments: Arguments) -> bool:
        """Return True if an earlier verdict differed and the time was too short for another
        preview."""
        before = self._eras.before_record(row.pk)
        wanted = self._eras.at_record(row.pk).says(tool, arguments)
        was_another = any(era.says(tool, arguments) != wanted for era in before)
        is_halted = any(era.halted for era in [*before, *self._eras.since_record(row.pk)])
        return was_another and (is_halted or len(before) >= MAX_ROUNDS)

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
            self.faults.append(
                f"run {run.pk} is {run.status} {[(row.tool, row.status) for row in rows]}"
            )
        starts = Counter(pk for pk, *_ in self._starts)
        executed = Counter(row.pk for row in rows if row.attempts)
        if starts != executed:
            self.faults.append(
                f"run {run.pk}: started {starts - executed} unrecorded, {executed - starts} never began"
            )
        used = Approval.objects.filter(run=run, status=ApprovalStatus.CONSUMED)
        approved = {card.tool_call_id: card.level for card in used}
        for pk, tool, arguments in self._starts:
            era = self._eras.at_start(pk)
            wanted = era.says(tool, arguments)
            if era.halted:
                self.faults.append(f"call {pk} started, though its employee was stopped")
            if wanted.permission is Permission.FORBIDDEN:
                self.faults.append(f"call {pk} started, though {wanted.says}")
            if wanted.permission is Permission.ASK and pk not in approved:
                self.faults.append(f"call {pk} started without an approval, though {wanted.says}")
            if approved.get(pk, wanted.level) != wanted.level:
                self.faults.append(
                    f"call {pk} was approved at {approved[pk]}, and started at {wanted.level}"
                )
        self.faults += [f"call {row.pk} does not say why" for row in rows if not row.why]
        self._check_effects(rows)
        self.figures["executed"] += len(self._starts)
        self._starts.clear()

    def _check_effects(self, rows: list[ToolCall]) -> None:
        """Check that the outside world and the records contain exactly the executed calls."""
        outside = Counter(
            row.idempotency_key
            for row in rows
            if row.attempts and row.tool in ("sure.pay", "sure.wipe")
        )
        inside = Counter(
            row.idempotency_key for row in rows if row.attempts and row.tool == "sure.file"
        )
        made = Counter(
            Record.objects.filter(organization=self._workshop.organization).values_list(
                "name", flat=True
            )
        )
        if (self._recorder.effects, made) != (outside, inside):
            self.faults.append(
                f"effects {self._recorder.effects} and {made}; executed {outside} and {inside}"
            )
        self.figures["writes executed"] += outside.total() + inside.total()
        self._recorder.reset()
        Record.objects.filter(organization=self._workshop.organization).delete()
