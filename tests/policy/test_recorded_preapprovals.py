"""Replay checks approvals by standing grants again, against the grant's terms and the facts
recorded with the call."""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agents.accounts.models import Organization
from agents.policy.recorded_calls import CallFilter
from agents.policy.replay import find_bounds, replay
from agents.runs.models import PolicySnapshot, ToolCall
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.preapprovals import NOT_AVAILABLE
from tests.recorder import Recorder
from tests.standing_grants.granting import equals, grant
from tests.workshop import Workshop, asking, call

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def answered(workshop: Workshop, recorder: Recorder) -> StandingGrant:
    """A standing grant that has approved one call."""
    made = grant(workshop, "probe.effect", equals("name", "a"))
    workshop.play(asking(call("probe.effect", name="a")))
    workshop.work()
    return made


def check() -> Counter[str]:
    bounded = find_bounds(CallFilter(None), None)
    assert bounded is not None
    return sum((part.preapprovals for part in replay(bounded)), Counter())


def keep(answered: StandingGrant, **changes: Any) -> None:
    """Change the record of the approval on the call."""
    one = ToolCall.objects.get(approvals__standing_grant=answered)
    assert one.judgment is not None
    one.judgment = {**one.judgment, "answer": {**one.judgment["answer"], **changes}}
    one.save()


def test_a_matching_approval_is_reported_as_equal(answered: StandingGrant) -> None:
    assert check() == {"equal": 1}
    output = StringIO()
    call_command("replay_policy", stdout=output)
    assert "1 of 1 approvals by standing grants are equal" in output.getvalue()


@pytest.mark.parametrize(
    "spoiled",
    [
        {"conditions": [{"param": "name", "rule": "equals", "value": "b", "otherwise": "ask"}]},
        {"conditions": [{"param": "name"}]},
        {"definition_hash": "other"},
        {"account": "other"},
        {"tool": "probe.knock"},
    ],
)
def test_changed_terms_are_reported_as_a_difference(
    answered: StandingGrant, spoiled: dict[str, Any]
) -> None:
    StandingGrant.objects.filter(pk=answered.pk).update(**spoiled)
    assert check() == {"different": 1}
    with pytest.raises(
        CommandError, match="1 approvals by standing grants do not match their records"
    ):
        call_command("replay_policy", stdout=StringIO())


def test_an_approval_is_checked_with_the_meanings_that_params_had_when_it_was_recorded(
    workshop: Workshop, recorder: Recorder
) -> None:
    made = grant(workshop, "probe.effect", params=("name",))
    workshop.play(asking(call("probe.effect", name="a")))
    workshop.work()
    assert check() == {"equal": 1}
    for recorded, outcome in (
        ({"naming": {"name": "recipient"}}, "different"),
        ({"reading": 2, "naming": {"name": "recipient"}}, "equal"),
        ({"reading": 2, "destinations": ["name"]}, "different"),
        ({"reading": 3, "destinations": ["name"], "naming": {}}, "equal"),
    ):
        keep(made, **recorded)
        assert check() == {outcome: 1}, recorded


def test_a_grant_of_another_organization_is_reported_as_a_difference(
    answered: StandingGrant,
) -> None:
    other = Organization.objects.create(name="Globex", slug="globex")
    StandingGrant.objects.filter(pk=answered.pk).update(organization=other)
    assert check() == {"different": 1}


def test_the_snapshot_names_the_grants_compared_with_a_card(answered: StandingGrant) -> None:
    (rules,) = [
        json.loads(each.rules)
        for each in PolicySnapshot.objects.all()
        if "standing_grants" in each.rules
    ]
    assert rules["standing_grants"] == [answered.pk]


def test_a_card_that_no_grant_approved_is_compared_with_the_grants_again(
    workshop: Workshop, answered: StandingGrant
) -> None:
    workshop.play(asking(call("probe.effect", name="b")))
    workshop.work()
    assert check() == {"equal": 2}
    conditions = [{"param": "name", "rule": "equals", "value": "b", "otherwise": "ask"}]
    StandingGrant.objects.filter(pk=answered.pk).update(conditions=conditions)
    assert check() == {"different": 2}


def test_a_matching_grant_without_uses_left_is_recorded_as_withheld(
    workshop: Workshop, recorder: Recorder
) -> None:
    grant(workshop, "probe.effect", equals("name", "a"), max_uses=1)
    workshop.play(asking(call("probe.effect", name="a")))
    workshop.work()
    workshop.work()
    kept = [
        one.judgment["answer"].get("withheld")
        for one in ToolCall.objects.order_by("pk")
        if one.judgment
    ]
    assert kept == [None, NOT_AVAILABLE]
    assert check() == {"equal": 2}


def test_a_card_that_names_the_wrong_grant_is_reported_as_a_difference(
    answered: StandingGrant,
) -> None:
    keep(answered, grant=None)
    assert check() == {"different": 1}
    keep(answered, grant=answered.pk)
    assert check() == {"equal": 1}
    ToolCall.objects.update(judgment={**(ToolCall.objects.get().judgment or {}), "answer": None})
    assert check() == {"different": 1}
