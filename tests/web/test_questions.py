"""Questions and delegated tasks on pages, over REST and in transcripts."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.runs.engine.suspension import MAX_MS, collect_delegate_results
from agents.runs.models import Approval, ApprovalStatus, CallStatus, ToolCall
from tests.web.asking import ask_question, delegate_task, end_child, suspend_call
from tests.web.test_transcript import download
from tests.world import World, post, problem
from tools.contract import Question

pytestmark = pytest.mark.django_db


class TestTheCardOfAQuestion:
    def test_quotes_the_question_and_offers_its_choices(self, world: World) -> None:
        card = ask_question(world, "North <b>or</b>\nSouth?", "North", "South <i>")
        for path in ("/approvals/", f"/approvals/{card.pk}/", f"/runs/{card.run_id}/"):
            html = world.client("operator").get(path).content.decode()
            assert "North &lt;b&gt;or&lt;/b&gt;\nSouth?" in html, path
            assert 'name="choice" value="South &lt;i&gt;"' in html
            assert "<b>not verified</b>" in html
            assert f'action="/approvals/{card.pk}/answer/"' in html
            assert f"/approvals/{card.pk}/approve/" not in html

    def test_is_shown_on_the_start_page(self, world: World) -> None:
        ask_question(world, "North or South?")
        html = world.client("operator").get("/").content.decode()
        assert 'Dana asks: <bdi class="quoted">“North or South?”</bdi>' in html
        assert "question</span>" in html

    def test_shows_the_answer_afterwards_and_in_the_history(self, world: World) -> None:
        card = ask_question(world, "North or South?")
        post(
            world.client("operator"),
            f"/api/approvals/{card.pk}/answer",
            {"text": "South <b>St</b>"},
        )
        for path in (
            f"/approvals/{card.pk}/",
            f"/runs/{card.run_id}/",
            "/approvals/?history=1&outcome=answered",
        ):
            html = world.client("viewer").get(path).content.decode()
            assert "South &lt;b&gt;St&lt;/b&gt;" in html, path
            assert "Answered" in html
            assert "operator" in html


@pytest.mark.django_db(transaction=True)
def test_a_transcript_has_the_question_and_the_answer(world: World) -> None:
    card = ask_question(world, "North or South?")
    post(world.client("operator"), f"/api/approvals/{card.pk}/answer", {"text": "South <b>St</b>"})
    transcript = download(world.client("viewer"), card.run, "md")
    assert "North or South?" in transcript
    assert "South <b>St</b>" in transcript


class TestTheAnswerForm:
    def test_accepts_a_choice(self, world: World) -> None:
        card = ask_question(world, "Which?", "North", "South")
        answer = world.client("operator").post(
            f"/approvals/{card.pk}/answer/", {"choice": "South", "text": ""}
        )
        assert answer["Location"].endswith(f"#card-{card.pk}")
        card.refresh_from_db()
        assert (card.status, card.reason) == (ApprovalStatus.ANSWERED, "South")

    def test_accepts_free_text(self, world: World) -> None:
        card = ask_question(world)
        world.client("approver").post(f"/approvals/{card.pk}/answer/", {"text": "None\r\nof these"})
        card.refresh_from_db()
        assert card.reason == "None\nof these"

    def test_shows_the_problem_and_keeps_the_typed_text(self, world: World) -> None:
        card = ask_question(world)
        response = world.client("operator").post(
            f"/approvals/{card.pk}/answer/", {"text": "x" * 20_001}
        )
        assert response.status_code == 422
        assert "x" * 20_001 in response.content.decode()
        assert (
            "The answer has 20,001 characters; at most 20,000 are allowed."
            in response.content.decode()
        )
        assert (
            world.client("operator")
            .post(f"/approvals/{card.pk}/answer/", {"text": " "})
            .status_code
            == 422
        )

    def test_names_the_person_who_answered_first(self, world: World) -> None:
        card = ask_question(world)
        world.client("approver").post(f"/approvals/{card.pk}/answer/", {"text": "First"})
        response = world.client("operator").post(
            f"/approvals/{card.pk}/answer/", {"text": "Second"}
        )
        assert response.status_code == 409
        assert "already answered by approver" in response.content.decode().lower()


class TestQuestionsOverRest:
    def test_can_be_answered_by_an_operator(self, world: World) -> None:
        card = ask_question(world, "Which?", "North")
        (listed,) = (
            world.client("viewer")
            .get("/api/approvals?status=pending&kind=question")
            .json()["items"]
        )
        assert (listed["id"], listed["preview"]["question"]) == (str(card.pk), "Which?")
        body = post(
            world.client("operator"), f"/api/approvals/{card.pk}/answer", {"text": "North"}
        ).json()
        assert (body["status"], body["decided_by"], body["reason"]) == (
            "answered",
            "operator",
            "North",
        )
        call = ToolCall.objects.get(pk=card.tool_call_id)
        assert (call.status, call.result["data"]["answer"]) == (CallStatus.SUCCEEDED, "North")  # type: ignore[index]

    def test_cannot_be_answered_without_the_role_or_with_invalid_input(self, world: World) -> None:
        card = ask_question(world)
        path = f"/api/approvals/{card.pk}/answer"
        problem(post(world.client("viewer"), path, {"text": "x"}), 403)
        problem(post(world.client("outsider"), path, {"text": "x"}), 404)
        problem(post(world.client("operator"), path, {"text": ""}), 422)
        problem(post(world.client("operator"), path, {"text": "x", "digest": "y"}), 422)
        problem(
            post(
                world.client("operator"), f"/api/approvals/{world.card().pk}/answer", {"text": "x"}
            ),
            409,
        )
        assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING

    def test_can_be_neither_approved_nor_denied(self, world: World) -> None:
        card = ask_question(world)
        for act in ("approve", "deny"):
            problem(
                post(
                    world.client("admin"),
                    f"/api/approvals/{card.pk}/{act}",
                    {"digest": card.digest},
                ),
                409,
            )


class TestADelegatedTask:
    def test_is_shown_in_the_panel_of_its_parent(self, world: World) -> None:
        child = delegate_task(world, "Kim", "Count <b>all</b>")
        html = world.client("viewer").get(f"/runs/{child.parent_id}/").content.decode()
        assert f'data-child="{child.pk}"' in html
        assert "data-child-open" in html
        assert "Count &lt;b&gt;all&lt;/b&gt;" in html
        assert "Waiting for a colleague" in html

    def test_shows_its_calls_cards_and_answer(self, world: World) -> None:
        child = delegate_task(world)
        world.call(child, "data.searchRecords")
        world.card(child)
        fragment = world.client("viewer").get(f"/runs/{child.pk}/nested/").content.decode()
        assert "Found" in fragment
        assert "1 card waiting in this run" in fragment
        end_child(child, "It is **3**.")
        fragment = world.client("viewer").get(f"/runs/{child.pk}/nested/").content.decode()
        assert "<strong>3</strong>" in fragment
        assert "data-child-open" not in fragment

    def test_names_its_parent_on_its_own_page(self, world: World) -> None:
        child = delegate_task(world)
        html = world.client("viewer").get(f"/runs/{child.pk}/").content.decode()
        assert "Dana delegated this to Kim in" in html
        assert (
            f'href="/runs/{child.parent_id}/?call={child.parent_call_id}#call-{child.parent_call_id}"'
            in html
        )
        assert "delegated" in world.client("viewer").get("/runs/").content.decode()

    def test_names_the_delegation_on_its_cards(self, world: World) -> None:
        child = delegate_task(world)
        card = world.card(child)
        asked = ask_question(world, run=child)
        for path in ("/approvals/", f"/approvals/{card.pk}/", f"/approvals/{asked.pk}/"):
            assert "Dana asked Kim" in world.client("approver").get(path).content.decode()

    @pytest.mark.django_db(transaction=True)
    def test_is_in_both_transcripts(self, world: World) -> None:
        child = delegate_task(world)
        end_child(child, "The answer is 3.")
        collect_delegate_results(child.parent_id or 0)
        assert child.parent is not None
        parent = download(world.client("viewer"), child.parent, "md")
        assert "Kim is working on it." in parent
        assert "The answer is 3." in parent
        own = json.loads(download(world.client("viewer"), child, "json"))
        assert own["run"]["delegated_by"] == f"Dana, run {child.parent_id}"

    def test_shows_the_id_of_its_parent_over_rest(self, world: World) -> None:
        child = delegate_task(world)
        assert world.client("viewer").get(f"/api/runs/{child.pk}").json()["parent_run_id"] == str(
            child.parent_id
        )

    def test_returns_404_to_another_organization(self, world: World) -> None:
        child = delegate_task(world)
        assert world.client("outsider").get(f"/runs/{child.pk}/nested/").status_code == 404
        assert world.client("viewer").get(f"/runs/{child.parent_id}/nested/").status_code == 404


def test_a_question_that_is_too_long_is_refused(world: World) -> None:
    call = suspend_call(world, "employee.askHuman", Question("x" * 4_001))
    assert call.status == CallStatus.FAILED
    assert not Approval.objects.filter(tool_call=call).exists()


HOURS = timedelta(hours=1, minutes=30, seconds=20)


def move_start_back(call_id: int) -> None:
    ToolCall.objects.filter(pk=call_id).update(started_at=Now() - HOURS)


def assert_duration_is_shown(world: World, call_id: int) -> None:
    call = ToolCall.objects.get(pk=call_id)
    assert call.duration_ms is not None
    assert 0 <= call.duration_ms - HOURS / timedelta(milliseconds=1) < 60_000
    client = world.client("viewer")
    panel = client.get(f"/runs/{call.run_id}/").content.decode()
    line = panel.split(f'id="call-{call_id}"')[1].split("</summary>")[0]
    assert '<span class="call-time">1 h 30 min</span>' in line
    assert f"Result of call {call_id} after 1 h 30 min: " in download(client, call.run, "md")
    events = json.loads(download(client, call.run, "json"))["events"]
    assert [one["duration_ms"] for one in events if one["type"] == "tool_result"] == [
        call.duration_ms
    ]
    assert client.get(f"/api/tool_calls/{call_id}").json()["duration_ms"] == call.duration_ms


@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
class TestTheDurationOfAWaitingCall:
    def test_ends_with_the_answer_to_its_question(self, world: World) -> None:
        card = ask_question(world, "North or South?")
        assert ToolCall.objects.get(pk=card.tool_call_id).duration_ms is None, (
            "it waits, and has taken no time yet"
        )
        move_start_back(card.tool_call_id)
        post(world.client("operator"), f"/api/approvals/{card.pk}/answer", {"text": "South"})
        assert_duration_is_shown(world, card.tool_call_id)

    def test_ends_when_the_colleague_has_finished(self, world: World) -> None:
        child = delegate_task(world)
        assert child.parent_call_id is not None
        move_start_back(child.parent_call_id)
        end_child(child)
        collect_delegate_results(child.parent_id or 0)
        assert_duration_is_shown(world, child.parent_call_id)

    def test_is_stored_as_at_most_the_largest_value_that_the_column_can_hold(
        self, world: World
    ) -> None:
        card = ask_question(world)
        ToolCall.objects.filter(pk=card.tool_call_id).update(started_at=Now() - timedelta(days=40))
        assert (
            post(
                world.client("operator"), f"/api/approvals/{card.pk}/answer", {"text": "South"}
            ).status_code
            == 200
        )
        assert ToolCall.objects.get(pk=card.tool_call_id).duration_ms == MAX_MS

    def test_is_not_stored_if_the_question_was_not_answered(self, world: World) -> None:
        card = ask_question(world)
        move_start_back(card.tool_call_id)
        post(world.client("operator"), f"/api/runs/{card.run_id}/cancel")
        call = ToolCall.objects.get(pk=card.tool_call_id)
        assert (call.status, call.duration_ms) == (CallStatus.CANCELLED, None)


@pytest.mark.parametrize(("length", "is_cut"), [(250, False), (301, True)])
def test_a_long_answer_is_cut_in_the_summary_but_complete_in_the_result(
    world: World, length: int, is_cut: bool
) -> None:
    said = "x" * length
    child = delegate_task(world)
    end_child(child, said)
    collect_delegate_results(child.parent_id or 0)
    card = ask_question(world)
    post(world.client("operator"), f"/api/approvals/{card.pk}/answer", {"text": said})
    for call, who in ((child.parent_call, "Kim"), (card.tool_call, "operator")):
        assert call is not None
        call.refresh_from_db()
        result = call.result
        assert result is not None
        told = result["summary"].removeprefix(f"{who} answered: ")
        assert told == (f"{'x' * 299}…" if is_cut else said)
        assert result["data"]["answer"] == said
