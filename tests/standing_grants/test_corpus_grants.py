"""Grants made by hand from the first half of the conversations do not let a harmful call of the
second half run, with or without injected text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.runs.models import Approval, ToolCall
from tests.features import feature
from tests.standing_grants.corpus import OfficeTask, Pass, load_halves, load_tools
from tests.standing_grants.granting import allow, grant
from tests.standing_grants.office_grants import list_office_grants
from tests.standing_grants.shop_tools import SourceTool
from tests.workshop import Workshop, asking, call
from tools.contract import Level, canonical_json
from tools.toolbox.toolbox import Toolbox

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


@dataclass
class Figures:
    """The outcomes of the calls that change something, by tool.

    Attributes:
        saved: the calls that a grant approved.
        for_people: the harmful calls that a person was asked about.
        harmful: the harmful calls that a grant approved, as text.
        reasons: the reasons why a person decided the other calls.
    """

    asked: Counter[str] = field(default_factory=Counter)
    saved: Counter[str] = field(default_factory=Counter)
    for_people: Counter[str] = field(default_factory=Counter)
    harmful: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def describe(self, tools: set[str]) -> str:
        """Describe the share of cards that grants saved, for tools with a grant and for all."""
        lines = [f"{tool}: {self.saved[tool]} of {self.asked[tool]}" for tool in sorted(tools)]
        of_tools = sum(self.asked[tool] for tool in tools)
        rightly = sum(self.for_people[tool] for tool in tools)
        share = f"{self.saved.total()} of {of_tools} cards of tools with a grant saved"
        rest = f"{rightly} others are harmful; {self.asked.total()} cards of all tools"
        return "\n".join([*lines, f"{share} ({rest})"])


class Office:
    """The tools of six offices, which return what the conversation says."""

    def __init__(self, workshop: Workshop, toolbox: Toolbox) -> None:
        self.workshop, self.results = workshop, defaultdict[str, list[Any]](list)
        self.levels: dict[str, str] = {}
        for name, tool in load_tools().items():
            self.levels[name] = tool["level"]
            reply = self._reply(name)
            schema = rename_reserved(tool["params"])
            made = SourceTool(name, Level(tool["level"]), schema, reply, tool["output"])
            allow(workshop, toolbox, made)

    def _reply(self, name: str) -> Any:
        def reply(params: dict[str, Any]) -> Any:
            """Return the results of equal calls in their order."""
            left = self.results[describe(name, params)]
            return left.pop(0) if len(left) > 1 else left[0]

        return reply

    def converse(
        self,
        task: OfficeTask,
        passes: list[Pass],
        figures: Figures,
        decide: Callable[[Approval, bool], None] | None = None,
    ) -> None:
        """Work on the task until it ends.

        Args:
            decide: decides each card that waits, given whether its call is harmful; without it, a
                person approves every call.
        """
        named = [
            [
                {
                    **one,
                    "tool": f"{task.office}.{one['tool']}",
                    "params": rename_reserved(one["params"]),
                }
                for one in each
            ]
            for each in passes
        ]
        every = [one for each in named for one in each]
        self.results = defaultdict(list)
        for one in every:
            self.results[describe(one["tool"], one["params"])].append(one["result"])
        self.workshop.play(*(asking(*map(request, each)) for each in named))
        run = self.workshop.work(task.text, is_typed=True)
        verdicts = {describe(one["tool"], one["params"]): one.get("verdict") for one in every}
        while cards := self.workshop.cards(run):
            for card in cards:
                called = describe(card.tool_call.tool, card.params)
                if decide is None:
                    self.workshop.approve(card)
                else:
                    decide(card, verdicts[called] == "harmful")
            run = self.workshop.drive(run)
        for made in ToolCall.objects.filter(run=run, level="write"):
            granted = Approval.objects.filter(tool_call=made, standing_grant__isnull=False)
            figures.asked[made.tool] += 1
            is_fine = verdicts[describe(made.tool, made.params)] == "fine"
            if granted.exists():
                figures.saved[made.tool] += 1
                if not is_fine:
                    figures.harmful.append(f"{task.id}: {describe(made.tool, made.params)}")
            elif not is_fine:
                figures.for_people[made.tool] += 1


def request(one: dict[str, Any]) -> dict[str, Any]:
    return call(one["tool"], **one["params"])


def rename_reserved(node: Any) -> Any:
    """Rename the params whose names are reserved for runs, as sources do."""
    if isinstance(node, list):
        return [rename_reserved(each) for each in node]
    if not isinstance(node, dict):
        return "userId_" if node == "userId" else node
    return {
        "userId_" if name == "userId" else name: rename_reserved(each)
        for name, each in node.items()
    }


def describe(tool: str, params: dict[str, Any]) -> str:
    return f"{tool} {canonical_json(params)}"


@pytest.fixture
def office(workshop: Workshop, toolbox: Toolbox) -> Office:
    made = Office(workshop, toolbox)
    for one in list_office_grants():
        params = tuple(sorted({*one.free, *(each.param for each in one.conditions)}))
        grant(workshop, one.tool, *one.conditions, params=params, max_uses=1_000)
    return made


@feature(
    "Figures and metrics",
    "Grants that say where values come from save cards of conversations they were not made for, and do no harm",
    "tools/toolbox/grant_conditions.py",
)
@pytest.mark.parametrize("half", [0, 1])
def test_grants_of_the_first_half_do_not_let_a_harmful_call_run(
    office: Office, half: int, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = Figures()
    for task in load_halves()[half]:
        office.converse(task, task.passes, figures)
        if task.clean_passes:
            office.converse(task, task.clean_passes, figures)
    with capsys.disabled():
        print(f"\nHalf {half + 1}\n{figures.describe({one.tool for one in list_office_grants()})}")
    assert not figures.harmful, figures.harmful
    assert figures.saved.total() >= 50
