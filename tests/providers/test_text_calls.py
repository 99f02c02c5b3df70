"""A call written as text is refused as a response, but a response that describes calls is
accepted."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agents.providers.base import ProviderError
from agents.providers.named_calls import Offered, find_named_call
from agents.providers.text_calls import find_text_call
from agents.providers.wire_names import WireNames
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.ollama_server import Chat, OllamaServer
from tests.providers.conftest import HISTORY, Asking, definition
from tests.providers.wire import call_notations
from tests.providers.wire.text_calls import AMBIGUOUS, ANSWERS, CALLS
from tests.sampling import take_sample

NAMES = WireNames(["data.searchRecords", "data.updateRecord", "utility.now"])
NOTED = WireNames(list(call_notations.SCHEMAS))
PARSED: list[dict[str, Any]] = [
    *HISTORY,
    {"role": "assistant", "content": None, "tool_calls": [Call("utility.now").entry(0, "0")]},
    {"role": "tool", "tool_call_id": "call_0_0", "content": "10:00"},
]
"""A conversation that shows that the server parses this model's calls."""


@feature(
    "Models",
    "A tool call that a model wrote as text is not an answer, and is never run",
    "agents/providers/text_calls.py",
    whole_file=True,
)
@pytest.mark.parametrize("case", CALLS)
def test_a_call_written_as_text_is_detected(case: str) -> None:
    assert find_text_call(CALLS[case], NAMES.find_offered, is_parsed=False)
    assert bool(find_text_call(CALLS[case], NAMES.find_offered, is_parsed=True)) == (
        case not in AMBIGUOUS
    )


@pytest.mark.parametrize("case", CALLS)
def test_text_without_an_offered_tool_is_a_response(case: str) -> None:
    others = WireNames(["files.read"])
    assert find_text_call(CALLS[case], others.find_offered, is_parsed=False) is None


@pytest.mark.parametrize("is_parsed", [True, False])
@pytest.mark.parametrize("case", ANSWERS)
def test_a_text_that_mentions_calls_is_a_response(case: str, is_parsed: bool) -> None:
    assert find_text_call(ANSWERS[case], NAMES.find_offered, is_parsed=is_parsed) is None


def find_noted(text: str, names: WireNames = NOTED, *, is_parsed: bool = False) -> str | None:
    return find_text_call(
        text, names.find_offered, is_parsed=is_parsed, find_schema=call_notations.SCHEMAS.get
    )


@feature(
    "Models",
    "A tool call that was written as text is recognized in any notation by the tool's name and params",
    "agents/providers/named_calls.py",
)
@pytest.mark.parametrize("case", call_notations.CALLS)
def test_a_call_in_any_notation_is_detected(case: str) -> None:
    text = call_notations.CALLS[case]
    assert find_noted(text) in call_notations.SCHEMAS
    assert bool(find_noted(text, is_parsed=True)) == (case not in call_notations.AMBIGUOUS)


@pytest.mark.parametrize("case", call_notations.CALLS)
def test_text_in_any_notation_without_an_offered_tool_is_a_response(case: str) -> None:
    assert find_noted(call_notations.CALLS[case], WireNames(["files.read"])) is None


@pytest.mark.parametrize("is_parsed", [True, False])
@pytest.mark.parametrize("case", call_notations.ANSWERS)
def test_a_text_in_a_call_notation_that_does_not_request_a_call_is_a_response(
    case: str, is_parsed: bool
) -> None:
    assert find_noted(call_notations.ANSWERS[case], is_parsed=is_parsed) is None


@pytest.mark.parametrize("streamed", [True, False])
def test_the_schemas_of_offered_tools_distinguish_calls_from_other_json(
    server: ModelServer, ask: Asking, streamed: bool
) -> None:
    tool = definition("web.search")
    tool["function"]["parameters"] = call_notations.SCHEMAS["web.search"]
    figures = '{"web.search": {"calls": 3}}'
    server.enqueue(
        Response(text='{"web.search": {"q": "cats"}}', streamed=streamed), Response(text=figures)
    )
    with pytest.raises(ProviderError, match=r"web\.search as text"):
        ask(tools=[tool])
    assert ask(tools=[tool]).text == figures


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "data__searchRecords", ' * 20_000,
        "data__searchRecords( " * 20_000,
        "data__searchRecords() " * 20_000,
        "[" * 100_000 + '"data__searchRecords"',
        "<tool_call>" * 20_000 + "data__searchRecords",
        "<" * 100_000 + "data__searchRecords>{",
        "```\n" * 50_000 + "data__searchRecords()",
        '{"name": "data__searchRecords", "arguments": {}}\n' * 10_000 + "x",
        "`" * 50_000 + "data__searchRecords" + "`" * 50_000,
        "~" * 3_000 + "`data__searchRecords",
        " ".join("`" * length for length in range(1, 600)) + "x" * 100_000 + " data__searchRecords",
        "".join(f"```\n{number}\n```\n" for number in range(60_000)) + "data__searchRecords",
        "".join(f"~~~ {number}\n~~~\n" for number in range(60_000)),
        '{"name": [' * 25
        + '"data__searchRecords", '
        + '{"name": "data__searchRecords"}, ' * 80
        + "1," * 300_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_text_is_searched_in_bounded_time(text: str) -> None:
    began = time.process_time()
    find_text_call(text, NAMES.find_offered, is_parsed=False)
    assert time.process_time() - began < 10, "a search that looks twice at each part takes minutes"


@pytest.mark.parametrize(
    "text",
    take_sample(
        [
            *(
                "[",
                "{",
                "(",
                "a",
                "_",
                "-",
                '"',
                '\\"',
                "- ",
                "<a>",
                "</a>",
                '<a b="',
                "a:\n",
                "a: b\n",
                "a: {\n",
            ),
            *("--a b ", "web__search ", "web__search: {}\n", 'web__search(q="a")\n', '{"a":'),
        ],
        4,
        "long texts",
    ),
)
def test_a_million_characters_are_searched_in_linear_time(text: str) -> None:
    offered = Offered(NOTED.find_offered, call_notations.SCHEMAS.get)
    for begin in ("", '"', "web__search: ", "<web__search>"):
        began = time.process_time()
        find_named_call(begin + text * (1_000_000 // len(text)), offered)
        assert time.process_time() - began < 2


@pytest.mark.parametrize("streamed", [True, False])
def test_a_response_that_is_a_call_is_refused_with_a_remedy(
    server: ModelServer, ask: Asking, streamed: bool
) -> None:
    server.enqueue(Response(text=CALLS["hermes"], streamed=streamed))
    with pytest.raises(
        ProviderError, match=r"data\.searchRecords as text.*--tool-call-parser"
    ) as caught:
        ask()
    assert (caught.value.code, caught.value.transient, caught.value.most_tries) == (
        "call_as_text",
        True,
        2,
    )
    assert caught.value.usage is not None
    assert caught.value.usage.input_tokens == 100


def test_a_call_as_text_beside_a_real_call_is_accepted(server: ModelServer, ask: Asking) -> None:
    server.enqueue(Response(text=CALLS["hermes"], calls=(Call("utility.now"),)))
    assert [call.tool for call in ask().calls] == ["utility.now"]


def test_an_example_is_a_response_if_the_server_parsed_a_call(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(Response(text=CALLS["fenced JSON after prose"]), Response(text=CALLS["hermes"]))
    assert ask(PARSED).text == CALLS["fenced JSON after prose"]
    with pytest.raises(ProviderError):
        ask(PARSED)


def test_a_closing_response_that_is_a_call_is_refused(server: ModelServer, ask: Asking) -> None:
    server.enqueue(Response(text=CALLS["mistral"]))
    with pytest.raises(ProviderError):
        ask(closing=True)


def test_a_call_as_text_from_ollama_is_refused(ollama: OllamaServer, ask_ollama: Asking) -> None:
    ollama.enqueue(Chat(text=CALLS["llama bare"]))
    with pytest.raises(ProviderError) as caught:
        ask_ollama()
    assert caught.value.code == "call_as_text"


@pytest.mark.parametrize("finish", ["tool_calls", "function_call", "tool_use", "TOOL_CALLS"])
@pytest.mark.parametrize("text", ["Let me search.", ""])
def test_an_announced_but_missing_call_is_not_a_response(
    server: ModelServer, ask: Asking, text: str, finish: str
) -> None:
    server.enqueue(Response(text=text, finish=finish))
    with pytest.raises(ProviderError) as caught:
        ask()
    assert (caught.value.code, caught.value.most_tries) == ("missing_call", 2)


@pytest.mark.parametrize(
    "response",
    [
        Response(),
        Response(text=" \n\n "),
        Response(text="<think>Hm.</think>"),
        Response(text="<think>Hm.</think>\n\n"),
        Response(extra={"reasoning_content": "Hm."}),
        Response(extra={"content": [{"type": "thinking", "thinking": "Hm."}]}),
        Response(finish="eos"),
        Response(calls=(), streamed=False),
    ],
)
def test_an_empty_response_is_refused(server: ModelServer, ask: Asking, response: Response) -> None:
    server.enqueue(response)
    with pytest.raises(ProviderError) as caught:
        ask()
    assert (caught.value.code, caught.value.most_tries) == ("empty_answer", 2)


@pytest.mark.parametrize(
    "called",
    [
        "functions.data__searchRecords:0",
        "functions.data__searchRecords",
        "functions.data.searchRecords",
        "functions.data.searchRecords:1",
        " data__searchRecords ",
        "data__searchRecords\n",
        '"data__searchRecords"',
        "data__searchRecords()",
        "data__searchRecords:12",
        "data__searchRecords<|channel|>commentary",
        "data__searchRecords<|channel|>json",
        "commentary to=functions.data__searchRecords",
        "assistant<|channel|>commentary to=functions.data__searchRecords",
        "default_api.data__searchRecords",
        "tool: data__searchRecords",
        "data.searchRecords#0",
        "mcp/data__searchRecords",
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_a_name_with_a_prefix_or_suffix_means_the_offered_tool(
    server: ModelServer, ask: Asking, called: str, streamed: bool
) -> None:
    entry = {
        "index": 0,
        "id": "a",
        "type": "function",
        "function": {"name": called, "arguments": '{"text":"a"}'},
    }
    choice = {"index": 0, "delta": {"tool_calls": [entry]}, "finish_reason": "tool_calls"}
    whole: dict[str, Any] = {
        "index": 0,
        "message": {"content": None, "tool_calls": [entry]},
        "finish_reason": "tool_calls",
    }
    server.enqueue(
        Response(events=({"choices": [choice]},))
        if streamed
        else Response(extra=whole["message"], streamed=False)
    )
    response = ask()
    assert [call.tool for call in response.calls] == ["data.searchRecords"]
    assert response.message["tool_calls"][0]["function"]["name"] == "data__searchRecords"


@pytest.mark.parametrize(
    "called",
    [
        "data__searchRecords2",
        "my_data__searchRecords",
        "data__searchRecords-old",
        "data__searchRecords.delete",
        "crm.data.searchRecords",
        "data__search",
        "data__searchRecords data__updateRecord",
        "x" * 300 + " data__searchRecords",
        "",
        "unnamed",
    ],
)
def test_a_name_that_does_not_match_exactly_one_tool_stays_unchanged(called: str) -> None:
    assert NAMES.to_internal(called) == called


def test_a_name_that_ends_with_the_longer_of_two_offered_names_means_the_longer_one() -> None:
    names = WireNames(["data.search", "data.searchRecords"])
    assert names.to_internal("functions.data__searchRecords:0") == "data.searchRecords"
    assert names.to_internal("functions.data__search:0") == "data.search"


def test_tools_with_odd_names_are_detected_in_text() -> None:
    names = WireNames(["bank.wire-transfer", "crm.v1.find"])
    for wire in ("bank__wire-transfer", "crm__v1__find", "crm.v1.find", "bank.wire-transfer"):
        assert find_text_call(
            f'{{"name": "{wire}", "arguments": {{}}}}', names.find_offered, is_parsed=False
        )
        assert find_text_call(f"{wire}(a=1)", names.find_offered, is_parsed=False)


def test_a_call_in_text_stays_text_if_its_tool_was_not_offered(
    server: ModelServer, ask: Asking
) -> None:
    server.enqueue(Response(text=CALLS["hermes"]))
    assert ask(tools=[]).text == CALLS["hermes"]
    server.enqueue(Response(text=CALLS["hermes"]))
    assert ask(tools=[definition("files.read")]).text == CALLS["hermes"]
