"""A call identical to an earlier one is skipped and gets the earlier result, unless the world may
have changed since."""

import pytest

from agents.runs.models import ApprovalStatus, CallStatus, ExitReason, RunStatus, ToolCall
from agents.worker.sweeper import sweep_once
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    data_of,
    error_code,
    event_types,
    expire_card,
    last_call,
    payloads,
    statuses,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("conversation_cache_is_checked"),
]

ADD = call("utility.calculate", operation="add", a=1, b=2)
OTHER = call("utility.calculate", operation="add", a=3, b=4)
DUPLICATE, SUCCEEDED, FAILED = CallStatus.DUPLICATE, CallStatus.SUCCEEDED, CallStatus.FAILED


@pytest.fixture(autouse=True)
def _many_passes(workshop: Workshop) -> None:
    workshop.allow_passes(20)


def names_its_original(duplicate: ToolCall, original: ToolCall) -> bool:
    return (
        duplicate.status == DUPLICATE
        and duplicate.duplicate_of_id == original.pk
        and duplicate.attempts == 0
    )


class TestEqualCallsInOnePass:
    def test_share_the_result_of_the_first(self, workshop: Workshop) -> None:
        workshop.play(asking(ADD, OTHER, ADD))
        run = workshop.work()
        first, other, second = calls(run)
        assert (first.status, other.status) == (SUCCEEDED, SUCCEEDED)
        assert names_its_original(second, first)
        (skipped,) = payloads(run, "tool_skipped")
        assert skipped == {
            "call_id": str(second.pk),
            "tool": second.tool,
            "duplicate_of": str(first.pk),
        }

    def test_are_recognized_regardless_of_key_order_and_omitted_defaults(
        self, workshop: Workshop
    ) -> None:
        full = call("data.searchRecords", limit=100, region="EU")
        workshop.play(asking(call("data.searchRecords", region="EU"), full))
        first, second = calls(workshop.work())
        assert names_its_original(second, first)

    def test_of_a_write_tool_share_one_card_and_one_effect(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a"), call("probe.effect", name="a")))
        run = workshop.work()
        (card,) = workshop.cards(run)
        workshop.approve(card)
        run = workshop.drive(run)
        assert run.status == RunStatus.SUCCEEDED
        first, second = calls(run)
        assert names_its_original(second, first)
        assert sum(recorder.effects.values()) == 1

    def test_of_a_volatile_tool_both_run(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.clock"), call("probe.clock")))
        assert statuses(workshop.work()) == [SUCCEEDED, SUCCEEDED]

    def test_of_a_volatile_write_tool_each_have_a_card_and_an_effect(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(call("probe.knock", name="a"), call("probe.knock", name="a")))
        run = workshop.work()
        for card in workshop.cards(run):
            workshop.approve(card)
        run = workshop.drive(run)
        assert statuses(run) == [SUCCEEDED, SUCCEEDED]
        assert list(recorder.effects.values()) == [1, 1]


class TestACallOfAnEarlierPass:
    @feature(
        "Execution",
        "Duplicate calls get the earlier result",
        "agents/runs/engine/requested_calls.py",
    )
    def test_is_skipped_when_repeated_and_the_run_continues_with_the_other_calls(
        self, workshop: Workshop
    ) -> None:
        workshop.play(asking(ADD), asking(ADD, OTHER))
        run = workshop.work()
        assert names_its_original(calls(run)[1], calls(run)[0])
        assert statuses(run) == [SUCCEEDED, DUPLICATE, SUCCEEDED]
        assert run.exit_reason == ExitReason.FINAL_ANSWER

    def test_runs_again_when_repeated_if_its_tool_is_volatile(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.clock")), asking(call("probe.clock")))
        assert statuses(workshop.work()) == [SUCCEEDED, SUCCEEDED]

    def test_is_the_original_to_which_a_second_duplicate_refers_too(
        self, workshop: Workshop
    ) -> None:
        workshop.play(asking(ADD), asking(ADD, OTHER), asking(ADD, call("probe.clock")))
        rows = calls(workshop.work())
        assert names_its_original(rows[1], rows[0])
        assert names_its_original(rows[3], rows[0])

    def test_has_its_result_sent_to_the_model_for_its_duplicate_too(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        params = {"operation": "add", "a": 1, "b": 2}
        model.script(
            Response(calls=(Call("utility.calculate", params, id="one"),)),
            Response(
                calls=(Call("utility.calculate", params, id="two"), Call("probe.clock", id="three"))
            ),
            Response(text="Three."),
        )
        run = workshop.work()
        assert run.status == RunStatus.SUCCEEDED, run.problem
        contents = {
            m["tool_call_id"]: m["content"]
            for m in model.requests[-1]["messages"]
            if m["role"] == "tool"
        }
        assert contents["one"] == contents["two"]
        assert "3" in contents["one"]


class TestAPassOfOnlyDuplicates:
    def test_ends_the_run_with_a_closing_answer(self, workshop: Workshop) -> None:
        workshop.play(asking(ADD), asking(ADD), asking(OTHER), answer="Three, as I said.")
        run = workshop.work()
        assert (run.status, run.exit_reason) == (
            RunStatus.SUCCEEDED,
            ExitReason.ALL_TOOLS_DUPLICATE,
        )
        assert run.answer == "Three, as I said."
        assert statuses(run) == [SUCCEEDED, DUPLICATE]

    def test_does_not_end_the_run_if_a_person_sent_a_message_meanwhile(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        params = {"operation": "add", "a": 1, "b": 2}
        add = Response(calls=(Call("utility.calculate", params),))
        model.script(add, Response(calls=add.calls, hold="start"), Response(text="Well."))
        run = workshop.submit()
        with workshop.driving(run):
            model.wait_for_held()
            workshop.say(run, "Thank you.")
            model.release()
        run = again(run)
        assert run.exit_reason == ExitReason.FINAL_ANSWER
        assert model.requests[-1]["messages"][-1] == {"role": "user", "content": "Thank you."}


class TestARead:
    def test_runs_again_after_an_executed_write(self, workshop: Workshop) -> None:
        record = workshop.record()
        search = call("data.searchRecords")
        workshop.play(
            asking(search, call("probe.rename", record_id=record.pk, to="New")), asking(search)
        )
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        assert statuses(run) == [SUCCEEDED, SUCCEEDED, SUCCEEDED]
        assert data_of(last_call(run))["records"][0]["name"] == "New"

    def test_runs_again_after_a_wait(self, workshop: Workshop) -> None:
        workshop.play(asking(ADD, call("probe.effect", name="a")), asking(ADD))
        run = workshop.work()
        workshop.deny(workshop.card(run))
        assert statuses(workshop.drive(run)) == [SUCCEEDED, CallStatus.DENIED, SUCCEEDED]

    def test_runs_again_after_a_message(self, workshop: Workshop) -> None:
        workshop.play(asking(ADD))
        run = workshop.work()
        workshop.say(run, "And once more.")
        assert statuses(workshop.drive(run)) == [SUCCEEDED, SUCCEEDED]


class TestAFailedCall:
    @pytest.mark.parametrize("code", ["NOT_FOUND", "OPERATION_FAILED", "", "UNAUTHORIZED"])
    def test_makes_the_next_identical_call_a_duplicate(self, workshop: Workshop, code: str) -> None:
        fail = call("probe.fail", code=code)
        workshop.play(asking(fail), asking(fail))
        run = workshop.work()
        assert statuses(run) == [FAILED, DUPLICATE]
        assert run.exit_reason == ExitReason.ALL_TOOLS_DUPLICATE

    @pytest.mark.parametrize(
        "code", ["TIMEOUT", "NETWORK_ERROR", "RATE_LIMIT_EXCEEDED", "WORKER_LOST"]
    )
    def test_can_be_repeated_twice_if_the_failure_is_transient(
        self, workshop: Workshop, code: str
    ) -> None:
        fail = call("probe.fail", code=code)
        workshop.play(*[asking(fail)] * 6)
        run = workshop.work()
        assert statuses(run) == [FAILED, FAILED, FAILED, DUPLICATE]
        assert run.exit_reason == ExitReason.ALL_TOOLS_DUPLICATE

    @pytest.mark.parametrize("code", ["RATE_LIMITED", "LIMIT_EXCEEDED"])
    def test_can_always_be_repeated_if_our_own_limit_refused_it(
        self, workshop: Workshop, code: str
    ) -> None:
        fail = call("probe.fail", code=code)
        workshop.play(*[asking(fail)] * 5)
        assert statuses(workshop.work()) == [FAILED] * 5

    def test_is_forgotten_after_a_write(self, workshop: Workshop, recorder: Recorder) -> None:
        fail = call("probe.fail", code="NOT_FOUND")
        workshop.play(asking(fail, call("probe.effect", name="a")), asking(fail))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        assert statuses(workshop.drive(run)) == [FAILED, SUCCEEDED, FAILED]

    def test_is_forgotten_after_a_message(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.fail", code="NOT_FOUND")))
        run = workshop.work()
        workshop.say(run)
        assert statuses(workshop.drive(run)) == [FAILED, FAILED]


class TestARejectedCall:
    @pytest.mark.parametrize(
        "rejected",
        [
            call("probe.nowhere", x=1),
            call("utility.calculate", operation="guess"),
            {"tool": "utility.calculate", "arguments": "{not json"},
            call("probe.rename", record_id=1_000_000, to="x"),
        ],
        ids=["unknown", "invalid", "malformed", "preview refused"],
    )
    def test_makes_the_next_identical_call_a_duplicate(
        self, workshop: Workshop, rejected: dict[str, object]
    ) -> None:
        workshop.play(*[asking(rejected)] * 4)
        run = workshop.work()
        assert statuses(run) == [CallStatus.REJECTED, DUPLICATE]
        assert run.exit_reason == ExitReason.ALL_TOOLS_DUPLICATE

    def test_is_forgotten_after_a_message(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.nowhere")))
        run = workshop.work()
        workshop.say(run)
        assert statuses(workshop.drive(run)) == [CallStatus.REJECTED, CallStatus.REJECTED]


class TestADeniedCall:
    def test_is_not_shown_to_a_person_again(self, workshop: Workshop) -> None:
        effect = call("probe.effect", name="a")
        workshop.play(asking(effect), asking(effect, ADD))
        run = workshop.work()
        workshop.deny(workshop.card(run), "never")
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.DENIED, DUPLICATE, SUCCEEDED]
        assert not workshop.cards(run)

    def test_makes_identical_calls_duplicates_even_after_a_write_and_a_wait(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        denied, other = call("probe.effect", name="no"), call("probe.effect", name="yes")
        workshop.play(asking(denied), asking(other), asking(denied, ADD))
        run = workshop.work()
        workshop.deny(workshop.card(run))
        run = workshop.drive(run)
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.DENIED, SUCCEEDED, DUPLICATE, SUCCEEDED]

    def test_can_be_requested_again_after_a_message(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        workshop.deny(workshop.card(run))
        run = workshop.drive(run)
        workshop.say(run, "Now you may ask again.")
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.DENIED, CallStatus.AWAITING_APPROVAL]


class TestASuccessfulWrite:
    def test_makes_identical_calls_duplicates_even_after_a_wait(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        effect = call("probe.effect", name="a")
        workshop.play(
            asking(effect), asking(call("probe.effect", name="denied")), asking(effect, ADD)
        )
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        workshop.deny(workshop.card(run))
        run = workshop.drive(run)
        assert event_types(run).count("run_waiting") == 2
        assert statuses(run) == [SUCCEEDED, CallStatus.DENIED, DUPLICATE, SUCCEEDED]
        assert sum(recorder.effects.values()) == 1

    def test_can_be_requested_again_after_another_write(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        effect = call("probe.effect", name="a")
        workshop.play(asking(effect), asking(call("probe.effect", name="b")), asking(effect))
        run = workshop.work()
        for _ in range(2):
            workshop.approve(workshop.card(run))
            run = workshop.drive(run)
        assert statuses(run) == [SUCCEEDED, SUCCEEDED, CallStatus.AWAITING_APPROVAL]

    def test_can_be_requested_again_after_a_message(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        workshop.say(run, "Do it again, please.")
        assert statuses(workshop.drive(run)) == [SUCCEEDED, CallStatus.AWAITING_APPROVAL]

    def test_cannot_be_requested_again_after_a_message_to_another_run(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        effect = call("probe.effect", name="a")
        workshop.play(asking(effect), asking(effect))
        run, other = workshop.work(), workshop.submit()
        workshop.approve(workshop.card(run))
        for _ in range(20):
            workshop.say(other)
        assert statuses(workshop.drive(run)) == [SUCCEEDED, DUPLICATE]

    def test_is_recognized_by_the_models_params_even_after_an_edit(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        effect = call("probe.effect", name="a")
        workshop.play(asking(effect), asking(effect, ADD))
        run = workshop.work()
        edited = workshop.edit(workshop.card(run), {"name": "b"})
        workshop.approve(edited)
        run = workshop.drive(run)
        assert statuses(run) == [SUCCEEDED, DUPLICATE, SUCCEEDED]


class TestRequestingAgain:
    def test_is_possible_for_a_call_whose_card_expired(self, workshop: Workshop) -> None:
        effect = call("probe.effect", name="a")
        workshop.play(asking(effect), asking(effect))
        run = workshop.work()
        expire_card(workshop.card(run))
        sweep_once()
        run = workshop.drive(run)
        assert statuses(run) == [CallStatus.EXPIRED, CallStatus.AWAITING_APPROVAL]

    def test_is_possible_for_a_call_settled_as_not_done(self, workshop: Workshop) -> None:
        effect = call("probe.failingEffect", code="NETWORK_ERROR")
        workshop.play(asking(effect), asking(effect))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        workshop.resolve(calls(run)[0], "not_done")
        run = workshop.drive(run)
        first, second = calls(run)
        assert (first.status, second.status) == (FAILED, CallStatus.AWAITING_APPROVAL)
        assert first.idempotency_key != second.idempotency_key

    def test_is_impossible_for_a_call_settled_as_succeeded(self, workshop: Workshop) -> None:
        effect = call("probe.failingEffect", code="NETWORK_ERROR")
        workshop.play(asking(effect), asking(effect))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        workshop.resolve(calls(run)[0], "succeeded")
        assert statuses(workshop.drive(run)) == [SUCCEEDED, DUPLICATE]

    def test_is_possible_for_a_call_that_exceeded_the_limit_on_cards(
        self, workshop: Workshop
    ) -> None:
        effects = [call("probe.effect", name=str(number)) for number in range(21)]
        workshop.play(asking(*effects), asking(effects[20]))
        run = workshop.work()
        assert error_code(last_call(run)) == "LIMIT_EXCEEDED"
        for card in workshop.cards(run):
            workshop.deny(card)
        run = workshop.drive(run)
        assert last_call(run).status == CallStatus.AWAITING_APPROVAL
        assert workshop.card(run).status == ApprovalStatus.PENDING
