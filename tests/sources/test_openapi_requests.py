"""Each value stays in its place on the wire, whatever it holds."""

import json
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sources.outside import Outside, running
from tools.contract import ErrorCode

ONE_PATH = {
    "/keep/{id}/tail": {
        "get": {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                {"name": "q", "in": "query", "schema": {"type": "string"}},
            ]
        }
    }
}


def wire(outside: Outside, parameter: dict[str, Any], value: Any) -> str:
    """The query that a parameter with this value makes."""
    tool = outside.tool({"/a": {"get": {"parameters": [{"name": "p", "in": "query", **parameter}]}}})
    result = outside.call(tool, {"p": value})
    assert result.success, result
    return outside.last.target.removeprefix("/a").removeprefix("?")


@pytest.mark.parametrize(
    ("parameter", "value", "query"),
    [
        ({}, ["a", "b c"], "p=a&p=b%20c"),
        ({"explode": False}, ["a,b", "c"], "p=a%2Cb,c"),
        ({"style": "spaceDelimited"}, ["a", "b"], "p=a%20b"),
        ({"style": "pipeDelimited"}, ["a", "b"], "p=a%7Cb"),
        ({"style": "deepObject"}, {"a": 1, "b": {"c": True}}, "p%5Ba%5D=1&p%5Bb%5D%5Bc%5D=true"),
        ({}, {"a": 1, "b": "x&y"}, "a=1&b=x%26y"),
        ({"explode": False}, {"a": 1, "b": 2}, "p=a,1,b,2"),
        ({}, 1.5, "p=1.5"),
        ({}, False, "p=false"),
        ({}, None, ""),
        ({}, [], ""),
        ({}, "a b+c%20&d=#é\r\n", "p=a%20b%2Bc%2520%26d%3D%23%C3%A9%0D%0A"),
    ],
)
def test_styles_of_a_query(outside: Outside, parameter: dict[str, Any], value: Any, query: str) -> None:
    assert wire(outside, {"schema": {}, **parameter}, value) == query


def test_a_parameter_may_be_json(outside: Outside) -> None:
    content = {"application/json": {"schema": {"type": "object"}}}
    assert unquote(wire(outside, {"content": content}, {"a": [1, None]})) == 'p={"a":[1,null]}'


@pytest.mark.parametrize("value", ["", ".", "..", "a\nb", "a\r\nHost: evil", "\t", "\x7f"])
def test_a_path_value_that_would_leave_its_place_is_refused_before_anything_is_sent(
    outside: Outside, value: str
) -> None:
    result = outside.call(outside.tool(ONE_PATH), {"id": value})
    assert result.error is not None
    assert (result.error.code, result.error.is_definite) == (ErrorCode.INVALID_PARAMETER, True)
    assert outside.received == []


@pytest.mark.parametrize(("a", "b"), [(".", "."), ("x/..", "."), ("..", "")])
def test_values_that_make_dots_together_are_refused(outside: Outside, a: str, b: str) -> None:
    tool = outside.tool({"/files/{a}{b}": {"get": {}}})
    result = outside.call(tool, {"a": a, "b": b})
    assert result.error is not None or outside.last.target == "/files/x%2F..."


@given(value=st.text(min_size=1), query=st.text())
@settings(max_examples=60, deadline=None)
def test_no_value_leaves_its_place(shared: Outside, value: str, query: str) -> None:
    before = len(shared.received)
    result = shared.call(shared.tool(ONE_PATH), {"id": value, "q": query})
    if not result.success:
        assert result.error is not None
        assert result.error.code is ErrorCode.INVALID_PARAMETER
        assert len(shared.received) == before
        return
    (received,) = shared.received[before:]
    path, _, sent_query = received.target.partition("?")
    head, middle, tail = path.removeprefix("/").split("/")
    assert (head, unquote(middle), tail) == ("keep", value, "tail")
    assert unquote(sent_query) == f"q={query}"
    assert sent_query.count("=") == 1
    assert "&" not in sent_query


@pytest.fixture(scope="module")
def shared() -> Any:
    with running() as api:
        yield api


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "é", "\0"])
def test_a_header_that_would_begin_another_one_is_refused(outside: Outside, value: str) -> None:
    tool = outside.tool({"/a": {"get": {"parameters": [{"name": "X-Note", "in": "header", "schema": {}}]}}})
    result = outside.call(tool, {"X-Note": value})
    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMETER
    assert outside.received == []


def test_headers_and_cookies_arrive(outside: Outside) -> None:
    given = [{"name": "X-Note", "in": "header"}, {"name": "theme", "in": "cookie"}, {"name": "Host", "in": "header"}]
    tool = outside.tool({"/a": {"get": {"parameters": [{**each, "schema": {}} for each in given]}}})
    assert list(tool.schema["properties"]) == ["X-Note", "theme"]
    outside.call(tool, {"X-Note": ["a", "b"], "theme": "dark; admin=1"})
    assert outside.last.headers["x-note"] == "a,b"
    assert outside.last.headers["cookie"] == "theme=dark%3B%20admin%3D1"


def body_of(outside: Outside, kind: str, params: dict[str, Any], schema: Any = None) -> str:
    shape = schema or {"type": "object", "properties": {"a": {}, "b": {}}}
    body = {"required": True, "content": {kind: {"schema": shape}}}
    result = outside.call(outside.tool({"/a": {"post": {"requestBody": body}}}), params)
    assert result.success, result
    return outside.last.body.decode()


def test_explicit_nulls_stay_and_what_is_not_given_is_not_sent(outside: Outside) -> None:
    assert json.loads(body_of(outside, "application/json", {"a": None})) == {"a": None}
    assert json.loads(body_of(outside, "application/json", {})) == {}
    assert outside.last.headers["content-type"] == "application/json"


def test_forms(outside: Outside) -> None:
    assert body_of(outside, "application/x-www-form-urlencoded", {"a": "x&y", "b": [1, 2]}) == "a=x%26y&b=1&b=2"
    sent = body_of(outside, "multipart/form-data", {"a": '"\r\n--x', "b": 1})
    boundary = outside.last.headers["content-type"].partition("boundary=")[2]
    assert [part.strip("\r\n") for part in sent.split(f"--{boundary}")[1:3]] == [
        'Content-Disposition: form-data; name="a"\r\n\r\n"\r\n--x',
        'Content-Disposition: form-data; name="b"\r\n\r\n1',
    ]


def test_text(outside: Outside) -> None:
    assert body_of(outside, "text/plain", {"body": "é\n"}, {"type": "string"}) == "é\n"
    assert outside.last.headers["content-type"] == "text/plain; charset=utf-8"


def test_an_optional_body_is_left_away(outside: Outside) -> None:
    schema = {"type": "object", "properties": {"a": {}}}
    tool = outside.tool({"/a": {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}}})
    outside.call(tool)
    assert (outside.last.body, "content-type" in outside.last.headers) == (b"", False)
