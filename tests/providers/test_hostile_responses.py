"""Characters that a server may send but no database can store are replaced or cause a clear
failure."""

import json
from typing import Any

import pytest

from agents.providers.base import ProviderError, Usage
from agents.providers.response_reader import MAX_TOKENS
from tests.model_server import Call, ModelServer, Response
from tests.providers.conftest import Asking

DEEP = json.loads("[" * 900 + "]" * 900)
UNKEEPABLE: dict[str, Any] = {
    "not a number": float("nan"),
    "infinite": float("inf"),
    "nested deeply": DEEP,
    "deep inside": {"a": [{"b": float("-inf")}]},
}


def chunk(content: str) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": {"content": content}}]})


END = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("case", UNKEEPABLE)
def test_unstorable_text_makes_a_response_invalid(
    server: ModelServer, ask: Asking, case: str, streamed: bool
) -> None:
    server.enqueue(
        Response(text="Hi", extra={"reasoning_details": UNKEEPABLE[case]}, streamed=streamed)
    )
    with pytest.raises(ProviderError) as failed:
        ask()
    assert (failed.value.code, failed.value.transient) == ("bad_answer", True)


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_an_unbounded_number_makes_a_response_invalid(
    server: ModelServer, ask: Asking, number: str
) -> None:
    choice = json.dumps(
        {"message": {"content": "Hi", "score": 77}, "finish_reason": "stop"}
    ).replace("77", number)
    body = f'{{"choices": [{choice}]}}'
    server.enqueue(Response(body=body))
    with pytest.raises(ProviderError, match="bad_answer"):
        ask()


def test_brackets_inside_a_text_do_not_count_as_nesting(server: ModelServer, ask: Asking) -> None:
    server.enqueue(Response(text="[{" * 500))
    assert ask().text == "[{" * 500


@pytest.mark.parametrize("streamed", [True, False])
def test_usage_is_limited_to_a_maximum(server: ModelServer, ask: Asking, streamed: bool) -> None:
    usage = {"prompt_tokens": 10**30, "completion_tokens": "many"}
    server.enqueue(
        Response(text="Hi", usage=usage, streamed=streamed),
        Response(text="Hi", usage={"prompt_tokens": -3}),
    )
    assert ask().usage == Usage(MAX_TOKENS, 0)
    assert ask().usage.is_estimated


def test_arguments_that_no_server_can_parse_are_not_sent_back(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(Response(calls=(Call("data.searchRecords", arguments='{"limit": NaN}'),)))
    response = ask()
    assert response.calls[0].arguments == '{"limit": NaN}'
    assert response.message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_a_surrogate_pair_split_between_deltas_is_joined(server: ModelServer, ask: Asking) -> None:
    server.enqueue(Response(events=(chunk("Hi \ud83d"), chunk("\ude00!"), END)))
    assert ask().text == "Hi 😀!"
    assert "".join(ask.heard) == "Hi 😀!"


@pytest.mark.parametrize("pieces", [("a\ud83d", "b"), ("a", "\ude00b"), ("ab\ud83d",), ("a\0b",)])
def test_half_a_surrogate_pair_and_nul_are_replaced(
    server: ModelServer, ask: Asking, pieces: tuple[str]
) -> None:
    server.enqueue(Response(events=(*map(chunk, pieces), END)))
    response = ask()
    told = "".join(ask.heard)
    assert told == response.text
    assert "\ufffd" in told
    assert told.encode()


def test_a_deeply_nested_error_is_reported_like_any_other(server: ModelServer, ask: Asking) -> None:
    server.enqueue(Response(status=400, body=json.dumps({"error": DEEP})))
    with pytest.raises(ProviderError, match="refused"):
        ask()
