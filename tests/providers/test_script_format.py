"""A script with a fault is refused by the form, with the place of the fault; no expression escapes or runs away."""

import time
from typing import Any

import pytest

from agents.providers.expression_allowance import Allowance, ExpressionError
from agents.providers.expressions import ExpressionScope, is_true, render
from agents.providers.script_format import validate_script

FAULTS = {
    "not yaml": ("scripts: [", "not valid YAML"),
    "nothing": ("", "the script"),
    "a list": ("- a", "the script"),
    "no scripts": ("scripts: []", "scripts"),
    "an unknown key": ("scripts: [{task: x, answer: y, passs: []}]", r"scripts\[0\].passs"),
    "no answer": ("scripts: [{task: x}]", r"scripts\[0\].answer"),
    "a bad pattern": ("scripts: [{task: '(', answer: y}]", r"scripts\[0\].task"),
    "a bad expression": ("scripts: [{task: x, answer: '{{ 1 + }}'}]", r"scripts\[0\].answer"),
    "a bad expression in params": (
        "scripts: [{task: x, answer: y, passes: [{calls: [{tool: t, params: {a: [{b: '{{ ( }}'}]}}]}]}]",
        r"scripts\[0\].passes\[0\].calls\[0\].params",
    ),
    "a call without tool": ("scripts: [{task: x, answer: y, passes: [{calls: [{}]}]}]", r"calls\[0\].tool"),
    "a condition of text": (
        "scripts: [{task: x, answer: y, passes: [{when: '{{ a }} or {{ b }}'}]}]",
        "one expression",
    ),
    "a negative delay": ("scripts: [{task: x, answer: y, passes: [{delay_ms: -1}]}]", "delay_ms"),
    "an alias": ("a: &a [1]\nscripts: *a", "aliases"),
    "an object of python": ("scripts: !!python/object/apply:os.getcwd []", "not valid YAML"),
    "too long": ("#" * 200_001, "at most"),
    "too deep": ("[" * 5000, "not valid YAML"),
}


def scope(**names: Any) -> ExpressionScope:
    return ExpressionScope(names, Allowance())


@pytest.mark.parametrize("case", FAULTS)
def test_the_place_of_a_fault_is_named(case: str) -> None:
    text, named = FAULTS[case]
    with pytest.raises(ValueError, match=named):
        validate_script(text)


def test_a_good_script_is_accepted() -> None:
    good = "scripts: [{task: x, answer: '{{ calls | length }}', passes: [{when: 'not calls', text: Hi}]}]"
    validate_script(good)
    with pytest.raises(ValueError, match="wen"):
        validate_script(good.replace("when", "wen"))


@pytest.mark.parametrize(
    "escape",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ render.__globals__ }}",
        "{{ calls.append(1) }}",
        "{{ items.update({'a': 1}) }}",
        "{% for i in range(1001) %}x{% endfor %}",
        "{% for i in range(900) %}{% for j in range(900) %}{% endfor %}{% endfor %}",
        "{{ 'x' * 1000000000 }}",
        "{{ [0] * 1000000000 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ 'x'.ljust(1000000000) }}",
        "{{ '{:>1000000000}'.format(1) }}",
        "{{ '{:>1000000000}'['format'](1) }}",
        "{{ ['{:>1000000000}'] | map(attribute='format') | first }}",
        "{{ '{:>1000000000}' | attr('format') }}",
        "{{ [1] | batch(1000000000, 1) | list }}",
        "{{ '%01000000000d' % 1 }}",
        "{{ 'x' | center(1000000000) }}",
        "{{ 1 / 0 }}",
        "{{ nothing }}",
        "{{ nothing.at.all }}",
        "{{ calls[0] }}",
        "{% include 'x' %}",
        "{{ range(0, 10, 0) }}",
        "a {{ calls[7].tool }}",
    ],
)
def test_the_sandbox_holds_and_is_quick(escape: str) -> None:
    begun = time.monotonic()
    with pytest.raises(ExpressionError):
        render(escape, scope(calls=[], items={}, render=render))
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("condition", "expected"),
    [(None, True), (True, True), (False, False), ("calls", False), ("{{ not calls }}", True), ("{{- 1 -}}", True)],
)
def test_a_condition_is_one_expression(condition: bool | str | None, expected: bool) -> None:
    assert is_true(condition, scope(calls=[])) is expected


def test_a_field_of_a_result_comes_before_a_method() -> None:
    assert render("{{ data.items }}", scope(data={"items": [1]})) == [1]


def test_data_is_never_read_as_an_expression() -> None:
    assert render("{{ name }}!", scope(name="{{ 1 + 1 }}")) == "{{ 1 + 1 }}!"
