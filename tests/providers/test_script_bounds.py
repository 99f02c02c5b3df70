"""No script keeps a worker busy or away for long: its patterns are searched fast, its delays have an end."""

import threading
import time

import pytest

from agents.providers.base import ModelRequest, ProviderConfig
from agents.providers.choice import provider_for
from agents.providers.scripts import validate_script


def script(task: str) -> str:
    return f"scripts: [{{task: '{task}', answer: Found}}]"


def answer(task: str, text: str) -> str:
    provider = provider_for(ProviderConfig("scripted", script=script(task)))
    messages = [{"role": "user", "content": text}]
    request = ModelRequest(model="", messages=messages, tools=[], deadline=time.monotonic() + 20)
    return provider.ask(request, lambda _: None, threading.Event()).text


@pytest.mark.parametrize(
    "task",
    [
        "(a+)+$", "(a*)*b", "(?:a?){30}b", "(a|aa)+$", "((a+)b?)*", "(?=(a+)+$)", "(a{1,9}){2,9}", "(.+)x\\1",
        ".*a.*a.*a", "a?a?a?a?a?a?a?b", "(?:x|(?:a+)*)b",
    ],
)  # fmt: skip
def test_a_pattern_that_may_run_away_is_refused_with_its_place(task: str) -> None:
    with pytest.raises(ValueError, match=r"scripts\[0\].task: the regular expression"):
        validate_script(script(task))


@pytest.mark.parametrize(
    "task", ["(?i)find (?P<region>EU|US) companies", "(?:our |the )?[a-z]+ .*", "(?: and (\\w+))?", "a{3}(?:bc)+"]
)
def test_an_ordinary_pattern_is_accepted(task: str) -> None:
    validate_script(script(task))
    assert answer(task, "find US companies, the big and the small, aaabcbc") == "Found"


def test_a_task_is_searched_in_its_first_two_thousand_characters() -> None:
    assert answer("needle", "x" * 1990 + "needle") == "Found"
    assert answer("needle", "x" * 2000 + "needle") != "Found"


def test_a_hostile_task_is_searched_in_a_moment() -> None:
    began = time.process_time()
    assert answer("[a-z]+[a-z]{1,9}!", "a" * 100_000) != "Found"
    assert time.process_time() - began < 2


@pytest.mark.parametrize("fault", ["retry_after: 86401", "retry_after: .inf", "retry_after: .nan", "retry_after: -1"])
def test_a_scripted_failure_asks_for_at_most_a_day(fault: str) -> None:
    with pytest.raises(ValueError, match="retry_after"):
        validate_script(f"scripts: [{{task: x, answer: y, passes: [{{fail: {{code: rate_limited, {fault}}}}}]}}]")


def test_a_delay_is_at_most_ten_minutes() -> None:
    with pytest.raises(ValueError, match="delay_ms"):
        validate_script("scripts: [{task: x, answer: y, passes: [{delay_ms: 600001}]}]")
