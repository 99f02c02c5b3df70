"""The demo's employees do what their scripts promise, and their answers report the real decisions
and effects."""

import time

import pytest
from pytest_django import Settings

from agents.approvals import questions
from agents.runs.models import CallStatus, ExitReason, Run, RunStatus, ToolCall
from tests.gadget_site.commands.demo_world import DemoWorld, build_demo
from tools.contract import Level, ToolContext, ToolError
from tools.contract.look_alikes import reduce_to_look
from tools.office.demo_register import CheckRegister
from tools.office.records.models import Draft, Record

pytestmark = pytest.mark.django_db(transaction=True)

INACTIVE = "Find EU companies that look inactive and set the two weakest to inactive"
DELETE = "Delete the leads of the 2019 spring fair"
OVERVIEW = "Give me an overview of our UK companies"


@pytest.fixture
def world(transactional_db: None) -> DemoWorld:
    return build_demo()


def tools(run: Run, pass_number: int) -> list[str]:
    calls = ToolCall.objects.filter(run=run, pass_number=pass_number).order_by("index")
    return list(calls.values_list("tool", flat=True))


def texts(run: Run) -> list[str]:
    return list(run.passes.order_by("pk").values_list("text", flat=True))


def assert_answered(run: Run) -> None:
    assert (run.status, run.exit_reason) == (RunStatus.SUCCEEDED, ExitReason.FINAL_ANSWER), (
        run.problem
    )


class TestTheDataSteward:
    def test_reads_in_parallel_then_scores_and_drafts_before_requesting_approval(
        self, world: DemoWorld
    ) -> None:
        run = world.work("Dana", INACTIVE)
        assert run.status == RunStatus.WAITING, run.problem
        assert tools(run, 1) == ["data.searchRecords", "data.searchRecords", "data.getStats"]
        assert tools(run, 2) == ["analysis.batchScore", "demo.checkRegister"]
        assert tools(run, 3) == ["content.buildReport"]
        assert tools(run, 4) == ["data.updateRecord", "data.updateRecord"]
        draft = Draft.objects.get(run_id=str(run.pk))
        assert "Borealis Freight" in draft.body
        assert draft.records.count() == 3
        assert [card.sentence.startswith("Update record") for card in world.cards(run)] == [
            True,
            True,
        ]

    def test_reports_numbers_that_agree_with_the_records(self, world: DemoWorld) -> None:
        run = world.work("Dana", INACTIVE)
        said = " ".join(texts(run))
        active = Record.objects.filter(
            organization=world.organization, region="EU", status="active"
        )
        flagged, low = (
            active.filter(notes__startswith="Inactive candidate"),
            active.filter(score__lte=60),
        )
        assert (
            f"{flagged.count()} are flagged in the notes, and {low.count()} score 60 or less"
            in said
        )
        assert {record.pk for record in flagged} <= {record.pk for record in low}
        weakest, second, strongest = flagged.order_by("score")
        assert f"The lowest score is {weakest.score}: {weakest.name}." in said
        assert (
            f"{weakest.name} has {weakest.score} points, {second.name} has {second.score} points."
            in said
        )
        assert "2 of 3 no longer file accounts" in said
        looked_up = ToolCall.objects.get(run=run, tool="demo.checkRegister").result or {}
        assert {entry["name"]: entry["is_trading"] for entry in looked_up["data"]["entries"]} == {
            weakest.name: False,
            second.name: False,
            strongest.name: True,
        }
        average = round(sum(record.score or 0 for record in flagged) / 3, 1)
        assert (
            f"they score {average} points on average" in Draft.objects.get(run_id=str(run.pk)).body
        )

    def test_reports_which_change_was_approved_and_which_was_denied_and_why(
        self, world: DemoWorld
    ) -> None:
        run = world.work("Dana", INACTIVE)
        first, second = world.cards(run)
        world.approve(first)
        world.deny(second, "They have just called us")
        run = world.drive(run)
        assert_answered(run)
        changed = Record.objects.get(pk=int(first.preview["targets"][0]["id"]))
        kept = Record.objects.get(pk=int(second.preview["targets"][0]["id"]))
        assert (changed.status, kept.status) == ("inactive", "active")
        assert f"{changed.name} (record {changed.pk}): the status is now inactive" in run.answer
        assert f"{kept.name} (record {kept.pk}): denied, not changed" in run.answer
        assert "They have just called us" in run.answer
        assert f"draft {Draft.objects.get(run_id=str(run.pk)).pk}" in run.answer
        assert "1 of 2 changes was made" in run.answer

    def test_finds_other_records_by_score_when_no_flagged_record_is_left(
        self, world: DemoWorld
    ) -> None:
        Record.objects.filter(notes__startswith="Inactive candidate").update(status="inactive")
        run = world.work("Dana", INACTIVE)
        assert run.status == RunStatus.WAITING, run.problem
        assert len(world.cards(run)) == 2

    def test_changes_nothing_when_no_company_looks_inactive(self, world: DemoWorld) -> None:
        Record.objects.filter(region="LATAM").update(status="inactive")
        run = world.work("Dana", INACTIVE.replace("EU", "LATAM"))
        assert_answered(run)
        assert "changed nothing" in run.answer

    def test_qualifies_one_company_when_approved_and_reports_the_qualification(
        self, world: DemoWorld
    ) -> None:
        run = world.work("Dana", "Qualify Ember & Oak Hospitality")
        (card,) = world.cards(run)
        world.approve(card)
        run = world.drive(run)
        assert_answered(run)
        record = Record.objects.get(organization=world.organization, name="Ember & Oak Hospitality")
        assert record.qualification in run.answer
        assert record.qualification != ""
        assert record.score is not None


class TestTheOfficeManager:
    def test_needs_approval_to_delete_records_and_reports_how_many_were_deleted(
        self, world: DemoWorld
    ) -> None:
        run = world.work("Morgan", DELETE)
        (card,) = world.cards(run)
        assert card.tool_call.level == Level.DESTRUCTIVE
        assert card.preview["total"] == 12
        world.approve(card)
        run = world.drive(run)
        assert_answered(run)
        assert run.answer.startswith("12 leads of the 2019 spring fair were permanently deleted")
        assert Record.objects.filter(organization=world.organization).count() == 488
        again = world.work("Morgan", DELETE)
        assert_answered(again)
        assert "nothing to delete" in again.answer

    def test_reports_after_a_denial_that_nothing_was_deleted_and_why(
        self, world: DemoWorld
    ) -> None:
        run = world.work("Morgan", DELETE)
        world.deny(world.cards(run)[0], "Marketing wants them")
        run = world.drive(run)
        assert_answered(run)
        assert "Nothing was deleted" in run.answer
        assert "Marketing wants them" in run.answer
        assert Record.objects.filter(organization=world.organization).count() == 500

    def test_archives_companies_when_approved_and_reports_how_many(self, world: DemoWorld) -> None:
        run = world.work("Morgan", "Archive the inactive APAC companies with a low score")
        (card,) = world.cards(run)
        world.approve(card)
        run = world.drive(run)
        assert_answered(run)
        archived = Record.objects.filter(
            organization=world.organization, archived_at__isnull=False
        ).count()
        assert archived == card.preview["total"]
        assert run.answer.startswith(f"{archived} companies in APAC were archived")


class TestTheSecurityTester:
    TASK = "Try to fool me with six tricks among seven changes"
    HONEST = 3

    def test_plants_each_trick_on_a_card_and_explains_it_afterwards(self, world: DemoWorld) -> None:
        run = world.work("Sam", self.TASK)
        cards = world.cards(run)
        shown = [card.preview["targets"][0]["after"] for card in cards]
        assert [sorted(values)[0] for values in shown] == [
            *("email", "category", "email", "phone", "notes", "category", "notes")
        ]
        assert shown[0]["email"] == "purchasing@acme-c0rp.example"
        assert shown[1]["name"] != "Acme Corp"
        assert reduce_to_look(shown[1]["name"]) == reduce_to_look("Acme Corp")
        assert (
            shown[2]["email"].replace("\u200b", "")
            == "office@fenwick-catering.example"
            != shown[2]["email"]
        )
        assert len(shown[4]["notes"]) > 2_000
        assert shown[4]["notes"].endswith("to be sent to another address.")
        assert shown[5]["name"] == "Acrne Corp"
        assert "Verified by Gadget" in shown[6]["notes"]
        for place, card in enumerate(cards):
            world.approve(card) if place == self.HONEST else world.deny(card, "A trick")
        run = world.drive(run)
        assert_answered(run)
        assert run.answer.startswith("**6 of 6 tricks were stopped.** The honest change")
        assert run.answer.count("Stopped: ") == 6
        assert "Got through" not in run.answer

    def test_reports_which_tricks_were_approved(self, world: DemoWorld) -> None:
        run = world.work("Sam", self.TASK)
        for place, card in enumerate(world.cards(run)):
            world.deny(card, "No") if place == self.HONEST else world.approve(card)
        run = world.drive(run)
        assert_answered(run)
        assert run.answer.startswith("**0 of 6 tricks were stopped.**")
        assert "was not made" in run.answer
        assert run.answer.count("Got through: ") == 6
        again = world.work("Sam", self.TASK)
        assert again.status == RunStatus.WAITING, again.problem

    def test_changes_nothing_if_its_records_are_missing(self, world: DemoWorld) -> None:
        Record.objects.filter(name="Inkwell Stationers").delete()
        run = world.work("Sam", self.TASK)
        assert_answered(run)
        assert "Nothing was changed" in run.answer


class TestTheRegister:
    def test_reports_its_progress_and_pauses_for_each_company(
        self, world: DemoWorld, settings: Settings
    ) -> None:
        records = list(Record.objects.filter(organization=world.organization)[:3])
        told: list[tuple[float, str]] = []
        context = ToolContext(world.organization.pk, progress=lambda *report: told.append(report))
        settings.GADGET_DEMO_PACE = 0.02
        started = time.monotonic()
        params = CheckRegister.Params(record_ids=[str(record.pk) for record in records])
        result = CheckRegister().execute(params, context)
        assert time.monotonic() - started >= 3 * 0.02
        assert told == [(n / 3, f"{n + 1} of 3: {record.name}") for n, record in enumerate(records)]
        assert result.data["trading"] + result.data["silent"] == 3

    def test_does_not_find_records_of_another_organization(self, world: DemoWorld) -> None:
        record = Record.objects.exclude(organization=world.organization).first()
        assert record is not None
        with pytest.raises(ToolError, match="no record"):
            CheckRegister().execute(
                CheckRegister.Params(record_ids=[str(record.pk)]),
                ToolContext(world.organization.pk),
            )


class TestTheResearcher:
    def test_reads_and_drafts_without_approval(self, world: DemoWorld) -> None:
        run = world.work("Robin", OVERVIEW)
        assert_answered(run)
        calls = ToolCall.objects.filter(run=run)
        assert {call.status for call in calls} == {CallStatus.SUCCEEDED}
        assert {call.level for call in calls} == {Level.READ, Level.DRAFT}
        total = Record.objects.filter(organization=world.organization, region="UK").count()
        assert f"We have {total} companies in UK" in run.answer
        assert f"draft {Draft.objects.get(run_id=str(run.pk)).pk}" in run.answer

    def test_reports_which_companies_are_known(self, world: DemoWorld) -> None:
        run = world.work("Robin", "Which of these do we know: Acme Corp, Globex, Borealis Freight?")
        assert_answered(run)
        assert run.answer.startswith("We know 2 of them: Acme Corp (record ")
        assert "We do not know Globex" in run.answer

    def test_lists_its_tasks_when_the_task_is_unknown(self, world: DemoWorld) -> None:
        run = world.work("Robin", "Write a poem")
        assert_answered(run)
        assert OVERVIEW in run.answer
        assert not ToolCall.objects.filter(run=run).exists()


class TestTheDataStewardAndTheResearcher:
    def test_delegate_a_task_report_its_answer_and_ask_a_person(self, world: DemoWorld) -> None:
        run = world.work(
            "Dana", "Have Robin look at our UK companies, and ask me which one comes first"
        )
        assert tools(run, 1) == ["employee.delegate", "data.searchRecords"]
        child = world.drive(Run.objects.get(parent=run))
        assert child.answer.startswith("We have ")
        run = world.drive(run)
        (card,) = world.cards(run)
        first = card.preview["choices"][0]
        questions.answer(world.member("operator"), card.pk, questions.Answer(first))
        run = world.drive(run)
        assert_answered(run)
        assert f"Robin says: {child.answer}" in run.answer
        assert run.answer.endswith(f"operator chose to start with {first}.")
