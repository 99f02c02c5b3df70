"""Failures of a model server: each kind has a code and the correct retry flag, and its message
never reveals the key."""

import json
import socket
from typing import Any

import pytest

from agents.providers.base import ModelSettings, ProviderError
from tests.model_server import Call, ModelServer, Response, error_200, failing, html, nonsense
from tests.providers.conftest import HISTORY, Asking, definition

CALLS = (Call("data.searchRecords", {"region": "EU", "text": "a longer text, to be cut"}),)
FAULTS: dict[str, tuple[Response, str, bool]] = {
    "html with 200": (html(), "bad_answer", False),
    "nonsense with 200": (nonsense(), "bad_answer", True),
    "an empty body": (Response(body=""), "bad_answer", True),
    "cut JSON": (Response(body='{"choices": [{"mess'), "bad_answer", True),
    "a JSON list": (Response(body="[1, 2, 3]"), "bad_answer", True),
    "choices null": (Response(body='{"choices": null}'), "bad_answer", True),
    "choices empty": (Response(body='{"choices": []}'), "bad_answer", True),
    "choices of text": (Response(body='{"choices": ["x"]}'), "bad_answer", True),
    "no message": (Response(body='{"choices": [{"index": 0}]}'), "bad_answer", True),
    "deep nesting": (Response(body='{"a":' + "[" * 200_000), "bad_answer", True),
    "error as text with 200": (error_200("something odd"), "bad_answer", True),
    "error with a code with 200": (
        error_200({"code": 429, "message": "slow down"}),
        "rate_limited",
        True,
    ),
    "error with a type with 200": (
        error_200({"type": "invalid_request_error", "message": "no"}),
        "refused",
        False,
    ),
    "overloaded with 200": (
        error_200({"type": "overloaded_error", "message": "busy"}),
        "server_error",
        True,
    ),
    "error in the middle of a stream": (
        Response(
            events=(
                {"choices": [{"delta": {"content": "a"}}]},
                {"error": {"message": "boom", "code": 502}},
            )
        ),
        "server_error",
        True,
    ),
    "a chunk that is no JSON": (
        Response(events=({"choices": [{"delta": {}}]}, '{"choices": [')),
        "bad_answer",
        True,
    ),
    "a stream cut in the middle of arguments": (
        Response(calls=CALLS, fault="cut"),
        "cut_stream",
        True,
    ),
    "a stream without a finish reason": (
        Response(text="Half of", finish=None, done=False),
        "cut_stream",
        True,
    ),
    "a stream of nothing": (Response(events=()), "cut_stream", True),
    "closed without an answer": (Response(fault="reset"), "unreachable", True),
    "400": (failing(400, "bad tools"), "refused", False),
    "400 too long": (
        failing(400, "maximum context length is 8192 tokens"),
        "context_too_long",
        False,
    ),
    "401": (failing(401, "wrong key"), "bad_key", False),
    "402": (failing(402, "pay"), "quota_exhausted", False),
    "403": (failing(403, "your region"), "refused", False),
    "404": (failing(404, "no model fake-model"), "not_found", False),
    "408": (failing(408, "too slow"), "timeout", True),
    "422": (failing(422, "extra field"), "refused", False),
    "429": (failing(429, "slow down"), "rate_limited", True),
    "500": (failing(500, "oops"), "server_error", True),
    "503 as html": (Response(status=503, body="<html>maintenance</html>"), "server_error", True),
    "529": (failing(529, "overloaded"), "server_error", True),
    "a redirect": (failing(302, "moved", location="http://example.org/v1"), "not_found", False),
    "content filter": (Response(finish="content_filter"), "answer_filtered", False),
    "all tokens used for thinking": (Response(finish="length"), "answer_cut", True),
    "a call that its server cannot read": (
        Response(finish="malformed_function_call"),
        "answer_cut",
        True,
    ),
    "a bare error at the end": (Response(text="Half of", finish="error"), "answer_cut", True),
}


@pytest.mark.parametrize("case", FAULTS)
def test_each_failure_has_its_code_and_retry_flag(
    server: ModelServer, ask: Asking, case: str
) -> None:
    response, code, transient = FAULTS[case]
    server.respond_with(lambda body: response)
    with pytest.raises(ProviderError) as caught:
        ask(max_retries=0)
    assert (caught.value.code, caught.value.transient) == (code, transient)
    assert len(caught.value.message) < 600


def test_the_next_request_after_a_failure_succeeds(server: ModelServer, ask: Asking) -> None:
    for response, _, _ in FAULTS.values():
        server.enqueue(response)
        with pytest.raises(ProviderError):
            ask(max_retries=0)
    assert ask().text == "Done."


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": "0.5"}, 0.5),
        ({"retry_after_ms": "1500"}, 1.5),
        ({"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry_After": "soon"}, None),
        ({"Retry_After": "-5"}, None),
        ({"Retry_After": "inf"}, None),
        ({}, None),
    ],
)
def test_the_servers_retry_after_is_reported_without_a_quick_retry(
    server: ModelServer, ask: Asking, headers: dict[str, str], seconds: float | None
) -> None:
    server.enqueue(failing(429, "slow down", **headers))
    with pytest.raises(ProviderError) as caught:
        ask()
    assert caught.value.retry_after == seconds
    assert len(server.requests) == 1


def test_a_429_because_of_missing_credit_is_not_transient(server: ModelServer, ask: Asking) -> None:
    error = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
    server.enqueue(Response(status=429, body=json.dumps({"error": error})))
    with pytest.raises(ProviderError) as caught:
        ask()
    assert (caught.value.code, caught.value.transient) == ("quota_exhausted", False)


@pytest.mark.parametrize("first", [failing(500), Response(fault="reset"), failing(503)])
def test_one_quick_retry_recovers_from_a_transient_failure(
    server: ModelServer, ask: Asking, first: Response
) -> None:
    server.enqueue(first)
    assert ask().text == "Done."
    assert len(server.requests) == 2


def test_a_partly_streamed_response_is_not_requested_again(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(Response(text="Half of what", calls=CALLS, fault="cut"))
    with pytest.raises(ProviderError, match="closed the connection in the middle"):
        ask()
    assert ask.heard
    assert len(server.requests) == 1


def test_a_server_that_does_not_listen_is_unreachable(ask: Asking) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        ask.base_url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(ProviderError, match=r"127\.0\.0\.1") as caught:
            ask()
    assert (caught.value.code, caught.value.transient) == ("unreachable", True)


@pytest.mark.parametrize("base_url", ["localhost:8000/v1", "ftp://x/v1", "http://[", "nothing"])
def test_an_unusable_address_is_reported(ask: Asking, base_url: str) -> None:
    ask.base_url = base_url
    with pytest.raises(ProviderError, match="base_url") as caught:
        ask()
    assert (caught.value.code, caught.value.transient) == ("bad_settings", False)


@pytest.mark.parametrize(
    "response",
    [
        failing(401, "Incorrect API key provided: sk-secret-1234"),
        nonsense("your key is sk-secret-1234"),
        error_200("key sk-secret-1234"),
        Response(events=("sk-secret-1234",)),
        failing(302, "x", location="http://example.org/?key=sk-secret-1234"),
    ],
)
def test_error_messages_never_contain_the_key(
    server: ModelServer, ask: Asking, response: Response
) -> None:
    server.enqueue(response)
    with pytest.raises(ProviderError) as caught:
        ask()
    assert "sk-secret" not in str(caught.value)
    assert "***" in str(caught.value)


def test_the_response_is_quoted_on_one_line_without_control_characters(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(failing(400, "line one\nline two \x1b[31m red \u202e evil" + "x" * 5000))
    with pytest.raises(ProviderError, match="line one line two") as caught:
        ask()
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("key", ["sk-ü", "two words", "line\nbreak"])
def test_a_key_that_cannot_be_sent_in_a_header_is_refused(ask: Asking, key: str) -> None:
    with pytest.raises(ProviderError, match="API key") as caught:
        ask(api_key=key)
    assert caught.value.code == "bad_settings"
    assert key not in str(caught.value)


def test_too_many_tools_are_refused_before_sending(server: ModelServer, ask: Asking) -> None:
    tools = [definition(f"data.tool{number}") for number in range(129)]
    with pytest.raises(ProviderError, match="128"):
        ask(tools=tools)
    assert server.requests == []


@pytest.mark.parametrize("text", ["\ud800", "ok \x00 \u2028"])
def test_odd_text_in_the_history_is_sent_anyway(
    server: ModelServer, ask: Asking, text: str
) -> None:
    messages: list[dict[str, Any]] = [*HISTORY, {"role": "user", "content": text}]
    assert ask(messages).text == "Done."


def test_a_number_that_json_cannot_express_is_refused(ask: Asking) -> None:
    ask.settings = ModelSettings(body={"temperature": float("nan")})
    with pytest.raises(ProviderError, match="JSON") as caught:
        ask()
    assert caught.value.code == "refused"
