"""Errors and streams recorded from real servers: each case in `wire/` has the outcome that its rule
names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.providers.base import ContextWindow, ModelSettings, ProviderError
from tests.features import feature
from tests.model_server import ModelServer, Response
from tests.providers.conftest import Asking, definition
from tools.caches import clear_caches

WIRE = Path(__file__).parent / "wire"
ERRORS = json.loads((WIRE / "errors.json").read_text()) + json.loads(
    (WIRE / "more_errors.json").read_text()
)
SHAPES = json.loads((WIRE / "shapes.json").read_text())
ENDS: dict[str, tuple[str, bool, str]] = {
    "model exists only on Responses": ("refused", False, "Chat Completions"),
    "no tool parser": ("refused", False, "--enable-auto-tool-choice and --tool-call-parser"),
    "no endpoint with tools": ("refused", False, "supports tools"),
    "context too long": ("context_too_long", False, "longer than the model accepts"),
    "the model wrote a broken call": ("answer_cut", True, "could not parse"),
    "larger than the limit per minute": ("context_too_long", False, "limit per minute"),
    "no credit": ("quota_exhausted", False, "no credit"),
    "wait two seconds (Retry-After: 2)": ("rate_limited", True, "too many requests"),
    "wait": ("rate_limited", True, "too many requests"),
    "prompt filtered": ("answer_filtered", False, "content filter"),
    "credits": ("quota_exhausted", False, "no credit"),
    "overloaded": ("server_error", True, "failed"),
    "start with --jinja": ("refused", False, "--jinja"),
    "value out of range": ("refused", False, "refused the request"),
    "wrong key": ("bad_key", False, "API key"),
    "unknown model": ("not_found", False, "does not know"),
}
"""Errors that no adapted request can avoid, each with its code, True if the request is retried, and
words from its message."""
WINDOWS = {
    "llama.cpp": ContextWindow(8192, 24176),
    "Gemini": ContextWindow(1048576, 1200000),
    "Anthropic": ContextWindow(200000, 211000),
    "LM Studio": ContextWindow(4096, 5023),
    "DeepSeek, vLLM": ContextWindow(65536, 70000),
    "Mistral": ContextWindow(32768, 40000),
    "OpenAI": ContextWindow(30000, 44283),
    "SGLang": ContextWindow(8192, 20000),
    "xAI": ContextWindow(131072, 140000),
    "OpenAI, context": ContextWindow(128000, 130812),
    "TGI": ContextWindow(4097),
    "Alibaba": ContextWindow(30720),
    "Cerebras": ContextWindow(8192, 9100),
    "Groq, per minute": ContextWindow(6000, 6528),
}
ADAPTED: dict[str, dict[str, Any]] = {
    "temperature refused": {"temperature": None},
    "temperature deprecated": {"temperature": None},
    "temperature refused by a reasoning model": {"temperature": None},
    "max_tokens refused": {"max_tokens": None, "max_completion_tokens": 500},
    "tools refused on Chat Completions": {"reasoning_effort": "none"},
    "streaming refused": {"stream": None, "stream_options": None},
    "no tools with stream": {"stream": None, "stream_options": None},
    "stream_options refused": {"stream_options": None, "stream": True},
    "top_p refused": {"top_p": None, "temperature": 0.2},
    "both refused together": {"top_p": None, "temperature": 0.2},
}
"""The changed fields of the second request; None for a field that is left out."""
ROLES = {
    "system role refused": "developer",
    "system role unknown to the template": "user",
    "only two roles": "user",
    "roles must alternate": "user",
}


def list_cases(cases: list[dict[str, Any]], kinds: Any) -> list[Any]:
    return [
        pytest.param(case, id=f"{case['server']}: {case['case']}")
        for case in cases
        if case["case"] in kinds
    ]


@pytest.fixture
def ask(server: ModelServer) -> Asking:
    asking = Asking(server.url)
    asking.settings = ModelSettings(temperature=0.2, max_tokens=500, body={"top_p": 0.9})
    return asking


def refuse(server: ModelServer, case: dict[str, Any]) -> None:
    headers = {"Retry-After": "2"} if "Retry-After" in case["case"] else {}
    body = case["body"] if isinstance(case["body"], str) else json.dumps(case["body"])
    server.enqueue(Response(status=case["status"], body=body, headers=headers))


@feature(
    "Models",
    "A field that a model refuses is left out for that model only, and the run page names it",
    "agents/providers/adaptations.py",
    whole_file=True,
)
def test_every_recorded_error_has_a_rule() -> None:
    assert len(ERRORS) >= 60
    assert {case["case"] for case in ERRORS} == {*ENDS, *ADAPTED, *ROLES}


@pytest.mark.parametrize("case", list_cases(ERRORS, ENDS))
def test_each_error_has_its_code_and_next_step(
    server: ModelServer, ask: Asking, case: dict[str, Any]
) -> None:
    refuse(server, case)
    with pytest.raises(ProviderError) as caught:
        ask(max_retries=0)
    code, transient, words = ENDS[case["case"]]
    assert (caught.value.code, caught.value.transient) == (code, transient), caught.value.message
    assert words in caught.value.message
    assert len(server.requests) == 1
    if caught.value.code == "context_too_long":
        assert caught.value.window == WINDOWS.get(case["server"], ContextWindow())
    if code == "answer_cut":
        assert caught.value.most_tries == 3
        assert caught.value.usage is not None


@pytest.mark.parametrize("case", list_cases(ERRORS, ADAPTED))
def test_a_refused_field_is_dropped_or_replaced_and_remembered(
    server: ModelServer, ask: Asking, case: dict[str, Any]
) -> None:
    refuse(server, case)
    response = ask()
    assert response.text == "Done."
    first, second = server.requests
    for field, value in ADAPTED[case["case"]].items():
        assert second.get(field) == value
    assert {name for name in first if first[name] != second.get(name)} <= {*ADAPTED[case["case"]]}
    assert len(response.learned) == 1
    assert response.learned == response.adaptations
    again = ask()
    assert len(server.requests) == 3, "it is remembered"
    assert server.requests[2] == second
    assert (again.adaptations, again.learned) == (response.adaptations, ())
    clear_caches()
    refuse(server, case)
    assert ask().learned == response.learned, "it was a cache, although the connection is kept"


@pytest.mark.parametrize("case", list_cases(ERRORS, ROLES))
def test_a_refused_role_is_replaced(server: ModelServer, ask: Asking, case: dict[str, Any]) -> None:
    refuse(server, case)
    assert ask().text == "Done."
    messages = server.requests[1]["messages"]
    assert messages[0]["role"] == ROLES[case["case"]]
    assert messages[0]["content"].startswith("You are Dana.")
    assert messages[-1]["content"].endswith("Find the EU records.")
    assert len(messages) == (1 if ROLES[case["case"]] == "user" else 2)


SHAPED_TOOLS = [
    definition(name) for name in ("data.createRecord", "data.searchRecords", "utility.now")
]
REFUSED = {
    "tool call as text, Hermes form": "call_as_text",
    "tool call as text, Mistral form": "call_as_text",
    "finish_reason tool_calls without a call": "missing_call",
    "empty answer": "empty_answer",
}
ANSWERED: dict[str, tuple[str, list[str]]] = {
    "the same words, quoted in a real answer about tool calls": (
        "A server without a parser prints `<tool_call>` as text.", [],
    ),
    "four calls, one index, no ids": ("", ['{"text":"a"}', '{"text":"b"}']),
    "prefix and index in the name": ("", ['{"text":"a"}']),
    "two objects in one arguments": ("", ['{"text":"a"}{"text":"b"}']),
    "arguments null for a tool without required params": ("", ["{}"]),
    "leaked end of reasoning": ("All is fine.", []),
}  # fmt: skip


@pytest.mark.parametrize("case", SHAPES, ids=lambda case: case["case"])
def test_a_recorded_stream_gives_its_text_and_calls_or_is_refused(
    server: ModelServer, ask: Asking, case: dict[str, Any]
) -> None:
    server.enqueue(Response(events=tuple(case["chunks"])))
    if case["case"] in REFUSED:
        with pytest.raises(ProviderError) as caught:
            ask(tools=SHAPED_TOOLS)
        assert caught.value.code == REFUSED[case["case"]]
        return
    text, arguments = ANSWERED[case["case"]]
    response = ask(tools=SHAPED_TOOLS)
    assert (response.text, [call.arguments for call in response.calls]) == (text, arguments)
    assert all(call.tool in ("data.searchRecords", "utility.now") for call in response.calls)


@pytest.mark.parametrize(
    ("error", "window"),
    [
        (
            {"type": "exceed_context_size_error", "n_ctx": 8192, "n_prompt_tokens": 24176},
            ContextWindow(8192, 24176),
        ),
        (
            {"message": "The input token count (30) exceeds the maximum number of tokens allowed."},
            ContextWindow(),
        ),
    ],
    ids=["llama.cpp", "Gemini"],
)
def test_a_request_that_is_too_long_is_recognized_in_each_form(
    server: ModelServer, ask: Asking, error: dict[str, Any], window: ContextWindow
) -> None:
    body = {"error": {"code": 400, **error}}
    for sent in (body, [body]):
        server.enqueue(Response(status=400, body=json.dumps(sent)))
        with pytest.raises(ProviderError) as caught:
            ask(max_retries=0)
        assert (caught.value.code, caught.value.window) == ("context_too_long", window)
        assert "[{" not in caught.value.message


def test_a_field_that_was_not_sent_cannot_be_omitted(server: ModelServer, ask: Asking) -> None:
    ask.settings = ModelSettings()
    for field in ("top_p", "temperature"):
        server.enqueue(
            Response(status=400, body=f"Unsupported parameter: '{field}' is not supported")
        )
        with pytest.raises(ProviderError):
            ask(max_retries=0)
    assert len(server.requests) == 2
