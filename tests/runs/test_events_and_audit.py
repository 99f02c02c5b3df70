"""Events are numbered without gaps in the order of their commits; the audit chain reveals every
change to it."""

from contextlib import suppress
from typing import Any

import pytest
from django.db import transaction

from agents.accounts import audit
from agents.accounts.models import AuditEntry, AuditHead
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import ToolProgress
from agents.runs.models import Event, Run
from agents.runs.models.event import brief_result
from tests.audit_chain import verify_audit, verify_audits
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    all_at_once,
    asking,
    build_workshop,
    call,
    calls,
    event_types,
    payloads,
)

pytestmark = pytest.mark.django_db(transaction=True)


def numbers(run: Run) -> list[int]:
    return list(Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))


class TestNumbersOfEvents:
    def test_have_no_gaps_despite_concurrent_writes(self, workshop: Workshop) -> None:
        run = workshop.submit()

        def publish() -> None:
            for _ in range(3):
                with run_transaction(run.pk) as tx:
                    tx.publish(ToolProgress("1", 0.5, "one"))
                    tx.publish(ToolProgress("1", 0.5, "two"))

        all_at_once([publish] * 10)
        assert numbers(run) == list(range(1, 62))
        texts = list(
            Event.objects.filter(run=run, seq__gt=1)
            .order_by("seq")
            .values_list("payload__text", flat=True)
        )
        assert texts == ["one", "two"] * 30, "events of one commit are together"

    def test_are_reused_after_a_rollback(self, workshop: Workshop) -> None:
        run = workshop.submit()
        with suppress(RuntimeError), run_transaction(run.pk) as tx:
            tx.publish(ToolProgress("1", 0.5, "lost"))
            raise RuntimeError
        with run_transaction(run.pk) as tx:
            assert tx.publish(ToolProgress("1", 0.5, "kept")) == 2
        assert numbers(run) == [1, 2]

    def test_start_at_one_in_each_run(self, workshop: Workshop) -> None:
        assert numbers(workshop.submit()) == numbers(workshop.submit()) == [1]


class TestPayloadsOfEvents:
    @pytest.fixture
    def run(self, workshop: Workshop, recorder: Recorder) -> Run:
        """A run with most types of events."""
        sleep = call("probe.sleep", ms=0)
        asked = asking(
            sleep, sleep, call("probe.nowhere"), call("probe.effect", name="a"), text="Looking."
        )
        workshop.play(asked, answer="All done.")
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        assert run.answer == "All done."
        return run

    def test_have_the_documented_fields(self, run: Run) -> None:
        promised = {
            "run_started": {"by"},
            "pass_started": {"pass_number"},
            "assistant_message": {"text", "pass_number"},
            "tool_start": {"call_id", "tool", "display_name", "level", "params", "summary", "pass_number"},
            "tool_result": {"call_id", "tool", "result", "duration_ms"},
            "tool_skipped": {"call_id", "tool", "duplicate_of"},
            "tool_rejected": {"call_id", "tool", "code", "reason"},
            "approval_requested": {
                "approval_id", "call_id", "tool", "level", "sentence", "params", "digest", "expires_at",
            },
            "approval_decided": {"approval_id", "call_id", "status", "decided_by", "reason", "next_approval_id"},
            "run_waiting": {"approval_ids"},
            "run_resumed": {"by"},
            "run_finished": {"status", "exit_reason", "answer"},
        }  # fmt: skip
        assert set(event_types(run)) == set(promised)
        for type_, keys in promised.items():
            for payload in payloads(run, type_):
                assert keys <= set(payload), type_

    def test_contain_ids_as_strings(self, run: Run) -> None:
        ids = {str(row.pk) for row in calls(run)}
        for type_ in (
            "tool_start",
            "tool_result",
            "tool_skipped",
            "tool_rejected",
            "approval_requested",
        ):
            assert {payload["call_id"] for payload in payloads(run, type_)} <= ids, type_

    def test_follow_the_order_of_their_facts(self, run: Run) -> None:
        assert event_types(run) == [
            "run_started", "pass_started", "assistant_message", "approval_requested", "tool_skipped", "tool_rejected",
            "tool_start", "tool_result", "run_waiting", "approval_decided", "run_resumed", "tool_start", "tool_result",
            "pass_started", "assistant_message", "run_finished",
        ]  # fmt: skip


class TestABriefResult:
    def result(self, data: Any, markdown: str = "") -> dict[str, Any]:
        return {
            "success": True,
            "summary": "s",
            "data": data,
            "markdown": markdown,
            "error": None,
            "metadata": {},
        }

    def test_contains_data_up_to_4_kb(self) -> None:
        assert brief_result(self.result("x" * 4000))["data"] == "x" * 4000
        assert "truncated" not in brief_result(self.result("x" * 4000))

    def test_omits_larger_data_and_says_so(self) -> None:
        brief = brief_result(self.result("x" * 5000))
        assert (brief["data"], brief["truncated"], brief["summary"]) == (None, True, "s")
        assert brief_result(self.result(None, markdown="x" * 5000))["truncated"] is True

    def test_is_limited_in_bytes_and_not_in_characters(self) -> None:
        assert brief_result(self.result("ü" * 3000))["truncated"] is True


class TestTheAuditChain:
    def fill(self, workshop: Workshop, count: int = 4) -> int:
        for number in range(count):
            with transaction.atomic():
                audit.append(
                    workshop.organization.pk,
                    [audit.NewEntry("user:me", "did", f"thing:{number}", {"n": number})],
                )
        return workshop.organization.pk

    def test_stays_valid_under_concurrent_writes(self, workshop: Workshop) -> None:
        other = build_workshop("other")
        all_at_once([lambda: self.fill(workshop, 3), lambda: self.fill(other, 3)] * 5)
        for organization in (workshop.organization, other.organization):
            entries = AuditEntry.objects.filter(organization=organization)
            assert sorted(entries.values_list("seq", flat=True)) == list(range(1, 16))
        assert verify_audits() == {"acme": [], "other": []}

    @pytest.mark.parametrize(
        "change",
        [
            {"actor": "user:you"},
            {"action": "did_not"},
            {"subject": "thing:9"},
            {"payload": {"n": 9}},
            {"at": "2020-01-01T00:00:00Z"},
            {"previous_hash": "0" * 64},
            {"hash": "0" * 64},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_reveals_a_changed_entry(self, workshop: Workshop, change: dict[str, Any]) -> None:
        pk = self.fill(workshop)
        entry = AuditEntry.objects.get(organization_id=pk, seq=2)
        AuditEntry.objects.filter(pk=entry.pk).update(**change)
        assert any("entry 2" in fault or "entry 3" in fault for fault in verify_audit(pk))
        entry.save()
        assert verify_audit(pk) == []

    def test_reveals_a_missing_entry(self, workshop: Workshop) -> None:
        pk = self.fill(workshop)
        entry = AuditEntry.objects.get(organization_id=pk, seq=3)
        AuditEntry.objects.filter(pk=entry.pk).delete()
        assert "entry 3 is missing" in verify_audit(pk)
        entry.save(force_insert=True)

    def test_reveals_a_missing_last_entry(self, workshop: Workshop) -> None:
        pk = self.fill(workshop)
        entry = AuditEntry.objects.get(organization_id=pk, seq=4)
        AuditEntry.objects.filter(pk=entry.pk).delete()
        assert verify_audit(pk) == ["the chain ends at entry 3, but its head says 4"]
        entry.save(force_insert=True)

    def test_reveals_a_missing_head(self, workshop: Workshop) -> None:
        pk = self.fill(workshop)
        head = AuditHead.objects.get(organization_id=pk)
        AuditHead.objects.filter(pk=head.pk).delete()
        assert verify_audit(pk) == ["the chain ends at entry 4, but its head says 0"]
        head.save(force_insert=True)

    def test_can_be_extended_only_in_a_transaction(self, workshop: Workshop) -> None:
        with pytest.raises(RuntimeError):
            audit.append(workshop.organization.pk, [audit.NewEntry("user:me", "did", "thing", {})])

    def test_loses_an_entry_whose_transaction_is_rolled_back(self, workshop: Workshop) -> None:
        pk = self.fill(workshop, 1)
        with suppress(RuntimeError), transaction.atomic():
            audit.append(pk, [audit.NewEntry("user:me", "did", "thing", {})])
            raise RuntimeError
        assert (AuditEntry.objects.count(), verify_audit(pk)) == (1, [])

    def test_names_the_person_who_decided_and_the_started_call(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        card = workshop.card(run)
        workshop.approve(card)
        workshop.drive(run)
        decided, started = AuditEntry.objects.order_by("seq")
        assert (decided.actor, decided.action) == ("user:acme-approver", "card_approved")
        assert (started.actor, started.action) == ("employee:Dana", "call_started")
        assert started.payload["approved_by"] == "acme-approver"
        assert started.payload["digest"] == card.digest == decided.payload["digest"]


def test_runs_of_one_organization_never_deadlock(workshop: Workshop, recorder: Recorder) -> None:
    """The lock order is the same everywhere: run, approval, call, targets, event, audit."""
    record = workshop.record()
    workshop.play(
        asking(call("probe.effect", name="a"), call("probe.rename", record_id=record.pk, to="New"))
    )
    started = [workshop.work() for _ in range(4)]
    cards = [card for run in started for card in workshop.cards(run)]
    all_at_once([lambda card=card: workshop.approve(card) for card in cards])  # type: ignore[misc]
    all_at_once([lambda run=run: workshop.drive(run) for run in started])  # type: ignore[misc]
    for run in started:
        assert again(run).status in ("succeeded", "waiting")
    assert verify_audit(workshop.organization.pk) == []
