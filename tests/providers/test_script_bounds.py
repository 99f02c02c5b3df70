"""No script keeps a worker busy or away for long: its patterns are searched fast, its delays have an end."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agents.providers.base import CallOutcome, ModelRequest, ProviderConfig, ProviderError, ProviderStopped
from agents.providers.expression_allowance import Allowance
from agents.providers.expressions import ExpressionScope, render
from agents.providers.registry import build_provider
from agents.providers.script_format import validate_script

ROOT = Path(__file__).resolve().parents[2]
SLOWEST_S = 10
"""Of the thread's processor time: the slowest case takes 1 s, or 4 s on a busy machine; unbounded ones never end."""
UNKNOWN = "I am a demo employee and don't know this task.\n\nTry:\n\n- {}"
RECORDS = [{"id": number, "name": f"Company {number}", "note": "x" * 80} for number in range(1000)]
DOUBLED = "{% set a = 'xxxxxxxxxx' %}" + "{% set a = a ~ a %}" * 30
NESTED = "{% set a = [1] %}" + "{% set a = [a, a] %}" * 40
MEASURE = """
import resource, sys
from tests.providers.test_script_bounds import refusal
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
print(refusal(sys.stdin.read()))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
GREEDY = {
    "loops in loops": "{% for i in calls %}{% for j in calls %}{% for k in calls %}x" + "{% endfor %}" * 3,
    "loops over made lists": "{% for i in range(1000) %}{% set a = calls | list | list | list %}{% endfor %}",
    "a doubled text": DOUBLED + "{{ a | length }}",
    "a doubled list": "{% set a = range(1000) | list %}" + "{% set a = a + a %}" * 30,
    "many texts": "{% set a = task ~ task %}" + "".join(f"{{% set a{n} = a ~ a %}}" for n in range(2000)),
    "a text of a doubled list": NESTED + "{{ a }}",
    "doubled lists compared": NESTED + NESTED.replace(" a ", " b ").replace("[a, a]", "[b, b]") + "{{ a == b }}",
    "a doubled list that is searched": NESTED + "{{ a in [a, a] }}",
    "a doubled list that is sorted": NESTED + "{{ [a, a] | sort }}",
    "a list in itself": "{% set a = [1] %}" + "{% set a = [a] %}" * 60 + "{{ a }}",
    "a replaced text": "{% set a = task | replace('x', task) %}" + "{% set a = a | replace('x', a) %}" * 5,
    "a joined list": "{{ calls | join(task ~ task ~ task) | join(task) }}",
    "a formatted number": "{{ ('%0' ~ '999999999d') is odd }}",
    "a rounded number": "{{ 1 | round(999999999, 'ceil') }}",
    "a rounded text": "{{ 'x' | round(15, 'floor') }}",
    "a large number": "{% set a = 9 ** 60 %}" + "{% set a = a * a %}" * 40,
    "numbers that collide in a dict": (
        "{% set ns = range(1000) | list %}{{ (ns + ns + ns) | map('string') | map('int') | unique | list }}" * 30
    ),
    "a slow strip": "{{ (task ~ task).strip('y' ~ task) }}",
    "a deep expression": "{{ " + "1 + " * 40_000 + "1 }}",
    "deep brackets": "{{ " + "(" * 50_000 + "1" + ")" * 50_000 + " }}",
    "deep blocks": "{% if 1 %}" * 20_000 + "{% endif %}" * 20_000,
}


def refusal(text: str) -> str:
    """The reason for which a script whose answer is this text is not played."""
    outcomes = [
        CallOutcome(1, number, "t", {}, "succeeded", success=True, data=RECORDS[number], summary="", reason="")
        for number in range(1000)
    ]
    written = json.dumps({"scripts": [{"task": "x", "answer": text}]})
    messages = [{"role": "user", "content": "x" * 20_000}]
    request = ModelRequest("", messages, [], time.monotonic() + 20, outcomes=lambda: outcomes)
    try:
        build_provider(ProviderConfig("scripted", script=written)).ask(request, lambda _: None, threading.Event())
    except ProviderError as error:
        return error.code
    return "played"


@pytest.mark.parametrize("case", GREEDY)
def test_a_greedy_expression_is_refused_before_it_takes_time(case: str) -> None:
    began = time.thread_time()
    assert refusal(GREEDY[case]) == "bad_script"
    assert time.thread_time() - began < SLOWEST_S


@pytest.mark.parametrize("case", ["a doubled text", "many texts", "loops over made lists"])
def test_a_greedy_expression_is_refused_before_it_takes_memory(case: str) -> None:
    command = [sys.executable, "-c", MEASURE]
    ended = subprocess.run(command, input=GREEDY[case], capture_output=True, text=True, check=True, cwd=ROOT)
    reason, kilobytes = ended.stdout.split()[-2:]
    assert reason == "bad_script"
    assert int(kilobytes) < 100_000


def test_all_expressions_of_one_answer_share_what_they_may_use() -> None:
    one = "{% for i in range(100) %}{% for j in range(100) %}{% endfor %}{% endfor %}"
    assert refusal(one) == "played"
    assert refusal(one * 100) == "bad_script"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ records | map(attribute='id') | list | length }}", 1000),
        ("{{ records | selectattr('id', 'lt', 2) | map(attribute='name') | join(', ') }}", "Company 0, Company 1"),
        ("{{ (records | sort(attribute='id', reverse=true))[0].id }}", 999),
        ("{{ records | sum(attribute='id') }}", 499_500),
        ("{% for r in records if r.id < 2 %}{{ loop.index }}:{{ r.id }} {% endfor %}", "1:0 2:1 "),
        ("{% for n in [1, 2] %}{% if not loop.last %}{{ n }}, {% else %}{{ n }}{% endif %}{% endfor %}", "1, 2"),
        ("{% for even, rows in numbers | groupby('even') %}{{ even }}{{ rows | length }}{% endfor %}", "False2True1"),
        ("{{ [3, 1, 3] | unique | list }}", [3, 1]),
        ("{{ (7 / 2) | round(1) }} {{ 7 // 2 }} {{ -7 % 4 }} {{ 2 ** 10 }}", "3.5 3 1 1024"),
        ("{{ 'a,b'.split(',')[-1] | upper }}{{ none | default('-', true) }}", "B-"),
        ("{{ {'a': 1}.get('b', 2) if 1 < 2 < 3 and 'x' in 'xyz' else 0 }}", 2),
        ("{% set x, y = [1, 2] %}{{ x + y }}{% set x = 'again' %} {{ x | title }}", "3 Again"),
    ],
)  # fmt: skip
def test_ordinary_expressions_are_evaluated_as_in_jinja(text: str, expected: object) -> None:
    numbers = [{"n": n, "even": n % 2 == 0} for n in (1, 2, 3)]
    assert render(text, ExpressionScope({"records": RECORDS, "numbers": numbers}, Allowance())) == expected


def test_an_expression_ends_when_the_answer_is_no_longer_wanted() -> None:
    stopped = threading.Event()
    stopped.set()

    def look() -> None:
        if stopped.is_set():
            raise ProviderStopped

    endless = "{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}"
    with pytest.raises(ProviderStopped):
        render(endless, ExpressionScope({}, Allowance(look)))


def test_an_expression_ends_at_the_deadline() -> None:
    text = "{% for i in range(100) %}{% for j in range(1000) %}{% endfor %}{% endfor %}"
    written = json.dumps({"scripts": [{"task": ".", "answer": text}]})
    request = ModelRequest("", [{"role": "user", "content": "x"}], [], time.monotonic() + 0.02)
    with pytest.raises(ProviderError) as caught:
        build_provider(ProviderConfig("scripted", script=written)).ask(request, lambda _: None, threading.Event())
    assert caught.value.code == "timeout"


def script(task: str) -> str:
    return f"scripts: [{{task: '{task}', answer: Found}}]"


def answer(task: str, text: str) -> str:
    provider = build_provider(ProviderConfig("scripted", script=script(task)))
    messages = [{"role": "user", "content": text}]
    request = ModelRequest(model="", messages=messages, tools=[], deadline=time.monotonic() + 20)
    return provider.ask(request, lambda _: None, threading.Event()).text


@pytest.mark.parametrize(
    "task", ["(a+)+$", "(?:a?){30}b", "(.*)(.*)(.*)(.*)b", "a{0,60}" * 6 + "!", "(?i)(?:x|(?:a+)*)b"]
)
def test_no_pattern_makes_a_search_slow(task: str) -> None:
    began = time.thread_time()
    assert answer(task, "a" * 2000) in ("Found", UNKNOWN.format(task))
    assert time.thread_time() - began < SLOWEST_S


@pytest.mark.parametrize("task", ["(.+)x\\1", "(?=(a+)+$)", "(?:[^,]{1,60}){1,16}", "a" * 501])
def test_a_pattern_that_cannot_be_searched_for_quickly_is_refused_with_its_place(task: str) -> None:
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
    began = time.thread_time()
    assert answer("[a-z]+[a-z]{1,9}!", "a" * 100_000) != "Found"
    assert time.thread_time() - began < SLOWEST_S


@pytest.mark.parametrize("fault", ["retry_after: 86401", "retry_after: .inf", "retry_after: .nan", "retry_after: -1"])
def test_a_scripted_failure_asks_for_at_most_a_day(fault: str) -> None:
    with pytest.raises(ValueError, match="retry_after"):
        validate_script(f"scripts: [{{task: x, answer: y, passes: [{{fail: {{code: rate_limited, {fault}}}}}]}}]")


def test_a_delay_is_at_most_ten_minutes() -> None:
    with pytest.raises(ValueError, match="delay_ms"):
        validate_script("scripts: [{task: x, answer: y, passes: [{delay_ms: 600001}]}]")
