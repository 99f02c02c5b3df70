"""Text, thinking and calls are read completely from Ollama's lines, and sent back unchanged."""

import json
from typing import Any

import pytest

from agents.providers.base import Usage
from agents.providers.response_reader import MAX_TOKENS
from tests.model_server import Call
from tests.ollama_server import Chat, OllamaServer
from tests.providers.conftest import FIVE, Asking, asked_for, with_results

CHUNKS = (0, 1, 7, 1000)


@pytest.mark.parametrize("chunk_bytes", CHUNKS)
def test_streamed_text_is_passed_on_piece_by_piece_and_returned_whole(
    ollama: OllamaServer, ask_ollama: Asking, chunk_bytes: int
) -> None:
    ollama.enqueue(Chat(text="There are 47 of them — in Zürich.", chunk_bytes=chunk_bytes))
    response = ask_ollama()
    assert response.text == "There are 47 of them — in Zürich."
    assert response.message == {"role": "assistant", "content": response.text}
    assert "".join(ask_ollama.heard) == response.text
    assert len(ask_ollama.heard) > 3
    assert response.usage == Usage(input_tokens=100, output_tokens=10)


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("chunk_bytes", CHUNKS)
def test_several_calls_are_separated_with_and_without_ids(
    ollama: OllamaServer, ask_ollama: Asking, ids: bool, streamed: bool, chunk_bytes: int
) -> None:
    ollama.enqueue(
        Chat(text="Looking.", calls=FIVE, ids=ids, streamed=streamed, chunk_bytes=chunk_bytes)
    )
    response = ask_ollama()
    assert asked_for(response) == [("data.searchRecords", call.params) for call in FIVE]
    assert response.text == "Looking."
    made = [entry["id"] for entry in response.message["tool_calls"]]
    assert made == [call.provider_call_id for call in response.calls]
    assert len(set(made)) == 5
    assert all(made)


def test_identical_calls_stay_separate(ollama: OllamaServer, ask_ollama: Asking) -> None:
    ollama.enqueue(Chat(calls=(Call("utility.now"), Call("utility.now"))))
    first, second = ask_ollama().calls
    assert (first.tool, second.tool) == ("utility.now", "utility.now")
    assert first.provider_call_id != second.provider_call_id


def test_an_id_that_already_exists_in_the_conversation_is_replaced(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    again = Chat(calls=(Call("utility.now", id="call_0"),))
    ollama.enqueue(again, again)
    first = ask_ollama()
    second = ask_ollama(with_results(first))
    assert first.calls[0].provider_call_id == "call_0"
    assert second.calls[0].provider_call_id not in ("", "call_0")


def test_the_stored_message_has_the_common_form_and_is_sent_back_unchanged(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    params = {"region": "Zürich", "deep": {"x": [1, 2.0, 2**60, None, False, "ä\n"]}}
    ollama.enqueue(
        Chat(
            text="Looking.",
            thinking="They want EU.",
            calls=(Call("data.searchRecords", params, id="c9"),),
        )
    )
    response = ask_ollama()
    assert response.message["thinking"] == "They want EU. "
    (entry,) = response.message["tool_calls"]
    assert (entry["id"], entry["type"]) == ("c9", "function")
    assert json.loads(entry["function"]["arguments"]) == params
    ask_ollama(with_results(response))
    assert ollama.requests[1]["messages"][2:] == [
        {
            "role": "assistant",
            "content": "Looking.",
            "thinking": "They want EU. ",
            "tool_calls": [
                {"id": "c9", "function": {"name": "data__searchRecords", "arguments": params}}
            ],
        },
        {"role": "tool", "tool_name": "data__searchRecords", "content": "ok"},
    ]


def test_generated_ids_are_the_same_in_every_request(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    ollama.enqueue(Chat(calls=FIVE))
    history = with_results(ask_ollama())
    ask_ollama(history)
    ask_ollama(history)
    first, second = (body["messages"] for body in ollama.requests[1:])
    assert first == second
    assert len({call["id"] for call in first[2]["tool_calls"]}) == 5


def test_thinking_without_text_is_not_streamed_as_text(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    ollama.enqueue(Chat(thinking="Hm, hm.", calls=(Call("utility.now"),)))
    response = ask_ollama()
    assert response.text == ""
    assert ask_ollama.heard == []
    assert len(response.calls) == 1


@pytest.mark.parametrize(
    "raw", ["[1, 2]", '"not json"', "7", "true", '"{\\"region\\": 1"', '"[1]"']
)
def test_arguments_that_are_not_an_object_stay_raw_in_the_call_and_empty_in_the_message(
    ollama: OllamaServer, ask_ollama: Asking, raw: str
) -> None:
    ollama.enqueue(Chat(calls=(Call("data.searchRecords", arguments=raw),)))
    response = ask_ollama()
    given = json.loads(raw)
    assert response.calls[0].arguments == (given if isinstance(given, str) else raw)
    ask_ollama(with_results(response))
    assert ollama.requests[1]["messages"][2]["tool_calls"][0]["function"]["arguments"] == {}


def test_arguments_as_the_text_of_an_object_are_accepted(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    ollama.enqueue(Chat(calls=(Call("utility.now", arguments=json.dumps('{"zone": "UTC"}')),)))
    assert asked_for(ask_ollama()) == [("utility.now", {"zone": "UTC"})]


@pytest.mark.parametrize("arguments", [None, {}])
def test_missing_arguments_are_treated_as_empty_params(
    ollama: OllamaServer, ask_ollama: Asking, arguments: Any
) -> None:
    function = (
        {"name": "utility__now"}
        if arguments is None
        else {"name": "utility__now", "arguments": arguments}
    )
    message = {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}
    ollama.enqueue(Chat(events=({"message": message, "done": True},)))
    assert asked_for(ask_ollama()) == [("utility.now", {})]


@pytest.mark.parametrize("calls", [None, "x", 7, [None, "x", {"function": None}], {}, []])
def test_malformed_calls_are_ignored(ollama: OllamaServer, ask_ollama: Asking, calls: Any) -> None:
    message = {"role": None, "content": "Hi", "thinking": None, "tool_calls": calls}
    ollama.enqueue(Chat(events=({"message": message, "done": True, "done_reason": None},)))
    response = ask_ollama()
    assert (response.text, response.calls) == ("Hi", ())
    assert response.message == {"role": "assistant", "content": "Hi"}


def test_lines_can_end_with_lf_or_crlf_and_the_last_without_either(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    lines = [
        {"message": {"content": "Hel\u2028"}, "done": False},
        {"message": {"content": "lo"}, "done": True},
    ]
    body = "\r\n\r\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    ollama.enqueue(Chat(body=body))
    assert ask_ollama().text == "Hel\u2028lo"


def test_usage_is_optional_and_limited_to_a_maximum(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    ollama.enqueue(Chat(text="Hi", usage=None), Chat(text="Hi", usage={"prompt_tokens": 10**30}))
    assert ask_ollama().usage.is_estimated
    assert ask_ollama().usage == Usage(MAX_TOKENS, 0)


def test_unstorable_characters_are_replaced(ollama: OllamaServer, ask_ollama: Asking) -> None:
    ollama.enqueue(
        Chat(body=r'{"message": {"content": "a\u0000b", "thinking": "\ud800"}, "done": true}')
    )
    response = ask_ollama()
    assert response.text == "".join(ask_ollama.heard) == "a\ufffdb"
    assert response.message["thinking"] == "\ufffd"


def test_dotted_names_are_never_sent_and_unknown_names_are_returned_unchanged(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    ollama.enqueue(Chat(calls=(Call("data.updateRecord"), Call("format_disk"))))
    response = ask_ollama()
    names = [tool["function"]["name"] for tool in ollama.requests[0]["tools"]]
    assert names == ["data__searchRecords", "data__updateRecord", "utility__now"]
    assert [call.tool for call in response.calls] == ["data.updateRecord", "format_disk"]
