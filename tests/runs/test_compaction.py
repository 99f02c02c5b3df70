"""A long history is shortened before it outgrows the model's context; the model can still read the
whole results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from agents.employees.context_windows import find_context_tokens
from agents.employees.models import Employee, Grant, ModelProvider, ProviderKind
from agents.runs.engine.compaction import FULL, PassSizes, RequestRoom, Shortening, choose_cuts
from agents.runs.models import ExitReason, Run, RunStatus
from tests.features import feature
from tests.model_responses import Call, Response, failing
from tests.model_server import ModelServer
from tests.workshop import Workshop, calls, event_types, passes, payloads
from tools.office.records.models import Record

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("conversation_cache_is_checked"),
]

PER_TOKEN = 4
"""The number of characters per token, as this model counts them."""
CONTEXT = 30_000
HANDLE = re.compile(r"handle (r-\d+): results\.read\(handle, offset\)\]$")


def tokens_of(body: dict[str, Any]) -> int:
    return len(json.dumps([body["messages"], body.get("tools", [])])) // PER_TOKEN


def list_results(body: dict[str, Any]) -> list[str]:
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def has_common_beginning(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return bool(second["messages"][: len(first["messages"])] == first["messages"])


@pytest.fixture
def many(workshop: Workshop) -> Workshop:
    """A workshop with enough records for large results, and a model with a context of 30,000
    tokens."""
    Grant.objects.create(employee=workshop.employee, tool="results.read")
    names = [f"Company {number:04} with a long name" for number in range(120)]
    rows = [
        Record(organization=workshop.organization, name=name, region="EU", status="active")
        for name in names
    ]
    Record.objects.bulk_create(rows)
    workshop.employee.context_tokens = CONTEXT
    workshop.employee.max_passes = 70
    workshop.employee.save()
    return workshop


def run_to_end(workshop: Workshop) -> Run:
    """Run a task to its end, in as many slices as needed."""
    run = workshop.work("Search a lot")
    while run.status == RunStatus.QUEUED:
        run = workshop.drive(run)
    return run


def searching(count: int) -> Callable[[dict[str, Any]], Response]:
    """Return a model that makes `count` searches, then reads the first shortened result, and
    answers."""

    def answer(body: dict[str, Any]) -> Response:
        used = {"prompt_tokens": tokens_of(body), "completion_tokens": 50}
        done = len(list_results(body))
        if done < count:
            params = {"limit": 60 + done % 60, "text": "Company" if done < 60 else "long"}
            return Response(calls=(Call("data__searchRecords", params),), usage=used)
        handles = [found[1] for text in list_results(body) if (found := HANDLE.search(text))]
        if done == count and handles:
            return Response(calls=(Call("results__read", {"handle": handles[0]}),), usage=used)
        return Response(text="All seen.", usage=used)

    return answer


@feature(
    "Costs, budgets, long runs",
    "Older results shrink to their summaries before the context is full",
    "agents/runs/engine/compaction.py",
)
def test_requests_with_sixty_large_results_stay_below_the_limit_and_the_results_can_be_read_again(
    many: Workshop, model: ModelServer
) -> None:
    model.respond_with(searching(60))
    run = run_to_end(many)
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "All seen.")
    sent = [tokens_of(body) for body in model.requests]
    assert len(sent) == 62
    assert max(sent) < CONTEXT
    assert sum(len(call.content) for call in calls(run)) > 3 * CONTEXT * PER_TOKEN
    # The fake server refuses a call id without exactly one tool message.
    for body in model.requests:
        newest = list_results(body)[-1:]
        assert not newest or "shortened" not in newest[0]
    *earlier, again = list_results(model.requests[-1])
    place, short = next((place, text) for place, text in enumerate(earlier) if HANDLE.search(text))
    assert len(short) < 400
    assert short.startswith((calls(run)[place].result or {})["summary"])
    assert calls(run)[place].content in again


@feature(
    "Costs, budgets, long runs",
    "Earlier messages stay the same, for the provider's cache",
    "agents/runs/engine/compaction.py",
)
def test_most_requests_begin_with_the_whole_preceding_request(
    many: Workshop, model: ModelServer
) -> None:
    model.respond_with(searching(60))
    run_to_end(many)
    requests = model.requests
    kept = [has_common_beginning(first, second) for first, second in pairwise(requests)]
    assert 2 <= kept.count(False) <= len(kept) // 3
    assert sum(tokens_of(body) < FULL * CONTEXT * 1.1 for body in requests) == len(requests)


@feature(
    "Costs, budgets, long runs",
    "A line in the panel reports each compaction, with the tokens before and after",
    "agents/runs/engine/passes.py",
)
def test_each_further_shortening_has_an_event_with_the_tokens_before_and_after(
    many: Workshop, model: ModelServer
) -> None:
    model.respond_with(searching(60))
    run = run_to_end(many)
    changed = {}
    for number, (first, second) in enumerate(pairwise(model.requests), start=2):
        kept = zip(first["messages"], second["messages"], strict=False)
        if differing := sum(before != after for before, after in kept):
            changed[number] = (differing, tokens_of(first), tokens_of(second))
    lines = payloads(run, "history_shortened")
    assert [line["pass_number"] for line in lines] == list(changed)
    for line, (differing, before, after) in zip(lines, changed.values(), strict=True):
        assert (line["results"], line["texts"]) == (differing, 0)
        assert before < line["tokens_before"] < 1.2 * before, (
            "the whole request, with the newest result"
        )
        assert line["tokens_after"] == pytest.approx(after, rel=0.1)
        types = event_types(run)
        began = [place for place, type_ in enumerate(types) if type_ == "pass_started"][
            line["pass_number"] - 1
        ]
        assert types[began : began + 3] == ["pass_started", "history_shortened", "tool_start"]


def test_results_do_not_mention_the_reading_tool_if_it_is_not_granted(
    many: Workshop, model: ModelServer
) -> None:
    many.employee.grants.filter(tool="results.read").delete()
    model.respond_with(searching(60))
    run_to_end(many)
    assert any(
        "[shortened; the rest is left out]" in text for text in list_results(model.requests[-1])
    )
    assert "results.read" not in "".join(list_results(model.requests[-1]))


def test_the_newest_results_are_cut_and_flagged_if_they_alone_are_too_large(
    many: Workshop, model: ModelServer
) -> None:
    many.employee.context_tokens = 4_000
    many.employee.save()
    found = [Call("data__searchRecords", {"limit": limit}) for limit in (100, 110, 120)]
    model.enqueue(Response(calls=tuple(found)), Response(text="Seen."))
    run = many.work()
    assert run.answer == "Seen."
    texts = list_results(model.requests[-1])
    assert len(texts) == 3
    assert all(
        re.search(r"\[shortened: [\d,]+ of [\d,]+ characters; handle r-\d+: results", text)
        for text in texts
    )


TOO_LONG = failing(400, "This model's maximum context length is 8192 tokens")


@feature(
    "Costs, budgets, long runs",
    "If the provider finds the context too long, it gets a shorter one, once",
    "agents/runs/engine/passes.py",
)
def test_a_request_refused_as_too_long_is_shortened_and_sent_once_more(
    many: Workshop, model: ModelServer
) -> None:
    limits = [Call("data__searchRecords", {"limit": limit}) for limit in (100, 110, 120)]
    model.enqueue(
        *[Response(calls=(call,)) for call in limits], TOO_LONG, Response(text="Now it fits.")
    )
    run = many.work()
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Now it fits.")
    refused, taken = model.requests[-2:]
    assert tokens_of(taken) < 0.7 * tokens_of(refused)
    assert [each.number for each in passes(run)] == [1, 2, 3, 4]
    (line,) = payloads(run, "history_shortened")
    assert (line["pass_number"], line["results"]) == (4, 3)
    assert line["tokens_after"] < 0.7 * line["tokens_before"]


def test_events_match_the_requests_after_several_refusals(
    many: Workshop, model: ModelServer
) -> None:
    search = searching(12)
    refused: list[int] = []

    def answer(body: dict[str, Any]) -> Response:
        done = len(list_results(body))
        if done in (5, 6) and done not in refused:
            refused.append(done)
            return TOO_LONG
        return search(body)

    model.respond_with(answer)
    run = run_to_end(many)
    assert run.answer == "All seen."
    assert refused == [5, 6]
    again = [
        place for place, body in enumerate(model.requests) if len(list_results(body)) in (5, 6)
    ]
    assert again == [5, 6, 7, 8], "each of these is sent twice, and no later one"
    taken = [body for place, body in enumerate(model.requests) if place not in (5, 7)]
    assert_events_match_requests(run, taken)
    assert [line["pass_number"] for line in payloads(run, "history_shortened")][:2] == [6, 7]


def assert_events_match_requests(run: Run, taken: list[dict[str, Any]]) -> None:
    """Check that each event states the size of a request before and after its cuts."""
    changed, whole = {}, [len(each.content) for each in calls(run)]
    for number, (first, second) in enumerate(pairwise(taken), start=2):
        both = zip(
            list_results(first) + list_later_results(run, first), list_results(second), strict=False
        )
        if differing := sum(before != after for before, after in both):
            newest = whole[len(list_results(first))] // PER_TOKEN
            changed[number] = (differing, tokens_of(first) + newest, tokens_of(second))
    lines = payloads(run, "history_shortened")
    assert [line["pass_number"] for line in lines] == list(changed)
    for line, (differing, before, after) in zip(lines, changed.values(), strict=True):
        assert (line["results"], line["texts"]) == (differing, 0)
        assert line["tokens_before"] == pytest.approx(before, rel=0.1)
        assert line["tokens_after"] == pytest.approx(after, rel=0.1)


def list_later_results(run: Run, body: dict[str, Any]) -> list[str]:
    """List the results that came after this request."""
    return [each.content for each in calls(run)[len(list_results(body)) :]]


@feature(
    "Costs, budgets, long runs",
    "A model with a smaller context than expected refuses once per run, and the panel shows what was sent",
    "agents/runs/engine/compaction.py",
)
def test_a_model_with_a_smaller_context_than_assumed_refuses_only_once(
    many: Workshop, model: ModelServer
) -> None:
    search, sees = searching(30), 8_000
    model.respond_with(lambda body: TOO_LONG if tokens_of(body) > sees else search(body))
    run = run_to_end(many)
    assert run.answer == "All seen."
    assert sum(tokens_of(body) > sees for body in model.requests) == 1
    assert_events_match_requests(run, [body for body in model.requests if tokens_of(body) <= sees])


def test_a_request_that_stays_too_long_ends_the_run(many: Workshop, model: ModelServer) -> None:
    model.enqueue(
        Response(calls=(Call("data__searchRecords", {"limit": 120}),)), TOO_LONG, TOO_LONG
    )
    run = many.work()
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR)
    assert "It is still too long after older results were shortened" in run.problem
    assert len(model.requests) == 3
    assert payloads(run, "history_shortened") == [], (
        "the event belongs to a pass, and none was recorded"
    )


def test_a_request_whose_task_alone_is_too_long_is_sent_only_once(
    many: Workshop, model: ModelServer
) -> None:
    model.enqueue(TOO_LONG)
    run = many.work()
    assert run.exit_reason == ExitReason.PROVIDER_ERROR
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("kind", "model", "fields", "tokens"),
    [
        (ProviderKind.OPENAI, "gpt-5-mini", {}, 272_000),
        (ProviderKind.OPENAI, "openai/gpt-4o-2024-11-20", {}, 128_000),
        (ProviderKind.OPENAI, "gpt-4", {}, 8_192),
        (ProviderKind.OPENAI, "local", {}, 128_000),
        (ProviderKind.OPENAI, "local", {"num_ctx": 4_096}, 128_000),
        (ProviderKind.OPENAI, "gpt-5", {"context_tokens": 9_000}, 9_000),
        (ProviderKind.OLLAMA, "qwen3", {"num_ctx": 16_384}, 16_384),
        (ProviderKind.OLLAMA, "qwen3", {"extra_body": {"options": {"num_ctx": 8_000}}}, 8_000),
        (ProviderKind.OLLAMA, "qwen3", {"num_ctx": 16_384, "context_tokens": 12_000}, 12_000),
        (ProviderKind.OLLAMA, "qwen3", {"num_ctx": 16_384, "context_tokens": 40_000}, 16_384),
        (ProviderKind.OLLAMA, "qwen3", {"context_tokens": 40_000}, 40_000),
        (ProviderKind.OLLAMA, "gpt-5", {"extra_body": {"options": {"num_ctx": "much"}}}, 16_384),
        (ProviderKind.OLLAMA, "qwen3", {}, 16_384),
    ],
)
def test_each_model_has_its_context_size(
    kind: ProviderKind, model: str, fields: dict[str, Any], tokens: int
) -> None:
    assert find_context_tokens(Employee(model=model, **fields), ModelProvider(kind=kind)) == tokens


def make_sizes(*results: int, text: int = 0, input_tokens: int = 0) -> PassSizes:
    return PassSizes(
        new_texts=0, response=50 + text, text=text, results=results, input_tokens=input_tokens
    )


def test_the_largest_results_are_shortened_first_and_no_more_than_needed() -> None:
    recorded = [make_sizes(2_000), make_sizes(30_000), make_sizes(3_000), make_sizes(10_000)]
    cuts = choose_cuts(recorded, 1_000, 0, RequestRoom(tokens=16_000))
    assert cuts.results == {(1, 0): 0}
    assert not cuts.texts


def test_reported_tokens_replace_the_estimate() -> None:
    recorded = [make_sizes(9_000), make_sizes(9_000), make_sizes(9_000)]
    assert choose_cuts(recorded, 1_000, 0, RequestRoom(tokens=16_000)).is_empty
    counted = [
        make_sizes(9_000, input_tokens=1_000),
        make_sizes(9_000, input_tokens=10_000),
        make_sizes(9_000),
    ]
    assert choose_cuts(counted, 1_000, 0, RequestRoom(tokens=16_000)).results == {
        (0, 0): 0,
        (1, 0): 0,
    }


def test_the_oldest_texts_are_shortened_if_shortening_the_results_is_not_enough() -> None:
    recorded = [
        make_sizes(text=20_000),
        make_sizes(text=20_000),
        make_sizes(text=20_000),
        make_sizes(100),
    ]
    assert choose_cuts(recorded, 1_000, 0, RequestRoom(tokens=16_000)).texts == {0, 1}


def test_nothing_is_shortened_while_there_is_room() -> None:
    cuts = choose_cuts([make_sizes(24_000)] * 10, 1_000, 0, RequestRoom(tokens=128_000))
    assert cuts.is_empty
    assert cuts.added is None


def test_earlier_cuts_are_not_reported_again() -> None:
    recorded = [make_sizes(20_000), make_sizes(30_000)]
    first = choose_cuts(recorded, 1_000, 0, RequestRoom(tokens=16_000))
    assert first.added == Shortening(results=1, texts=0, tokens_before=15_354, tokens_after=9_450)
    again = choose_cuts([*recorded, make_sizes(100)], 1_000, 0, RequestRoom(tokens=16_000))
    assert again == first
    assert again.added is None


def test_a_context_size_that_the_server_reports_applies_to_later_requests(
    many: Workshop, model: ModelServer
) -> None:
    message = (
        "request (24176 tokens) exceeds the available context size (4096 tokens), try increasing it"
    )
    error = {
        "code": 400,
        "message": message,
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 24176,
        "n_ctx": 4096,
    }
    searches = [
        Response(calls=(Call("data__searchRecords", {"limit": 50 + each, "text": "Company"}),))
        for each in range(7)
    ]
    model.enqueue(
        *searches[:5],
        Response(status=400, body=json.dumps({"error": error})),
        *searches[5:],
        Response(text="Done."),
    )
    run = run_to_end(many)
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "Done."), run.problem
    sizes = [len(json.dumps(body["messages"])) for body in model.requests]
    refused, shorter, later = sizes[5], sizes[6], sizes[7:]
    assert shorter < refused * 0.25
    # Without `n_prompt_tokens`, later requests would grow back to more than 0.4 times the size of
    # the refused request.
    assert max(later) < refused * 0.35
