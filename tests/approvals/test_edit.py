"""Editing a card does not approve its call: it creates a new card, because nobody has seen the new
effect yet."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pydantic import BaseModel

from agents.accounts.models import AuditEntry, Membership
from agents.approvals import decisions
from agents.employees.models import Grant
from agents.platform.refusals import AlreadyDecided, Conflict, Expired, Invalid, StaleDigest
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Event, RunStatus
from agents.web.panel.lines import render_lines
from tests.model_server import Call, ModelServer, Response
from tests.probes import reach, record_of
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    asking,
    beside,
    call,
    calls,
    expire_card,
    payloads,
    statuses,
)
from tools.contract import Level, Preview, Target, Tool, ToolContext, ToolResult
from tools.office.records.models import Record
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def card(workshop: Workshop, record: Record) -> Approval:
    """A card for renaming the record to "One"."""
    workshop.play(asking(call("probe.rename", record_id=record.pk, to="One")))
    return workshop.card(workshop.work())


class TestAnEditedCard:
    def test_replaces_the_old_card_with_a_new_digest(
        self, workshop: Workshop, card: Approval, record: Record
    ) -> None:
        new_card = workshop.edit(card, {"record_id": record.pk, "to": "Two"})
        card.refresh_from_db()
        assert card.status == ApprovalStatus.SUPERSEDED
        assert (new_card.status, new_card.sequence) == (ApprovalStatus.PENDING, 2)
        assert new_card.digest != card.digest
        assert new_card.preview["targets"][0]["after"] == {"name": "Two"}
        assert new_card.why == "acme-approver edited the request.\nThis changes data."

    def test_explains_the_verdict_on_the_new_params(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.visit", host="one.example")))
        new_card = workshop.edit(workshop.card(workshop.work()), {"host": "two.example"})
        assert "one.example" not in new_card.why
        assert "Contacts two.example, not on the list of allowed hosts." in new_card.why
        assert (
            calls(new_card.run)[0].why == "contacts two.example, not on the list of allowed hosts"
        )

    def test_shows_a_long_explanation_in_full(self, workshop: Workshop) -> None:
        first, second = (
            f"{letter * 60}.{letter * 60}.{letter * 60}.{letter * 60}.{letter * 60}.example"
            for letter in "ab"
        )
        workshop.play(asking(call("probe.visit", host=first)))
        card = workshop.card(workshop.work())
        assert f"{first}, not on the list" in card.why
        assert f"{second}, not on the list" in workshop.edit(card, {"host": second}).why

    def test_does_not_start_its_call_until_it_is_approved(
        self, workshop: Workshop, card: Approval, record: Record
    ) -> None:
        new_card = workshop.edit(card, {"record_id": record.pk, "to": "Two"})
        assert again(card.run).status == RunStatus.WAITING
        assert statuses(card.run) == [CallStatus.AWAITING_APPROVAL]
        workshop.approve(new_card)
        assert workshop.drive(card.run).status == RunStatus.SUCCEEDED
        record.refresh_from_db()
        assert record.name == "Two"

    def test_is_published_and_audited(
        self, workshop: Workshop, card: Approval, record: Record
    ) -> None:
        new_card = workshop.edit(card, {"record_id": record.pk, "to": "Two"})
        (replaced,) = payloads(card.run, "approval_decided")
        assert (replaced["status"], replaced["next_approval_id"]) == (
            "superseded",
            str(new_card.pk),
        )
        requested = payloads(card.run, "approval_requested")
        assert [line["approval_id"] for line in requested] == [str(card.pk), str(new_card.pk)]
        assert requested[1]["params"]["to"] == "Two"
        assert AuditEntry.objects.get(action="card_edited").payload["params"]["to"] == "Two"

    def test_refuses_the_digest_of_the_old_card(
        self, workshop: Workshop, card: Approval, record: Record
    ) -> None:
        new_card = workshop.edit(card, {"record_id": record.pk, "to": "Two"})
        with pytest.raises(StaleDigest):
            workshop.approve(new_card, digest=card.digest)
        with pytest.raises(AlreadyDecided):
            workshop.approve(card)

    def test_is_created_once_if_the_edit_is_sent_again(
        self, workshop: Workshop, card: Approval, record: Record
    ) -> None:
        decision = decisions.Decision(digest=card.digest, decision_id="once")
        params = {"record_id": record.pk, "to": "Two"}
        new_card = decisions.edit(workshop.approver, card.pk, decision, params)
        assert decisions.edit(workshop.approver, card.pk, decision, params) == new_card
        with pytest.raises(AlreadyDecided) as refused:
            decisions.edit(workshop.admin, card.pk, decision, params)
        assert refused.value.extra["decided_by"] == "acme-approver"
        assert workshop.cards(card.run) == [new_card]

    def test_is_returned_for_the_same_edit_even_after_the_call_ran(
        self, workshop: Workshop, card: Approval, record: Record
    ) -> None:
        decision = decisions.Decision(digest=card.digest, decision_id="once")
        params = {"record_id": record.pk, "to": "Two"}
        new_card = decisions.edit(workshop.approver, card.pk, decision, params)
        workshop.approve(new_card)
        assert workshop.drive(card.run).status == RunStatus.SUCCEEDED
        workshop.employee.grants.all().delete()
        assert decisions.edit(workshop.approver, card.pk, decision, params).pk == new_card.pk

    def test_prevents_undoing_the_old_card(
        self, workshop: Workshop, card: Approval, record: Record
    ) -> None:
        workshop.edit(card, {"record_id": record.pk, "to": "Two"})
        with pytest.raises(Conflict):
            workshop.undo(card)

    def test_can_be_edited_again_and_denied(
        self, workshop: Workshop, card: Approval, record: Record
    ) -> None:
        second = workshop.edit(card, {"record_id": record.pk, "to": "Two"})
        third = workshop.edit(second, {"record_id": record.pk, "to": "Three"})
        assert third.sequence == 3
        workshop.deny(third, "no")
        assert workshop.drive(card.run).status == RunStatus.SUCCEEDED
        record.refresh_from_db()
        assert record.name == "Acme"

    def test_is_never_shown_with_the_old_params(
        self, workshop: Workshop, card: Approval, record: Record
    ) -> None:
        """A person edits the card after the panel has loaded the call but before it loads the
        card."""
        line_of_card = list(Event.objects.filter(run=card.run_id, type="approval_requested"))
        edited: list[Approval] = []

        def edit() -> None:
            edited.append(workshop.edit(card, {"record_id": record.pk, "to": "Two"}))

        def edit_before_the_card_is_read(execute: Any, sql: str, *others: Any) -> Any:
            if sql.startswith("SELECT") and "approvals_approval" in sql and not edited:
                with beside(edit):
                    pass
            return execute(sql, *others)

        with connection.execute_wrapper(edit_before_the_card_is_read):
            (line,) = render_lines(card.run_id, line_of_card)
        assert f'data-digest="{edited[0].digest}"' in line.html
        exact = (
            line.html.partition('class="exact-request"')[2]
            .partition("<pre")[2]
            .partition("</pre>")[0]
        )
        assert "Two" in exact
        assert "One" not in exact


class TestTheCallOfAnEditedCard:
    def test_keeps_the_models_original_params(
        self, workshop: Workshop, card: Approval, record: Record
    ) -> None:
        signature = calls(card.run)[0].signature
        second = workshop.edit(card, {"record_id": record.pk, "to": "Two"})
        workshop.edit(second, {"record_id": record.pk, "to": "Three"})
        (row,) = calls(card.run)
        assert (row.model_params, row.params["to"]) == (
            {"record_id": record.pk, "to": "One", "gate": ""},
            "Three",
        )
        assert row.signature == signature

    def test_tells_the_model_that_a_person_changed_the_params(
        self, workshop: Workshop, model: ModelServer, recorder: Recorder
    ) -> None:
        model.script(Response(calls=(Call("probe.effect", {"name": "a"}),)), Response(text="Fine."))
        run = workshop.work()
        workshop.approve(workshop.edit(workshop.card(run), {"name": "b"}))
        workshop.drive(run)
        content = model.requests[-1]["messages"][-1]["content"]
        assert content.startswith(
            'A person changed the params before approving, to: {"name":"b"}\n'
        )
        assistant = model.requests[-1]["messages"][-2]
        assert assistant["tool_calls"][0]["function"]["arguments"] == '{"name": "a"}'
        assert recorder.arrivals == {"b": 1}

    def test_gets_defaults_for_omitted_params(self, workshop: Workshop, card: Approval) -> None:
        workshop.edit(card, {"record_id": calls(card.run)[0].params["record_id"], "to": "Two"})
        assert calls(card.run)[0].params["gate"] == ""


class TestARefusedEdit:
    def test_with_invalid_params_leaves_the_card_open(
        self, workshop: Workshop, card: Approval
    ) -> None:
        for wrong in ({}, {"record_id": "x", "to": "Two"}, {"record_id": 10**9, "to": "Two"}):
            with pytest.raises(Invalid) as refused:
                workshop.edit(card, wrong)
            assert refused.value.extra["field"].startswith("params")
        card.refresh_from_db()
        assert card.status == ApprovalStatus.PENDING
        assert calls(card.run)[0].params["to"] == "One"

    def test_without_changes_leaves_the_card_open(self, workshop: Workshop, card: Approval) -> None:
        with pytest.raises(Invalid):
            workshop.edit(card, calls(card.run)[0].params)
        assert workshop.cards(card.run) == [card]

    def test_of_a_stale_decided_or_expired_card_reports_the_reason(
        self, workshop: Workshop, card: Approval, record: Record
    ) -> None:
        params = {"record_id": record.pk, "to": "Two"}
        sealed, card.digest = card.digest, "0" * 64
        with pytest.raises(StaleDigest):
            workshop.edit(card, params)
        card.digest = sealed
        expire_card(card)
        with pytest.raises(Expired):
            workshop.edit(card, params)
        workshop.cancel(card.run)
        with pytest.raises(AlreadyDecided):
            workshop.edit(card, params)


class TestAnEditThatLosesARace:
    """The card is decided or expires while the edit is previewed, and the response says so."""

    @pytest.fixture
    def held_card(
        self, workshop: Workshop, toolbox: Toolbox, recorder: Recorder, record: Record
    ) -> Approval:
        """A card whose first preview is complete and whose next preview can be made to wait."""
        toolbox.register(Remove())
        Grant.objects.create(employee=workshop.employee, tool=Remove.name)
        workshop.play(asking(call(Remove.name, record_id=record.pk, gate="first")))
        recorder.release("first")
        return workshop.card(workshop.work())

    def edited_meanwhile(
        self, card: Approval, member: Membership, recorder: Recorder, decide: Callable[[], object]
    ) -> tuple[int, dict[str, str]]:
        """Edit the card over REST, and call `decide` while the preview waits; return the status and
        body of the response."""
        answers = []
        client = Client()
        client.force_login(member.user)
        body = {"digest": card.digest, "params": {**card.params, "gate": "held"}}
        address = f"/api/approvals/{card.pk}/approve"
        recorder.hold("held")
        with beside(
            lambda: answers.append(client.post(address, body, content_type="application/json"))
        ):
            recorder.await_arrival("held")
            decide()
            recorder.release("held")
        return answers[0].status_code, answers[0].json()

    def test_reports_who_decided_and_how(
        self, workshop: Workshop, held_card: Approval, recorder: Recorder
    ) -> None:
        status, answer = self.edited_meanwhile(
            held_card,
            workshop.approver,
            recorder,
            lambda: workshop.deny(held_card, by=workshop.admin),
        )
        assert (status, answer["code"], answer["decided_by"]) == (409, "decided", "acme-admin")
        assert answer["detail"] == "the card was denied by acme-admin; the edit was not applied"

    def test_reports_the_decision_even_if_the_preview_fails(
        self, workshop: Workshop, held_card: Approval, recorder: Recorder, record: Record
    ) -> None:
        """The record is removed, as the approved call would do, so the preview of the edit cannot
        find it."""

        def approve_and_run() -> None:
            workshop.approve(held_card, by=workshop.admin)
            Record.objects.filter(pk=record.pk).delete()

        status, answer = self.edited_meanwhile(
            held_card, workshop.approver, recorder, approve_and_run
        )
        assert (status, answer["code"]) == (409, "decided")
        assert answer["detail"] == "the card was approved by acme-admin; the edit was not applied"

    def test_reports_that_the_card_expired(
        self, workshop: Workshop, held_card: Approval, recorder: Recorder
    ) -> None:
        status, answer = self.edited_meanwhile(
            held_card, workshop.approver, recorder, lambda: expire_card(held_card)
        )
        assert (status, answer["detail"]) == (410, "the card has expired; the edit was not applied")


class Remove(Tool):
    """A write tool whose preview waits at `gate` before it loads its record."""

    name = "probe.remove"
    description = "Removes a record."
    level = Level.WRITE

    class Params(BaseModel):
        record_id: int
        gate: str

    def preview(self, params: Any, context: ToolContext) -> Preview:
        reach(params.gate)
        record = record_of(params, context)
        return Preview("remove", (Target(str(record.pk), record.name),))

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok()
