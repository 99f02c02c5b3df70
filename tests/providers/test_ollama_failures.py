"""Ollama's failures get the same codes as the failures of other servers; deadlines and stops are
obeyed."""

import json
import socket
import threading

import pytest

from agents.providers.base import ProviderError, ProviderStopped
from tests.model_server import Call, html, nonsense
from tests.ollama_server import Chat, OllamaServer, refused
from tests.providers.conftest import Asking, within

SOON = 8.0
CALLS = (Call("data.searchRecords", {"region": "EU", "text": "a longer text, to be cut"}),)
HALF = {"message": {"content": "a"}, "done": False}
FAULTS: dict[str, tuple[Chat, str, bool]] = {
    "html with 200": (Chat(body=html().body), "bad_answer", False),
    "nonsense with 200": (Chat(body=nonsense().body), "bad_answer", True),
    "an empty body": (Chat(body=""), "bad_answer", True),
    "cut JSON": (Chat(body='{"message": {"conte'), "bad_answer", True),
    "a JSON list": (Chat(body="[1, 2, 3]"), "bad_answer", True),
    "an object of another kind": (Chat(body='{"status": "ok"}'), "bad_answer", True),
    "an answer in the shape of Chat Completions": (
        Chat(body='{"choices": []}'),
        "bad_answer",
        True,
    ),
    "a message of text": (Chat(body='{"message": "Hi", "done": true}'), "bad_answer", True),
    "an event stream": (Chat(body='data: {"choices": []}\n\n'), "bad_answer", True),
    "deep nesting": (Chat(body='{"a":' + "[" * 200_000), "bad_answer", True),
    "not a number": (
        Chat(body='{"message": {"content": "Hi", "score": NaN}, "done": true}'),
        "bad_answer",
        True,
    ),
    "error as text with 200": (Chat(body='{"error": "something odd"}'), "bad_answer", True),
    "no such model with 200": (Chat(body='{"error": "model \'x\' not found"}'), "not_found", False),
    "error in the middle of a stream": (
        Chat(events=(HALF, {"error": "an error was unavailable"})),
        "server_error",
        True,
    ),
    "a line that is no JSON": (Chat(events=(HALF, '{"message": {')), "bad_answer", True),
    "a stream cut in the middle of a call": (Chat(calls=CALLS, fault="cut"), "cut_stream", True),
    "a stream without its last line": (Chat(text="Half of", finish=None), "cut_stream", True),
    "done that is not true": (Chat(events=(HALF, {**HALF, "done": "yes"})), "cut_stream", True),
    "closed without an answer": (Chat(fault="reset"), "unreachable", True),
    "400": (refused(400, "registry.ollama.ai/library/x does not support tools"), "refused", False),
    "400 too long": (
        refused(400, "the input length exceeds the context length"),
        "context_too_long",
        False,
    ),
    "401": (refused(401, "unauthorized"), "bad_key", False),
    "404": (refused(404, "model 'x' not found"), "not_found", False),
    "404 of another server": (Chat(status=404, body="404 page not found"), "not_found", False),
    "429": (refused(429, "slow down"), "rate_limited", True),
    "500": (refused(500, "llama runner process has terminated"), "server_error", True),
    "503 as html": (Chat(status=503, body="<html>maintenance</html>"), "server_error", True),
    "a redirect": (
        Chat(status=302, body="", headers={"Location": "http://example.org/"}),
        "not_found",
        False,
    ),
    "all tokens used for thinking": (Chat(thinking="Hm", finish="length"), "answer_cut", True),
}


@pytest.mark.parametrize("case", FAULTS)
def test_each_failure_has_its_code_and_retry_flag(
    ollama: OllamaServer, ask_ollama: Asking, case: str
) -> None:
    response, code, transient = FAULTS[case]
    ollama.respond_with(lambda body: response)
    with pytest.raises(ProviderError) as caught:
        ask_ollama(max_retries=0)
    assert (caught.value.code, caught.value.transient) == (code, transient)
    assert len(caught.value.message) < 600


def test_the_next_request_after_a_failure_succeeds(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    for response, _, _ in FAULTS.values():
        ollama.enqueue(response)
        with pytest.raises(ProviderError):
            ask_ollama(max_retries=0)
    assert ask_ollama().text == "Done."


def test_a_missing_model_is_named(ollama: OllamaServer, ask_ollama: Asking) -> None:
    ollama.enqueue(refused(404, "model 'qwen3' not found"))
    with pytest.raises(ProviderError, match="model 'qwen3' not found"):
        ask_ollama()


@pytest.mark.parametrize("first", [refused(500, "loading"), Chat(fault="reset")])
def test_one_quick_retry_recovers_from_a_transient_failure(
    ollama: OllamaServer, ask_ollama: Asking, first: Chat
) -> None:
    ollama.enqueue(first)
    assert ask_ollama().text == "Done."
    assert len(ollama.requests) == 2


def test_a_partly_streamed_response_is_not_requested_again(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    ollama.enqueue(Chat(text="Half of what", calls=CALLS, fault="cut"))
    with pytest.raises(ProviderError, match="closed the connection in the middle"):
        ask_ollama()
    assert ask_ollama.heard
    assert len(ollama.requests) == 1


def test_a_server_that_does_not_listen_is_unreachable(ask_ollama: Asking) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        ask_ollama.base_url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ProviderError, match=r"127\.0\.0\.1") as caught:
            ask_ollama()
    assert (caught.value.code, caught.value.transient) == ("unreachable", True)


@pytest.mark.parametrize("base_url", ["localhost:11434", "ftp://x", "http://["])
def test_an_unusable_address_is_reported(ask_ollama: Asking, base_url: str) -> None:
    ask_ollama.base_url = base_url
    with pytest.raises(ProviderError, match="base_url") as caught:
        ask_ollama()
    assert (caught.value.code, caught.value.transient) == ("bad_settings", False)


@pytest.mark.parametrize(
    "response",
    [
        refused(401, "no such key: sk-secret-1234"),
        Chat(body="your key is sk-secret-1234"),
        Chat(body=json.dumps({"error": "key sk-secret-1234"})),
        Chat(events=(HALF, "sk-secret-1234")),
    ],
)
def test_error_messages_do_not_contain_the_key(
    ollama: OllamaServer, ask_ollama: Asking, response: Chat
) -> None:
    ollama.enqueue(response)
    with pytest.raises(ProviderError) as caught:
        ask_ollama()
    assert "sk-secret" not in str(caught.value)
    assert "***" in str(caught.value)


@pytest.mark.parametrize(
    "response", [Chat(hold="start"), Chat(text="a b c d", hold="middle"), Chat(fault="drip")]
)
def test_the_request_ends_at_its_deadline(
    ollama: OllamaServer, ask_ollama: Asking, response: Chat
) -> None:
    ollama.enqueue(response)
    with within(SOON), pytest.raises(ProviderError) as caught:
        ask_ollama(within=0.2)
    assert (caught.value.code, caught.value.transient) == ("timeout", True)


@pytest.mark.parametrize(
    "response", [Chat(hold="start"), Chat(text="a b", calls=CALLS, hold="middle")]
)
def test_a_stop_from_another_thread_ends_a_waiting_read(
    ollama: OllamaServer, ask_ollama: Asking, response: Chat
) -> None:
    def stop() -> None:
        ollama.wait_for_held()
        ask_ollama.stopped.set()

    ollama.enqueue(response)
    stopper = threading.Thread(target=stop)
    stopper.start()
    with within(SOON), pytest.raises(ProviderStopped):
        ask_ollama()
    stopper.join()


def test_a_stop_closes_the_connection(ollama: OllamaServer, ask_ollama: Asking) -> None:
    ollama.enqueue(Chat(fault="drip"))
    threading.Timer(0.1, ask_ollama.stopped.set).start()
    with pytest.raises(ProviderStopped):
        ask_ollama()
    ollama.wait_for_dropped()


def test_a_finished_response_is_accepted_even_if_the_stream_never_ends(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    ollama.enqueue(Chat(text="All of it.", fault="no_end"))
    with within(SOON):
        assert ask_ollama().text == "All of it."
