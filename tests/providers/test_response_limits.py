"""Limits on a response: silence, total time, length and repetition; the part received before the
end is recorded as usage."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agents.providers.base import ProviderError, ProviderStopped
from agents.providers.response_limits import MAX_CHARACTERS, ResponseLimits, is_repeating
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.ollama_server import Chat, OllamaServer
from tests.providers.conftest import Asking

WORD = {"choices": [{"index": 0, "delta": {"content": "word "}}]}
THOUGHT = {"choices": [{"index": 0, "delta": {"reasoning_content": "hm "}}]}
PARAMS = {
    "choices": [
        {"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": " "}}]}}
    ]
}
EMPTY = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
BLOCK = "".join(f"{number:02d} sheep jump over a fence. " for number in range(50))[:200]
PROSE = "".join(f"Record {number} has the score {number * 7 % 101}.\n" for number in range(2_000))


@contextmanager
def slow_server(*steps: Any) -> Iterator[str]:
    """Serve one stream of these steps: bytes and events are sent, and a number makes the server
    wait that many seconds."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 20)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
            )
            for step in steps:
                if isinstance(step, float):
                    ended.wait(step)
                else:
                    send(connection, step)
            ended.wait()

    def send(connection: socket.socket, step: Any) -> None:
        data = step if isinstance(step, bytes) else f"data: {dump(step)}\n\n".encode()
        try:
            connection.sendall(data)
        except OSError:
            ended.set()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        ended.set()
        thread.join(5)
        listener.close()


def dump(event: Any) -> str:
    return Response(events=(event,), done=False).stream(0).decode().removeprefix("data: ").strip()


def fail(ask: Asking, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(max_retries=0, **options)
    return caught.value


@feature(
    "Models",
    "Limits on silence, on the whole response, on its length and on repetition; the text received so far is kept",
    "agents/providers/response_limits.py",
    whole_file=True,
)
@pytest.mark.parametrize("piece", [WORD, THOUGHT, PARAMS], ids=["text", "reasoning", "params"])
def test_a_slow_response_outlasts_the_limit_on_silence(ask: Asking, piece: dict[str, Any]) -> None:
    with slow_server(*[piece, 0.15] * 12, WORD, END, b"data: [DONE]\n\n") as ask.base_url:
        began = time.monotonic()
        assert ask(timeout_s=1.0).text.endswith("word ")
        assert time.monotonic() - began > 1.0


@pytest.mark.parametrize(
    "noise", [b": keep-alive\n\n", EMPTY, b"\n"], ids=["comment", "empty delta", "line"]
)
def test_bytes_without_content_are_treated_as_silence(ask: Asking, noise: Any) -> None:
    with slow_server(WORD, *[noise, 0.1] * 60) as ask.base_url:
        error = fail(ask, timeout_s=1.0)
    assert (error.code, error.transient, error.most_tries) == ("timeout", True, 2)
    assert "nothing more for 1.0 s" in error.message
    assert error.text == "word"


def test_a_response_is_cut_off_at_its_limit_on_total_time(ask: Asking) -> None:
    with slow_server(*[WORD, 0.1] * 60) as ask.base_url:
        error = fail(ask, timeout_s=20, answer_timeout_s=1.0)
    assert (error.code, error.most_tries) == ("timeout", 2)
    assert "did not finish its response within 1.0 s" in error.message
    assert error.text.startswith("word word")


def test_a_response_that_is_not_streamed_has_only_the_limit_on_total_time(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(Response(text="Late.", delay_ms=600))
    assert ask(timeout_s=0.2, stream=False).text == "Late."


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (Response(text="Half of what was meant", fault="cut"), "Half of"),
        (Response(text="Half of", finish=None, done=False), "Half of"),
        (Response(text="Half of", finish="error"), "Half of"),
        (Response(text="<think>Hm</think>Half of", finish="error"), "Half of"),
        (Response(events=(WORD, {"error": {"message": "boom", "code": 502}})), "word"),
        (Response(events=(WORD, '{"choices": [')), "word"),
        (
            Response(
                events=(WORD, {"choices": [{"index": 0, "delta": {}, "error": {"code": 502}}]})
            ),
            "word",
        ),
    ],
    ids=["closed", "no end", "error", "thought", "error event", "no JSON", "error in choice"],
)
def test_a_stream_cut_after_text_keeps_the_text(
    server: ModelServer, ask: Asking, response: Response, text: str
) -> None:
    server.enqueue(response)
    error = fail(ask)
    assert error.text.startswith(text)
    assert (error.transient, error.most_tries) == (True, 2)
    assert error.usage is not None
    assert error.usage.input_tokens > 50
    assert error.usage.output_tokens > 0


def test_a_stream_cut_before_text_can_be_retried_and_counts_only_received_reasoning(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(
        Response(events=(THOUGHT,), done=False),
        Response(events=(), done=False),
        Response(events=(EMPTY,), done=False),
    )
    thought, nothing, empty = fail(ask), fail(ask), fail(ask)
    assert (thought.text, thought.most_tries) == ("", None)
    assert thought.usage is not None
    assert nothing.usage is None
    assert empty.usage is None


def test_the_reported_usage_of_a_cut_stream_is_not_an_estimate(
    server: ModelServer, ask: Asking
) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 700, "completion_tokens": 7}}
    server.enqueue(
        Response(events=(WORD, usage), done=False),
        Response(body='{"choices": [], "usage": {"prompt_tokens": 5}}'),
    )
    for tokens in (700, 5):
        found = fail(ask).usage
        assert found is not None
        assert (found.input_tokens, found.is_estimated) == (tokens, False)


def test_a_stopped_response_counts_the_usage_so_far(ask: Asking) -> None:
    with slow_server(WORD, 30.0) as ask.base_url:
        threading.Thread(target=stop_once_heard, args=(ask,), daemon=True).start()
        with pytest.raises(ProviderStopped) as caught:
            ask()
    assert caught.value.usage is not None
    assert caught.value.usage.is_estimated


def stop_once_heard(ask: Asking) -> None:
    while not ask.heard:
        time.sleep(0.01)
    ask.stopped.set()


def test_ollama_has_the_same_limits(ollama: OllamaServer, ask_ollama: Asking) -> None:
    loop = tuple(
        {"message": {"role": "assistant", "content": BLOCK}, "done": False} for _ in range(60)
    )
    ollama.enqueue(Chat(events=loop), Chat(text="Half of", finish=None), Chat(fault="drip"))
    repeated, cut = fail(ask_ollama), fail(ask_ollama)
    assert (repeated.code, repeated.most_tries) == ("answer_cut", 2)
    assert repeated.text.startswith(BLOCK.strip())
    assert (cut.code, cut.text) == ("cut_stream", "Half of")
    assert "nothing more" in fail(ask_ollama, timeout_s=0.3).message


class TestRepetition:
    @pytest.mark.parametrize(
        "unit",
        [
            *(
                "a",
                " ",
                "\n",
                "I am sorry. ",
                "x" * 199 + "y",
                BLOCK,
                "Paragraph: " + PROSE[:1_500],
                "ab\n\n",
            ),
            *(
                "I use a | b. ",
                "So\tit is. ",
                "if (a || b) {\n\tgo();\n}\n",
                "A table has | and\nI begin.\n",
            ),
        ],
    )
    def test_of_any_unit_is_detected(self, unit: str) -> None:
        length = max(200, len(unit)) * 20
        text = (unit * (length // len(unit) + 1))[:length]
        assert is_repeating(PROSE + text)
        assert is_repeating(text)
        assert not is_repeating(text[: length - max(200, len(unit))])

    @pytest.mark.parametrize(
        "text",
        [
            "| EU | 0 | 0 |\n" * 1_000,
            "EU\t0\t0\n" * 1_000,
            f"| {'Name ' * 60} | 0 |\n" * 100,
            "|\tEU | 0 |\n\n" * 1_000,
            "Acme,EU,0\n" * 1_000,
            "0, 0, 0, 0, " * 1_000,
            "|---" * 2_000,
            PROSE,
            BLOCK * 19,
            (BLOCK * 19 + "an end") * 5,
            "",
            "short",
        ],
        ids=lambda text: text[:12],
    )
    def test_in_a_table_or_of_fewer_than_20_units_is_not_detected(self, text: str) -> None:
        assert not is_repeating(text)

    def test_ends_the_stream(self, server: ModelServer, ask: Asking) -> None:
        loop = {"choices": [{"index": 0, "delta": {"content": BLOCK}}]}
        server.enqueue(Response(events=(WORD, *[loop] * 200), finish=None))
        error = fail(ask)
        assert (error.code, error.most_tries) == ("answer_cut", 2)
        assert "repeated itself" in error.message
        assert 4_000 <= len(error.text) < 6_000

    def test_in_reasoning_ends_the_stream(self, server: ModelServer, ask: Asking) -> None:
        loop = {"choices": [{"index": 0, "delta": {"reasoning_content": BLOCK}}]}
        server.enqueue(Response(events=(*[loop] * 200,), finish=None))
        assert "repeated itself" in fail(ask).message

    def test_in_params_ends_the_stream(self, server: ModelServer, ask: Asking) -> None:
        server.enqueue(
            Response(calls=(Call("utility.now", arguments='{"zone": "' + " " * 20_000),))
        )
        assert "repeated itself" in fail(ask).message

    def test_in_a_long_table_is_allowed(self, server: ModelServer, ask: Asking) -> None:
        table = "| EU | 0 | 0 |\n" * 1_000
        server.enqueue(Response(text=table))
        assert ask().text == table


def test_undetected_repetition_is_bounded_by_the_maximum_length() -> None:
    limits, whole = ResponseLimits(), MAX_CHARACTERS // (len(PROSE) + 2)
    for number in range(10, min(whole, 89) + 10):
        limits.add(f"{number}{PROSE}")
    with pytest.raises(ProviderError, match="1,000,000 characters"):
        limits.add(PROSE * 90)
