"""An organization's languages are named by an admin or learned; text that is ordinary in one of
these languages has a warning only in other organizations."""

# ruff: noqa: RUF001 - the tests contain look-alike letters
from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.accounts.languages import get_current_languages, get_languages
from agents.accounts.models import Membership, Organization
from agents.accounts.preferences import save_preferences
from agents.approvals.warnings.card_reading import read_card, read_cards
from agents.platform.log_context import log_for_nobody, log_for_organization
from agents.runs.actions import Submission, submit
from agents.runs.language_learning import MIN_TASKS, NEWEST_TASKS, LanguageLearner
from agents.runs.models import Approval, Origin, Run
from agents.web.text.markdown import render_markdown
from agents.web.text.safe_text import render_text, replace_hidden_characters
from tests.admin.rows import make_admin_world
from tests.features import feature
from tests.world import World, post

pytestmark = pytest.mark.django_db

PERSIAN = "می\u200cخواهم تلفن شرکت را عوض کنم"
TASK = "لطفا تلفن شرکت را عوض کنید"
JAPANESE = "会社の電話番号を更新してください"


@pytest.fixture
def world() -> World:
    return make_admin_world()


@pytest.fixture
def learner() -> LanguageLearner:
    return LanguageLearner()


def read_again(organization: Organization) -> Organization:
    return Organization.objects.get(pk=organization.pk)


def type_task(world: World, task: str, username: str = "operator") -> None:
    response = world.client(username).post("/", {"employee": world.employee.pk, "task": task})
    assert response.status_code == 302


def send_task(world: World, task: str, origin: Origin) -> None:
    """Start a run whose task nobody typed on a page."""
    submit(world.member("operator"), Submission(world.employee.pk, task, origin=origin))


def list_languages(world: World, learner: LanguageLearner) -> frozenset[str]:
    learner.learn()
    return read_again(world.acme).written_languages


def make_card(world: World, notes: str) -> Approval:
    changes = {"notes": notes}
    return world.card(params={"record_id": str(world.records[0].pk), "changes": changes})


class TestLearning:
    @feature(
        "The gate",
        "An organization learns which languages it writes from its members and the tasks they type",
        "agents/runs/language_learning.py",
    )
    def test_the_language_of_three_typed_tasks_is_learned(
        self, world: World, learner: LanguageLearner
    ) -> None:
        for _ in range(MIN_TASKS - 1):
            type_task(world, TASK)
        assert not list_languages(world, learner)
        type_task(world, TASK)
        assert list_languages(world, learner) == {"ar"}
        assert not read_again(world.globex).written_languages

    @pytest.mark.parametrize("task", ["Set the phone to 5", f"Tell Acme Corp politely: {TASK[:9]}"])
    def test_no_language_is_learned_from_tasks_in_mostly_latin_letters(
        self, world: World, learner: LanguageLearner, task: str
    ) -> None:
        for _ in range(MIN_TASKS):
            type_task(world, task)
        assert not list_languages(world, learner)

    @pytest.mark.parametrize("origin", [Origin.TASK, Origin.TRIGGER, Origin.SCHEDULE])
    def test_no_language_is_learned_from_tasks_that_a_program_sent(
        self, world: World, learner: LanguageLearner, origin: Origin
    ) -> None:
        for _ in range(MIN_TASKS):
            send_task(world, TASK, origin)
        assert not list_languages(world, learner)

    def test_no_language_is_learned_from_tasks_sent_over_rest(
        self, world: World, learner: LanguageLearner
    ) -> None:
        body = {"employee_id": world.employee.pk, "task": TASK}
        for _ in range(MIN_TASKS):
            assert post(world.client("operator"), "/api/runs", body).status_code == 201
        assert not list_languages(world, learner)

    def test_no_language_is_learned_from_delegated_tasks_or_models_answers(
        self, world: World, learner: LanguageLearner
    ) -> None:
        for _ in range(MIN_TASKS):
            world.run(task=TASK, origin=Origin.DELEGATE)
            type_task(world, "Set the phone")
        Run.objects.filter(origin=Origin.TASK).update(answer=TASK, title=TASK)
        assert not list_languages(world, learner)

    def test_no_language_is_learned_from_tasks_of_removed_members(
        self, world: World, learner: LanguageLearner
    ) -> None:
        for _ in range(MIN_TASKS):
            type_task(world, TASK)
        Membership.objects.filter(user=world.users["operator"]).delete()
        assert not list_languages(world, learner)

    def test_only_the_newest_tasks_are_considered(
        self, world: World, learner: LanguageLearner
    ) -> None:
        for _ in range(MIN_TASKS):
            type_task(world, TASK)
        assert list_languages(world, learner)
        for _ in range(NEWEST_TASKS - MIN_TASKS):
            world.run(task="Set the phone")
        assert list_languages(world, learner)
        world.run(task="Set the phone")
        assert not list_languages(world, learner)

    def test_a_language_that_a_member_chose_is_learned_without_its_country(
        self, world: World, learner: LanguageLearner
    ) -> None:
        save_preferences(world.member("viewer"), "fa-IR", "")
        assert list_languages(world, learner) == {"fa"}
        save_preferences(world.member("viewer"), "", "")
        assert not list_languages(world, learner)

    def test_learning_again_does_not_read_tasks_if_none_is_new(
        self, world: World, learner: LanguageLearner
    ) -> None:
        for _ in range(MIN_TASKS):
            type_task(world, JAPANESE)
        assert learner.learn() == 1
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert learner.learn() == 0
        assert len(queries) <= 4
        assert list_languages(world, learner)


class TestMarks:
    @feature(
        "The gate",
        "What is ordinary in the languages of an organization has no warning there",
        "agents/approvals/warnings/card_reading.py",
    )
    def test_a_joiner_has_a_warning_only_in_organizations_without_its_language(
        self, world: World
    ) -> None:
        card = make_card(world, PERSIAN)
        assert [mark.kind for mark in read_card(card).marks] == ["hidden"]
        Organization.objects.filter(pk=world.acme.pk).update(languages=["fa"])
        read_again(world.acme)
        assert not read_card(card).marks
        assert read_cards(world.acme.pk, {card.pk: card.digest})[card.pk].marks == ()
        Organization.objects.filter(pk=world.acme.pk).update(languages=["tr"])
        read_again(world.acme)
        assert read_card(card).marks

    @pytest.mark.parametrize("notes", [f"{PERSIAN} pay\u200cpal", "Аcme", f"\u202e{PERSIAN}"])
    def test_a_deceptive_text_has_a_warning_in_every_language(
        self, world: World, notes: str
    ) -> None:
        Organization.objects.filter(pk=world.acme.pk).update(languages=["fa", "ru", "ja"])
        read_again(world.acme)
        assert read_card(make_card(world, notes)).marks

    def test_reading_a_card_does_not_query_the_database_once_its_organization_is_loaded(
        self, world: World
    ) -> None:
        made = make_card(world, PERSIAN)
        card = Approval.objects.select_related("tool_call").get(pk=made.pk)
        read_again(world.acme)
        with CaptureQueriesContext(connection) as queries:
            read_card(card)
        assert not len(queries)

    def test_pages_show_a_joiner_unchanged_only_in_organizations_with_its_language(
        self, world: World
    ) -> None:
        make_card(world, PERSIAN)
        client = world.client("approver")
        before = client.get("/approvals/").content.decode()
        assert "U+200C" in before
        Organization.objects.filter(pk=world.acme.pk).update(languages=["fa"])
        assert "U+200C" not in client.get("/approvals/").content.decode()

    def test_texts_are_rendered_for_the_languages_of_the_requests_organization(
        self, world: World
    ) -> None:
        Organization.objects.filter(pk=world.acme.pk).update(languages=["fa", "tr"])
        for each in (world.acme, world.globex):
            read_again(each)
        for organization, is_ordinary in ((world.acme, True), (world.globex, False)):
            log_for_organization(organization.pk)
            for render in (render_text, replace_hidden_characters, render_markdown):
                shown = render(f"{PERSIAN} kapı")
                assert ("U+200C" not in shown) == is_ordinary
                assert "U+200B" in render(f"{PERSIAN}\u200b")
            assert ("⚠" not in render_text("tıbbi")) == is_ordinary
        log_for_nobody()
        assert not get_current_languages()
        assert "U+200C" in render_text(PERSIAN)

    def test_joined_emoji_and_flags_are_shown_unchanged(self) -> None:
        flag = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
        for text in ("👨\u200d👩\u200d👧 ok", f"{flag} ok"):
            assert render_text(text) == replace_hidden_characters(text) == text
        assert "U+200D" in render_text("👨\u200d ok")
        assert "U+E0067" in render_text(f"x{flag[1:]}")


class TestSetting:
    path = "/admin/accounts/organization/{}/change/"
    sent = {"name": "Acme", "card_days": 7, "currency": "USD", "confirm_count": 50, "confirm_percent": 20}  # fmt: skip

    def save(self, world: World, languages: str, **more: str) -> tuple[int, str]:
        client: Client = world.client("admin")
        response = client.post(
            self.path.format(world.acme.pk), {**self.sent, "languages": languages, **more}
        )
        return response.status_code, response.content.decode()

    def test_an_admin_can_set_languages_after_confirming_the_change(self, world: World) -> None:
        status, asked = self.save(world, "fa\nzh-Hant", learns_languages="on")
        assert status == 200
        assert "ordinary in: Persian (fa), zh-Hant." in asked
        assert not get_languages(world.acme.pk)

    def test_text_that_is_not_a_language_code_is_refused(self, world: World) -> None:
        status, shown = self.save(world, "Persian language")
        assert status == 200
        assert "is not a language code" in shown

    def test_learned_languages_are_shown_with_the_reason_and_can_be_switched_off(
        self, world: World, learner: LanguageLearner
    ) -> None:
        save_preferences(world.member("viewer"), "tr", "")
        for _ in range(MIN_TASKS):
            type_task(world, JAPANESE)
        learner.learn()
        page = world.client("admin").get(self.path.format(world.acme.pk)).content.decode()
        assert "Turkish (tr): chosen by 1 member" in page
        assert f"Chinese, Japanese or Korean letters: {MIN_TASKS} of the newest tasks" in page
        assert read_again(world.acme).written_languages == {"tr", "zh"}
        status, _ = self.save(world, "")
        assert status == 302
        assert not read_again(world.acme).written_languages
