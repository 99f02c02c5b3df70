"""Credentials in the body of a request: the connection fills them in; models cannot set or see
them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.tools.sources.outside import Outside, Reply, described
from tools.contract import ErrorCode, ToolError
from tools.sources.openapi import AuthenticationKind, AuthenticationSettings, read_description

pytestmark = pytest.mark.once

SECRET = "s3cret-value/+"
KEY = AuthenticationSettings(AuthenticationKind.API_KEY, "api", "body", "secret")
FIELDS = {"api": {"api_key": SECRET}}
OBJECT = {
    "type": "object",
    "required": ["secret", "id"],
    "properties": {"secret": {"type": "string"}, "id": {}},
}
JSON, FORM, PARTS = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"


def posting(schema: Any, media_type: str = JSON, method: str = "post") -> dict[str, Any]:
    body = {"required": True, "content": {media_type: {"schema": schema}}}
    return {"/pets": {method: {"requestBody": body}}}


def test_a_required_key_is_not_a_param_and_is_sent_in_the_json_body(outside: Outside) -> None:
    tool = outside.tool(posting(OBJECT), KEY)
    assert list(tool.schema["properties"]) == ["id"]
    assert tool.schema["required"] == ["id"]
    assert outside.call(tool, {"id": "7"}, FIELDS).success
    assert json.loads(outside.last.body) == {"id": "7", "secret": SECRET}


def test_a_key_is_sent_in_a_form_and_in_a_multipart_body(outside: Outside) -> None:
    outside.call(outside.tool(posting(OBJECT, FORM), KEY), {"id": "7"}, FIELDS)
    assert parse_qs(outside.last.body.decode()) == {"id": ["7"], "secret": [SECRET]}
    outside.call(outside.tool(posting(OBJECT, PARTS), KEY), {"id": "7"}, FIELDS)
    assert f'name="secret"\r\n\r\n{SECRET}\r\n'.encode() in outside.last.body


def test_a_key_required_by_another_schema_is_not_a_param(outside: Outside) -> None:
    base = {"type": "object", "required": ["secret"]}
    tool = outside.tool(posting({"allOf": [base, OBJECT]}), KEY)
    assert "secret" not in json.dumps(tool.schema)
    outside.call(tool, {"id": "7"}, FIELDS)
    assert json.loads(outside.last.body) == {"id": "7", "secret": SECRET}


def test_a_request_without_a_body_gets_a_body_with_only_the_key(outside: Outside) -> None:
    outside.call(outside.tool({"/pets": {"post": {}}}, KEY), {}, FIELDS)
    assert (json.loads(outside.last.body), outside.last.headers["content-type"]) == (
        {"secret": SECRET},
        JSON,
    )


def test_an_optional_form_without_values_gets_the_key_as_a_form(outside: Outside) -> None:
    paths = posting({}, FORM)
    paths["/pets"]["post"]["requestBody"]["required"] = False
    outside.call(outside.tool(paths, KEY), {}, FIELDS)
    assert (parse_qs(outside.last.body.decode()), outside.last.headers["content-type"]) == (
        {"secret": [SECRET]},
        FORM,
    )


def test_a_get_request_has_neither_a_body_nor_a_key(outside: Outside) -> None:
    outside.call(outside.tool({"/pets": {"get": {}}}, KEY), {}, FIELDS)
    assert (outside.last.body, outside.last.target) == (b"", "/pets")


def test_a_field_of_the_same_name_deeper_in_the_body_stays_a_param(outside: Outside) -> None:
    schema = {
        "type": "object",
        "properties": {"note": {"type": "object", "properties": {"secret": {}}}},
    }
    tool = outside.tool(posting(schema), KEY)
    outside.call(tool, {"note": {"secret": "of theirs"}}, FIELDS)
    assert json.loads(outside.last.body) == {"note": {"secret": "of theirs"}, "secret": SECRET}


@pytest.mark.parametrize(
    "params", [{"body": {"secret": "of the model"}}, {"body": ["no object"]}, {"body": "text"}]
)
def test_a_body_that_cannot_contain_the_key_is_refused_before_approval(
    outside: Outside, params: dict[str, Any]
) -> None:
    tool = outside.tool(posting({}), KEY)
    with pytest.raises(ToolError) as caught:
        tool.check_params(params)
    assert caught.value.code is ErrorCode.INVALID_PARAMETER
    assert tool.check_params({"body": {"id": "7"}}) == {"body": {"id": "7"}}


def test_an_echoed_key_is_hidden(outside: Outside) -> None:
    outside.replies.append(Reply(content=json.dumps({"you sent": SECRET}).encode()))
    assert outside.call(outside.tool(posting(OBJECT), KEY), {"id": "7"}, FIELDS).data == {
        "you sent": "[hidden]"
    }


@pytest.mark.parametrize("media_type", [JSON, FORM])
def test_a_body_echoed_as_text_hides_the_key_as_it_was_written(
    outside: Outside, media_type: str
) -> None:
    tool, fields = (
        outside.tool(posting(OBJECT, media_type), KEY),
        {"api": {"api_key": 'a "long" and ünusual key'}},
    )
    outside.call(tool, {"id": "7"}, fields)
    outside.replies.append(
        Reply(content=outside.last.body, headers={"Content-Type": "text/plain; charset=utf-8"})
    )
    shown = str(outside.call(tool, {"id": "7"}, fields).data)
    assert "[hidden]" in shown
    assert "nusual" not in shown


def test_a_field_that_differs_from_the_key_only_in_case_is_refused(outside: Outside) -> None:
    with pytest.raises(ToolError):
        outside.tool(posting({}), KEY).check_params({"body": {"SECRET": "of the model"}})


def test_a_key_sent_in_a_header_leaves_the_body_unchanged(outside: Outside) -> None:
    header = AuthenticationSettings(AuthenticationKind.API_KEY, "api", "header", "secret")
    tool = outside.tool(posting(OBJECT), header)
    assert sorted(tool.schema["properties"]) == ["id", "secret"]


def test_a_field_described_as_a_secret_of_the_api_is_not_a_param() -> None:
    described_secret = {
        "type": "string",
        "description": "Your Acme API `secret`, or send it in a header.",
    }
    schema = {
        "type": "object",
        "properties": {"secret": described_secret, "id": {"type": "string"}},
    }
    (operation,) = read_description(described(posting(schema))).operations
    assert list(operation.params["properties"]) == ["id"]


def test_a_token_server_that_refuses_basic_gets_the_client_in_the_body(outside: Outside) -> None:
    outside.takes_basic = False
    settings = AuthenticationSettings(
        AuthenticationKind.OAUTH2, "api", token_url=f"{outside.url}/token"
    )
    tool = outside.tool({"/pets": {"get": {}}}, settings)
    assert outside.call(
        tool, {}, {"api": {"client_id": "client", "client_secret": SECRET, "other": "not theirs"}}
    ).success
    first, second, last = outside.received
    assert first.headers["authorization"].startswith("Basic ")
    assert "authorization" not in second.headers
    client = {"client_id": ["client"], "client_secret": [SECRET]}
    assert parse_qs(second.body.decode()) == {"grant_type": ["client_credentials"], **client}
    assert last.headers["authorization"] == "Bearer access-token-1"
