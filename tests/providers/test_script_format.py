"""Scripts with a fault are refused, and the error names its place; expressions cannot leave Jinja's
sandbox."""

from typing import Any

import pytest

from agents.providers.expressions import ExpressionError, ExpressionScope, is_true, render
from agents.providers.script_format import parse_scripts

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
    "a call without tool": (
        "scripts: [{task: x, answer: y, passes: [{calls: [{}]}]}]",
        r"calls\[0\].tool",
    ),
    "a condition of text": (
        "scripts: [{task: x, answer: y, passes: [{when: '{{ a }} or {{ b }}'}]}]",
        "one expression",
    ),
    "a negative delay": ("scripts: [{task: x, answer: y, passes: [{delay_ms: -1}]}]", "delay_ms"),
    "an object of python": ("scripts: !!python/object/apply:os.getcwd []", "not valid YAML"),
    "an unknown filter": (
        "scripts: [{task: x, answer: '{{ 1 | unknown }}'}]",
        r"scripts\[0\].answer.*unknown",
    ),
    "too deep": ("[" * 5000, "not valid YAML"),
}


def scope(**names: Any) -> ExpressionScope:
    return ExpressionScope(names)


@pytest.mark.parametrize("case", FAULTS)
def test_the_place_of_a_fault_is_reported(case: str) -> None:
    text, named = FAULTS[case]
    with pytest.raises(ValueError, match=named):
        parse_scripts(text)


def test_a_valid_script_is_accepted() -> None:
    good = "scripts: [{task: x, answer: '{{ calls | length }}', passes: [{when: 'not calls', text: Hi}]}]"
    parse_scripts(good)
    with pytest.raises(ValueError, match="wen"):
        parse_scripts(good.replace("when", "wen"))


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ '' | attr('__class__') }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ render.__globals__ }}",
        "{{ calls.append(1) }}",
        "{{ items.update({'a': 1}) }}",
        "{% for i in range(1000000) %}x{% endfor %}",
        "{{ 1 / 0 }}",
        "{{ nothing }}",
        "{{ nothing.at.all }}",
        "{{ calls[0] }}",
        "{% include 'x' %}",
        "{{ range(0, 10, 0) }}",
        "a {{ calls[7].tool }}",
    ],
)
def test_an_expression_that_leaves_the_sandbox_or_uses_a_missing_value_fails(text: str) -> None:
    names: dict[str, Any] = {"calls": [], "items": {}, "render": render}
    with pytest.raises(ExpressionError):
        render(text, scope(**names))
    assert names == {"calls": [], "items": {}, "render": render}


RECORDS = [{"id": number, "name": f"Company {number}"} for number in range(1000)]
NUMBERS = [{"n": number, "even": number % 2 == 0} for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ records | map(attribute='id') | list | length }}", 1000),
        ("{{ numbers | map(attribute='n') }}", [1, 2, 3]),
        ("{{ numbers[0].items() }}", [("n", 1), ("even", False)]),
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
        ("{{ '007' }}", "007"),
        ("{{ none }}", None),
        (" {{- 1 -}} ", 1),
        ("plain\n", "plain\n"),
    ],
)  # fmt: skip
def test_a_single_expression_keeps_its_type_and_mixed_text_becomes_text(
    text: str, expected: object
) -> None:
    assert render(text, scope(records=RECORDS, numbers=NUMBERS)) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("{{ nothing.at.all }}", ""), ("a {{ calls[7].tool }}", "a ")]
)
def test_a_missing_value_is_an_empty_text_in_a_closing_answer(text: str, expected: str) -> None:
    assert render(text, ExpressionScope({"calls": []}, strict=False)) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, True),
        (True, True),
        (False, False),
        ("calls", False),
        ("{{ not calls }}", True),
        ("{{- 1 -}}", True),
    ],
)
def test_a_condition_is_optional_and_may_be_a_constant_or_one_expression(
    condition: bool | str | None, expected: bool
) -> None:
    assert is_true(condition, scope(calls=[])) is expected


def test_a_field_of_a_result_takes_precedence_over_a_method() -> None:
    assert render("{{ data.items }}", scope(data={"items": [1]})) == [1]


def test_data_is_never_evaluated_as_an_expression() -> None:
    assert render("{{ name }}!", scope(name="{{ 1 + 1 }}")) == "{{ 1 + 1 }}!"
