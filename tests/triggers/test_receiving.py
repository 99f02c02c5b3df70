"""Messages to a trigger: each starts one run, or is refused, filtered out or answered."""

from __future__ import annotations

import hmac
import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from agents.accounts.models import Membership, OrganizationEvent, Role
from agents.employees.models import Employee
from agents.platform.refusals import Conflict, Invalid, NotFound, TooManyRequests
from agents.runs.models import ExitReason, Message, Origin, Run, RunStatus
from agents.runs.stops import release_everything, stop_everything
from agents.triggers import changes, receiving
from agents.triggers.models import ReceivedMessage, ReceivedStatus, Scheme, Trigger
from agents.triggers.receiving import (
    LARGEST_PAYLOAD,
    MAX_NOTED_REFUSALS,
    TOLD_EVERY,
    TooLarge,
    Unproved,
    receive,
    start_again,
)
from tests.features import feature
from tests.triggers.conftest import DOWN, SECRET, add_trigger, send, sign
from tests.workshop import Workshop
from tools.caches import clear_caches
from tools.contract.canonical import MAX_DEPTH
from tools.toolbox.objections import Objection

MOST_STATEMENTS = 13
"""The maximum number of SQL statements for one message: eight to find the trigger, its member,
identical messages and runs, and to check the employee; five to write the run."""


def last_received() -> ReceivedMessage:
    return ReceivedMessage.objects.latest("pk")


class TestStartingRuns:
    @feature(
        "Agents elsewhere",
        "A message of another system starts a run of an employee",
        "agents/triggers/receiving.py",
    )
    def test_works_on_behalf_of_the_person_behind_the_trigger(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        run = send(trigger, DOWN, "d1")
        assert run is not None
        assert (run.origin, run.task, run.created_by) == (
            Origin.TRIGGER,
            "Triage Shop is down.",
            workshop.operator.user,
        )
        message = last_received()
        assert (message.status, message.run, json.loads(message.payload)) == (
            ReceivedStatus.STARTED,
            run,
            DOWN,
        )

    def test_gives_the_employee_the_message_as_data_below_the_task(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        workshop.play({"calls": []}, answer="Seen.")
        run = send(trigger, DOWN)
        assert run is not None
        text = Message.objects.get(run=run).text
        assert text.startswith("Triage Shop is down.\n\nThe message that started this run follows.")
        assert '"action": "opened"' in text
        assert workshop.drive(run).exit_reason == ExitReason.FINAL_ANSWER

    def test_gives_each_run_its_own_message(self, trigger: Trigger) -> None:
        payloads = ({"title": "One"}, {"title": "Two"})
        runs = [run for payload in payloads if (run := send(trigger, payload))]
        assert [receiving.find_received_message(run) for run in runs] == list(payloads)

    def test_needs_a_limited_number_of_sql_statements(self, trigger: Trigger) -> None:
        send(trigger, DOWN, "d1")
        with CaptureQueriesContext(connection) as caught:
            send(trigger, DOWN, "d2")
        verbs = [each["sql"].split()[0] for each in caught.captured_queries]
        assert (
            len([verb for verb in verbs if verb in {"SELECT", "INSERT", "UPDATE"}])
            <= MOST_STATEMENTS
        )

    def test_does_not_record_an_author_of_the_message(self, trigger: Trigger) -> None:
        run = send(trigger, DOWN)
        assert Message.objects.get(run=run).author is None

    def test_is_refused_once_the_budget_is_used_up(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        Employee.objects.filter(pk=workshop.employee.pk).update(month_minutes=0)
        with pytest.raises(Conflict) as refused:
            send(trigger, DOWN)
        assert refused.value.code == "budget_exhausted"
        assert (last_received().status, last_received().reason) == (
            ReceivedStatus.REFUSED,
            refused.value.detail,
        )
        assert not Run.objects.exists()

    def test_is_refused_for_an_inactive_employee(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        Employee.objects.filter(pk=workshop.employee.pk).update(is_active=False)
        with pytest.raises(Conflict, match="Dana is not active"):
            send(trigger, DOWN)
        assert (last_received().status, Run.objects.count()) == (ReceivedStatus.REFUSED, 0)

    def test_is_refused_during_a_stop_until_it_is_lifted(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        stop_everything(workshop.approver)
        with pytest.raises(Conflict):
            send(trigger, DOWN)
        assert (last_received().status, Run.objects.count()) == (ReceivedStatus.REFUSED, 0)
        assert "stopped" in last_received().reason
        release_everything(workshop.admin)
        assert start_again(workshop.operator, last_received().pk).origin == Origin.TRIGGER

    @pytest.mark.parametrize("change", ["left", "lower role", "account off"])
    def test_is_refused_if_the_person_can_no_longer_start_runs(
        self, workshop: Workshop, trigger: Trigger, change: str
    ) -> None:
        rows = Membership.objects.filter(pk=workshop.operator.pk)
        if change == "left":
            rows.delete()
        elif change == "lower role":
            rows.update(role=Role.VIEWER)
        else:
            workshop.operator.user.is_active = False
            workshop.operator.user.save()
        with pytest.raises(Conflict, match="can no longer start runs"):
            send(trigger, DOWN)
        assert not Run.objects.exists()

    def test_is_refused_if_the_employee_was_deleted(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        Employee.objects.all().delete()
        with pytest.raises(Conflict, match="was deleted"):
            send(trigger, DOWN)

    def test_is_refused_as_not_found_for_an_inactive_or_removed_trigger(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        changes.switch_trigger(workshop.operator, trigger.pk, is_active=False)
        with pytest.raises(NotFound):
            send(trigger, DOWN)
        changes.switch_trigger(workshop.operator, trigger.pk, is_active=True)
        assert send(trigger, DOWN) is not None
        changes.remove_trigger(workshop.operator, trigger.pk)
        with pytest.raises(NotFound):
            send(trigger, DOWN)
        assert Run.objects.count() == 1

    def test_is_refused_if_too_many_runs_are_waiting(self, workshop: Workshop) -> None:
        trigger = add_trigger(workshop, max_queued=2)
        runs = [run for number in range(2) if (run := send(trigger, DOWN, str(number)))]
        with pytest.raises(
            TooManyRequests, match="2 runs of this trigger are already waiting"
        ) as refused:
            send(trigger, DOWN, "3")
        assert refused.value.extra["retry_after"] > 0
        assert send(trigger, DOWN, "1") == runs[1], "a repeat returns its run despite the limit"
        assert send(add_trigger(workshop, max_queued=1), DOWN, "3") is not None, (
            "runs of other triggers do not count"
        )
        assert workshop.drive(runs[0]).status != RunStatus.QUEUED
        assert send(trigger, DOWN, "3") is not None

    def test_is_refused_after_too_many_messages_in_a_minute(
        self, trigger: Trigger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(receiving, "MAX_PER_MINUTE", 2)
        for delivery in "12":
            send(trigger, DOWN, delivery)
        with pytest.raises(TooManyRequests, match="in the last minute"):
            send(trigger, DOWN, "3")

    def test_is_possible_despite_many_unproved_messages(
        self, trigger: Trigger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(receiving, "MAX_PER_MINUTE", 1)
        for _ in range(3):
            with pytest.raises(Unproved):
                receive(trigger.public_id, {}, b"{}")
        assert send(trigger, DOWN) is not None


def sign_as_slack(body: bytes) -> dict[str, str]:
    """Return the headers that Slack would send with this body now."""
    at = str(int(time.time()))
    digest = hmac.digest(SECRET.encode(), f"v0:{at}:".encode() + body, "sha256").hex()
    return {"x-slack-request-timestamp": at, "x-slack-signature": f"v0={digest}"}


class TestStoringRefusals:
    @feature(
        "Agents elsewhere",
        "Refusals of proved messages are kept, whatever strangers send",
        "agents/triggers/receiving.py",
    )
    def test_keeps_all_proved_messages_regardless_of_what_strangers_send(
        self, workshop: Workshop, trigger: Trigger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(receiving, "KEPT", MAX_NOTED_REFUSALS + 5)
        stop_everything(workshop.approver)
        for number in range(MAX_NOTED_REFUSALS + 5):
            with pytest.raises(Conflict):
                send(trigger, DOWN, str(number))
        for _ in range(3):
            clear_caches()
            for _ in range(MAX_NOTED_REFUSALS):
                with pytest.raises(Unproved):
                    receive(trigger.public_id, {}, b"{}")
        with pytest.raises(Conflict):
            send(trigger, DOWN, "after the strangers")
        kept = ReceivedMessage.objects.filter(trigger=trigger)
        assert kept.exclude(payload="").count() == MAX_NOTED_REFUSALS + 5
        assert kept.filter(payload="").count() == MAX_NOTED_REFUSALS + 5

    def test_limits_unproved_messages_per_minute(self, trigger: Trigger) -> None:
        for _ in range(MAX_NOTED_REFUSALS + 3):
            with pytest.raises(Unproved):
                receive(trigger.public_id, {}, b"{}")
        assert ReceivedMessage.objects.count() == MAX_NOTED_REFUSALS


@pytest.mark.parametrize(
    ("rule", "value", "found", "passes"),
    [
        ("equals", "false", False, True),
        ("equals", "false", True, False),
        ("equals", "12", 12, True),
        ("equals", "12", "12", True),
        ("one_of", ["1", "2"], 2, True),
        ("one_of", ["1", "2"], True, False),
        ("equals", "[1]", [1], False),
        ("pattern", "12", 12, False),
    ],
)
def test_a_filter_matches_the_decoded_text(
    workshop: Workshop, rule: str, value: Any, found: Any, passes: bool
) -> None:
    trigger = add_trigger(workshop, filters=[{"param": "x", "rule": rule, "value": value}])
    assert (send(trigger, {"x": found}) is not None) is passes


def test_a_message_with_too_many_levels_is_refused(trigger: Trigger) -> None:
    deep: Any = []
    for _ in range(MAX_DEPTH - 2):
        deep = [deep]
    assert send(trigger, {"x": deep}) is not None
    assert send(trigger, {"x": [{}] * (2 * MAX_DEPTH)}) is not None, "adjacent values add no levels"
    with pytest.raises(Invalid, match="levels"):
        send(trigger, {"x": [[deep]]})


@pytest.mark.parametrize("scheme", Scheme.values)
def test_an_undecryptable_secret_accepts_no_message(workshop: Workshop, scheme: str) -> None:
    trigger = add_trigger(workshop, scheme=scheme, secret="", header="X-Signature")
    Trigger.objects.update(secret="")
    body = b"{}"
    signature = f"sha256={hmac.digest(b'', body, 'sha256').hex()}"
    headers = {
        "x-hub-signature-256": signature,
        "x-signature": signature,
        "authorization": "Bearer ",
    }
    with pytest.raises(Unproved, match="cannot be read"):
        receive(trigger.public_id, headers, body)
    assert not Run.objects.exists()


class TestRefusedMessages:
    def test_without_a_valid_proof_do_not_start_a_run_and_are_stored_without_payload(
        self, trigger: Trigger
    ) -> None:
        body = json.dumps(DOWN).encode()
        with pytest.raises(Unproved):
            receive(trigger.public_id, sign(body, secret="another secret of theirs"), body)
        assert (last_received().status, last_received().payload, Run.objects.count()) == (
            ReceivedStatus.REFUSED,
            "",
            0,
        )

    @pytest.mark.parametrize("is_refused", [True, False])
    def test_include_a_message_with_an_objection_that_has_no_reason(
        self, trigger: Trigger, monkeypatch: pytest.MonkeyPatch, is_refused: bool
    ) -> None:
        found = Objection("") if is_refused else None
        monkeypatch.setattr(receiving, "find_objection", lambda *_: found)
        if is_refused:
            with pytest.raises(Unproved):
                receive(trigger.public_id, {}, b"{}")
        else:
            receive(trigger.public_id, {}, b"{}")
        assert Run.objects.exists() is not is_refused

    def test_do_not_fill_the_table_in_a_flood(self, trigger: Trigger) -> None:
        for _ in range(MAX_NOTED_REFUSALS + 30):
            with pytest.raises(Unproved):
                receive(trigger.public_id, {}, b"{}")
        assert ReceivedMessage.objects.count() <= MAX_NOTED_REFUSALS * 2

    def test_are_logged_as_organization_events_at_most_once_an_hour(self, trigger: Trigger) -> None:
        def refuse() -> int:
            for _ in range(5):
                with pytest.raises(Unproved):
                    receive(trigger.public_id, {}, b"{}")
            return OrganizationEvent.objects.count()

        assert [refuse(), refuse()] == [1, 1]
        Trigger.objects.update(refusal_told_at=Now() - TOLD_EVERY + timedelta(minutes=1))
        assert refuse() == 1
        Trigger.objects.update(refusal_told_at=Now() - TOLD_EVERY)
        assert refuse() == 2
        told = OrganizationEvent.objects.latest("pk")
        assert (told.type, told.payload["user_id"]) == ("trigger_refused", trigger.created_by_id)
        assert told.payload["reason"] == last_received().reason
        assert told.payload["ids"] == {"trigger_id": str(trigger.pk)}

    def test_are_not_stored_if_their_organization_event_cannot_be_stored(
        self, trigger: Trigger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(receiving, "tell", fail)
        with pytest.raises(ZeroDivisionError):
            receive(trigger.public_id, {}, b"{}")
        trigger.refresh_from_db()
        assert (ReceivedMessage.objects.count(), trigger.refusal_told_at) == (0, None)

    def test_that_are_filtered_out_are_deleted_except_the_newest(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(receiving, "KEPT", 3)
        trigger = add_trigger(
            workshop, filters=[{"param": "action", "rule": "equals", "value": "opened"}]
        )
        started = send(trigger, DOWN)
        other = add_trigger(
            workshop,
            name="Other",
            filters=[{"param": "action", "rule": "equals", "value": "opened"}],
        )
        send(other, {"action": "closed"})
        for number in range(6):
            send(trigger, {"action": f"closed {number}"})
        assert ReceivedMessage.objects.filter(trigger=other).count() == 1
        kept = ReceivedMessage.objects.filter(trigger=trigger).exclude(
            status=ReceivedStatus.STARTED
        )
        assert kept.count() == 3
        assert [json.loads(one.payload)["action"] for one in kept] == [
            "closed 5",
            "closed 4",
            "closed 3",
        ]
        assert ReceivedMessage.objects.filter(run=started).exists()

    def test_include_a_message_that_is_too_large(self, trigger: Trigger) -> None:
        body = json.dumps({"text": "x" * LARGEST_PAYLOAD}).encode()
        with pytest.raises(TooLarge):
            receive(trigger.public_id, sign(body), body)
        assert "at most 262,144 bytes" in last_received().reason
        fitting = json.dumps({"text": "x" * (LARGEST_PAYLOAD - 12)}).encode()
        assert len(fitting) == LARGEST_PAYLOAD
        assert receive(trigger.public_id, sign(fitting), fitting).run is not None

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"nothing",
            b"1",
            b'"text"',
            b"null",
            b"\xff\xfe",
            b"{" * 50_000,
            b"[" * 100_000,
            b'{"a": NaN}',
        ],
    )
    def test_include_a_message_that_is_neither_an_object_nor_a_list(
        self, trigger: Trigger, body: bytes
    ) -> None:
        with pytest.raises(Invalid):
            receive(trigger.public_id, sign(body), body)
        assert not Run.objects.exists()

    @pytest.mark.parametrize("text", ["a\x00b", "\ud800", "\u202e", "\U0001d54f", "1e999999"])
    def test_do_not_cause_an_error_if_they_contain_unstorable_characters(
        self, trigger: Trigger, text: str
    ) -> None:
        body = json.dumps({"title": text}).encode()
        try:
            run = receive(trigger.public_id, sign(body), body).run
        except Invalid:
            assert not Run.objects.exists()
        else:
            assert run is not None
            assert json.loads(last_received().payload)["title"]

    def test_include_a_message_to_an_unknown_address(self, trigger: Trigger) -> None:
        with pytest.raises(NotFound):
            receive(trigger.public_id + "x", sign(b"{}"), b"{}")


class TestFilters:
    @feature("Agents elsewhere", "Filters on a message", "agents/triggers/changes.py")
    @pytest.mark.parametrize(
        ("filters", "starts"),
        [
            ([("action", "equals", "opened")], True),
            ([("action", "equals", "closed")], False),
            ([("action", "one_of", ["opened", "edited"]), ("title", "prefix", "Shop")], True),
            ([("action", "equals", "opened"), ("title", "prefix", "Bar")], False),
            ([("title", "pattern", ".*down")], True),
            ([("issue.number", "minimum", 5)], False),
            ([("missing", "equals", "x")], False),
        ],
    )
    def test_must_all_match(self, workshop: Workshop, filters: list[Any], starts: bool) -> None:
        rows = [{"param": param, "rule": rule, "value": value} for param, rule, value in filters]
        trigger = add_trigger(workshop, filters=rows)
        run = send(trigger, {**DOWN, "issue": {"number": 4}})
        assert (run is not None) == starts
        assert last_received().status == (
            ReceivedStatus.STARTED if starts else ReceivedStatus.FILTERED
        )
        assert bool(last_received().reason) != starts

    def test_do_not_apply_to_a_repeat_of_a_started_message(self, workshop: Workshop) -> None:
        trigger = add_trigger(workshop)
        run = send(trigger, DOWN, "d1")
        Trigger.objects.update(
            filters=[{"param": "action", "rule": "equals", "value": "x", "otherwise": "forbid"}]
        )
        assert send(trigger, DOWN, "d1") == run
        assert send(trigger, DOWN, "d2") is None

    def test_invalid_filters_are_not_saved(self, workshop: Workshop) -> None:
        for row in (
            {"param": "a", "rule": "no such rule", "value": 1},
            {"rule": "equals"},
            {"param": "a"},
        ):
            with pytest.raises(Invalid):
                add_trigger(workshop, filters=[row])


class TestAConnectionTest:
    def test_from_slack_is_answered_without_a_run(self, workshop: Workshop) -> None:
        trigger = add_trigger(workshop, scheme="slack")
        body = json.dumps({"type": "url_verification", "challenge": "c-1"}).encode()
        taken = receive(trigger.public_id, sign_as_slack(body), body)
        assert (taken.response, taken.run) == ({"challenge": "c-1"}, None)
        assert last_received().status == ReceivedStatus.ANSWERED

    def test_an_event_from_slack_starts_one_run(self, workshop: Workshop) -> None:
        trigger = add_trigger(workshop, scheme="slack")
        event = {
            "type": "event_callback",
            "event_id": "Ev1",
            "event": {"type": "app_mention", "text": "help"},
        }
        body = json.dumps(event).encode()
        first, second = (
            receive(trigger.public_id, sign_as_slack(body), body).run for _ in range(2)
        )
        assert first == second
        assert Run.objects.get() == first

    def test_from_github_is_answered_without_a_run(self, trigger: Trigger) -> None:
        body = b'{"zen": "Design for failure."}'
        taken = receive(trigger.public_id, {**sign(body), "x-github-event": "ping"}, body)
        assert (taken.response, taken.run) == ({"status": "pong"}, None)

    def test_starts_a_run_if_it_has_the_format_of_another_service(
        self, workshop: Workshop, trigger: Trigger
    ) -> None:
        assert send(trigger, {"type": "url_verification", "challenge": "c-1"}) is not None
        slack = add_trigger(workshop, scheme="slack")
        for body, more in ((b"[]", {}), (b"{}", {"x-github-event": "ping"})):
            assert receive(slack.public_id, {**sign_as_slack(body), **more}, body).run is not None

    def test_without_a_signature_is_refused(self, trigger: Trigger) -> None:
        with pytest.raises(Unproved):
            receive(trigger.public_id, {"x-github-event": "ping"}, b"{}")
