"""Requests contain only fields that every server accepts, plus those added by the configuration."""

import pytest

from agents.providers.base import ModelSettings, ProviderError
from tests.features import feature
from tests.model_server import ModelServer, Response, failing, html
from tests.providers.conftest import HISTORY, Asking


@feature(
    "Models",
    "OpenAI and every server with its Chat Completions API",
    "agents/providers/openai.py",
    whole_file=True,
)
def test_the_body_contains_the_model_the_history_and_the_tools(
    server: ModelServer, ask: Asking
) -> None:
    ask()
    body = server.requests[0]
    assert set(body) == {"model", "messages", "tools", "stream", "stream_options"}
    assert body["model"] == "fake-model"
    assert body["messages"] == HISTORY


def test_a_closing_request_does_not_offer_tools(server: ModelServer, ask: Asking) -> None:
    ask(closing=True)
    assert "tools" not in server.requests[0]


def test_a_request_without_tools_omits_the_field(server: ModelServer, ask: Asking) -> None:
    ask(tools=[])
    assert "tools" not in server.requests[0]


def test_settings_are_sent_under_their_own_names_except_settings_only_for_ollama(
    server: ModelServer, ask: Asking
) -> None:
    ask.settings = ModelSettings(
        temperature=0.0, max_tokens=50, num_ctx=8192, body={"top_p": 0.5, "temperature": 1}
    )
    ask()
    body = server.requests[0]
    assert (body["temperature"], body["max_tokens"], body["top_p"]) == (0.0, 50, 0.5)
    assert not {"num_ctx", "options", "body"} & set(body)


def test_an_extra_body_cannot_replace_the_conversation_or_the_tools(
    server: ModelServer, ask: Asking
) -> None:
    reserved = {"model": "other", "messages": [], "stream": False}
    ask.settings = ModelSettings(
        body={**reserved, "tools": [{"type": "web_search"}], "parallel_tool_calls": True}
    )
    ask()
    ask(closing=True)
    first, closing = server.requests
    assert (first["model"], first["messages"], first["stream"]) == ("fake-model", HISTORY, True)
    assert (len(first["tools"]), first["parallel_tool_calls"]) == (3, True)
    assert "tools" not in closing


def test_a_model_that_knows_only_max_completion_tokens_gets_that_field(
    server: ModelServer, ask: Asking
) -> None:
    fault = (
        "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    )
    server.respond_with(
        lambda body: failing(400, fault) if "max_tokens" in body else Response("Hi")
    )
    ask.settings = ModelSettings(max_tokens=50)
    assert ask().text == "Hi"
    assert ask().text == "Hi"
    assert [body.get("max_completion_tokens") for body in server.requests] == [None, 50, 50]


def test_the_key_is_sent_as_a_bearer_token(server: ModelServer, ask: Asking) -> None:
    ask(api_key="sk-abc")
    assert server.request_headers[0]["authorization"] == "Bearer sk-abc"


def test_a_request_without_a_key_succeeds(server: ModelServer, ask: Asking) -> None:
    assert ask(api_key="").text == "Done."


@pytest.mark.parametrize("status", [400, 422])
def test_stream_options_are_not_sent_again_to_a_server_that_refused_them(
    server: ModelServer, ask: Asking, status: int
) -> None:
    server.respond_with(
        lambda body: (
            failing(status, "Unknown parameter: 'stream_options'")
            if "stream_options" in body
            else Response("Hi")
        )
    )
    assert ask().text == "Hi"
    assert ask().text == "Hi"
    assert ["stream_options" in body for body in server.requests] == [True, False, False]


def test_usage_can_be_disabled_by_configuration(server: ModelServer, ask: Asking) -> None:
    ask(include_usage=False)
    assert "stream_options" not in server.requests[0]


def test_the_check_does_not_request_a_response_if_the_server_lists_its_models(
    server: ModelServer, ask: Asking
) -> None:
    ask.provider().check()
    assert server.requests == []


def test_the_check_accepts_a_server_without_a_list_of_models(
    server: ModelServer, ask: Asking
) -> None:
    server.models = failing(404)
    ask.provider().check()
    assert server.requests == [{}]


@pytest.mark.parametrize(
    ("models", "code"),
    [(failing(401), "bad_key"), (html(), "bad_answer"), (failing(500), "server_error")],
)
def test_the_check_explains_each_failure(
    server: ModelServer, ask: Asking, models: Response, code: str
) -> None:
    server.models = models
    with pytest.raises(ProviderError) as caught:
        ask.provider().check()
    assert caught.value.code == code


def test_the_check_reports_an_address_without_a_model_server(
    server: ModelServer, ask: Asking
) -> None:
    ask.base_url = server.url.removesuffix("/v1") + "/other"
    with pytest.raises(ProviderError) as caught:
        ask.provider().check()
    assert caught.value.code == "not_found"
