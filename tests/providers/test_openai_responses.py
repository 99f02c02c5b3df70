"""Text and calls are read completely, in every form in which servers send them."""

import json
from typing import Any, Literal

import pytest

from agents.providers.base import Usage
from tests.model_server import Call, ModelServer, Response
from tests.providers.conftest import FIVE, Asking, asked_for, with_results

Style = Literal["fragments", "whole", "one_delta", "no_index", "same_index"]


def test_streamed_text_is_passed_on_piece_by_piece_and_returned_whole(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(Response(text="There are 47 of them — in Zürich."))
    response = ask()
    assert response.text == "There are 47 of them — in Zürich."
    assert response.message == {"role": "assistant", "content": response.text}
    assert "".join(ask.heard) == response.text
    assert len(ask.heard) > 3
    assert response.calls == ()
    assert response.usage == Usage(input_tokens=100, output_tokens=10)


@pytest.mark.parametrize("style", ["fragments", "whole", "one_delta", "no_index", "same_index"])
@pytest.mark.parametrize("chunk_bytes", [0, 7])
def test_parallel_calls_are_separated_in_every_style(
    server: ModelServer, ask: Asking, style: Style, chunk_bytes: int
) -> None:
    server.enqueue(Response(text="Looking.", calls=FIVE, style=style, chunk_bytes=chunk_bytes))
    response = ask()
    assert asked_for(response) == [("data.searchRecords", call.params) for call in FIVE]
    assert response.text == "Looking."
    assert len({call.provider_call_id for call in response.calls}) == 5


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("style", ["whole", "one_delta", "no_index", "same_index"])
def test_missing_ids_are_generated(
    server: ModelServer, ask: Asking, style: Style, streamed: bool
) -> None:
    calls = tuple(Call(call.tool, call.params, id="") for call in FIVE)
    server.enqueue(Response(calls=calls, style=style, streamed=streamed))
    response = ask()
    assert asked_for(response) == [("data.searchRecords", call.params) for call in FIVE]
    ids = [entry["id"] for entry in response.message["tool_calls"]]
    assert all(ids)
    assert len(set(ids)) == 5
    assert ids == [call.provider_call_id for call in response.calls]


@pytest.mark.parametrize("streamed", [True, False])
def test_duplicate_ids_are_replaced(server: ModelServer, ask: Asking, streamed: bool) -> None:
    calls = (
        Call("data.searchRecords", {"region": "EU"}, id="call_0"),
        Call("utility.now", {}, id="call_0"),
    )
    server.enqueue(Response(calls=calls, streamed=streamed))
    first, second = ask().calls
    assert first.provider_call_id == "call_0"
    assert second.provider_call_id not in ("", "call_0")


def test_an_id_that_already_exists_in_the_conversation_is_replaced(
    server: ModelServer, ask: Asking
) -> None:
    again = Response(calls=(Call("utility.now", {}, id="call_0"),))
    server.enqueue(again, again)
    first = ask()
    second = ask(with_results(first))
    assert first.calls[0].provider_call_id == "call_0"
    assert second.calls[0].provider_call_id != "call_0"


def test_a_complete_response_instead_of_a_stream_is_accepted(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(Response(text="Both.", calls=FIVE[:2], streamed=False))
    response = ask()
    assert server.requests[0]["stream"] is True
    assert response.text == "Both."
    assert ask.heard == ["Both."]
    assert len(response.calls) == 2
    assert response.usage.input_tokens == 100


def test_a_provider_configured_not_to_stream_does_not_stream(
    server: ModelServer, ask: Asking
) -> None:
    assert ask(stream=False).text == "Done."
    assert "stream" not in server.requests[0]
    assert "stream_options" not in server.requests[0]


@pytest.mark.parametrize("streamed", [True, False])
def test_calls_are_accepted_even_if_the_finish_reason_is_stop(
    server: ModelServer, ask: Asking, streamed: bool
) -> None:
    server.enqueue(Response(calls=FIVE[:1], finish="stop", streamed=streamed))
    assert len(ask().calls) == 1


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("raw", ['{"region": "EU"', "not json", "[1, 2]", "[" * 3_000])
def test_malformed_arguments_stay_raw_in_the_call_and_become_empty_in_the_message(
    server: ModelServer, ask: Asking, raw: str, streamed: bool
) -> None:
    server.enqueue(
        Response(
            calls=(Call("data.searchRecords", arguments=raw),), style="whole", streamed=streamed
        )
    )
    response = ask()
    assert response.calls[0].arguments == raw
    assert response.message["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("raw", ["", "null", " null "])
def test_missing_arguments_become_empty_params(
    server: ModelServer, ask: Asking, raw: str, streamed: bool
) -> None:
    server.enqueue(Response(calls=(Call("utility.now", arguments=raw),), streamed=streamed))
    assert ask().calls[0].arguments == "{}"


def test_arguments_as_an_object_are_converted_to_text(server: ModelServer, ask: Asking) -> None:
    function = {"name": "utility__now", "arguments": {"zone": "UTC"}}
    choice = {"delta": {"tool_calls": [{"function": function}]}, "finish_reason": "stop"}
    server.enqueue(Response(events=({"choices": [choice]},)))
    assert asked_for(ask()) == [("utility.now", {"zone": "UTC"})]


@pytest.mark.parametrize("streamed", [True, False])
def test_unknown_fields_are_stored_and_sent_back_verbatim(
    server: ModelServer, ask: Asking, streamed: bool
) -> None:
    signature = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    extra = {
        "reasoning_content": "They want EU.",
        "reasoning_details": [{"type": "text", "text": "hm", "index": 0}],
    }
    calls = (Call("data.searchRecords", {"region": "EU"}, extra=signature),)
    server.enqueue(Response(text="Looking.", calls=calls, extra=extra, streamed=streamed))
    response = ask()
    assert response.message["reasoning_content"] == "They want EU."
    assert response.message["reasoning_details"] == extra["reasoning_details"]
    assert response.message["tool_calls"][0]["extra_content"] == signature["extra_content"]
    ask(with_results(response))
    assert server.requests[1]["messages"][2] == response.message


@pytest.mark.parametrize("streamed", [True, False])
def test_content_can_be_a_list_of_parts(server: ModelServer, ask: Asking, streamed: bool) -> None:
    parts = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Forty-"},
        {"type": "text", "text": "seven"},
    ]
    server.enqueue(Response(extra={"content": parts}, streamed=streamed))
    response = ask()
    assert response.text == "Forty-seven"
    assert response.message["content"] == parts


@pytest.mark.parametrize("content", [{"content": None}, {}])
def test_content_can_be_missing(server: ModelServer, ask: Asking, content: dict[str, Any]) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "utility__now", "arguments": "{}"}}
    message = {"role": "assistant", **content, "tool_calls": [call]}
    server.enqueue(
        Response(
            body=json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
        )
    )
    response = ask()
    assert response.text == ""
    assert response.message["content"] is None
    assert [call.tool for call in response.calls] == ["utility.now"]


def test_a_refusal_by_the_model_is_returned_as_its_response(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(Response(extra={"refusal": "I must not do that."}))
    assert ask().text == "I must not do that."


def test_dotted_names_are_never_sent_and_unknown_names_are_returned_unchanged(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(Response(calls=(Call("data.updateRecord"), Call("format_disk"))))
    response = ask()
    names = [tool["function"]["name"] for tool in server.requests[0]["tools"]]
    assert names == ["data__searchRecords", "data__updateRecord", "utility__now"]
    assert [call.tool for call in response.calls] == ["data.updateRecord", "format_disk"]


def test_50_requests_use_one_connection(server: ModelServer, ask: Asking) -> None:
    for _ in range(50):
        ask()
    assert server.connections == 1
