"""Scripts cannot keep a worker busy or waiting for long: patterns are searched quickly, and delays
are limited."""

import threading
import time

import pytest
from django.conf import settings

from agents.providers.base import ModelRequest, ProviderConfig
from agents.providers.registry import build_provider
from agents.providers.script_format import parse_scripts
from tests.scripts import write_script

SLOWEST_S = 10
"""The limit for the thread's CPU time: the slowest case takes 1 s, or 4 s on a busy machine; an
unbounded search never ends."""
UNKNOWN = "I am a demo employee and don't know this task.\n\nTry:\n\n- {}"


def script(task: str) -> str:
    return f"scripts: [{{task: '{task}', answer: Found}}]"


def answer(task: str, text: str) -> str:
    provider = build_provider(ProviderConfig("scripted", scripts_dir=settings.GADGET_SCRIPTS_DIR))
    messages = [{"role": "user", "content": text}]
    request = ModelRequest(write_script(script(task)), messages, [], time.monotonic() + 20)
    return provider.ask(request, lambda _: None, threading.Event()).text


@pytest.mark.parametrize(
    "task",
    ["(a+)+$", "(?:a?){30}b", "(.*)(.*)(.*)(.*)b", "a{0,60}" * 6 + "!", "(?i)(?:x|(?:a+)*)b"],
)
def test_patterns_cannot_make_a_search_slow(task: str) -> None:
    began = time.thread_time()
    assert answer(task, "a" * 2000) in ("Found", UNKNOWN.format(task))
    assert time.thread_time() - began < SLOWEST_S


@pytest.mark.parametrize("task", ["(.+)x\\1", "(?=(a+)+$)", "(?:[^,]{1,60}){1,16}", "a" * 501])
def test_a_pattern_that_cannot_be_searched_quickly_is_refused_and_its_place_is_named(
    task: str,
) -> None:
    with pytest.raises(ValueError, match=r"scripts\[0\].task: the regular expression"):
        parse_scripts(script(task))


@pytest.mark.parametrize(
    "task",
    [
        "(?i)find (?P<region>EU|US) companies",
        "(?:our |the )?[a-z]+ .*",
        "(?: and (\\w+))?",
        "a{3}(?:bc)+",
    ],
)
def test_an_ordinary_pattern_is_accepted(task: str) -> None:
    parse_scripts(script(task))
    assert answer(task, "find US companies, the big and the small, aaabcbc") == "Found"


def test_only_the_first_two_thousand_characters_of_a_task_are_searched() -> None:
    assert answer("needle", "x" * 1990 + "needle") == "Found"
    assert answer("needle", "x" * 2000 + "needle") != "Found"


def test_a_hostile_task_is_searched_quickly() -> None:
    began = time.thread_time()
    assert answer("[a-z]+[a-z]{1,9}!", "a" * 100_000) != "Found"
    assert time.thread_time() - began < SLOWEST_S


@pytest.mark.parametrize(
    "fault", ["retry_after: 86401", "retry_after: .inf", "retry_after: .nan", "retry_after: -1"]
)
def test_a_scripted_failure_cannot_delay_for_more_than_a_day(fault: str) -> None:
    with pytest.raises(ValueError, match="retry_after"):
        parse_scripts(
            f"scripts: [{{task: x, answer: y, passes: [{{fail: {{code: rate_limited, {fault}}}}}]}}]"
        )


def test_a_delay_cannot_exceed_ten_minutes() -> None:
    with pytest.raises(ValueError, match="delay_ms"):
        parse_scripts("scripts: [{task: x, answer: y, passes: [{delay_ms: 600001}]}]")
