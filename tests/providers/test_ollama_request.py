"""Requests to Ollama: its own message format for any history, and the parameters added by
settings."""

import json
from typing import Any

import pytest

from agents.providers.base import ModelSettings, ProviderError
from tests.ollama_server import Chat, OllamaServer, refused
from tests.providers.conftest import HISTORY, Asking, definition


def made_call(call_id: str, name: str, arguments: str, **more: Any) -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        **more,
        "function": {"name": name, "arguments": arguments},
    }


def result(call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def sent(ollama: OllamaServer, ask: Asking, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages that are sent to the server for these messages."""
    ask([*HISTORY, *messages])
    told: list[dict[str, Any]] = ollama.requests[-1]["messages"]
    assert told[:2] == HISTORY
    return told[2:]


def test_the_whole_request_has_the_expected_form(ollama: OllamaServer, ask_ollama: Asking) -> None:
    search = definition("data.searchRecords", "Searches.")
    search["function"]["parameters"] = {
        "type": "object",
        "properties": {"region": {"type": "string"}},
    }
    ask_ollama(tools=[search])
    assert ollama.requests == [
        {
            "model": "fake-model",
            "messages": [
                {"role": "system", "content": "You are Dana."},
                {"role": "user", "content": "Find the EU records."},
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "data__searchRecords",
                        "description": "Searches.",
                        "parameters": {
                            "type": "object",
                            "properties": {"region": {"type": "string"}},
                        },
                    },
                }
            ],
            "stream": True,
        }
    ]
    assert ollama.request_headers[0]["content-type"] == "application/json"


def test_earlier_passes_are_sent_with_objects_and_tool_names(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    """Denials and duplicates' results are sent like any other result."""
    calls = [
        made_call(
            "c1",
            "data__searchRecords",
            '{"region": "Zürich", "limit": 5, "deep": {"x": [1.0, null, true]}}',
        ),
        made_call("c2", "data__updateRecord", '{"record_id": "42"}'),
        made_call("c3", "data__searchRecords", '{"region": "Zürich"}'),
    ]
    told = sent(
        ollama,
        ask_ollama,
        {"role": "assistant", "content": None, "tool_calls": calls},
        result("c1", "2 records"),
        result("c2", "Denied by Ann: not this one."),
        result("c3", "2 records"),
        {"role": "assistant", "content": "Two of them."},
        {"role": "user", "content": "Please continue."},
    )
    deep = {"region": "Zürich", "limit": 5, "deep": {"x": [1.0, None, True]}}
    assert told == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "c1", "function": {"name": "data__searchRecords", "arguments": deep}},
                {
                    "id": "c2",
                    "function": {"name": "data__updateRecord", "arguments": {"record_id": "42"}},
                },
                {
                    "id": "c3",
                    "function": {"name": "data__searchRecords", "arguments": {"region": "Zürich"}},
                },
            ],
        },
        {"role": "tool", "tool_name": "data__searchRecords", "content": "2 records"},
        {
            "role": "tool",
            "tool_name": "data__updateRecord",
            "content": "Denied by Ann: not this one.",
        },
        {"role": "tool", "tool_name": "data__searchRecords", "content": "2 records"},
        {"role": "assistant", "content": "Two of them."},
        {"role": "user", "content": "Please continue."},
    ]


def test_a_history_written_by_another_provider_is_converted(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    parts = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Look"},
        {"type": "text", "text": "ing."},
    ]
    call = made_call("c1", "format disk!", "{}", extra_content={"signature": "c2ln"})
    told = sent(
        ollama,
        ask_ollama,
        {
            "role": "assistant",
            "content": parts,
            "reasoning_content": "They ask.",
            "tool_calls": [call],
        },
        result("c1", "There is no such tool."),
    )
    (kept,) = told[0].pop("tool_calls")
    assert told[0] == {"role": "assistant", "content": "Looking.", "reasoning_content": "They ask."}
    assert kept["extra_content"] == {"signature": "c2ln"}
    assert kept["function"] == {"name": "format_disk_", "arguments": {}}
    assert told[1]["tool_name"] == "format_disk_"


def test_a_closing_request_does_not_offer_tools(ollama: OllamaServer, ask_ollama: Asking) -> None:
    ask_ollama.settings = ModelSettings(body={"tools": [{"type": "function"}]})
    ask_ollama(closing=True)
    assert "tools" not in ollama.requests[0]


def test_settings_are_sent_as_options(ollama: OllamaServer, ask_ollama: Asking) -> None:
    ask_ollama.settings = ModelSettings(temperature=0.0, max_tokens=50, num_ctx=8192)
    ask_ollama()
    assert ollama.requests[0]["options"] == {"temperature": 0.0, "num_predict": 50, "num_ctx": 8192}


def test_an_extra_body_adds_options_and_does_not_override_our_parameters(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    extra = {"keep_alive": "30m", "think": False, "options": {"top_k": 20, "num_ctx": 1}}
    reserved = {"model": "other", "messages": [], "tools": [], "stream": False}
    ask_ollama.settings = ModelSettings(num_ctx=8192, body={**extra, **reserved})
    ask_ollama()
    body = ollama.requests[0]
    assert (body["keep_alive"], body["think"]) == ("30m", False)
    assert body["options"] == {"top_k": 20, "num_ctx": 8192}
    assert (body["model"], body["messages"], len(body["tools"]), body["stream"]) == (
        "fake-model",
        HISTORY,
        3,
        True,
    )


def test_a_key_is_sent_only_if_it_is_configured(ollama: OllamaServer, ask_ollama: Asking) -> None:
    ask_ollama(api_key="")
    ask_ollama(api_key="key-abc")
    first, second = ollama.request_headers
    assert "authorization" not in first
    assert second["authorization"] == "Bearer key-abc"


def test_an_address_can_have_a_path(ollama: OllamaServer, ask_ollama: Asking) -> None:
    ollama.chat_path = "/proxied/api/chat"
    ask_ollama.base_url = f"{ollama.url}/proxied/"
    assert ask_ollama().text == "Done."


def test_50_requests_use_one_connection(ollama: OllamaServer, ask_ollama: Asking) -> None:
    ollama.script(Chat(text="Done.", chunk_bytes=7))
    for _ in range(50):
        ask_ollama()
    assert ollama.connections == 1


@pytest.mark.parametrize("needed", ["fake-model", "Fake-Model:latest", "hf.co/some/model:q4"])
def test_the_check_finds_a_pulled_model(
    ollama: OllamaServer, ask_ollama: Asking, needed: str
) -> None:
    ollama.pull("fake-model:latest", "hf.co/some/model:q4")
    ask_ollama.models = (needed,)
    ask_ollama.provider().check()
    assert ollama.requests == []


@pytest.mark.parametrize(
    ("needed", "pulled"), [("qwen3", ()), ("fake-model:7b", ("fake-model:latest", "qwen3:8b"))]
)
def test_the_check_reports_a_model_that_is_not_pulled(
    ollama: OllamaServer, ask_ollama: Asking, needed: str, pulled: tuple[str, ...]
) -> None:
    ollama.pull(*pulled)
    ask_ollama.models = (needed,)
    with pytest.raises(ProviderError, match="ollama pull") as caught:
        ask_ollama.provider().check()
    assert (caught.value.code, caught.value.transient) == ("not_found", False)
    assert needed in caught.value.message
    assert ", ".join(pulled) in caught.value.message


@pytest.mark.parametrize(
    ("tags", "code", "words"),
    [
        (Chat(status=404, body="404 page not found"), "not_found", "without /v1"),
        (Chat(body='{"object": "list", "data": []}'), "bad_answer", "without /v1"),
        (Chat(body="[]"), "bad_answer", "does not respond like Ollama"),
        (Chat(body="<html>Hello</html>"), "bad_answer", "Hello"),
        (refused(401, "unauthorized"), "bad_key", "unauthorized"),
        (refused(500, "broken"), "server_error", "broken"),
    ],
)
def test_the_check_explains_each_failure(
    ollama: OllamaServer, ask_ollama: Asking, tags: Chat, code: str, words: str
) -> None:
    ollama.models = tags
    with pytest.raises(ProviderError, match=words) as caught:
        ask_ollama.provider().check()
    assert caught.value.code == code


def test_odd_text_in_the_history_is_sent_anyway(ollama: OllamaServer, ask_ollama: Asking) -> None:
    assert (
        ask_ollama([*HISTORY, {"role": "user", "content": "ok \ud800 \x00 \u2028"}]).text == "Done."
    )
    assert json.dumps(ollama.requests[0])
