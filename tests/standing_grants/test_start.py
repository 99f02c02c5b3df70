"""At the start of a call that a standing grant approved, the call is compared with the grant again,
under the lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typing_extensions import override

from agents.accounts.models import Membership, Role
from agents.employees.models import Grant as AllowedTool
from agents.runs import actions
from agents.runs.models import ApprovalStatus, CallStatus, Run
from agents.standing_grants.making import find_grant
from agents.standing_grants.preapprovals import LOST_RIGHT
from tests.probes import Effect, Named, Rename
from tests.recorder import Recorder
from tests.standing_grants.granting import (
    allow,
    answered,
    die_after_responses,
    equals,
    grant,
    is_waiting,
    resume,
)
from tests.tools.connections.api import Api
from tests.tools.connections.connecting import connect_api, offer, set_credentials
from tests.workshop import Workshop, asking, call, statuses
from tools.connections.models import AuthenticationMethod, Source
from tools.contract import Preview, Tool, ToolContext
from tools.toolbox.conditions import Condition, Otherwise, Rule
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

ENDED = "The standing grant that approved this no longer covers it: "
A = equals("name", "a")
Change = Callable[[Workshop], object]


class Meanwhile(Effect):
    """A write that may contact any host. Its second preview, immediately before the start, calls
    `act`."""

    name = "probe.meanwhile"
    open_world = True

    def __init__(self, act: Callable[[], object]) -> None:
        self.act, self.previews = act, 0

    @override
    def preview(self, params: Named, context: ToolContext) -> None:
        self.previews += 1
        if self.previews == 2:
            self.act()


class MeanwhileInTransaction(Rename):
    """`Meanwhile` as a transactional write."""

    name = "probe.meanwhileInTransaction"

    def __init__(self, act: Callable[[], object]) -> None:
        self.act, self.previews = act, 0

    @override
    def preview(self, params: Any, context: ToolContext) -> Preview:
        self.previews += 1
        if self.previews == 2:
            self.act()
        return super().preview(params, context)


def do_nothing(_: Workshop) -> None:
    """Make no change, as the control."""


def ask_from_now_on(_: Workshop) -> None:
    """Let a person decide on every call of these tools from now on."""
    limits = {
        Meanwhile.name: equals("name", "never"),
        MeanwhileInTransaction.name: equals("to", "never"),
    }
    for tool, never in limits.items():
        limit = Condition(never.param, Rule.EQUALS, never.value, Otherwise.ASK)
        AllowedTool.objects.filter(tool=tool).update(conditions=[limit.as_json()])


def replace_key(workshop: Workshop) -> None:
    set_credentials(workshop.organization, "contacts", token="second-token-of-ours")


def work_with(workshop: Workshop, toolbox: Toolbox, tool: Tool, **params: Any) -> Run:
    """Let a standing grant approve one call of this tool, and drive the run as far as possible."""
    allow(workshop, toolbox, tool)
    grant(workshop, tool.name, *(equals(name, value) for name, value in params.items()))
    workshop.play(asking(call(tool.name, **params)))
    run = workshop.work()
    assert len(answered(run)) == 1
    return run


def assert_a_person_decides(workshop: Workshop, run: Run, because: str) -> None:
    """Check that the call waits for a person, and starts with their approval."""
    assert statuses(run) == [CallStatus.AWAITING_APPROVAL]
    assert [card.status for card in answered(run)] == [ApprovalStatus.SUPERSEDED]
    card = workshop.card(run)
    assert card.why.startswith(f"{ENDED}{because}"), card.why
    workshop.approve(card)
    assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]


class TestAChangeDuringThePreview:
    @pytest.mark.parametrize(
        ("change", "because"),
        [
            (do_nothing, ""),
            (ask_from_now_on, 'name is "a", but must be "never"'),
            (replace_key, "the account that the tool uses has changed"),
        ],
    )
    def test_of_an_outside_write_prevents_its_start(
        self, workshop: Workshop, recorder: Recorder, toolbox: Toolbox, change: Change, because: str
    ) -> None:
        run = work_with(workshop, toolbox, Meanwhile(lambda: change(workshop)), name="a")
        assert len(recorder.effects) == (0 if because else 1)
        if because:
            assert_a_person_decides(workshop, run, because)
        assert list(recorder.effects.values()) == [1]

    @pytest.mark.parametrize(
        ("change", "because"),
        [(do_nothing, ""), (ask_from_now_on, 'to is "New", but must be "never"')],
    )
    def test_of_a_transactional_write_prevents_its_start(
        self, workshop: Workshop, recorder: Recorder, toolbox: Toolbox, change: Change, because: str
    ) -> None:
        record = workshop.record(name="Old")
        tool = MeanwhileInTransaction(lambda: change(workshop))
        run = work_with(workshop, toolbox, tool, record_id=record.pk, to="New", gate="")
        record.refresh_from_db()
        assert record.name == ("Old" if because else "New")
        if because:
            assert_a_person_decides(workshop, run, because)


class TestAConnectedTool:
    """The account of a connected tool changes after a standing grant approved its call, before it
    starts."""

    @pytest.fixture
    def source(self, workshop: Workshop, api: Api) -> Source:
        source = connect_api(
            workshop, api, authentication=AuthenticationMethod.BEARER, service="contacts"
        )
        offer(workshop, source, "crm.addContact")
        set_credentials(workshop.organization, "contacts", token="first-token-of-ours")
        workshop.organization.refresh_from_db()  # as each request does: now this process knows the new tools
        return source

    @pytest.mark.parametrize("change", [do_nothing, replace_key])
    def test_starts_only_with_the_account_that_the_creator_saw(
        self, workshop: Workshop, api: Api, source: Source, change: Change
    ) -> None:
        grant(workshop, "crm.addContact", equals("name", "Ada"))
        run = die_after_responses(workshop, call("crm.addContact", name="Ada"))
        change(workshop)
        run = resume(workshop, run)
        if change is do_nothing:
            assert statuses(run) == [CallStatus.SUCCEEDED]
        else:
            assert not api.received
            assert_a_person_decides(workshop, run, "the account that the tool uses has changed")
        assert len(api.received) == 1

    def test_starts_despite_changed_credentials_of_another_service(
        self, workshop: Workshop, api: Api, source: Source
    ) -> None:
        grant(workshop, "crm.addContact", equals("name", "Ada"))
        run = die_after_responses(workshop, call("crm.addContact", name="Ada"))
        set_credentials(workshop.organization, "other", token="another-token-of-ours")
        assert statuses(resume(workshop, run)) == [CallStatus.SUCCEEDED]


class TestAChangeBetweenApprovalAndStart:
    @pytest.mark.parametrize("appears", [False, True])
    def test_leaves_the_call_to_a_person_if_its_card_gets_a_warning(
        self, workshop: Workshop, recorder: Recorder, appears: bool
    ) -> None:
        record = workshop.record(name="Acme Corp")
        grant(workshop, "probe.announce", equals("record_id", record.pk), equals("to", "all"))
        run = die_after_responses(workshop, call("probe.announce", record_id=record.pk, to="all"))
        if appears:
            workshop.record(name="Acrne Corp")
        run = resume(workshop, run)
        if appears:
            assert not recorder.effects
            assert_a_person_decides(workshop, run, "the card carries a warning: Similar names")
        assert list(recorder.effects.values()) == [1]

    @pytest.mark.parametrize("has_rule", [False, True])
    def test_leaves_the_call_to_a_person_if_the_creator_messages_the_run_under_the_two_person_rule(
        self, workshop: Workshop, recorder: Recorder, has_rule: bool
    ) -> None:
        workshop.organization.four_eyes = has_rule
        workshop.organization.save()
        grant(workshop, "probe.effect", A)
        run = die_after_responses(workshop, call("probe.effect", name="a"))
        actions.add_message(workshop.approver, run.pk, "Do it now.")
        resume(workshop, run)
        assert is_waiting(run) is has_rule
        assert len(recorder.effects) == (0 if has_rule else 1)
        if has_rule:
            assert workshop.card(run).why.startswith(
                f"{ENDED}its owner could not approve this alone"
            )

    @pytest.mark.parametrize("is_demoted", [False, True])
    def test_ends_the_grant_if_its_creator_can_no_longer_decide(
        self, workshop: Workshop, recorder: Recorder, is_demoted: bool
    ) -> None:
        made = grant(workshop, "probe.effect", A)
        run = die_after_responses(workshop, call("probe.effect", name="a"))
        if is_demoted:
            Membership.objects.filter(pk=workshop.approver.pk).update(role=Role.OPERATOR)
        resume(workshop, run)
        made.refresh_from_db()
        assert made.ended_because == (LOST_RIGHT if is_demoted else "")
        assert is_waiting(run) is is_demoted
        assert len(recorder.effects) == (0 if is_demoted else 1)
        if is_demoted:
            assert workshop.card(run).why.startswith(f"{ENDED}it has ended")


def test_a_limit_applies_to_all_calls_of_one_response_together(
    workshop: Workshop, recorder: Recorder
) -> None:
    """The limit allows two calls, so the third is refused at its start and its use of the grant is
    given back."""
    two_an_hour = Condition("", Rule.CALL_COUNT, {"most": 2, "period": "hour"}, Otherwise.FORBID)
    AllowedTool.objects.filter(tool="probe.effect").update(conditions=[two_an_hour.as_json()])
    made = grant(
        workshop, "probe.effect", Condition("name", Rule.ONE_OF, ["a", "b", "c"]), max_uses=3
    )
    workshop.play(asking(*(call("probe.effect", name=name) for name in "abc")))
    run = workshop.work()
    assert statuses(run) == [CallStatus.SUCCEEDED, CallStatus.SUCCEEDED, CallStatus.REJECTED]
    assert list(recorder.effects.values()) == [1, 1]
    assert find_grant(workshop.approver, made.pk).used == 2  # type: ignore[attr-defined]
