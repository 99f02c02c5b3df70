"""A standing grant approves matching cards in its creator's name; all other cards wait for a
person."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.accounts import members
from agents.accounts.models import AuditEntry, Membership, Role
from agents.employees.models import Employee
from agents.employees.models import Grant as AllowedTool
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.runs.models import Approval, ApprovalStatus, CallStatus, RunStatus
from agents.standing_grants import making
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.preapprovals import LOST_RIGHT
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.recorder import Recorder
from tests.standing_grants.granting import (
    answered,
    die_after_responses,
    equals,
    grant,
    is_waiting,
    propose_for,
    resume,
)
from tests.workshop import Workshop, asking, build_workshop, call, calls, payloads, statuses
from tools.contract import Level
from tools.toolbox.conditions import Condition, Otherwise, Rule

pytestmark = pytest.mark.django_db(transaction=True)

EFFECT = call("probe.effect", name="a")
A = equals("name", "a")


class TestAPreapprovedCall:
    @feature(
        "Figures and metrics",
        "A standing grant approves cards of its shape in its owner's name",
        "agents/standing_grants/preapprovals.py",
    )
    def test_runs_without_a_person(self, workshop: Workshop, recorder: Recorder) -> None:
        made = grant(workshop, "probe.effect", A)
        workshop.play(asking(EFFECT))
        run = workshop.work()
        assert run.status == RunStatus.SUCCEEDED
        assert recorder.effects == {calls(run)[0].idempotency_key: 1}
        (card,) = answered(run)
        assert (card.status, card.standing_grant_id, card.decided_by) == (
            ApprovalStatus.CONSUMED,
            made.pk,
            workshop.approver.user,
        )

    def test_is_recorded_in_events_audit_and_history(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        made = grant(workshop, "probe.effect", A)
        workshop.play(asking(EFFECT))
        run = workshop.work()
        name = f"standing grant {made.pk}, made by acme-approver"
        (decided,) = payloads(run, "approval_decided")
        assert (decided["status"], decided["decided_by"]) == ("approved", name)
        entries = AuditEntry.objects.filter(action__in=("card_approved", "call_started")).order_by(
            "seq"
        )
        assert [entry.payload.get("by") or entry.payload["approved_by"] for entry in entries] == [
            name,
            name,
        ]

    def test_is_not_mentioned_to_the_employee(self, workshop: Workshop, recorder: Recorder) -> None:
        grant(workshop, "probe.effect", A)
        workshop.play(asking(EFFECT), asking(call("probe.gate", name="b")))
        run = workshop.work()
        texts = [row.content for row in calls(run)]
        assert not any("grant" in text.lower() or "approv" in text.lower() for text in texts), texts

    def test_of_a_transactional_tool_runs(self, workshop: Workshop, recorder: Recorder) -> None:
        record = workshop.record()
        grant(
            workshop,
            "probe.rename",
            equals("record_id", record.pk),
            equals("to", "New"),
            equals("gate", ""),
        )
        workshop.play(asking(call("probe.rename", record_id=record.pk, to="New")))
        run = workshop.work()
        assert statuses(run) == [CallStatus.SUCCEEDED]
        record.refresh_from_db()
        assert record.name == "New"


def waits(workshop: Workshop, *calls_: dict[str, object]) -> bool:
    """Run these calls, and return True if they wait for a person."""
    workshop.play(asking(*(calls_ or (EFFECT,))))
    return is_waiting(workshop.work())


class TestPreapprovals:
    def test_do_not_cover_other_values(self, workshop: Workshop, recorder: Recorder) -> None:
        grant(workshop, "probe.effect", A)
        assert waits(workshop, call("probe.effect", name="b"))
        assert not waits(workshop)

    def test_do_not_cover_another_tool(self, workshop: Workshop, recorder: Recorder) -> None:
        grant(workshop, "probe.effect", A)
        assert waits(workshop, call("probe.knock", name="a"))

    def test_cannot_cover_a_destructive_tool(self, workshop: Workshop) -> None:
        with pytest.raises(Exception, match="destructive"):
            grant(workshop, "probe.doom", A)

    def test_end_when_the_level_of_the_tool_is_raised(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        made = grant(workshop, "probe.effect", A)
        workshop.raise_for_all("probe.effect", Level.DESTRUCTIVE)
        assert waits(workshop)
        made.refresh_from_db()
        assert made.ended_because == "An admin has raised the tool’s level."

    def test_do_not_cover_a_call_beyond_a_limit(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        grant(workshop, "probe.effect", A)
        limit = Condition("name", Rule.EQUALS, "b", Otherwise.ASK)
        AllowedTool.objects.filter(tool="probe.effect").update(conditions=[limit.as_json()])
        assert waits(workshop)

    def test_do_not_cover_a_call_of_another_employee(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        other = Employee.objects.create(
            organization=workshop.organization, name="Eve", provider=workshop.employee.provider
        )
        grant(workshop, "probe.effect", A, employee_id=other.pk)
        assert waits(workshop)
        grant(workshop, "probe.effect", A, employee_id=None, by=workshop.admin)
        assert not waits(workshop)

    def test_do_not_cover_a_call_of_another_run(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(call("probe.effect", name="b")), asking(EFFECT))
        run = workshop.work()
        grant(workshop, "probe.effect", A, run_id=run.pk)
        workshop.approve(workshop.card(run))
        assert not is_waiting(workshop.drive(run))
        assert waits(workshop)

    def test_do_not_cover_a_call_of_another_organization(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        other = build_workshop("globex")
        made = grant(other, "probe.effect", A)
        StandingGrant.objects.filter(pk=made.pk).update(employee=None)
        assert waits(workshop)
        assert not waits(other)

    def test_end_when_the_grant_expires(self, workshop: Workshop, recorder: Recorder) -> None:
        made = grant(workshop, "probe.effect", A)
        StandingGrant.objects.filter(pk=made.pk).update(expires_at=Now() - timedelta(seconds=1))
        assert waits(workshop)

    def test_end_with_the_last_use(self, workshop: Workshop, recorder: Recorder) -> None:
        grant(workshop, "probe.effect", A, max_uses=1)
        assert not waits(workshop)
        assert waits(workshop)

    def test_do_not_cover_calls_in_one_response_beyond_the_remaining_uses(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        names = Condition("name", Rule.ONE_OF, ["a", "b", "c"])
        grant(workshop, "probe.effect", names, max_uses=2)
        workshop.play(asking(*(call("probe.effect", name=name) for name in "abc")))
        run = workshop.work()
        assert statuses(run) == [
            CallStatus.SUCCEEDED,
            CallStatus.SUCCEEDED,
            CallStatus.AWAITING_APPROVAL,
        ]

    def test_end_permanently_when_the_definition_changes(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        made = grant(workshop, "probe.effect", A)
        before = made.definition_hash
        StandingGrant.objects.filter(pk=made.pk).update(definition_hash="other")
        assert waits(workshop)
        StandingGrant.objects.filter(pk=made.pk).update(definition_hash=before)
        assert waits(workshop)

    def test_end_when_the_account_changes(self, workshop: Workshop, recorder: Recorder) -> None:
        made = grant(workshop, "probe.effect", A)
        StandingGrant.objects.filter(pk=made.pk).update(account="other")
        assert waits(workshop)

    def test_do_not_cover_requests_of_their_creator_under_the_two_person_rule(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        grant(workshop, "probe.effect", A)
        workshop.organization.four_eyes = True
        workshop.organization.save()
        assert not waits(workshop)
        workshop.members["operator"] = workshop.approver
        assert waits(workshop)

    def test_end_permanently_when_their_creator_is_demoted(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        made = grant(workshop, "probe.effect", A)
        members.change_role(workshop.admin, workshop.approver.pk, Role.OPERATOR)
        assert waits(workshop)
        members.change_role(workshop.admin, workshop.approver.pk, Role.APPROVER)
        assert waits(workshop), "a grant that has ended does not come back"
        made.refresh_from_db()
        assert made.ended_because == LOST_RIGHT

    @pytest.mark.parametrize("is_swept", [False, True])
    def test_end_when_their_creator_can_decide_only_in_another_organization(
        self, workshop: Workshop, recorder: Recorder, is_swept: bool
    ) -> None:
        made = grant(workshop, "probe.effect", A)
        other = build_workshop("globex").organization
        Membership.objects.create(
            organization=other, user=workshop.approver.user, role=Role.APPROVER
        )
        assert not waits(workshop)
        members.change_role(workshop.admin, workshop.approver.pk, Role.OPERATOR)
        if is_swept:
            sweep_once()
            made.refresh_from_db()
            assert made.ended_because == LOST_RIGHT
        assert waits(workshop)
        # The invariants checked afterwards need this role.
        members.change_role(workshop.admin, workshop.approver.pk, Role.APPROVER)

    def test_end_when_their_creator_is_deactivated(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        made = grant(workshop, "probe.effect", A)
        user = workshop.approver.user
        user.is_active = False
        user.save()
        sweep_once()
        made.refresh_from_db()
        assert made.ended_because == LOST_RIGHT
        assert waits(workshop)

    def test_do_not_cover_a_card_with_a_warning(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        hidden = "a\u200bb"
        grant(workshop, "probe.effect", equals("name", hidden))
        assert waits(workshop, call("probe.effect", name=hidden))

    def test_are_not_given_by_an_unreadable_grant(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        made = grant(workshop, "probe.effect", A)
        StandingGrant.objects.filter(pk=made.pk).update(conditions=[{"param": "name"}])
        assert waits(workshop)


class TestStartingAPreapprovedCall:
    """A call that a grant approved is judged again when it starts."""

    @pytest.fixture
    def approved(self, workshop: Workshop, recorder: Recorder) -> tuple[StandingGrant, Approval]:
        """A standing grant, and a card that it approved; the driver died before the card's call
        started."""
        made = grant(workshop, "probe.effect", A, max_uses=1)
        (card,) = answered(die_after_responses(workshop, EFFECT))
        assert card.status == ApprovalStatus.APPROVED
        return made, card

    def drive(self, workshop: Workshop, card: Approval) -> list[str]:
        return statuses(resume(workshop, card.run))

    def test_succeeds_if_nothing_changed(
        self, workshop: Workshop, recorder: Recorder, approved: tuple[StandingGrant, Approval]
    ) -> None:
        assert self.drive(workshop, approved[1]) == [CallStatus.SUCCEEDED]

    @feature(
        "Figures and metrics",
        "A revoked standing grant turns what has not started into cards again",
        "agents/standing_grants/making.py",
    )
    def test_needs_a_new_card_immediately_when_the_grant_is_revoked(
        self, workshop: Workshop, recorder: Recorder, approved: tuple[StandingGrant, Approval]
    ) -> None:
        made, card = approved
        making.revoke_grant(workshop.approver, made.pk)
        assert is_waiting(card.run)
        assert self.drive(workshop, card) == [CallStatus.AWAITING_APPROVAL]

    @pytest.mark.parametrize(
        "change",
        [
            {"revoked": True},
            {"definition_hash": "other"},
            {"account": "other"},
            {"conditions": [{"param": "name"}]},
        ],
    )
    def test_waits_for_a_person_once_the_grant_has_ended(
        self,
        workshop: Workshop,
        recorder: Recorder,
        approved: tuple[StandingGrant, Approval],
        change: dict[str, object],
    ) -> None:
        made, card = approved
        rows = StandingGrant.objects.filter(pk=made.pk)
        if change.pop("revoked", False):
            rows.update(revoked_at=Now(), revoked_by=workshop.admin.user)
        else:
            rows.update(**change)
        assert self.drive(workshop, card) == [CallStatus.AWAITING_APPROVAL]
        new = workshop.card(card.run)
        assert new.why.startswith("The standing grant that approved this no longer covers it: ")

    def test_waits_for_a_person_once_the_creator_is_demoted(
        self, workshop: Workshop, recorder: Recorder, approved: tuple[StandingGrant, Approval]
    ) -> None:
        members.change_role(workshop.admin, workshop.approver.pk, Role.VIEWER)
        assert self.drive(workshop, approved[1]) == [CallStatus.AWAITING_APPROVAL]

    def test_does_not_use_up_the_grant_if_the_run_is_cancelled_first(
        self, workshop: Workshop, recorder: Recorder, approved: tuple[StandingGrant, Approval]
    ) -> None:
        made, card = approved
        assert making.find_grant(workshop.approver, made.pk).used == 1  # type: ignore[attr-defined]
        workshop.cancel(card.run)
        self.drive(workshop, card)
        assert making.find_grant(workshop.approver, made.pk).used == 0  # type: ignore[attr-defined]
        assert not waits(workshop)


def copy_grant(made: StandingGrant) -> StandingGrant:
    """Return an unsaved grant with the same terms."""
    made = StandingGrant.objects.get(pk=made.pk)
    made.pk, made._state.adding = None, True
    return made


class TestCreatingAGrant:
    def test_is_limited_to_approvers_and_so_is_revoking_it(self, workshop: Workshop) -> None:
        with pytest.raises(Forbidden):
            grant(workshop, "probe.effect", A, by=workshop.operator)
        made = grant(workshop, "probe.effect", A)
        with pytest.raises(Forbidden):
            making.revoke_grant(workshop.operator, made.pk)

    def test_for_every_employee_is_limited_to_admins(self, workshop: Workshop) -> None:
        proposal = propose_for(workshop, "probe.effect", A, employee_id=None)
        with pytest.raises(Forbidden):
            making.make_grant(workshop.approver, proposal)
        assert making.make_grant(workshop.admin, proposal).employee is None

    @pytest.mark.parametrize(
        ("changes", "says"),
        [
            ({"tool": "probe.none"}, "There is no tool"),
            ({"tool": "probe.doom"}, "destructive"),
            ({"max_uses": 0}, "1 to 1,000"),
            ({"max_uses": 1_001}, "1 to 1,000"),
            ({"lifetime": timedelta(days=7, seconds=1)}, "at most 7 days"),
            ({"lifetime": timedelta(0)}, "at most 7 days"),
            ({"params": ("name", "nothing")}, "has no parameter 'nothing'. It has: name"),
            ({"params": ()}, "calls may not have this parameter"),
            (
                {"conditions": (Condition("name", Rule.PATTERN, ".*"),)},
                "cannot have the condition 'pattern'",
            ),
            ({"run_id": 12_345}, "There is no run"),
            ({"employee_id": 12_345}, "no active employee"),
        ],
    )
    def test_with_invalid_input_is_refused_with_the_reason(
        self, workshop: Workshop, changes: dict[str, Any], says: str
    ) -> None:
        proposal = replace(propose_for(workshop, "probe.effect", A), **changes)
        with pytest.raises(Exception, match=says.replace(".", r"\.")):
            making.make_grant(workshop.approver, proposal)
        assert not StandingGrant.objects.exists()

    def test_for_an_ended_run_is_refused(self, workshop: Workshop, recorder: Recorder) -> None:
        run = workshop.submit()
        grant(workshop, "probe.effect", A, run_id=run.pk)
        workshop.play()
        assert workshop.drive(run).status == RunStatus.SUCCEEDED
        with pytest.raises(Invalid, match=rf"Run {run.pk} has ended"):
            grant(workshop, "probe.effect", A, run_id=run.pk)

    def test_is_refused_if_the_organization_has_200_in_force(self, workshop: Workshop) -> None:
        first = grant(workshop, "probe.effect", A)
        StandingGrant.objects.bulk_create(copy_grant(first) for _ in range(making.MAX_IN_FORCE - 2))
        grant(workshop, "probe.effect", A)
        with pytest.raises(Conflict, match="already 200 standing grants in force"):
            grant(workshop, "probe.effect", A)
        grant(build_workshop("globex"), "probe.effect", A)
        making.revoke_grant(workshop.approver, first.pk)
        grant(workshop, "probe.effect", A)

    def test_requires_a_condition_on_a_recipient_param(self, workshop: Workshop) -> None:
        proposal = propose_for(
            workshop,
            "data.updateRecord",
            equals("record_id", 1),
            params=("record_id", "changes.email"),
        )
        with pytest.raises(Exception, match=r"changes\.email names a recipient"):
            making.make_grant(workshop.approver, proposal)

    def test_a_grant_can_be_revoked_only_once_and_only_within_its_organization(
        self, workshop: Workshop
    ) -> None:
        made = grant(workshop, "probe.effect", A)
        with pytest.raises(NotFound):
            making.revoke_grant(build_workshop("globex").approver, made.pk)
        making.revoke_grant(workshop.approver, made.pk)
        with pytest.raises(Conflict):
            making.revoke_grant(workshop.approver, made.pk)
        actions = AuditEntry.objects.filter(action__startswith="standing_grant").order_by("seq")
        assert list(actions.values_list("action", flat=True)) == [
            "standing_grant_made",
            "standing_grant_revoked",
        ]
