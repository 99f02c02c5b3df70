"""The database refuses invalid rows, whatever the code does."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, models, transaction
from django.db.models import ProtectedError
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry, AuditHead, Membership
from agents.employees.models import Employee, Grant
from agents.runs.models import (
    Approval,
    ApprovalStatus,
    CallStatus,
    Event,
    Message,
    Pass,
    Run,
    ToolCall,
)
from tests.frozen_rows import freeze_ended_rows, thaw_ended_rows
from tests.workshop import Workshop, asking, call, calls

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("_without_triggers")]


@pytest.fixture
def _without_triggers(transactional_db: None) -> Iterator[None]:
    """Remove the tests' own triggers, which would refuse the change first."""
    thaw_ended_rows()
    yield
    freeze_ended_rows()


@pytest.fixture
def run(workshop: Workshop) -> Run:
    """A waiting run with a read that succeeded, and two writes that await approval."""
    workshop.play(
        asking(
            call("probe.sleep", ms=0),
            call("probe.effect", name="a"),
            call("probe.effect", name="b"),
        )
    )
    return workshop.work()


def refuses_change(row: models.Model, **columns: Any) -> bool:
    """Return True if the database refuses this update; the row stays unchanged."""
    try:
        with transaction.atomic():
            type(row)._default_manager.filter(pk=row.pk).update(**columns)
            transaction.set_rollback(True)
    except IntegrityError:
        return True
    return False


def refuses_copy(row: models.Model, **columns: Any) -> bool:
    """Return True if the database refuses a copy that differs only in these columns; no copy
    remains."""
    copy = type(row)._default_manager.get(pk=row.pk)
    copy.pk = None
    for name, value in columns.items():
        setattr(copy, name, value)
    try:
        with transaction.atomic():
            copy.save(force_insert=True)
            transaction.set_rollback(True)
    except IntegrityError:
        return True
    return False


class TestARun:
    def test_has_a_lease_exactly_while_it_runs(self, run: Run) -> None:
        assert refuses_change(run, lease_owner="somebody")
        assert refuses_change(run, lease_expires_at=Now())
        assert refuses_change(run, status="running")
        assert refuses_change(run, status="running", lease_expires_at=Now())
        assert refuses_change(run, status="running", lease_owner="somebody")

    def test_has_an_exit_reason_and_an_end_time_exactly_when_it_has_ended(self, run: Run) -> None:
        assert refuses_change(run, status="succeeded")
        assert refuses_change(run, status="failed", exit_reason="deadline")
        assert refuses_change(run, status="cancelled", finished_at=Now())
        assert refuses_change(run, exit_reason="final_answer")
        assert refuses_change(run, finished_at=Now())

    def test_has_a_known_status(self, run: Run) -> None:
        assert refuses_change(run, status="resting")

    def test_is_unique_for_its_client_request(self, run: Run) -> None:
        Run.objects.filter(pk=run.pk).update(client_request_id="r-1")
        assert refuses_copy(run)
        assert not refuses_copy(run, client_request_id="")

    def test_protects_its_employee_and_its_people_from_deletion(
        self, run: Run, workshop: Workshop
    ) -> None:
        with pytest.raises(ProtectedError):
            workshop.employee.delete()
        with pytest.raises(ProtectedError):
            workshop.operator.user.delete()


class TestAToolCall:
    def test_above_the_draft_level_is_attempted_at_most_once(self, run: Run) -> None:
        read, write, _ = calls(run)
        assert refuses_change(write, attempts=2)
        assert not refuses_change(read, attempts=3)
        ToolCall.objects.filter(pk=read.pk).update(attempts=2)
        for level in ("write", "destructive"):
            assert refuses_change(read, level=level)

    def test_has_a_known_level_and_status(self, run: Run) -> None:
        read, write, _ = calls(run)
        assert refuses_change(read, level="harmless")
        assert refuses_change(write, status="maybe")

    def test_that_is_executing_requires_an_epoch_and_a_deadline(self, run: Run) -> None:
        write = calls(run)[1]
        assert refuses_change(write, status="executing")
        assert refuses_change(write, status="executing", exec_epoch=1)
        assert refuses_change(write, status="executing", deadline_at=Now())

    def test_has_an_end_time_exactly_when_it_is_terminal(self, run: Run) -> None:
        read, write, _ = calls(run)
        assert refuses_change(read, finished_at=None)
        assert refuses_change(write, finished_at=Now())
        for status in (
            "succeeded",
            "failed",
            "denied",
            "expired",
            "cancelled",
            "rejected",
            "duplicate",
        ):
            assert refuses_change(write, status=status)

    def test_that_is_terminal_requires_a_tool_message(self, run: Run) -> None:
        read, write, _ = calls(run)
        assert refuses_change(read, content="")
        assert refuses_change(write, status="denied", finished_at=Now())
        assert refuses_change(write, status="duplicate", finished_at=Now())
        assert not refuses_change(write, status="duplicate", finished_at=Now(), duplicate_of=read)

    def test_has_a_unique_index_provider_id_and_idempotency_key(self, run: Run) -> None:
        read = calls(run)[0]
        assert refuses_copy(read, provider_call_id="x", idempotency_key="k")
        assert refuses_copy(read, index=9, idempotency_key="k")
        assert refuses_copy(read, index=9, provider_call_id="x")
        assert not refuses_copy(read, index=9, provider_call_id="x", idempotency_key="k")


class TestAnApproval:
    def test_is_the_only_open_approval_of_its_call(self, run: Run, workshop: Workshop) -> None:
        card = workshop.card(run)
        person: dict[str, Any] = {
            "decided_by": workshop.approver.user,
            "decided_at": card.requested_at,
        }
        assert refuses_copy(card, sequence=2)
        assert refuses_copy(card, sequence=2, status=ApprovalStatus.APPROVED, **person)
        assert not refuses_copy(card, sequence=2, status=ApprovalStatus.SUPERSEDED)

    def test_is_the_only_consumed_approval_of_its_call(self, run: Run, workshop: Workshop) -> None:
        card = workshop.card(run)
        used: dict[str, Any] = {
            "status": ApprovalStatus.CONSUMED,
            "decided_by": workshop.approver.user,
            "decided_at": card.requested_at,
            "consumed_at": card.requested_at,
        }
        assert not refuses_copy(card, sequence=2, **used)
        Approval.objects.filter(pk=card.pk).update(**used)
        card.refresh_from_db()
        assert refuses_copy(card, sequence=2)
        card.delete()

    def test_has_a_unique_sequence(self, run: Run, workshop: Workshop) -> None:
        assert refuses_copy(workshop.card(run), status=ApprovalStatus.SUPERSEDED)

    @pytest.mark.parametrize("status", ["approved", "denied", "answered", "consumed"])
    def test_that_is_decided_requires_a_person_and_a_time(
        self, run: Run, workshop: Workshop, status: str
    ) -> None:
        card = workshop.card(run)
        used = {"consumed_at": Now()} if status == "consumed" else {}
        assert refuses_change(card, status=status, **used)
        assert refuses_change(card, status=status, decided_at=Now(), **used)
        assert refuses_change(card, status=status, decided_by=workshop.approver.user, **used)

    def test_is_consumed_exactly_when_it_has_a_time_of_consumption(
        self, run: Run, workshop: Workshop
    ) -> None:
        card = workshop.card(run)
        decided = {"decided_by": workshop.approver.user, "decided_at": Now()}
        assert refuses_change(card, status="consumed", **decided)
        assert refuses_change(card, consumed_at=Now())

    def test_has_a_known_status(self, run: Run, workshop: Workshop) -> None:
        assert refuses_change(workshop.card(run), status="perhaps")


class TestSequenceNumbers:
    def test_of_events_messages_passes_and_audit_entries_are_unique(
        self, run: Run, workshop: Workshop
    ) -> None:
        workshop.deny(workshop.card(run))
        for model in (Event, Message, Pass):
            first = model._default_manager.filter(run=run).first()
            assert first is not None
            assert refuses_copy(first), model
        entry = AuditEntry.objects.filter(organization=workshop.organization).first()
        assert entry is not None
        assert refuses_copy(entry)
        assert AuditHead.objects.filter(organization=workshop.organization).count() == 1


class TestPeopleAndEmployees:
    def test_have_one_membership_each_and_a_known_role(self, workshop: Workshop) -> None:
        assert refuses_copy(workshop.approver)
        assert refuses_change(workshop.approver, role="king")

    def test_an_employee_has_at_most_one_grant_per_tool(self, workshop: Workshop) -> None:
        grant = Grant.objects.filter(employee=workshop.employee).first()
        assert grant is not None
        assert refuses_copy(grant)

    @pytest.mark.parametrize("number", [0, 101])
    def test_an_employee_has_1_to_100_passes(self, workshop: Workshop, number: int) -> None:
        assert refuses_change(workshop.employee, max_passes=number)

    def test_names_of_employees_and_providers_are_unique(self, workshop: Workshop) -> None:
        assert refuses_copy(workshop.employee)
        assert refuses_copy(workshop.employee.provider)
        assert not refuses_copy(workshop.employee, name="Another")

    def test_belong_to_an_existing_organization(self, workshop: Workshop) -> None:
        with pytest.raises(IntegrityError), transaction.atomic():
            Employee.objects.filter(pk=workshop.employee.pk).update(organization_id=999_999_999)
        with pytest.raises(IntegrityError), transaction.atomic():
            Membership.objects.create(
                organization_id=999_999_999, user=User.objects.create_user("lost")
            )


def test_every_status_of_a_call_is_either_terminal_or_open(run: Run) -> None:
    """Each status belongs to exactly one side of the constraint on the end time."""
    write = calls(run)[1]
    for status in CallStatus.values:
        more = {"exec_epoch": 1, "deadline_at": Now(), "content": "text"}
        ended = not refuses_change(write, status=status, finished_at=Now(), **more)
        opened = not refuses_change(write, status=status, finished_at=None, **more)
        assert ended != opened, status


@pytest.mark.parametrize(
    "model",
    [model for model in apps.get_models() if model.__module__.startswith(("agents.", "tools."))],
)
def test_every_constraint_and_index_of_a_model_is_in_the_database(
    model: type[models.Model],
) -> None:
    """A migration that changes a column may drop its other constraints with it."""
    named = {one.name for one in (*model._meta.indexes, *model._meta.constraints)}
    with connection.cursor() as cursor:
        existing = connection.introspection.get_constraints(cursor, model._meta.db_table)
    assert not named - set(existing)
