"""Random runs on a real engine, for tests of the replay; rules change between runs and while cards
wait."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from agents.employees.models import Grant, ToolRule
from agents.platform.refusals import Refusal
from agents.runs import stops
from agents.runs.models import ENDED, Approval
from tests.workshop import Workshop, again, asking, call

TOOLS = (
    "probe.clock",
    "probe.visit",
    "data.searchRecords",
    "data.updateRecord",
    "utility.calculate",
)
LIMITS: dict[str, list[dict[str, Any]]] = {
    "probe.clock": [{"param": "", "rule": "call_count", "value": {"most": 3, "period": "hour"}}],
    "probe.visit": [
        {"param": "host", "rule": "one_of", "value": ["a.example.com", "b.example.com"]},
        {"param": "host", "rule": "not_from_outside", "value": True},
    ],
    "data.searchRecords": [
        {"param": "limit", "rule": "maximum", "value": 20},
        {"param": "text", "rule": "pattern", "value": "[a-m]+"},
        {"param": "limit", "rule": "sum", "value": {"most": 100, "period": "day"}},
    ],
    "data.updateRecord": [
        {"param": "changes.score", "rule": "maximum", "value": 50},
        {
            "param": "record_id",
            "rule": "only_after",
            "value": {"tool": "data.getRecordDetail", "param": "record_id"},
        },
    ],
    "utility.calculate": [{"param": "operation", "rule": "equals", "value": "add"}],
}
LEVELS = ("", "", "write", "destructive")


class RandomRuns:
    """Lets an employee do random runs under random rules; `figures` counts what happened."""

    def __init__(self, workshop: Workshop, chance: random.Random) -> None:
        self.figures: Counter[str] = Counter()
        self._workshop, self._chance = workshop, chance
        self._record = workshop.record()

    def live(self) -> None:
        """Play a run of up to six calls in up to two passes; decide its cards until it ends or
        stalls."""
        chance, workshop = self._chance, self._workshop
        if chance.random() < 0.6:
            self._change_rules()
        passes = [
            asking(*(self._call() for _ in range(chance.randint(1, 3))))
            for _ in range(chance.randint(1, 2))
        ]
        workshop.play(*passes)
        run = workshop.work()
        self.figures["runs"] += 1
        for _ in range(4):
            cards = workshop.cards(run)
            if again(run).status in ENDED or not cards:
                break
            if chance.random() < 0.3:
                self._change_rules()
            self._decide(chance.choice(cards))
            run = workshop.drive(again(run))
        if again(run).status not in ENDED:
            workshop.cancel(run)
            workshop.drive(again(run))

    def _call(self) -> dict[str, Any]:
        chance = self._chance
        record = {
            "record_id": str(self._record.pk),
            "changes": {"score": chance.choice([10, 50, 90])},
        }
        words = {
            "text": chance.choice(["acme", "zeta", ""]),
            "limit": chance.choice([5, 20, 50, "many"]),
        }
        return chance.choice(
            [
                call("probe.clock"),
                call(
                    "probe.visit",
                    host=chance.choice(["a.example.com", "c.example.com", "Acme Corp"]),
                ),
                call("data.searchRecords", **words),
                call("data.updateRecord", **record),
                call("data.getRecordDetail", record_id=str(self._record.pk)),
                call(
                    "utility.calculate",
                    operation=chance.choice(["add", "subtract"]),
                    a=1,
                    b=chance.randint(0, 9),
                ),
                call("no.suchTool", a=1),
            ]
        )

    def _change_rules(self) -> None:
        chance, tool = self._chance, self._chance.choice(TOOLS)
        organization, employee = self._workshop.organization, self._workshop.employee
        self.figures["changes"] += 1
        match chance.randint(0, 4):
            case 0:
                ToolRule.objects.filter(
                    organization=organization, tool=tool, stopped_at=None
                ).delete()
                if level := chance.choice(LEVELS):
                    ToolRule.objects.get_or_create(
                        organization=organization, tool=tool, defaults={"level": level}
                    )
            case 1:
                granted = Grant.objects.filter(employee=employee, tool=tool)
                if not granted.delete()[0]:
                    Grant.objects.create(employee=employee, tool=tool)
            case 2:
                self._stop_or_release(tool)
            case _:
                limits = [
                    {**each, "otherwise": chance.choice(["ask", "forbid"])} for each in LIMITS[tool]
                ]
                chosen = [each for each in limits if chance.random() < 0.5]
                values = {"conditions": chosen, "level": chance.choice(LEVELS)}
                Grant.objects.update_or_create(employee=employee, tool=tool, defaults=values)

    def _stop_or_release(self, tool: str) -> None:
        try:
            if ToolRule.objects.filter(organization=self._workshop.organization, tool=tool).exclude(
                stopped_at=None
            ):
                stops.release_tool(self._workshop.admin, tool)
            else:
                stops.stop_tool(self._workshop.admin, tool)
        except Refusal:
            self.figures["refused"] += 1

    def _decide(self, card: Approval) -> None:
        chance, workshop = self._chance, self._workshop
        try:
            match chance.randint(0, 3):
                case 0:
                    workshop.deny(card)
                case 1 if "changes" in card.params:
                    workshop.edit(
                        card, {**card.params, "changes": {"score": chance.randint(0, 99)}}
                    )
                case _:
                    workshop.approve(card)
            self.figures["decisions"] += 1
        except Refusal:
            self.figures["refused"] += 1
