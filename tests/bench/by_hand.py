"""The hand-written loop: a run with a model and tools, but without Gadget. It shows what the
machine, the SDK and the database cost, so that figures of different machines can be compared.

The loop stores each message as one row and commits twice a pass. It has no gate, approvals, lease,
recovery, events or viewers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connection
from openai import OpenAI, Stream
from openai.types.chat import ChatCompletionChunk

from tests.bench.figures import Figure, figure, rounds
from tests.bench.site import Worksite

_TABLE = "bench_by_hand"
_NUMBER = {"type": "number"}
_TOOL = {
    "name": "utility__calculate",
    "description": "Calculate.",
    "parameters": {
        "type": "object",
        "properties": {"operation": {"type": "string"}, "a": _NUMBER, "b": _NUMBER},
    },
}


def by_hand(site: Worksite, passes: int, calls: int, repeats: int, patience_s: float) -> Figure:
    """Measure the milliseconds per pass of a run in the hand-written loop, in this process.

    Raises:
        AssertionError: a message of the run was not stored.
    """
    seconds = []
    with messages_by_hand(), OpenAI(base_url=site.model_url, api_key="sk-bench") as client:
        for number in rounds(repeats, patience_s):
            began = time.perf_counter()
            run_by_hand(client, number)
            seconds.append(time.perf_counter() - began)
            assert_all_is_kept(1, passes, calls)
    return figure(
        f"pass of {calls} calls: a loop by hand",
        "ms",
        [1000 * each / passes for each in seconds[1:]],
    )


@contextmanager
def messages_by_hand() -> Iterator[None]:
    """Create the table of messages, and remove it after the block."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE {_TABLE} (run integer, place integer, body text, PRIMARY KEY (run, place))"
        )
        try:
            yield
        finally:
            cursor.execute(f"DROP TABLE {_TABLE}")


def assert_all_is_kept(runs: int, passes: int, calls: int) -> None:
    """Check that every message of these runs is stored, and delete all messages."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {_TABLE}")
        assert cursor.fetchone()[0] == runs * (1 + passes * (1 + calls) + 1)
        cursor.execute(f"DELETE FROM {_TABLE}")


def run_by_hand(client: OpenAI, run: int) -> None:
    """Call the model and the tools, and store the messages, until the model gives its answer. Calls
    that only wait run in parallel."""
    messages: list[dict[str, Any]] = []
    _keep(run, messages, [{"role": "user", "content": "Do the work of the benchmark"}])
    while True:
        answer = _ask(client, messages)
        _keep(run, messages, [answer])
        if "tool_calls" not in answer:
            return
        params = [json.loads(call["function"]["arguments"]) for call in answer["tool_calls"]]
        if longest_ms := max(each.get("ms", 0) for each in params):
            time.sleep(longest_ms / 1000)
        ids = [call["id"] for call in answer["tool_calls"]]
        _keep(run, messages, [_result(id_, each) for id_, each in zip(ids, params, strict=True)])


def _ask(client: OpenAI, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Send the messages to the model and return its response as a message. Like Gadget, this
    bypasses the SDK's transformation of requests."""
    body = {
        "model": "fake",
        "messages": messages,
        "tools": [{"type": "function", "function": _TOOL}],
        "stream": True,
    }
    text, calls = "", dict[int, dict[str, Any]]()
    stream = client.post(
        "/chat/completions",
        body=body,
        cast_to=ChatCompletionChunk,
        stream=True,
        stream_cls=Stream[ChatCompletionChunk],
    )
    for chunk in stream:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(
                    part.index,
                    {"id": part.id, "type": "function", "function": {"name": "", "arguments": ""}},
                )
                if part.function:
                    call["function"]["name"] += part.function.name or ""
                    call["function"]["arguments"] += part.function.arguments or ""
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    return {**message, "tool_calls": list(calls.values())} if calls else message


def _result(call_id: str, params: dict[str, Any]) -> dict[str, Any]:
    result = "slept" if "ms" in params else str(params["a"] + params["b"])
    return {"role": "tool", "tool_call_id": call_id, "content": result}


def _keep(run: int, messages: list[dict[str, Any]], new: Sequence[dict[str, Any]]) -> None:
    """Store the new messages in one statement and one commit."""
    values: list[int | str] = []
    for place, message in enumerate(new, len(messages)):
        values += run, place, json.dumps(message)
    places = ", ".join(["(%s, %s, %s)"] * len(new))
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {_TABLE} VALUES {places}", values)
    messages += new
