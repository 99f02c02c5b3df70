"""Each value stays within its field on the wire, whatever it contains."""

import json
import re
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from posixpath import normpath
from threading import Thread
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.features import feature
from tests.tools.sources.outside import REACH, Outside, described, running
from tools.contract import ErrorCode, ToolError
from tools.sources.openapi import ApiConnection, OpenAPITool, read_description
from tools.sources.openapi.requests import build_request
from tools.testing import run_tool

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
    """Send this value for a query parameter; return the query string that the API received."""
    tool = outside.tool(
        {"/a": {"get": {"parameters": [{"name": "p", "in": "query", **parameter}]}}}
    )
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
def test_every_query_style_is_supported(
    outside: Outside, parameter: dict[str, Any], value: Any, query: str
) -> None:
    assert wire(outside, {"schema": {}, **parameter}, value) == query


def test_a_parameter_can_be_json(outside: Outside) -> None:
    content = {"application/json": {"schema": {"type": "object"}}}
    assert unquote(wire(outside, {"content": content}, {"a": [1, None]})) == 'p={"a":[1,null]}'


OUTWARDS = [
    *(
        "../users/7",
        "a/../../admin",
        "x/..",
        "./x",
        "x/.",
        "/..",
        "../",
        "..\\users",
        "..\\",
        "x\\..\\..\\y",
    ),
    *(
        "..%2fusers",
        "%2e%2e",
        "%2e%2e%2fusers",
        "%2E%2e/users",
        ".%2e",
        "%252e%252e%252fusers",
        "a%2f..%2f..",
        "..%5cx",
    ),
    *(
        "%25252e%25252e/x",
        "..;/users",
        "..;a=b/users",
        "..%3b/users",
        ". ./..",
        " ../x",
        ".. /x",
        "%" + "25" * 20 + "2e",
    ),
]
INWARDS = [
    "a/b",
    "a//b",
    "...",
    "..a",
    "a..",
    ".a",
    "a.b/c.d",
    "v1..v2",
    "a\\b",
    "100%25",
    "%",
    "a;..b",
    "{x}",
    "~/.profile",
]


@pytest.mark.parametrize("value", OUTWARDS)
def test_a_path_value_that_any_server_could_resolve_to_another_path_is_refused(
    outside: Outside, value: str
) -> None:
    for path in ("/keep/{id}/tail", "/keep/{id}", "/{id}"):
        result = outside.call(outside.tool({path: {"get": {}}}), {"id": value})
        assert result.error is not None, path
        assert result.error.code is ErrorCode.INVALID_PARAMETER
        assert result.error.message.startswith("The 'id' parameter is invalid")
    assert outside.received == []


@pytest.mark.parametrize("value", INWARDS)
def test_a_harmless_path_value_with_slashes_and_dots_is_sent(outside: Outside, value: str) -> None:
    assert outside.call(outside.tool(ONE_PATH), {"id": value}).success
    assert outside.last.target == f"/keep/{quote(value, safe='')}/tail"


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ({"schema": {"type": "array"}}, ["..\\a", "b"]),
        ({"schema": {"type": "array"}}, ["x/..;a", "b"]),
        ({"schema": {"type": "object"}, "explode": True}, {"../a": 1}),
        ({"content": {"application/json": {"schema": {}}}}, {"a": "/../x"}),
    ],
)
def test_path_param_styles_cannot_lead_to_another_path(
    outside: Outside, parameter: Any, value: Any
) -> None:
    tool = outside.tool(
        {"/keep/{id}": {"get": {"parameters": [{"name": "id", "in": "path", **parameter}]}}}
    )
    assert outside.call(tool, {"id": value}).error is not None
    assert outside.received == []


@feature(
    "Tools from API descriptions",
    "No value can change a path, even if a server decodes it several times",
    "tools/sources/openapi/paths.py",
)
def test_a_server_that_decodes_before_checking_does_not_serve_another_path(tmp_path: Path) -> None:
    for name in ("pets", "users"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "7").write_text(name)
    with HTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path))) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            (operation,) = read_description(described({"/pets/{id}": {"get": {}}})).operations
            tool = OpenAPITool(
                operation, ApiConnection("files", f"http://127.0.0.1:{server.server_port}")
            )
            responses = {
                value: run_tool(tool, {"id": value}, reach=REACH)
                for value in ["7", *OUTWARDS, *INWARDS]
            }
        finally:
            server.shutdown()
            thread.join()
    assert responses.pop("7").success
    assert [value for value, response in responses.items() if response.success] == []


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Do not log requests."""


@given(value=st.text(alphabet="./\\%25eEfFcC;x ", min_size=1, max_size=12))
@settings(max_examples=500)
def test_a_sent_path_stays_below_its_prefix_however_often_it_is_decoded(value: str) -> None:
    (operation,) = read_description(described({"/a/keep/{id}/tail": {"get": {}}})).operations
    try:
        path = build_request(operation, {"id": value}).path
    except ToolError:
        return
    for _ in range(12):
        plain = normpath(path.replace("\\", "/"))
        assert plain.startswith("/a/keep")
        assert plain.endswith("/tail")
        assert len(plain.split("/")) >= 4
        path = unquote(path)


@pytest.mark.parametrize("value", ["", ".", "..", "a\nb", "a\r\nHost: evil", "\t", "\x7f"])
def test_a_path_value_that_is_empty_or_dots_or_has_control_characters_is_not_sent(
    outside: Outside, value: str
) -> None:
    result = outside.call(outside.tool(ONE_PATH), {"id": value})
    assert result.error is not None
    assert (result.error.code, result.error.is_definite) == (ErrorCode.INVALID_PARAMETER, True)
    assert outside.received == []


@pytest.mark.parametrize("path", ["/files/{a}{b}", "/files/{a}.{b}", "/files/{a}%2e{b}"])
@pytest.mark.parametrize(
    ("a", "b"), [("x/.", "."), ("x/", "."), ("x/", "./y"), ("x\\", "/y"), ("%2", "e/..")]
)
def test_adjacent_values_never_form_a_path_segment_of_dots_together(
    outside: Outside, path: str, a: str, b: str
) -> None:
    result = outside.call(outside.tool({path: {"get": {}}}), {"a": a, "b": b})
    assert result.error is not None or not {".", ".."} & set(
        re.split(r"[/\\]", unquote(unquote(outside.last.target)))
    )


def test_adjacent_values_can_contain_dots(outside: Outside) -> None:
    assert outside.call(
        outside.tool({"/files/{a}.{b}": {"get": {}}}), {"a": "x.y", "b": "tar/gz"}
    ).success
    assert outside.last.target == "/files/x.y.tar%2Fgz"


@feature(
    "Tools from API descriptions",
    "No value leaves its place in a path, a query or a header",
    "tools/sources/openapi/requests.py",
)
@given(value=st.text(min_size=1), query=st.text())
@settings(max_examples=60)
def test_values_cannot_change_another_part_of_the_request(
    shared: Outside, value: str, query: str
) -> None:
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
def test_a_value_that_would_start_another_header_is_refused(outside: Outside, value: str) -> None:
    tool = outside.tool(
        {"/a": {"get": {"parameters": [{"name": "X-Note", "in": "header", "schema": {}}]}}}
    )
    result = outside.call(tool, {"X-Note": value})
    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMETER
    assert outside.received == []


def test_headers_and_cookies_are_sent(outside: Outside) -> None:
    given = [
        {"name": "X-Note", "in": "header"},
        {"name": "theme", "in": "cookie"},
        {"name": "Host", "in": "header"},
    ]
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


def test_explicit_nulls_are_sent_and_omitted_values_are_not(outside: Outside) -> None:
    assert json.loads(body_of(outside, "application/json", {"a": None})) == {"a": None}
    assert json.loads(body_of(outside, "application/json", {})) == {}
    assert outside.last.headers["content-type"] == "application/json"


def test_a_body_can_be_a_form(outside: Outside) -> None:
    assert (
        body_of(outside, "application/x-www-form-urlencoded", {"a": "x&y", "b": [1, 2]})
        == "a=x%26y&b=1&b=2"
    )
    sent = body_of(outside, "multipart/form-data", {"a": '"\r\n--x', "b": 1})
    boundary = outside.last.headers["content-type"].partition("boundary=")[2]
    assert [part.strip("\r\n") for part in sent.split(f"--{boundary}")[1:3]] == [
        'Content-Disposition: form-data; name="a"\r\n\r\n"\r\n--x',
        'Content-Disposition: form-data; name="b"\r\n\r\n1',
    ]


def test_a_body_can_be_text(outside: Outside) -> None:
    assert body_of(outside, "text/plain", {"body": "é\n"}, {"type": "string"}) == "é\n"
    assert outside.last.headers["content-type"] == "text/plain; charset=utf-8"


def test_an_optional_body_can_be_omitted(outside: Outside) -> None:
    schema = {"type": "object", "properties": {"a": {}}}
    tool = outside.tool(
        {"/a": {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}}}
    )
    outside.call(tool)
    assert (outside.last.body, "content-type" in outside.last.headers) == (b"", False)
