"""Grants suggested from people's decisions on the first half of the conversations do not let a
harmful call of the second half run, with or without injected text."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from agents.insight import suggestions
from agents.insight.suggestions import Suggestion, find_suggestions
from agents.runs.engine.preapprover import AskingCard
from agents.runs.models import Approval
from agents.standing_grants.making import make_grant
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.preapprovals import build_call, find_warnings
from agents.standing_grants.proposals import read_causes
from tests.features import feature
from tests.standing_grants.corpus import load_halves
from tests.standing_grants.test_corpus_grants import Figures, Office
from tests.workshop import Workshop
from tools.toolbox.standing_grants import find_mismatch
from tools.toolbox.toolbox import Toolbox

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

MOST_REASONS = 10


@pytest.fixture
def office(workshop: Workshop, toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch) -> Office:
    """Build the office, in which even very fast decisions count."""
    monkeypatch.setattr(suggestions, "SHORTEST_LOOK", timedelta(0))
    return Office(workshop, toolbox)


def learn(office: Office) -> list[Suggestion]:
    """Work on the first half, whose harmful calls a person denies, and make every suggested
    grant."""

    def decide(card: Approval, is_harmful: bool) -> None:
        (office.workshop.deny if is_harmful else office.workshop.approve)(card)

    for task in load_halves()[0]:
        office.converse(task, task.passes, Figures(), decide)
    found = find_suggestions(office.workshop.approver)
    for one in found:
        make_grant(office.workshop.approver, replace(one.proposal, max_uses=1_000))
    return found


def explain(card: Approval, toolbox: Toolbox) -> str:
    """Return the reason why no suggested grant has approved the card."""
    call = card.tool_call
    grants = StandingGrant.objects.filter(tool=call.tool)
    if not grants:
        return "no suggestion for the tool"
    tool = toolbox.get_tool(call.tool)
    assert tool is not None
    asking = AskingCard(card, card.run, tool, read_causes(call.judgment))
    asked = build_call(asking, card.organization)
    found = [find_mismatch(asked, grant.as_terms()) for grant in grants]
    reasons = [each.why for each in found if each is not None]
    if len(reasons) == len(found):
        return f"{call.tool}: {reasons[0]}"
    return f"a warning: {', '.join(find_warnings(asking))}"


@feature(
    "Figures and metrics",
    "Suggested grants save cards of conversations that they were not made from, and do no harm",
    "agents/insight/narrowest_terms.py",
)
def test_suggestions_of_the_first_half_do_not_let_a_harmful_call_of_the_second_run(
    office: Office, toolbox: Toolbox, capsys: pytest.CaptureFixture[str]
) -> None:
    suggested = learn(office)
    figures = Figures()

    def decide(card: Approval, _: bool) -> None:
        if card.level == "write":
            figures.reasons[explain(card, toolbox)] += 1
        office.workshop.approve(card)

    for task in load_halves()[1]:
        office.converse(task, task.passes, figures, decide)
        if task.clean_passes:
            office.converse(task, task.clean_passes, figures, decide)
    tools = {one.tool.name for one in suggested}
    with capsys.disabled():
        print(f"\n{len(suggested)} suggestions\n{figures.describe(tools)}")
        for reason, many in figures.reasons.most_common(MOST_REASONS):
            print(f"{many:4} {reason}")
    assert not figures.harmful, figures.harmful
    assert figures.saved.total() >= 5
