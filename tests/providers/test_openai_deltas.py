"""The accumulator assembles text, calls and usage from the unusual streams that real servers
send."""

import json
from typing import Any

import pytest

from tests.model_server import ModelServer, Response
from tests.providers.conftest import Asking

Entry = dict[str, Any]


def entry(name: str | None = None, arguments: Any = None, **more: Any) -> Entry:
    function = {
        key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None
    }
    return {**more, "function": function}


def stream(*deltas: Any, finish: str = "tool_calls") -> Response:
    events: list[Any] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return Response(
        events=(*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    )


def one_by_one(*entries: Entry) -> Response:
    return stream(*({"tool_calls": [each]} for each in entries))


SEARCH, NOW = "data__searchRecords", "utility__now"
STREAMS: dict[str, tuple[Response, list[tuple[str, str]]]] = {
    "a new id at the same index starts a call": (
        one_by_one(
            entry(SEARCH, '{"a"', index=0, id="x"),
            entry(None, ":1}", index=0),
            entry(SEARCH, '{"a"', index=0, id="y"),
            entry(None, ":2}", index=0),
        ),
        [("data.searchRecords", '{"a":1}'), ("data.searchRecords", '{"a":2}')],
    ),
    "without index and id pieces belong to the last call": (
        one_by_one(entry(SEARCH, '{"a"'), entry(None, ":1}"), entry(NOW, "{"), entry(None, "}")),
        [("data.searchRecords", '{"a":1}'), ("utility.now", "{}")],
    ),
    "pieces of two calls may take turns": (
        one_by_one(
            entry(SEARCH, "", index=0, id="x"),
            entry(NOW, "", index=1, id="y"),
            entry(None, '{"a":', index=0),
            entry(None, '{"b":', index=1),
            entry(None, "1}", index=0),
            entry(None, "2}", index=1),
        ),
        [("data.searchRecords", '{"a":1}'), ("utility.now", '{"b":2}')],
    ),
    "id and name in every piece": (
        one_by_one(
            entry(SEARCH, '{"a"', index=0, id="x"),
            entry(SEARCH, ":1", index=0, id="x"),
            entry(SEARCH, "}", index=0, id="x"),
            entry(SEARCH, "", index=0, id="x"),
        ),
        [("data.searchRecords", '{"a":1}')],
    ),
    "the id comes after the name": (
        one_by_one(entry(SEARCH, "", index=0), entry(None, '{"a":1}', index=0, id="x")),
        [("data.searchRecords", '{"a":1}')],
    ),
    "a name in pieces": (
        one_by_one(
            entry("data__", "", index=0, id="x"),
            entry("searchRecords", "", index=0),
            entry(None, "{}", index=0),
        ),
        [("data.searchRecords", "{}")],
    ),
    "two calls in one delta without index and id": (
        stream({"tool_calls": [entry(NOW, "{}"), entry(NOW, "{}"), entry(SEARCH, "{}")]}),
        [("utility.now", "{}"), ("utility.now", "{}"), ("data.searchRecords", "{}")],
    ),
    "whole calls at index 0 without ids": (
        one_by_one(
            entry(SEARCH, '{"a":1}', index=0),
            entry(SEARCH, '{"a":2}', index=0),
            entry(NOW, "{}", index=0),
        ),
        [
            ("data.searchRecords", '{"a":1}'),
            ("data.searchRecords", '{"a":2}'),
            ("utility.now", "{}"),
        ],
    ),
    "null everywhere": (
        stream(
            {"role": None, "content": None, "tool_calls": None, "refusal": None},
            None,
            {"tool_calls": [None, "x", entry(NOW, "{}", index=None, id=None, type=None)]},
        ),
        [("utility.now", "{}")],
    ),
    "tool_calls as one object": (
        stream({"tool_calls": entry(NOW, "{}", id="x")}),
        [("utility.now", "{}")],
    ),
    "message in place of delta": (
        Response(
            events=(
                {
                    "choices": [
                        {"message": {"tool_calls": [entry(NOW, "{}")]}, "finish_reason": "stop"}
                    ]
                },
            )
        ),
        [("utility.now", "{}")],
    ),
}


@pytest.mark.parametrize("case", STREAMS)
def test_call_deltas_are_assembled(server: ModelServer, ask: Asking, case: str) -> None:
    reply, expected = STREAMS[case]
    server.enqueue(reply)
    response = ask()
    assert [(call.tool, call.arguments) for call in response.calls] == expected
    assert len({call.provider_call_id for call in response.calls}) == len(expected)
    assert all(
        each["type"] == "function" and "index" not in each
        for each in response.message["tool_calls"]
    )


def test_reasoning_is_joined_and_details_with_one_index_are_merged(
    server: ModelServer, ask: Asking
) -> None:
    def detail(**fields: Any) -> dict[str, Any]:
        return {"reasoning_details": [{"type": "reasoning.text", "index": 0, **fields}]}

    server.enqueue(
        stream(
            {"reasoning": "They "},
            {"reasoning": "ask."},
            detail(text="They "),
            detail(text="ask.", signature="s"),
            {"content": "Hi"},
            finish="stop",
        )
    )
    message = ask().message
    assert message["reasoning"] == "They ask."
    expected = {"type": "reasoning.text", "index": 0, "text": "They ask.", "signature": "s"}
    assert message["reasoning_details"] == [expected]


def test_comments_named_events_and_crlf_are_ignored(server: ModelServer, ask: Asking) -> None:
    first = json.dumps({"choices": [{"delta": {"content": "Hel\u2028lo"}}]}, ensure_ascii=False)
    last = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    text = f": OPENROUTER PROCESSING\r\n\r\nevent: chunk\r\nid: 7\r\ndata: {first}\r\n\r\n: ping\r\n\r\ndata:{last}"
    server.enqueue(Response(body=text, headers={"Content-Type": "text/event-stream"}))
    assert ask().text == "Hel\u2028lo"


def test_usage_is_optional_and_accepted_in_every_chunk(server: ModelServer, ask: Asking) -> None:
    chunk = {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}
    counts = [{"usage": {"prompt_tokens": 5, "completion_tokens": n}} for n in (1, 2)]
    server.enqueue(
        Response(
            events=(
                {**chunk, **counts[0]},
                {"choices": [], **counts[1]},
                {"choices": [], "usage": None},
            )
        )
    )
    server.enqueue(Response(events=({**chunk, "usage": None},)))
    assert ask().usage.output_tokens == 2
    assert ask().usage.is_estimated
