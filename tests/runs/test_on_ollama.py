"""Runs with a model on Ollama, from task to answer: only the protocol differs from
other providers."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agents.employees.context_windows import OLLAMA_CONTEXT
from agents.employees.models import Employee, ProviderKind
from agents.runs.models import CallStatus, ExitReason, RunStatus
from tests.features import feature
from tests.model_server import Call
from tests.ollama_server import Chat, OllamaServer, refused
from tests.workshop import Workshop, again, calls, passes, payloads
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db(transaction=True)

SEARCH = Call("data.searchRecords", {"region": "EU"})
ADD = Call("utility.calculate", {"operation": "add", "a": 1, "b": 2})
PER_TOKEN = 4
"""Characters per token for the fake model."""


@pytest.fixture
def ollama(workshop: Workshop) -> Iterator[OllamaServer]:
    """An Ollama server for the workshop's employee."""
    with OllamaServer() as server:
        workshop.connect(server.url)
        provider = workshop.employee.provider
        provider.kind, provider.api_key = ProviderKind.OLLAMA, ""
        provider.save()
        yield server


def rename(record: Record, name: str) -> Call:
    return Call("data.updateRecord", {"record_id": str(record.pk), "changes": {"name": name}})


def list_roles_after_the_task(body: dict[str, Any]) -> list[tuple[str, str]]:
    """List the role and the tool's name of each message after the task."""
    return [(message["role"], message.get("tool_name", "")) for message in body["messages"][2:]]


def tokens_of(body: dict[str, Any]) -> int:
    return len(json.dumps([body["messages"], body.get("tools", [])])) // PER_TOKEN


@feature("Models", "Ollama, through its own API", "agents/providers/ollama.py")
def test_a_read_a_duplicate_and_two_cards_lead_to_an_answer(
    workshop: Workshop, ollama: OllamaServer
) -> None:
    workshop.allow_passes(10)
    acme, globex = workshop.record(), workshop.record(name="Globex")
    ollama.script(
        Chat(text="Looking.", thinking="Search first.", calls=(SEARCH, ADD)),
        Chat(calls=(SEARCH, rename(acme, "Acme AG"), rename(globex, "Globex AG")), chunk_bytes=5),
        Chat(text="Acme has its new name."),
    )
    run = workshop.work()
    assert run.status == RunStatus.WAITING
    first, second = workshop.cards(run)
    workshop.approve(first)
    workshop.deny(second, reason="Globex stays")
    run = workshop.drive(again(run))
    assert (run.status, run.exit_reason, run.answer) == (
        RunStatus.SUCCEEDED,
        ExitReason.FINAL_ANSWER,
        "Acme has its new name.",
    )
    assert [call.status for call in calls(run)] == [
        CallStatus.SUCCEEDED,
        CallStatus.SUCCEEDED,
        CallStatus.DUPLICATE,
        CallStatus.SUCCEEDED,
        CallStatus.DENIED,
    ]
    assert set(Record.objects.values_list("name", flat=True)) == {"Acme AG", "Globex"}
    assert (run.input_tokens, run.output_tokens) == (300, 30)
    assert_history_in_ollamas_format(ollama)
    assert [one.response.get("thinking") for one in passes(run)] == ["Search first. ", None, None]


def assert_history_in_ollamas_format(ollama: OllamaServer) -> None:
    """Check the last request: calls carry their arguments as objects, results name their tools, and
    all messages are in order."""
    body = ollama.requests[-1]
    assert len(ollama.requests) == 3
    assert list_roles_after_the_task(body) == [
        ("assistant", ""),
        ("tool", "data__searchRecords"),
        ("tool", "utility__calculate"),
        ("assistant", ""),
        ("tool", "data__searchRecords"),
        ("tool", "data__updateRecord"),
        ("tool", "data__updateRecord"),
    ]
    looking, found, _, asking, found_again, _, denied = body["messages"][2:]
    assert looking["thinking"] == "Search first. "
    assert looking["tool_calls"][0]["function"]["arguments"] == {"region": "EU"}
    assert [call["function"]["arguments"].get("changes") for call in asking["tool_calls"]] == [
        None,
        {"name": "Acme AG"},
        {"name": "Globex AG"},
    ]
    assert found["content"] == found_again["content"]
    assert "Globex stays" in denied["content"]
    ids = [call["id"] for message in (looking, asking) for call in message["tool_calls"]]
    assert len(set(ids)) == 5


def test_params_that_are_not_an_object_are_rejected(
    workshop: Workshop, ollama: OllamaServer
) -> None:
    ollama.script(
        Chat(calls=(Call("data.searchRecords", arguments="[1]"),)), Chat(text="I was wrong.")
    )
    run = workshop.work()
    assert [call.status for call in calls(run)] == [CallStatus.REJECTED]
    assert run.answer == "I was wrong."
    assert ollama.requests[1]["messages"][2]["tool_calls"][0]["function"]["arguments"] == {}


@feature("Models", "Model settings for each employee", "agents/employees/models/employee.py")
def test_the_employees_settings_are_sent_to_ollama(
    workshop: Workshop, ollama: OllamaServer
) -> None:
    employee = workshop.employee
    employee.temperature, employee.max_tokens, employee.num_ctx = 0.5, 900, 16384
    employee.extra_body = {"keep_alive": "30m", "options": {"top_k": 5}}
    employee.save()
    assert workshop.work().status == RunStatus.SUCCEEDED
    (body,) = ollama.requests
    assert body["options"] == {"temperature": 0.5, "num_predict": 900, "num_ctx": 16384, "top_k": 5}
    assert (body["model"], body["keep_alive"]) == ("fake", "30m")


@feature(
    "Models",
    "The history is shortened before it exceeds Ollama's context",
    "agents/runs/engine/compaction.py",
)
@pytest.mark.parametrize(
    ("fields", "context"),
    [({"num_ctx": 8_192}, 8_192), ({"context_tokens": 8_192}, 8_192), ({}, OLLAMA_CONTEXT)],
    ids=["in words of Ollama", "in words of the form", "in none"],
)
def test_a_history_is_shortened_before_it_exceeds_the_context(
    workshop: Workshop, ollama: OllamaServer, fields: dict[str, int], context: int
) -> None:
    """Ollama does not refuse a history that is too long: it drops the beginning. So every request
    sets the context's size."""
    passes_ = context // 400
    Employee.objects.filter(pk=workshop.employee.pk).update(max_passes=passes_ + 1, **fields)

    def answer(body: dict[str, Any]) -> Chat:
        used = {"prompt_tokens": tokens_of(body), "completion_tokens": 20}
        done = sum(message["role"] == "tool" for message in body["messages"])
        if done == passes_:
            return Chat(text="All seen.", usage=used)
        return Chat(calls=(Call("probe.big", {"characters": 4_000 + done}),), usage=used)

    ollama.respond_with(answer)
    run = workshop.work()
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "All seen.")
    assert sum(len(call.content) for call in calls(run)) > 2 * context * PER_TOKEN
    assert max(map(tokens_of, ollama.requests)) > context // 2
    assert len(ollama.requests) == passes_ + 1
    for body in ollama.requests:
        assert body["options"]["num_ctx"] == context
        assert tokens_of(body) < context
        assert [message["role"] for message in body["messages"][:2]] == ["system", "user"]
    results = [
        message["content"]
        for message in ollama.requests[-1]["messages"]
        if message["role"] == "tool"
    ]
    assert results[0].startswith("4000 characters")
    assert "shortened" in results[0]
    assert results[-1] == calls(run)[-1].content


def test_a_model_that_is_not_pulled_fails_the_run_and_is_named_in_the_problem(
    workshop: Workshop, ollama: OllamaServer
) -> None:
    ollama.script(refused(404, "model 'fake' not found"))
    run = workshop.work()
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.PROVIDER_ERROR)
    assert "model 'fake' not found" in run.problem


def test_a_cut_stream_is_retried_later(workshop: Workshop, ollama: OllamaServer) -> None:
    ollama.script(Chat(text="Half an answer", calls=(SEARCH,), fault="cut"))
    run = workshop.work()
    assert run.status == RunStatus.QUEUED
    assert payloads(run, "provider_delayed")[-1]["code"] == "cut_stream"
    assert not passes(run)


def test_an_empty_base_url_means_the_installations_default(
    workshop: Workshop, ollama: OllamaServer, settings: Any
) -> None:
    provider = workshop.employee.provider
    provider.base_url = ""
    provider.save()
    settings.OLLAMA_HOST = ollama.url
    assert workshop.work().answer == "Done."
