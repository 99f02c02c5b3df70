"""Thoughts are separated from the response, for every provider and wherever the tags are split."""

from __future__ import annotations

import time

import pytest

from agents.providers.reasoning_text import ReasoningSplitter, split_reasoning
from tests.model_server import ModelServer, Response
from tests.ollama_server import Chat, OllamaServer
from tests.providers.conftest import Asking

CASES = {
    "<think>a</think>\n\nHi": ("Hi", "a"),
    "  \n<think>a</think>Hi": ("Hi", "a"),
    "<think>never closed": ("", "never closed"),
    "<think></think>Hi": ("Hi", ""),
    "<THINK>a</Think>b": ("b", "a"),
    "Hi <think>b</think>there": ("Hi there", "b"),
    "<think>a</think>x<think>b</think>y": ("xy", "a\n\nb"),
    "<think>a</think><think>b": ("", "a\n\nb"),
    "Hi\n<think>cut": ("Hi", "cut"),
    "<think>I write <think> here</think>b": ("b", "I write <think> here"),
    "only closed\n</think>\nHi": ("Hi", "only closed"),
    "Hi </think>": ("Hi ", ""),
    "Use `<think>` and `</think>`.": ("Use `<think>` and `</think>`.", ""),
    "Models use <think> for that.": ("Models use <think> for that.", ""),
    "```\n<think>\n```\nAn example.": ("```\n<think>\n```\nAn example.", ""),
    "a < b <thi": ("a < b <thi", ""),
}


@pytest.mark.parametrize("text", CASES)
def test_reasoning_is_separated_from_the_response(text: str) -> None:
    split = split_reasoning(text)
    assert (split.content, split.reasoning) == CASES[text]


@pytest.mark.parametrize("text", CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_separation_is_independent_of_how_the_text_is_split(text: str, size: int) -> None:
    whole, pieces = ReasoningSplitter(), ReasoningSplitter()
    visible = whole.add(text) + whole.finish()
    parts = [pieces.add(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join(parts) + pieces.finish() == visible
    assert (pieces.blocks, pieces.content_begins) == (whole.blocks, whole.content_begins)


@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 50_000,
        "<" * 300_000,
        "</think>" * 40_000,
        "a<think>b</think>" * 20_000,
        "`" * 300_000,
        "\n<thin" * 50_000,
    ],
)
def test_hostile_texts_take_time_in_proportion_to_their_length(text: str) -> None:
    started = time.process_time()
    split_reasoning(text)
    splitter = ReasoningSplitter()
    for start in range(0, len(text), 7):
        splitter.add(text[start : start + 7])
    splitter.finish()
    assert time.process_time() - started < 10


@pytest.mark.parametrize("size", [0, 1])
def test_reasoning_is_neither_streamed_nor_sent_back(
    server: ModelServer, ask: Asking, size: int
) -> None:
    server.enqueue(
        Response(text="<think>secret plan</think>\n\nThe answer <is> this.", chunk_bytes=size)
    )
    response = ask()
    assert (
        response.text
        == "".join(ask.heard)
        == response.message["content"]
        == "The answer <is> this."
    )
    assert response.thought == "secret plan"


def test_reasoning_in_content_parts_is_neither_streamed_nor_sent_back(
    server: ModelServer, ask: Asking
) -> None:
    content = [
        {"type": "text", "text": "<think>secret"},
        {"type": "image"},
        {"type": "text", "text": "</think>Hi"},
    ]
    message = {"role": "assistant", "content": content}
    server.enqueue(Response(events=({"choices": [{"delta": message, "finish_reason": "stop"}]},)))
    response = ask()
    assert (response.text, response.thought) == ("Hi", "secret")
    assert response.message["content"] == [{"type": "image"}, {"type": "text", "text": "Hi"}]


def test_reasoning_from_ollama_is_separated_in_the_same_way(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    ollama.enqueue(Chat(text="<think>secret plan</think> The answer."))
    response = ask_ollama()
    assert (
        response.text == "".join(ask_ollama.heard) == response.message["content"] == "The answer."
    )
    assert response.thought == "secret plan"
