"""Only what was approved runs: if the target, the tool or the rules have changed since the
approval, the call needs a new approval."""

from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from agents.employees.models import Grant
from agents.platform.refusals import Conflict
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus
from tests.probes import Announce, Effect, Named, Rename
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    all_at_once,
    asking,
    call,
    calls,
    error_code,
    payloads,
    statuses,
)
from tools.contract import Level, Preview, Target, Tool, ToolContext, ToolResult
from tools.office.records.models import Record
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)


def rename_behind_its_back(record: Record, name: str) -> None:
    record.refresh_from_db()
    record.name, record.version = name, record.version + 1
    record.save()


def approve_all(workshop: Workshop, *asked: dict[str, object]) -> Run:
    workshop.play(asking(*asked))
    run = workshop.work()
    for card in workshop.cards(run):
        workshop.approve(card)
    return run


class TestAChangedTarget:
    @pytest.mark.parametrize("tool", ["probe.rename", "probe.announce"], ids=["inside", "outside"])
    def test_makes_the_call_wait_for_a_decision_on_a_new_card(
        self, workshop: Workshop, record: Record, recorder: Recorder, tool: str
    ) -> None:
        run = approve_all(workshop, call(tool, record_id=record.pk, to="New"))
        rename_behind_its_back(record, "Acme 2")
        run = workshop.drive(run)
        assert (run.status, statuses(run)) == (RunStatus.WAITING, [CallStatus.AWAITING_APPROVAL])
        (new_card,) = workshop.cards(run)
        assert (new_card.sequence, new_card.preview["targets"][0]["label"]) == (2, "Acme 2")
        assert "The target changed" in new_card.why
        old = Approval.objects.get(run=run, sequence=1)
        assert (old.status, old.consumed_at) == (ApprovalStatus.SUPERSEDED, None)
        assert payloads(run, "approval_decided")[-1]["next_approval_id"] == str(new_card.pk)
        assert not recorder.effects

    @pytest.mark.parametrize("tool", ["probe.rename", "probe.announce"], ids=["inside", "outside"])
    def test_lets_the_call_run_after_the_new_card_is_approved(
        self, workshop: Workshop, record: Record, recorder: Recorder, tool: str
    ) -> None:
        run = approve_all(workshop, call(tool, record_id=record.pk, to="New"))
        rename_behind_its_back(record, "Acme 2")
        run = workshop.drive(run)
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        assert (run.status, statuses(run)) == (RunStatus.SUCCEEDED, [CallStatus.SUCCEEDED])
        assert calls(run)[0].attempts == 1

    @pytest.mark.parametrize("tool", ["probe.rename", "probe.announce"], ids=["inside", "outside"])
    def test_fails_the_call_after_three_changes(
        self, workshop: Workshop, record: Record, recorder: Recorder, tool: str
    ) -> None:
        run = approve_all(workshop, call(tool, record_id=record.pk, to="New"))
        for number in range(2):
            rename_behind_its_back(record, f"Acme {number}")
            run = workshop.drive(run)
            workshop.approve(workshop.card(run))
        rename_behind_its_back(record, "Acme again")
        run = workshop.drive(run)
        (row,) = calls(run)
        assert (row.status, error_code(row), row.attempts) == (
            CallStatus.FAILED,
            "OPERATION_FAILED",
            0,
        )
        assert run.status == RunStatus.SUCCEEDED
        assert not workshop.cards(run)
        assert not recorder.effects

    @pytest.mark.parametrize("tool", ["probe.rename", "probe.announce"], ids=["inside", "outside"])
    def test_that_was_deleted_makes_the_call_wait_on_a_new_card_that_states_the_problem(
        self, workshop: Workshop, record: Record, recorder: Recorder, tool: str
    ) -> None:
        run = approve_all(workshop, call(tool, record_id=record.pk, to="New"))
        record.delete()
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL]
        assert "There is no record" in workshop.card(run).preview["problem"]
        workshop.deny(workshop.card(run))

    def test_needs_a_new_approval_if_a_call_of_the_same_pass_changed_it(
        self, workshop: Workshop, record: Record
    ) -> None:
        run = approve_all(
            workshop,
            call("probe.rename", record_id=record.pk, to="One"),
            call("probe.rename", record_id=record.pk, to="Two"),
        )
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.SUCCEEDED, CallStatus.AWAITING_APPROVAL]
        assert workshop.card(run).preview["targets"][0]["before"] == {"name": "One"}

    def test_is_detected_at_the_start_if_it_changed_before_the_decision(
        self, workshop: Workshop, record: Record
    ) -> None:
        workshop.play(asking(call("probe.rename", record_id=record.pk, to="New")))
        run = workshop.work()
        rename_behind_its_back(record, "Acme 2")
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL]
        record.refresh_from_db()
        assert record.name == "Acme 2"

    def test_is_written_by_one_of_two_simultaneous_runs_and_the_other_needs_a_new_approval(
        self, workshop: Workshop, record: Record
    ) -> None:
        first = approve_all(
            workshop, call("data.updateRecord", record_id=str(record.pk), changes={"score": 10})
        )
        second = approve_all(
            workshop,
            call("data.updateRecord", record_id=str(record.pk), changes={"status": "pending"}),
        )
        all_at_once([lambda: workshop.drive(first), lambda: workshop.drive(second)])
        assert sorted(statuses(first) + statuses(second)) == [
            CallStatus.AWAITING_APPROVAL,
            CallStatus.SUCCEEDED,
        ]
        record.refresh_from_db()
        assert record.version == 2
        assert (record.score == 10) != (record.status == "pending")


class TestAChangedTool:
    def test_with_another_definition_requires_a_new_approval(
        self, workshop: Workshop, record: Record, toolbox: Toolbox, recorder: Recorder
    ) -> None:
        run = approve_all(
            workshop,
            call("probe.effect", name="a"),
            call("probe.rename", record_id=record.pk, to="New"),
        )
        for tool_class in (Effect, Rename):
            toolbox.unregister(tool_class.name)
            changed = type(
                tool_class.__name__, (tool_class,), {"description": "Does something else by now."}
            )
            toolbox.register(changed())
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL] * 2
        assert not recorder.effects
        for card in workshop.cards(run):
            assert "The tool or its level changed" in card.why
            workshop.approve(card)
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.SUCCEEDED] * 2

    def test_with_only_another_title_or_formatting_runs_without_a_new_approval(
        self, workshop: Workshop, toolbox: Toolbox, recorder: Recorder
    ) -> None:
        run = approve_all(workshop, call("probe.effect", name="a"))
        toolbox.unregister(Effect.name)
        same = {"display_name": "An effect", "description": "Has  an effect\n outside."}
        toolbox.register(type("Effect", (Effect,), same)())
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]

    def test_that_parses_params_differently_requires_a_new_approval(
        self, workshop: Workshop, toolbox: Toolbox, recorder: Recorder
    ) -> None:
        run = approve_all(workshop, call("probe.effect", name="a"))
        toolbox.unregister(Effect.name)
        other = type("Effect", (Effect,), {"Params": Loud})()
        assert other.definition_hash == Effect().definition_hash
        toolbox.register(other)
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL]
        assert workshop.card(run).params == {"name": "A"}
        assert not recorder.effects

    def test_with_another_level_requires_a_new_approval_at_that_level(
        self, workshop: Workshop, toolbox: Toolbox, recorder: Recorder
    ) -> None:
        run = approve_all(workshop, call("probe.effect", name="a"))
        workshop.raise_for_all("probe.effect", Level.DESTRUCTIVE)
        run = workshop.drive(run)
        (row,) = calls(run)
        assert (row.status, row.level) == (CallStatus.AWAITING_APPROVAL, "destructive")
        workshop.approve(workshop.card(run))
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]
        assert list(recorder.effects.values()) == [1]

    def test_does_not_discard_the_models_original_params_after_an_edit(
        self, workshop: Workshop, toolbox: Toolbox, recorder: Recorder
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        signature = calls(run)[0].signature
        workshop.approve(workshop.edit(workshop.card(run), {"name": "b"}))
        workshop.raise_for_all("probe.effect", Level.DESTRUCTIVE)
        run = workshop.drive(run)
        (row,) = calls(run)
        assert (row.signature, row.model_params, row.params) == (
            signature,
            {"name": "a"},
            {"name": "b"},
        )
        workshop.deny(workshop.card(run))


class TestANowForbiddenCall:
    @pytest.mark.parametrize("tool", ["probe.rename", "probe.announce"], ids=["inside", "outside"])
    def test_of_a_disabled_tool_is_rejected(
        self, workshop: Workshop, record: Record, toolbox: Toolbox, recorder: Recorder, tool: str
    ) -> None:
        run = approve_all(workshop, call(tool, record_id=record.pk, to="New"))
        toolbox.disable(tool)
        run = workshop.drive(run)
        (row,) = calls(run)
        assert (row.status, error_code(row), row.attempts) == (
            CallStatus.REJECTED,
            "TOOL_DISABLED",
            0,
        )
        assert Approval.objects.get(run=run).status == ApprovalStatus.CANCELLED
        assert payloads(run, "tool_rejected")[0]["code"] == "TOOL_DISABLED"
        assert run.status == RunStatus.SUCCEEDED
        assert not recorder.effects

    def test_of_a_revoked_grant_is_rejected(
        self, workshop: Workshop, record: Record, recorder: Recorder
    ) -> None:
        run = approve_all(workshop, call("probe.announce", record_id=record.pk))
        workshop.employee.grants.filter(tool=Announce.name).delete()
        run = workshop.drive(run)
        assert (statuses(run), error_code(calls(run)[0])) == (
            [CallStatus.REJECTED],
            "NOT_PERMITTED",
        )
        assert not recorder.effects

    def test_of_a_removed_tool_is_rejected(
        self, workshop: Workshop, toolbox: Toolbox, recorder: Recorder
    ) -> None:
        run = approve_all(workshop, call("probe.effect", name="a"))
        toolbox.unregister("probe.effect")
        run = workshop.drive(run)
        assert (statuses(run), error_code(calls(run)[0])) == (
            [CallStatus.REJECTED],
            "TOOL_NOT_FOUND",
        )


def test_a_harmless_edit_of_the_employee_keeps_approved_cards_valid(
    workshop: Workshop, recorder: Recorder
) -> None:
    run = approve_all(workshop, call("probe.effect", name="a"))
    workshop.employee.name, workshop.employee.instructions = "Dana Scully", "Trust no one."
    workshop.employee.save()
    assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]


class TestRowsChangedInTheDatabase:
    """The digest seals the values that the card shows, even if rows and their hashes are changed
    directly in the database."""

    @pytest.mark.parametrize(
        "stored_hash", ["0" * 64, None], ids=["with another hash", "with the old hash"]
    )
    def test_changed_params_run_only_after_a_new_approval(
        self, workshop: Workshop, recorder: Recorder, stored_hash: str | None
    ) -> None:
        run = approve_all(workshop, call("probe.effect", name="a"))
        hashes = {"params_hash": stored_hash} if stored_hash else {}
        run.tool_calls.update(params={"name": "b"}, **hashes)
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.AWAITING_APPROVAL]
        assert not recorder.effects
        (new_card,) = workshop.cards(run)
        assert new_card.params == {"name": "b"}
        assert "parameters were changed" in new_card.why
        workshop.approve(new_card)
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]

    def test_changed_params_of_a_transactional_tool_do_not_run(
        self, workshop: Workshop, record: Record
    ) -> None:
        run = approve_all(workshop, call("probe.rename", record_id=record.pk, to="New"))
        run.tool_calls.update(params={"record_id": record.pk, "to": "Stolen", "gate": ""})
        assert statuses(workshop.drive(run)) == [CallStatus.AWAITING_APPROVAL]
        record.refresh_from_db()
        assert record.name == "Acme"

    @pytest.mark.parametrize("changed", ["call", "params", "preview", "level"])
    def test_a_card_that_differs_from_its_call_cannot_be_approved(
        self, workshop: Workshop, changed: str
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        card = workshop.card(run)
        rows = Approval.objects.filter(pk=card.pk)
        if changed == "call":
            run.tool_calls.update(params={"name": "b"})
        elif changed == "params":
            rows.update(params={"name": "harmless"})
        elif changed == "preview":
            rows.update(preview={**card.preview, "effect": "harmless"})
        else:
            rows.update(level="draft")
        with pytest.raises(Conflict, match="changed in the database"):
            workshop.approve(card)
        assert workshop.deny(card).status == ApprovalStatus.DENIED

    def test_numbers_that_the_database_writes_differently_are_not_drift(
        self, workshop: Workshop, toolbox: Toolbox, recorder: Recorder
    ) -> None:
        values = {"large": 1e23, "zero": -0.0, "small": 1e-7, "whole": 1.0, "long": 2**63 + 1}
        toolbox.register(Weigh())
        Grant.objects.create(employee=workshop.employee, tool=Weigh.name)
        run = approve_all(workshop, call(Weigh.name, values=values))
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]


class Loud(Named):  # a docstring would become part of its schema
    model_config = {"title": "Named"}

    @field_validator("name")
    @classmethod
    def _large(cls, name: str) -> str:
        return name.upper()


class Weigh(Tool):
    """A write that accepts any values."""

    name = "probe.weigh"
    description = "Weighs values."
    level = Level.WRITE

    class Params(BaseModel):
        values: dict[str, Any]

    def preview(self, params: Any, context: ToolContext) -> Preview:
        return Preview("weigh", (Target("1", "Values", None, {}, dict(params.values)),))

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok()
