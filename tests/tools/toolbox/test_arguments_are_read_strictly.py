"""The model's arguments: one JSON object that can be stored, or an error that names the problem."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.contract import (
    ErrorCode,
    ToolError,
    build_signature,
    canonical_json,
    fingerprint,
    parse_arguments,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("text", ["", "  ", "{}"])
def test_empty_arguments_mean_no_params(text: str) -> None:
    assert parse_arguments(text) == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1, "a": 2}', "'a' appears twice"),
        ('{"a": {"b": 1, "b": 1}}', "'b' appears twice"),
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a": -Infinity}', "-Infinity is not a number"),
        ('{"a": 1e999}', "not valid JSON"),
        ('{"a": ' + "9" * 5000 + "}", "not valid JSON"),
        ("[1]", "an object, not list"),
        ('"text"', "an object, not str"),
        ("null", "an object, not NoneType"),
        ('{"a": 1', "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ('{"a": 1} {"b": 2}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a": "x\\u0000y"}', "NUL"),
        ('{"a": "\\ud800"}', "surrogate"),
        ("<html></html>", "not valid JSON"),
    ],
)
def test_anything_but_one_clean_object_is_refused(text: str, told: str) -> None:
    with pytest.raises(ToolError) as refused:
        parse_arguments(text)
    assert refused.value.code is ErrorCode.INVALID_TOOL_ARGUMENTS
    assert told in refused.value.message
    assert refused.value.is_definite


def test_an_escaped_backslash_before_u0000_is_not_a_nul() -> None:
    assert parse_arguments(r'{"a": "\\u0000"}') == {"a": r"\u0000"}


@given(st.text(max_size=60))
def test_any_text_is_parsed_as_an_object_or_refused_with_a_tool_error(text: str) -> None:
    try:
        read = parse_arguments(text)
    except ToolError:
        return
    assert parse_arguments(canonical_json(read)) == read


@given(JSON)
def test_canonical_json_is_a_fixed_point(value: object) -> None:
    text = canonical_json(value)
    assert canonical_json(json.loads(text)) == text
    assert fingerprint(json.loads(text)) == fingerprint(value)


def test_the_order_of_keys_changes_neither_signature_nor_fingerprint() -> None:
    assert (
        build_signature("a.b", {"x": 1, "y": 2})
        == build_signature("a.b", {"y": 2, "x": 1})
        == 'a.b::{"x":1,"y":2}'
    )
    assert fingerprint({"x": 1, "y": [2]}) != fingerprint({"x": 1, "y": [3]})
