"""After a restore, nothing starts, earlier access is revoked, and open cards show a warning."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from agents.accounts import installation
from agents.accounts.membership import issue_token
from agents.accounts.models import AuditEntry, Invitation, Membership, Organization, Role
from agents.approvals import bulk, decisions
from agents.approvals.warnings.restored import RESTORED_SINCE, find_restore_warning
from agents.deliveries.models import DeliveryStatus
from agents.employees.models import Grant
from agents.gateway.keys import authenticate_key, issue_key
from agents.notices.models import Delivery, Notice
from agents.notices.spreading import spread_notices
from agents.platform.models import Installation
from agents.restores.models import RestoredLimit
from agents.runs import schedules, stops
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, RunStatus
from agents.worker.sweeper import sweep_once
from gadget_site.backup import restored
from gadget_site.backup.archive import Manifest
from gadget_site.backup.restoring import RestoredBackup
from tests.features import feature
from tests.gadget_site.backups.confirmed import confirm_all
from tests.notices.conftest import add_address
from tests.recorder import Recorder
from tests.standing_grants.granting import equals, grant
from tests.triggers.conftest import add_trigger
from tests.workshop import Workshop, again, asking, call, make_due, read_everything, write_in_flight
from tools.contract import canonical_json

Take = Callable[[], Manifest]
PutBack = Callable[[], RestoredBackup]


def waiting(workshop: Workshop, *names: str) -> list[Approval]:
    workshop.play(asking(*(call("probe.effect", name=name) for name in names)))
    return workshop.cards(workshop.work())


def lift(workshop: Workshop) -> None:
    confirm_all(workshop.admin)
    stops.release_everything(workshop.admin)


def login(workshop: Workshop, role: Role) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=f"acme-{role}"))
    return client


class TestExternalAccess:
    @feature(
        "Agents elsewhere",
        "A restored backup ends agent keys and switches triggers off",
        "gadget_site/backup/restored.py",
    )
    def test_ends_for_agent_keys_and_triggers_after_a_restore(self, workshop: Workshop) -> None:
        _, secret = issue_key(workshop.operator, workshop.employee.pk, "Laptop", 30)
        trigger = add_trigger(workshop)
        restored.stop_everything()
        assert authenticate_key(secret) is None
        trigger.refresh_from_db()
        assert not trigger.is_active


class TestTheStopAfterARestore:
    def test_lasts_until_an_admin_lifts_it(self, workshop: Workshop, recorder: Recorder) -> None:
        (card,) = waiting(workshop, "a")
        queued = workshop.submit()
        restored.settle()
        organization = Organization.objects.get()
        assert (organization.stopped_by, organization.stopped_at is not None) == (
            "Restoring a backup",
            True,
        )
        sweep_once()
        assert workshop.drive(queued).status == RunStatus.QUEUED
        workshop.approve(card)
        assert workshop.drive(card.run).status == RunStatus.QUEUED
        assert not recorder.effects
        lift(workshop)
        sweep_once()
        assert workshop.drive(card.run).status == RunStatus.SUCCEEDED
        assert sum(recorder.effects.values()) == 1

    def test_is_recorded_in_the_audit_with_the_time_of_the_backup(self, workshop: Workshop) -> None:
        restored.settle("2026-01-01T00:00:00+00:00")
        entry = AuditEntry.objects.get()
        assert (entry.actor, entry.action) == ("gadget", "backup_restored")
        assert entry.payload == {"backup_made_at": "2026-01-01T00:00:00+00:00"}

    def test_keeps_the_name_of_the_person_who_had_already_stopped_everything(
        self, workshop: Workshop
    ) -> None:
        stops.stop_everything(workshop.operator)
        restored.settle()
        assert Organization.objects.get().stopped_by == "acme-operator"

    def test_makes_approved_calls_wait_again_even_if_settling_the_restore_was_interrupted(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        (card,) = waiting(workshop, "a")
        workshop.approve(card)
        restored.stop_everything()
        lift(workshop)
        make_due(card.run)
        sweep_once()
        assert workshop.drive(card.run).status == RunStatus.WAITING
        assert not recorder.effects
        (asked_again,) = workshop.cards(card.run)
        assert asked_again.pk != card.pk
        assert find_restore_warning(asked_again)


class TestAnInterruptedRestore:
    def test_prevents_every_process_from_starting_until_the_restore_is_settled(
        self, workshop: Workshop
    ) -> None:
        installation.confirm()
        restored.stop_everything()
        with pytest.raises(installation.WrongInstallationError, match="A restore was not finished"):
            installation.confirm()
        with pytest.raises(CommandError, match="A restore was not finished"):
            call_command("adopt_folder")
        restored.settle()
        installation.confirm()

    def test_keeps_the_folder_id_in_the_database_if_settled_by_hand(
        self, workshop: Workshop
    ) -> None:
        installation.confirm()
        Installation.objects.update(folder_mark="another")
        restored.settle()
        assert Installation.objects.get().folder_mark == "another"

    def test_keeps_the_notices_to_owners_when_settled_again(self, workshop: Workshop) -> None:
        installation.confirm()
        schedules.create(workshop.operator, workshop.employee.pk, "Look", ("0 9 * * *", "UTC"))
        grant(workshop, "probe.effect", equals("name", "a"))
        waiting(workshop, "b")
        restored.stop_everything()
        # Simulate a first attempt that was interrupted after pausing the schedules.
        schedules.pause_after_restore("A backup was restored.")
        restored.settle()
        read_everything()
        told = Notice.objects.order_by("kind").values_list("kind", "user__username")
        assert list(told) == [("grant_ended", "acme-approver"), ("schedule", "acme-operator")]

    def test_that_failed_while_writing_the_limits_to_confirm_writes_them_when_it_is_repeated(
        self, workshop: Workshop
    ) -> None:
        def fail_at_limits(execute: Any, sql: str, *arguments: Any) -> Any:
            if sql.startswith("INSERT") and RestoredLimit._meta.db_table in sql:
                raise OperationalError("the database has gone away")
            return execute(sql, *arguments)

        installation.confirm()
        with connection.execute_wrapper(fail_at_limits), pytest.raises(OperationalError):
            restored.settle()
        assert not RestoredLimit.objects.exists()
        restored.settle()
        assert RestoredLimit.objects.filter(row_id=workshop.employee.pk, kind="employee").exists()


class TestEarlierAccess:
    def test_ends_for_sessions_tokens_and_invitations_after_a_restore(
        self, workshop: Workshop
    ) -> None:
        client = login(workshop, Role.ADMIN)
        _, secret = issue_token(workshop.admin, "old")
        Invitation.objects.create(
            organization=workshop.organization,
            role=Role.VIEWER,
            hash="h",
            made_by=workshop.admin.user,
            expires_at=Now() + timedelta(days=1),
        )
        bearer = {"Authorization": f"Bearer {secret}"}
        assert client.get("/api/approvals").status_code == 200
        assert Client().get("/api/approvals", headers=bearer).status_code == 200
        restored.settle()
        assert client.get("/api/approvals").status_code == 401
        assert Client().get("/api/approvals", headers=bearer).status_code == 401
        assert Invitation.objects.get().revoked_at is not None


class TestTheWarningAfterARestore:
    def shown(self, workshop: Workshop, card: Approval) -> list[bool]:
        """Return four values, each True if the warning is shown: on the card's page, in the inbox,
        on the run's page and over REST."""
        client = login(workshop, Role.APPROVER)
        pages = [f"/approvals/{card.pk}/", "/approvals/", f"/runs/{card.run_id}/"]
        on_pages = [
            RESTORED_SINCE in client.get(page, follow=True).content.decode() for page in pages
        ]
        return [
            *on_pages,
            client.get(f"/api/approvals/{card.pk}").json()["warning"] == RESTORED_SINCE,
        ]

    def test_is_shown_wherever_the_card_is_shown_until_its_decision(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        card, other = waiting(workshop, "a", "b")
        assert self.shown(workshop, card) == [False] * 4
        before = canonical_json([card.digest, other.digest])
        restored.settle()
        assert self.shown(workshop, card) == [True] * 4
        card, other = workshop.cards(card.run)
        assert canonical_json([card.digest, other.digest]) == before, (
            "what was shown is what is decided"
        )
        workshop.approve(card)
        workshop.deny(other)
        assert self.shown(workshop, card) == [False] * 4

    def test_is_shown_on_questions_and_unknown_outcomes(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        Grant.objects.create(employee=workshop.employee, tool="employee.askHuman")
        workshop.play(asking(call("employee.askHuman", question="Which one?")))
        (question,) = workshop.cards(workshop.work())
        with write_in_flight(workshop, recorder) as run:
            restored.settle()
            (unknown,) = workshop.cards(run)
            assert (question.kind, unknown.kind) == (ApprovalKind.QUESTION, ApprovalKind.UNKNOWN)
            for card in (question, unknown):
                assert self.shown(workshop, card) == [True] * 4, card.kind
            recorder.release("a")

    def test_stays_on_an_edited_card(self, workshop: Workshop) -> None:
        (card,) = waiting(workshop, "a")
        restored.settle()
        (card,) = workshop.cards(card.run)
        assert find_restore_warning(workshop.edit(card, {"name": "b"}))

    def test_is_absent_from_cards_created_later(self, workshop: Workshop) -> None:
        restored.settle()
        lift(workshop)
        (card,) = waiting(workshop, "a")
        assert not find_restore_warning(card)

    def test_prevents_a_bulk_approval_but_not_a_bulk_denial(self, workshop: Workshop) -> None:
        cards = waiting(workshop, "a", "b")
        restored.settle()
        approver = Membership.objects.get(pk=workshop.approver.pk)
        items = [(card.pk, "approve", decisions.Decision(card.digest)) for card in cards[:1]]
        items += [(card.pk, "deny", decisions.Decision(card.digest)) for card in cards[1:]]
        assert [outcome.status for outcome in bulk.decide_many(approver, items)] == [422, 200]


def test_a_write_that_is_executing_during_the_backup_is_never_started_again(
    workshop: Workshop, recorder: Recorder, take: Take
) -> None:
    with write_in_flight(workshop, recorder) as run:
        take()
        restored.settle()
        recorder.release("a")
    lift(workshop)
    sweep_once()
    workshop.drive(run)
    assert recorder.effects.total() == 1


def test_the_command_after_restore_stops_everything_and_leaves_cards_pending(
    workshop: Workshop,
) -> None:
    (card,) = waiting(workshop, "a")
    told = StringIO()
    call_command("after_restore", stdout=told)
    assert "EVERYTHING IS STOPPED" in told.getvalue().splitlines()[-1]
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
    assert again(card.run).stopped_because == "Restoring a backup stopped everything."


def test_notices_of_earlier_events_are_not_sent(workshop: Workshop) -> None:
    waiting(workshop, "a")
    restored.settle()
    read_everything()
    assert not Notice.objects.exists()
    lift(workshop)
    waiting(workshop, "b")
    read_everything()
    assert Notice.objects.filter(kind="card").count() == 1, "people are notified of later events"


@feature("The gate", "A restore drops unsent notices", "agents/notices/deliveries.py")
def test_a_restore_drops_unsent_notices(workshop: Workshop) -> None:
    first, second = waiting(workshop, "a", "b")
    channel = add_address(workshop.approver)
    read_everything()
    told = Notice.objects.get(approval=first)
    Notice.objects.filter(pk=told.pk).update(spread_at=Now())
    Delivery.objects.create(notice=told, channel=channel, due_at=timezone.now())
    restored.settle()
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.problem) == (DeliveryStatus.DROPPED, "a backup was restored")
    read_everything()
    assert spread_notices() == 0, f"card {second.pk} had a notice before or after the backup"
