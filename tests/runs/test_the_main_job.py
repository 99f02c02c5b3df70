"""From task to answer: reads do not need approval, writes wait for a person, and exactly the
approved change happens."""

import pytest

from agents.runs.models import CallStatus, ExitReason, RunStatus
from tests.workshop import Workshop, calls, data_of, event_types, statuses

pytestmark = pytest.mark.django_db(transaction=True)


class TestARun:
    def test_without_calls_ends_with_the_answer(self, workshop: Workshop) -> None:
        workshop.play(answer="Forty-two.")
        run = workshop.work()
        assert (run.status, run.exit_reason, run.answer) == (
            RunStatus.SUCCEEDED,
            ExitReason.FINAL_ANSWER,
            "Forty-two.",
        )
        assert event_types(run) == [
            "run_started",
            "pass_started",
            "assistant_message",
            "run_finished",
        ]

    def test_reads_without_approval_and_publishes_each_step_in_order(
        self, workshop: Workshop
    ) -> None:
        workshop.record()
        workshop.play(
            {
                "text": "Looking.",
                "calls": [{"tool": "data.searchRecords", "params": {"region": "EU"}}],
            }
        )
        run = workshop.work()
        assert run.status == RunStatus.SUCCEEDED, run.problem
        assert event_types(run) == [
            "run_started",
            "pass_started",
            "assistant_message",
            "tool_start",
            "tool_result",
            "pass_started",
            "assistant_message",
            "run_finished",
        ]
        (call,) = calls(run)
        assert call.status == CallStatus.SUCCEEDED
        assert data_of(call)["total"] == 1

    def test_changes_only_what_was_approved(self, workshop: Workshop) -> None:
        first, second = workshop.record(name="First"), workshop.record(name="Second")
        workshop.play(
            {
                "calls": [
                    {"tool": "probe.rename", "params": {"record_id": first.pk, "to": "One"}},
                    {"tool": "probe.rename", "params": {"record_id": second.pk, "to": "Two"}},
                ]
            }
        )
        run = workshop.work()
        assert run.status == RunStatus.WAITING
        assert run.lease_owner == ""
        one, two = workshop.cards(run)
        workshop.approve(one)
        workshop.deny(two, "Second keeps its name")
        run = workshop.drive(run)
        assert run.status == RunStatus.SUCCEEDED, run.problem
        assert statuses(run) == [CallStatus.SUCCEEDED, CallStatus.DENIED]
        first.refresh_from_db()
        second.refresh_from_db()
        assert (first.name, second.name) == ("One", "Second")
        assert "Second keeps its name" in calls(run)[1].content
