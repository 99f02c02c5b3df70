"""Calls that match the terms of a standing grant, but still need a person's approval."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import JSONField, Value
from django.test import Client
from pydantic import BaseModel
from typing_extensions import override

from agents.approvals.bulk import decide_many
from agents.approvals.decisions import Decision
from agents.employees.models import Grant as AllowedTool
from agents.runs.engine.preapprover import GrantsInForce
from agents.runs.engine.timing import Timing
from agents.runs.models import Approval, CallStatus, ToolCall
from agents.standing_grants.changes import end_changed
from agents.standing_grants.models import StandingGrant
from tests.outside_probes import ReadPage
from tests.probes import Effect, Named
from tests.recorder import Recorder
from tests.standing_grants.granting import allow, answered, equals, grant, is_waiting
from tests.workshop import Workshop, asking, call, last_call, statuses
from tools.contract import Level, Preview, Target, Tool, ToolContext, ToolResult
from tools.office.records.models import Record
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

EFFECT = call("probe.effect", name="a")
A = equals("name", "a")


class TestACallToAHostThatIsNotAllowed:
    @pytest.fixture(autouse=True)
    def office(self, workshop: Workshop) -> None:
        AllowedTool.objects.create(employee=workshop.employee, tool=ReadPage.name)
        workshop.record(name="Globex Corporation")
        grant(workshop, ReadPage.name, Condition("url", Rule.HOST, "new.example"))

    @pytest.mark.parametrize(
        ("query", "is_answered"), [("weather", True), ("globex%20corporation", False)]
    )
    def test_needs_approval_by_a_person_only_if_it_carries_the_organizations_data(
        self, workshop: Workshop, query: str, is_answered: bool
    ) -> None:
        visit = call(ReadPage.name, url=f"https://new.example/find?q={query}")
        workshop.play(asking(call("data.searchRecords")), asking(visit))
        run = workshop.work()
        assert bool(answered(run)) is is_answered
        assert is_waiting(run) is not is_answered
        if not is_answered:
            why = workshop.card(run).why
            assert "contacts new.example, not on the list of allowed hosts" in why
            assert 'sends your own data outside: "globex corporation"' in why


class Previewed(Effect):
    """A write that shows the preview computed by a given function, and that succeeds at once."""

    name = "probe.previewed"

    def __init__(self, show: Callable[[], Preview | None]) -> None:
        self.show = show

    @override
    def preview(self, params: Named, context: ToolContext) -> Preview | None:
        return self.show()


def fail() -> Preview:
    raise RuntimeError("the preview has a defect")


def take_too_long() -> Preview:
    threading.Event().wait(0.5)
    return Preview("send")


def show_nothing() -> Preview:
    return Preview.impossible("The other side does not answer.")


class TestAPreview:
    @pytest.fixture
    def previews_may_take_50_ms(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Timing, "preview_s", 0.05)

    @pytest.mark.usefixtures("previews_may_take_50_ms")
    @pytest.mark.parametrize("show", [fail, take_too_long, show_nothing])
    def test_that_failed_leaves_the_card_to_a_person(
        self, workshop: Workshop, toolbox: Toolbox, recorder: Recorder, show: Callable[[], Preview]
    ) -> None:
        allow(workshop, toolbox, Previewed(show))
        grant(workshop, Previewed.name, A)
        workshop.play(asking(call(Previewed.name, name="a")))
        run = workshop.work()
        assert not answered(run)
        assert last_call(run).judgment["answer"]["withheld"] == "Preview failed"  # type: ignore[index]
        card = workshop.card(run)
        assert (
            self.approve_in_bulk(workshop, card)
            == "this card must be approved individually: Preview failed"
        )
        assert not recorder.effects

    @pytest.mark.parametrize("show", [lambda: None, lambda: Preview("send")])
    def test_that_is_absent_or_succeeded_leaves_the_card_to_the_grant(
        self,
        workshop: Workshop,
        toolbox: Toolbox,
        recorder: Recorder,
        show: Callable[[], Preview | None],
    ) -> None:
        allow(workshop, toolbox, Previewed(show))
        grant(workshop, Previewed.name, A)
        workshop.play(asking(call(Previewed.name, name="a"), call(Previewed.name, name="b")))
        run = workshop.work()
        assert statuses(run) == [CallStatus.SUCCEEDED, CallStatus.AWAITING_APPROVAL]
        assert self.approve_in_bulk(workshop, workshop.card(run)) == ""

    def approve_in_bulk(self, workshop: Workshop, card: Approval) -> str:
        """Approve the card in a bulk decision; return the reason if it is refused, otherwise ""."""
        (outcome,) = decide_many(workshop.approver, [(card.pk, "approve", Decision(card.digest))])
        return outcome.detail


class Tag(Tool):
    """A draft-level tool for many records that contacts a host that is not allowed."""

    name = "data.tagRecords"
    description = "Tags records elsewhere."
    level = Level.DRAFT
    open_world = True

    class Params(BaseModel):
        first: int
        count: int

    @override
    def hosts(self, params: Any) -> frozenset[str]:
        return frozenset({"tags.example"})

    @override
    def preview(self, params: Any, context: ToolContext) -> Preview:
        pks = range(params.first, params.first + params.count)
        return Preview("tag", tuple(Target(str(pk), f"Record {pk}", 1) for pk in pks))

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok({}, "Tagged")


@pytest.mark.parametrize(
    ("total", "affected", "is_answered"),
    [(300, 50, True), (300, 51, False), (30, 6, True), (29, 6, False)],
)
def test_a_call_that_affects_many_objects_waits_for_a_person(
    workshop: Workshop, toolbox: Toolbox, total: int, affected: int, is_answered: bool
) -> None:
    """A call affects many objects if it affects more than 50, or at least 6 that are more than 20%
    of all objects."""
    rows = [
        Record(organization=workshop.organization, name=f"Record {number}")
        for number in range(total)
    ]
    first = Record.objects.bulk_create(rows)[0].pk
    allow(workshop, toolbox, Tag())
    grant(workshop, Tag.name, equals("first", first), equals("count", affected))
    workshop.play(asking(call(Tag.name, first=first, count=affected)))
    run = workshop.work()
    assert bool(answered(run)) is is_answered
    kept = (last_call(run).judgment or {})["answer"]
    assert kept.get("withheld", "") == ("" if is_answered else "Affects many")


DAMAGES: dict[str, dict[str, Any]] = {
    "a text as a condition": {"conditions": ["x"]},
    "a number as a condition": {"conditions": [1]},
    "null as a condition": {"conditions": [None]},
    "a list as a condition": {"conditions": [[]]},
    "a rule without a value": {
        "conditions": [{"param": "name", "rule": "equals", "otherwise": "ask"}]
    },
    "an unknown rule": {
        "conditions": [{"param": "name", "rule": "like", "value": "a", "otherwise": "ask"}]
    },
    "an object in place of the conditions": {"conditions": {"name": "a"}},
    "null in place of the conditions": {"conditions": Value(None, JSONField())},
    "null in place of the params": {"params": Value(None, JSONField())},
    "a number in place of the params": {"params": 1},
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_grant_does_not_approve_calls_or_block_other_grants(
    workshop: Workshop, recorder: Recorder, damage: dict[str, Any]
) -> None:
    damaged = grant(workshop, "probe.effect", A)
    StandingGrant.objects.filter(pk=damaged.pk).update(**damage)
    workshop.play(asking(EFFECT))
    run = workshop.work()
    assert is_waiting(run)
    assert GrantsInForce().load(run) == []
    assert end_changed() == 0
    intact = grant(workshop, "probe.effect", A)
    workshop.work()
    assert [card.standing_grant_id for card in Approval.objects.exclude(standing_grant=None)] == [
        intact.pk
    ]
    assert ToolCall.objects.filter(status=CallStatus.SUCCEEDED).count() == 1


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_grant_is_listed_and_can_be_revoked(
    workshop: Workshop, damage: dict[str, Any]
) -> None:
    damaged, client = grant(workshop, "probe.effect", A), Client()
    client.force_login(workshop.approver.user)
    terms = {"conditions": [{"param": "name", "rule": "equals", "value": "a"}], "free_params": []}
    (item,) = client.get("/api/standing_grants").json()["items"]
    assert {name: item[name] for name in terms} == terms
    StandingGrant.objects.filter(pk=damaged.pk).update(**damage)
    (item,) = client.get("/api/standing_grants").json()["items"]
    assert {name: item[name] for name in terms} == {"conditions": [], "free_params": []}
    assert client.post(f"/api/standing_grants/{damaged.pk}/revoke").json()["status"] == "revoked"
