"""A scripted employee follows its YAML, and only the messages decide the next step."""

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from agents.providers.base import (
    CallOutcome,
    ModelRequest,
    ModelResponse,
    ProviderConfig,
    ProviderError,
    ProviderStopped,
)
from agents.providers.registry import build_provider
from tests.features import feature
from tests.providers.conftest import TOOLS, asked_for
from tests.scripts import write_script

CONFIG = ProviderConfig("scripted", scripts_dir=settings.GADGET_SCRIPTS_DIR)
FOLLOW_UP = """
scripts:
  - task: "(?i)deactivate (?P<region>[a-z]+)"
    title: Deactivate a region
    passes:
      - text: "Let me look."
        calls:
          - {tool: data.searchRecords, params: {region: "{{ match.region | upper }}", limit: 5}}
          - {tool: utility.now}
      - text: "Checking nothing."
        when: "{{ results('data.searchRecords')[0].data.total == 0 }}"
        calls: [{tool: never.called}]
      - text: "Updating {{ last('data.searchRecords').data.total }} records."
        calls:
          - tool: data.updateRecord
            for_each: "{{ last('data.searchRecords').data.records }}"
            when: item.status == 'active'
            params: {record_id: "{{ item.id }}", changes: {status: inactive, note: "no. {{ index }}"}}
    answer: >-
      {{ results('data.updateRecord') | length }} changed;
      denied: {{ denied() | map(attribute='reason') | join(', ') }}
  - task: weather
    answer: It is sunny.
"""
RECORDS = [
    {"id": 11, "status": "active"},
    {"id": 12, "status": "inactive"},
    {"id": 13, "status": "active"},
]


class Conversation:
    """Plays a run against a script: the provider's calls get the given outcomes."""

    def __init__(self, script: str, task: str) -> None:
        self.provider = build_provider(CONFIG)
        self.name = write_script(script)
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": "x"},
            {"role": "user", "content": task},
        ]
        self.outcomes: list[CallOutcome] = []
        self.heard: list[str] = []
        self.passes = 0

    def ask(self, *, closing: bool = False) -> ModelResponse:
        self.heard.clear()
        deadline = time.monotonic() + 10
        request = ModelRequest(
            self.name, self.messages, TOOLS, deadline, closing, lambda: self.outcomes
        )
        response = self.provider.ask(request, self.heard.append, threading.Event())
        self.messages.append(response.message)
        self.passes += 1
        return response

    def settle(self, response: ModelResponse, outcomes: Sequence[tuple[str, Any]]) -> None:
        """Set the status of each call of the response, with its data or the reason."""
        for index, (call, (status, value)) in enumerate(zip(response.calls, outcomes, strict=True)):
            succeeded = status == "succeeded"
            self.outcomes.append(
                CallOutcome(
                    pass_number=self.passes,
                    index=index,
                    tool=call.tool,
                    params=json.loads(call.arguments),
                    status=status,
                    success=succeeded,
                    data=value if succeeded else None,
                    summary="",
                    reason="" if succeeded else value,
                )
            )
            self.messages.append(
                {"role": "tool", "tool_call_id": call.provider_call_id, "content": status}
            )

    def say(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})


def play_search(conversation: Conversation) -> None:
    found = {"total": 3, "records": RECORDS}
    conversation.settle(conversation.ask(), [("succeeded", found), ("succeeded", {"now": "2026"})])


@feature(
    "Models", "Scripted models, without a provider", "agents/providers/scripted.py", whole_file=True
)
def test_a_script_is_played_from_task_to_answer() -> None:
    conversation = Conversation(FOLLOW_UP, "please deactivate eu")
    first = conversation.ask()
    assert asked_for(first) == [
        ("data.searchRecords", {"region": "EU", "limit": 5}),
        ("utility.now", {}),
    ]
    assert first.text == "Let me look."
    conversation.settle(first, [("succeeded", {"total": 3, "records": RECORDS}), ("succeeded", {})])
    second = conversation.ask()
    assert second.text == "Updating 3 records."
    assert asked_for(second) == [
        (
            "data.updateRecord",
            {"record_id": 11, "changes": {"status": "inactive", "note": "no. 0"}},
        ),
        (
            "data.updateRecord",
            {"record_id": 13, "changes": {"status": "inactive", "note": "no. 2"}},
        ),
    ]
    conversation.settle(second, [("succeeded", {}), ("denied", "wrong one")])
    last = conversation.ask()
    assert last.text == "1 changed; denied: wrong one"
    assert last.calls == ()
    assert last.message == {"role": "assistant", "content": last.text}


def test_the_same_messages_give_the_same_answer() -> None:
    conversation = Conversation(FOLLOW_UP, "deactivate eu")
    play_search(conversation)
    once = conversation.ask()
    del conversation.messages[-1]
    again = conversation.ask()
    assert again == once


def test_ids_are_unique_in_the_run_and_messages_have_the_format_of_chat_completions() -> None:
    conversation = Conversation(FOLLOW_UP, "deactivate eu")
    play_search(conversation)
    response = conversation.ask()
    entries = [
        entry for message in conversation.messages for entry in message.get("tool_calls", ())
    ]
    assert len({entry["id"] for entry in entries}) == len(entries) == 4
    assert response.message["role"] == "assistant"
    assert entries[-1] == {
        "id": response.calls[-1].provider_call_id,
        "type": "function",
        "function": {"name": "data.updateRecord", "arguments": response.calls[-1].arguments},
    }


def test_text_is_streamed_word_by_word() -> None:
    conversation = Conversation('scripts: [{task: ., answer: "One  two\\n\\nthree — four. "}]', "x")
    response = conversation.ask()
    assert "".join(conversation.heard) == response.text == "One  two\n\nthree — four. "
    assert len(conversation.heard) >= 5


def test_an_unknown_task_is_answered_with_the_known_tasks() -> None:
    response = Conversation(FOLLOW_UP, "bake a cake").ask()
    assert response.calls == ()
    assert "- Deactivate a region" in response.text
    assert "- weather" in response.text


def test_a_message_that_matches_a_script_starts_that_script() -> None:
    conversation = Conversation(FOLLOW_UP, "deactivate eu")
    play_search(conversation)
    conversation.say("rather: the weather")
    assert conversation.ask().text == "It is sunny."


def test_an_unknown_message_after_the_answer_is_answered_with_the_known_tasks() -> None:
    conversation = Conversation(FOLLOW_UP, "weather")
    conversation.ask()
    conversation.say("thank you")
    assert "- Deactivate a region" in conversation.ask().text


def test_an_unknown_message_in_the_middle_does_not_end_the_script() -> None:
    conversation = Conversation(FOLLOW_UP, "deactivate eu")
    play_search(conversation)
    conversation.say("be careful")
    assert conversation.ask().calls[0].tool == "data.updateRecord"


def test_a_repeated_task_restarts_the_script_and_sees_only_its_own_results() -> None:
    conversation = Conversation(FOLLOW_UP, "deactivate eu")
    play_search(conversation)
    conversation.settle(conversation.ask(), [("succeeded", {}), ("succeeded", {})])
    assert conversation.ask().text.startswith("2 changed")
    conversation.say("deactivate uk")
    response = conversation.ask()
    assert asked_for(response)[0] == ("data.searchRecords", {"region": "UK", "limit": 5})
    conversation.settle(
        response, [("succeeded", {"total": 1, "records": RECORDS[:1]}), ("succeeded", {})]
    )
    conversation.settle(conversation.ask(), [("denied", "no")])
    assert conversation.ask().text == "0 changed; denied: no"


def test_a_closing_pass_answers_without_calls_and_with_the_available_data() -> None:
    response = Conversation(FOLLOW_UP, "deactivate eu").ask(closing=True)
    assert response.calls == ()
    assert response.text == "0 changed; denied: "
    broken = "scripts: [{task: ., answer: 'Found {{ last().data.total }}.'}]"
    assert Conversation(broken, "x").ask(closing=True).text


def test_a_run_continued_after_its_closing_pass_resumes_the_script() -> None:
    conversation = Conversation(FOLLOW_UP, "deactivate eu")
    play_search(conversation)
    conversation.ask(closing=True)
    assert conversation.ask().calls[0].tool == "data.updateRecord"


def test_a_pass_without_calls_and_the_next_pass_are_one_response() -> None:
    script = """
scripts:
  - task: go
    passes:
      - text: First.
      - {text: Second., calls: [{tool: utility.now, when: "offered('utility.then')"}]}
      - {text: Third., calls: [{tool: utility.now, when: "offered('utility.now')"}]}
    answer: Over.
"""
    conversation = Conversation(script, "go")
    response = conversation.ask()
    assert response.text == "First.\n\nSecond.\n\nThird." == "".join(conversation.heard)
    assert len(response.calls) == 1
    conversation.settle(response, [("succeeded", {})])
    assert conversation.ask().text == "Over."


def test_whole_expressions_keep_their_type() -> None:
    params = (
        '{n: "{{ 2 + 3 }}", list: "{{ [1, {}] }}", neg: "{{ -1 }}", '
        'text: "{{ 1 }} of {{ 2 }}", plain: 7, none: null}'
    )
    script = (
        f"scripts: [{{task: ., answer: x, passes: [{{calls: [{{tool: t, params: {params}}}]}}]}}]"
    )
    expected = {"n": 5, "list": [1, {}], "neg": -1, "text": "1 of 2", "plain": 7, "none": None}
    assert asked_for(Conversation(script, "x").ask()) == [("t", expected)]


def test_a_script_can_make_a_model_write_bad_json() -> None:
    script = (
        "scripts: [{task: ., answer: x, passes: [{calls: [{tool: t, arguments: '{\"a\": '}]}]}]"
    )
    response = Conversation(script, "x").ask()
    assert response.calls[0].arguments == '{"a": '
    assert response.message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_a_failure_is_repeated_as_often_as_the_script_says() -> None:
    script = """
scripts:
  - task: flaky
    passes:
      - {fail: {code: rate_limited, message: Slow down, retry_after: 2, times: 2}, calls: [{tool: utility.now}]}
    answer: Over.
"""
    conversation = Conversation(script, "a flaky task")
    for _ in range(2):
        with pytest.raises(ProviderError, match="Slow down") as caught:
            conversation.ask()
        assert (caught.value.code, caught.value.transient, caught.value.retry_after) == (
            "rate_limited",
            True,
            2,
        )
    assert len(conversation.ask().calls) == 1


@pytest.mark.parametrize(
    ("failure", "transient"),
    [
        ("{code: bad_key}", False),
        ("{code: server_error}", True),
        ("{code: bad_key, transient: true}", True),
    ],
)
def test_a_failure_without_a_number_is_always_repeated(failure: str, transient: bool) -> None:
    conversation = Conversation(
        f"scripts: [{{task: ., answer: x, passes: [{{fail: {failure}}}]}}]", "x"
    )
    for _ in range(3):
        with pytest.raises(ProviderError) as caught:
            conversation.ask()
        assert caught.value.transient is transient


def ask_slowly(*, within: float, stopped: threading.Event) -> None:
    script = "scripts: [{task: ., answer: x, passes: [{delay_ms: 60000, text: one two three}]}]"
    messages = [{"role": "user", "content": "x"}]
    request = ModelRequest(write_script(script), messages, [], time.monotonic() + within)
    build_provider(CONFIG).ask(request, lambda text: None, stopped)


def test_a_delay_ends_immediately_when_stopped() -> None:
    stopped = threading.Event()
    threading.Timer(0.05, stopped.set).start()
    begun = time.monotonic()
    with pytest.raises(ProviderStopped):
        ask_slowly(within=60, stopped=stopped)
    assert time.monotonic() - begun < 20


def test_a_delay_ends_at_the_deadline() -> None:
    with pytest.raises(ProviderError) as caught:
        ask_slowly(within=0.05, stopped=threading.Event())
    assert (caught.value.code, caught.value.transient) == ("timeout", True)


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        ("{text: '{{ nothing.there }}'}", "pass 1"),
        ("{calls: [{tool: t, params: {a: '{{ results()[0].data }}'}}]}", "pass 1"),
        ("{calls: [{tool: t, for_each: '{{ 5 }}'}]}", "for_each"),
        ("{calls: [{tool: t, for_each: '{{ range(101) }}'}]}", "101 calls"),
        ("{calls: [{tool: t, params: {a: '{{ last }}'}}]}", "params of t"),
    ],
)
def test_a_failing_expression_is_reported(broken: str, place: str) -> None:
    conversation = Conversation(
        f"scripts: [{{task: ., title: Broken, answer: x, passes: [{broken}]}}]", "x"
    )
    with pytest.raises(ProviderError, match=place) as caught:
        conversation.ask()
    assert (caught.value.code, caught.value.transient) == ("bad_script", False)
    assert "'Broken'" in caught.value.message


def test_the_check_reports_an_unreadable_script() -> None:
    names = write_script(FOLLOW_UP), write_script("scripts: []")
    build_provider(replace(CONFIG, models=names[:1])).check()
    with pytest.raises(ProviderError, match="scripts") as caught:
        build_provider(replace(CONFIG, models=names)).check()
    assert caught.value.code == "bad_script"


@pytest.mark.parametrize(
    "name",
    [
        *("unknown", "", " ", "known.yaml", "known ", "known\n", "known\0", "KNOWN!", "k\u043down"),
        *("../outside", "inner/script", "./known", "..\\outside", "x" * 5000),
    ],
)
def test_a_script_name_without_a_file_in_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "scripts"
    (folder / "inner").mkdir(parents=True)
    for path in (
        folder / "known.yaml",
        folder / "inner" / "script.yaml",
        tmp_path / "outside.yaml",
    ):
        path.write_text(FOLLOW_UP, encoding="utf-8")
    config = ProviderConfig("scripted", scripts_dir=folder)
    build_provider(replace(config, models=("known",))).check()
    with pytest.raises(ProviderError, match=r"This installation has: known\.$") as caught:
        build_provider(replace(config, models=(name,))).check()
    assert (caught.value.code, caught.value.transient) == ("bad_script", False)
