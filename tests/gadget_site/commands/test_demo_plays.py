"""The demo's employees do what their scripts promise, and their answers tell what was really decided and done."""

import pytest

from agents.approvals import questions
from agents.runs.models import CallStatus, ExitReason, Run, RunStatus, ToolCall
from tests.gadget_site.commands.demo_world import DemoWorld, build_demo
from tools.contract import Level
from tools.records.models import Draft, Record

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


def assert_answered(run: Run) -> None:
    assert (run.status, run.exit_reason) == (RunStatus.SUCCEEDED, ExitReason.FINAL_ANSWER), run.problem


class TestTheDataSteward:
    def test_looks_at_three_things_at_once_scores_and_drafts_before_asking(self, world: DemoWorld) -> None:
        run = world.work("Dana", INACTIVE)
        assert run.status == RunStatus.WAITING, run.problem
        assert tools(run, 1) == ["data.searchRecords", "data.searchRecords", "data.getStats"]
        assert tools(run, 2) == ["analysis.batchScore"]
        assert tools(run, 3) == ["content.buildReport"]
        assert tools(run, 4) == ["data.updateRecord", "data.updateRecord"]
        draft = Draft.objects.get(run_id=str(run.pk))
        assert "Borealis Freight" in draft.body
        assert draft.records.count() == 3
        assert [card.sentence.startswith("Update record") for card in world.cards(run)] == [True, True]

    def test_tells_which_change_was_approved_and_which_denied_and_why(self, world: DemoWorld) -> None:
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

    def test_finds_others_by_their_score_when_the_marked_ones_are_gone(self, world: DemoWorld) -> None:
        Record.objects.filter(notes__startswith="Inactive candidate").update(status="inactive")
        run = world.work("Dana", INACTIVE)
        assert run.status == RunStatus.WAITING, run.problem
        assert len(world.cards(run)) == 2

    def test_changes_nothing_where_nobody_looks_inactive(self, world: DemoWorld) -> None:
        Record.objects.filter(region="LATAM").update(status="inactive")
        run = world.work("Dana", INACTIVE.replace("EU", "LATAM"))
        assert_answered(run)
        assert "changed nothing" in run.answer

    def test_qualifies_one_company(self, world: DemoWorld) -> None:
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
    def test_asks_before_it_deletes_and_counts_what_is_gone(self, world: DemoWorld) -> None:
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

    def test_says_that_nothing_was_deleted_and_why(self, world: DemoWorld) -> None:
        run = world.work("Morgan", DELETE)
        world.deny(world.cards(run)[0], "Marketing wants them")
        run = world.drive(run)
        assert_answered(run)
        assert "Nothing was deleted" in run.answer
        assert "Marketing wants them" in run.answer
        assert Record.objects.filter(organization=world.organization).count() == 500

    def test_archives_when_it_may(self, world: DemoWorld) -> None:
        run = world.work("Morgan", "Archive the inactive APAC companies with a low score")
        (card,) = world.cards(run)
        world.approve(card)
        run = world.drive(run)
        assert_answered(run)
        archived = Record.objects.filter(organization=world.organization, archived_at__isnull=False).count()
        assert archived == card.preview["total"]
        assert run.answer.startswith(f"{archived} companies in APAC were archived")


class TestTheResearcher:
    def test_reads_and_drafts_without_asking_anybody(self, world: DemoWorld) -> None:
        run = world.work("Robin", OVERVIEW)
        assert_answered(run)
        calls = ToolCall.objects.filter(run=run)
        assert {call.status for call in calls} == {CallStatus.SUCCEEDED}
        assert {call.level for call in calls} == {Level.READ, Level.DRAFT}
        total = Record.objects.filter(organization=world.organization, region="UK").count()
        assert f"We have {total} companies in UK" in run.answer
        assert f"draft {Draft.objects.get(run_id=str(run.pk)).pk}" in run.answer

    def test_knows_who_is_known(self, world: DemoWorld) -> None:
        run = world.work("Robin", "Which of these do we know: Acme Corp, Globex, Borealis Freight?")
        assert_answered(run)
        assert run.answer.startswith("We know 2 of them: Acme Corp (record ")
        assert "We do not know Globex" in run.answer

    def test_says_what_it_can_play_when_the_task_is_unknown(self, world: DemoWorld) -> None:
        run = world.work("Robin", "Write a poem")
        assert_answered(run)
        assert OVERVIEW in run.answer
        assert not ToolCall.objects.filter(run=run).exists()


class TestTheDataStewardAndTheResearcher:
    def test_one_hands_over_the_other_answers_and_a_person_is_asked(self, world: DemoWorld) -> None:
        run = world.work("Dana", "Have Robin look at our UK companies, and ask me which one comes first")
        assert tools(run, 1) == ["employee.delegate", "data.searchRecords"]
        child = world.drive(Run.objects.get(parent=run))
        assert child.answer.startswith("We have ")
        run = world.drive(run)
        (card,) = world.cards(run)
        first = card.preview["choices"][0]
        questions.answer(world.member("operator"), card.pk, first)
        run = world.drive(run)
        assert_answered(run)
        assert f"Robin says: {child.answer}" in run.answer
        assert run.answer.endswith(f"operator chose to start with {first}.")
