"""Notices are created from committed events: each notice once, and without statements in the
transactions of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.accounts.models import Membership, Organization, OrganizationEvent
from agents.accounts.notice_facts import NoticeFact, NoticeKind, tell
from agents.approvals import decisions
from agents.notices.models import Notice
from agents.readers.models import ReaderCursor
from agents.readers.reading import read_logs
from agents.runs import actions, stops
from agents.runs.engine.recovery import record_late_effect
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import Approval, ApprovalKind, ToolCall
from tests.features import feature
from tests.notices.test_facts import list_kinds
from tests.recorder import Recorder
from tests.standing_grants.granting import answered, equals, grant
from tests.workshop import Workshop, asking, call, read_everything
from tools.contract import ToolResult

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_is_given_up(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test in which a row could not be read, because skipping it would hide the reason."""
    yield
    assert not [each for each in caplog.get_records("call") if "given up" in each.getMessage()]


def list_statements_about_notices(act: Callable[[], object]) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        act()
    assert queries.captured_queries
    return [one["sql"] for one in queries if "notices_" in one["sql"]]


@feature(
    "The gate",
    "Notices are written after the commit of their fact, without a statement in the run's own transactions",
    "agents/notices/outbox.py",
)
def test_a_card_and_the_end_of_a_run_do_not_execute_statements_about_notices(
    workshop: Workshop,
) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.submit()
    assert list_statements_about_notices(lambda: workshop.drive(run)) == []
    card = workshop.card(run)
    assert list_statements_about_notices(lambda: workshop.deny(card)) == []
    assert list_statements_about_notices(lambda: workshop.drive(run)) == []
    assert list_kinds() == ["card", "run_ended"]


def test_reading_a_batch_of_events_executes_a_constant_number_of_statements(
    workshop: Workshop,
) -> None:
    counts = []
    for runs in (1, 1, 4):  # the first one creates the cursor
        for number in range(runs):
            workshop.play(asking(call("probe.effect", name=f"{runs}-{number}")))
            workshop.work()
        with CaptureQueriesContext(connection) as queries:
            read_logs()
        counts.append(len(queries))
    assert counts[1] == counts[2]
    assert Notice.objects.count() == 6


def test_a_card_approved_by_a_standing_grant_notifies_nobody(
    workshop: Workshop, recorder: Recorder
) -> None:
    grant(workshop, "probe.effect", equals("name", "a"))
    workshop.play(asking(call("probe.effect", name="a")))
    run = workshop.work()
    assert answered(run)
    assert sum(recorder.effects.values()) == 1
    assert list_kinds() == ["run_ended"]


def test_each_end_of_a_continued_run_creates_a_notice(workshop: Workshop) -> None:
    workshop.play(asking(call("utility.calculate", operation="add", a=1, b=2)))
    run = workshop.work()
    actions.continue_run(workshop.operator, run.pk)
    assert workshop.drive(run).has_ended
    assert list_kinds() == ["run_ended", "run_ended"]


def test_an_unknown_outcome_and_a_late_report_have_notices_with_their_own_cards(
    workshop: Workshop,
) -> None:
    workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    workshop.drive(run)
    unknown = ToolCall.objects.get(run=run)
    workshop.resolve(unknown, "not_done")
    with run_transaction(run.pk) as tx:
        assert unknown.exec_epoch is not None
        assert record_late_effect(
            tx, ToolCall.objects.get(run=run), unknown.exec_epoch, ToolResult.ok({}, "Done")
        )
    read_everything()
    told = (
        Notice.objects.filter(kind=NoticeKind.UNKNOWN)
        .order_by("pk")
        .values_list("approval_id", flat=True)
    )
    cards = (
        Approval.objects.filter(kind=ApprovalKind.UNKNOWN)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    assert len(cards) == 2
    assert list(told) == list(cards)


def test_a_notice_written_by_an_older_process_is_not_written_again(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    card = workshop.card(workshop.work())
    Notice.objects.create(
        organization=workshop.organization, kind="card", key=f"card:{card.pk}", approval=card
    )
    assert list_kinds() == ["card"]


class TestEventsOfOrganizations:
    def test_include_a_stop(self, workshop: Workshop) -> None:
        stops.stop_everything(workshop.operator)
        event = OrganizationEvent.objects.get()
        assert (event.organization, event.type) == (workshop.organization, "stopped")
        assert event.payload["detail"] == "everything, by acme-operator"
        assert list_kinds() == ["stopped"]

    def test_create_each_notice_once(self, workshop: Workshop) -> None:
        for key in ("1", "1", "2"):
            tell(NoticeFact(NoticeKind.QUARANTINE, workshop.organization.pk, key))
        assert list_kinds() == ["quarantine", "quarantine"]

    def test_do_not_block_others_if_an_account_is_removed(self, workshop: Workshop) -> None:
        removed = workshop.members["viewer"].user
        for user in (removed, workshop.operator.user):
            tell(
                NoticeFact(
                    NoticeKind.SCHEDULE, workshop.organization.pk, str(user.pk), user_id=user.pk
                )
            )
        Membership.objects.filter(user=removed).delete()
        removed.delete()
        read_everything()
        assert Notice.objects.get().user == workshop.operator.user

    def test_have_cursors_separate_from_the_cursors_of_run_events(self, workshop: Workshop) -> None:
        workshop.work()
        stops.stop_employee(workshop.operator, workshop.employee.pk)
        read_everything()
        names = set(ReaderCursor.objects.values_list("reader", flat=True))
        assert names == {
            "notices",
            "notices of organizations",
            "webhooks",
            "webhooks of organizations",
        }


def test_an_ordinary_undo_of_a_break_glass_approval_does_not_create_a_break_glass_notice(
    workshop: Workshop,
) -> None:
    Organization.objects.update(break_glass=True)
    workshop.play(asking(call("probe.effect", name="a")))
    card = workshop.card(workshop.work())
    decision = decisions.Decision(card.digest, reason="an emergency at night", grace_s=30)
    decisions.approve(workshop.approver, card.pk, decision)
    Approval.objects.filter(pk=card.pk).update(broke_glass=True, start_after=timezone.now())
    decisions.undo(workshop.approver, card.pk)
    assert list_kinds() == ["card", "break_glass", "card"]
