"""The fake server enforces OpenAI's rules, and another process can control it."""

import contextlib
import json
import subprocess
import sys
import threading
import urllib.request
from typing import Any

import pytest

from agents.providers.base import ProviderError
from tests.model_server import ModelServer
from tests.providers.conftest import HISTORY, Asking

SCRIPT = [
    {"text": "Looking.", "calls": [{"tool": "data.searchRecords", "params": {"region": "EU"}}]},
    {"text": "Over."},
]


def control(url: str, action: str, value: Any = None) -> Any:
    address = url.removesuffix("/v1") + f"/control/{action}"
    with urllib.request.urlopen(address, json.dumps(value).encode(), timeout=10) as reply:
        return json.load(reply)


def call(call_id: str) -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": "utility__now", "arguments": "{}"},
    }


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        (
            [{"role": "assistant", "content": "", "tool_calls": [call("a")]}],
            "without a tool message",
        ),
        ([{"role": "tool", "tool_call_id": "a", "content": "x"}], "not asked for"),
        (
            [
                {"role": "assistant", "content": "", "tool_calls": [call("a")]},
                {"role": "tool", "tool_call_id": "a", "content": "x"},
                {"role": "tool", "tool_call_id": "a", "content": "x"},
            ],
            "answered already",
        ),
    ],
)
def test_a_request_whose_calls_and_tool_messages_do_not_match_is_refused(
    ask: Asking, messages: list[dict[str, Any]], named: str
) -> None:
    with pytest.raises(ProviderError, match=named) as caught:
        ask([*HISTORY, *messages])
    assert caught.value.code == "refused"


@pytest.mark.parametrize("options", [[], ["--fast"]])
def test_a_separate_process_plays_a_script_and_is_controlled_over_http(options: list[str]) -> None:
    command = [sys.executable, "-m", "tests.model_server", "--script", json.dumps(SCRIPT), *options]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        contextlib.ExitStack() as ending,
    ):
        ending.callback(process.terminate)
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("model server ready at http://127.0.0.1:")
        url = ready.split()[-1]
        ask = Asking(url)
        first = ask()
        assert [each.tool for each in first.calls] == ["data.searchRecords"]
        result = {"role": "tool", "tool_call_id": first.calls[0].provider_call_id, "content": "x"}
        assert ask([*HISTORY, first.message, result]).text == "Over."
        control(url, "hold")
        responses: list[str] = []
        waiting = threading.Thread(target=lambda: responses.append(ask().text))
        waiting.start()
        while control(url, "held")["held"] == 0:
            assert waiting.is_alive()
        control(url, "enqueue", [{"text": "Queued."}])
        control(url, "release")
        waiting.join(10)
        assert responses == ["Looking."]
        assert ask().text == "Queued."
        assert len(control(url, "requests")) == (0 if options else 4)


def test_a_stopped_server_is_unreachable_despite_a_kept_connection(
    ask: Asking, server: ModelServer
) -> None:
    ask()
    server.close()
    with pytest.raises(ProviderError) as caught:
        ask()
    assert (caught.value.code, caught.value.transient) == ("unreachable", True)
