"""Params that models must not set (credentials, method overrides) never appear in a schema, at any
depth, or in a request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.features import feature
from tests.tools.sources.outside import Outside, described
from tools.contract import ErrorCode
from tools.sources.openapi import ApiDescription, ApiOperation, read_description

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
KEY = {"type": "object", "properties": {"api_key": {"type": "string"}, "t": {"type": "string"}}}
NEEDS_KEY = {**KEY, "required": ["api_key"]}
PLAIN = {"type": "object", "properties": {"u": {"type": "string"}}}


def posting(schema: Any, kind: str = JSON) -> dict[str, Any]:
    return {
        "/a": {"post": {"requestBody": {"required": True, "content": {kind: {"schema": schema}}}}}
    }


def read(paths: dict[str, Any], **more: Any) -> ApiDescription:
    return read_description(described(paths, **more))


def operation_of(paths: dict[str, Any], **more: Any) -> ApiOperation:
    (operation,) = read(paths, **more).operations
    assert ApiOperation.from_json(json.loads(json.dumps(operation.to_json()))) == operation
    return operation


def with_field(field: Any, *, required: bool = False) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"f": field, "x": {}},
        "required": ["f"] if required else [],
    }


@feature(
    "Tools from API descriptions",
    "No schema contains a credential at any depth, and no value can set one",
    "tools/sources/openapi/schemas.py",
)
@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        (
            with_field(KEY),
            {"f": {"type": "object", "properties": {"t": {"type": "string"}}}, "x": {}},
        ),
        (with_field(NEEDS_KEY), {"x": {}}),
        (with_field(with_field({**PLAIN, "properties": {"client_secret": {}}})), None),
        (with_field({"type": "array", "items": NEEDS_KEY}), {"x": {}}),
        (with_field({"allOf": [NEEDS_KEY, PLAIN]}), {"x": {}}),
        (with_field({"anyOf": [NEEDS_KEY, {"type": "array", "items": NEEDS_KEY}]}), {"x": {}}),
        (with_field({"oneOf": [NEEDS_KEY, PLAIN]}), {"f": {"anyOf": [PLAIN]}, "x": {}}),
        (with_field({**NEEDS_KEY, "readOnly": True}, required=True), {"x": {}}),
        ({"oneOf": [NEEDS_KEY, PLAIN]}, {"body": {"anyOf": [PLAIN]}}),
        ({"type": "array", "items": KEY}, None),
        ({"type": "object", "additionalProperties": NEEDS_KEY}, None),
        ({"$ref": "#/components/schemas/Auth"}, {"name": {"type": "string"}}),
    ],
)
def test_a_credential_is_left_out_of_a_body_at_every_depth(
    schema: Any, shown: dict[str, Any] | None
) -> None:
    auth = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "token": {"$ref": "#/components/schemas/T"}},
    }
    told = {"type": "string", "description": "The API key of the account"}
    found = operation_of(posting(schema), components={"schemas": {"Auth": auth, "T": told}}).params
    for name in ("api_key", "client_secret", "token"):
        assert name not in json.dumps(found)
    assert shown is None or found["properties"] == shown


@pytest.mark.parametrize(
    "schema",
    [
        NEEDS_KEY,
        with_field(NEEDS_KEY, required=True),
        with_field({"oneOf": [NEEDS_KEY, NEEDS_KEY]}, required=True),
        {"type": "array", "items": NEEDS_KEY},
        {"allOf": [KEY, {"required": ["api_key"]}]},
        {**KEY, "anyOf": [{"required": ["api_key"]}]},
    ],
)
def test_an_operation_whose_body_requires_a_credential_is_left_out(schema: Any) -> None:
    (left,) = read(posting(schema)).skipped
    assert left.reason == "its body needs a credential: 'api_key'"


def test_a_body_of_only_credentials_has_no_params_and_is_sent_empty(outside: Outside) -> None:
    tool = outside.tool(posting({"type": "object", "properties": {"api_key": {}}}))
    assert tool.schema["properties"] == {}
    assert outside.call(tool).success
    assert outside.last.body == b"{}"


def querying(schema: Any, **more: Any) -> dict[str, Any]:
    return {
        "/a": {"get": {"parameters": [{"name": "filter", "in": "query", "schema": schema, **more}]}}
    }


def test_a_credential_is_left_out_of_a_parameter_at_every_depth() -> None:
    for style in ({}, {"style": "deepObject"}, {"explode": False}):
        (found,) = operation_of(querying(KEY, **style)).params["properties"].values()
        assert found == {"type": "object", "properties": {"t": {"type": "string"}}}
        assert operation_of(querying(NEEDS_KEY, **style)).params["properties"] == {}
        (left,) = read(querying(NEEDS_KEY, required=True, **style)).skipped
        assert left.reason == "its parameter 'filter' needs a credential: 'api_key'"


def test_fields_that_become_parameters_are_judged_as_parameters() -> None:
    schema = {"type": "object", "properties": {"token": {}, "my_key": {}, "a": {}, "_method": {}}}
    schemes = {"k": {"type": "apiKey", "in": "query", "name": "My_Key"}}
    spread = operation_of(querying(schema), components={"securitySchemes": schemes})
    assert list(spread.params["properties"]["filter"]["properties"]) == ["a"]
    kept = operation_of(
        querying(schema, style="deepObject"), components={"securitySchemes": schemes}
    )
    assert list(kept.params["properties"]["filter"]["properties"]) == [
        "token",
        "my_key",
        "a",
        "_method",
    ]


@pytest.mark.parametrize(
    "name", ["api_key", "X-Api-Key", "token", "My_Key", "_method", "_METHOD", "Action"]
)
def test_a_free_object_cannot_add_credentials_or_another_operation_to_the_query(
    outside: Outside, name: str
) -> None:
    schemes = {"k": {"type": "apiKey", "in": "query", "name": "my_key"}}
    paths = {"/a?action=list": querying({"type": "object"})["/a"]}
    tool = outside.tool(paths, components={"securitySchemes": schemes})
    error = outside.call(tool, {"filter": {"a": 1, name: "x"}}).error
    assert error is not None
    assert (error.code, error.is_definite, outside.received) == (
        ErrorCode.INVALID_PARAMETER,
        True,
        [],
    )
    assert outside.call(tool, {"filter": {"a": 1}}).success
    assert outside.last.target == "/a?action=list&a=1"


def test_values_cannot_add_a_credential_at_any_depth(outside: Outside) -> None:
    body = outside.tool(
        posting({"type": "object", "properties": {"data": {}, "list": {"type": "array"}}})
    )
    free = outside.tool(posting({}))
    query = outside.tool(querying({"type": "object"}, style="deepObject"))
    deep: Any = {"api_key": "x"}
    for _ in range(200):
        deep = [deep]
    for tool, params in (
        (body, {"data": {"a": [{"client_secret": "x"}]}}),
        (body, {"list": deep}),
        (free, {"body": {"auth": {"Authorization": "x"}}}),
        (free, {"body": {"_method": "DELETE"}}),
        (query, {"filter": {"a": {"api_key": "x"}}}),
    ):
        error = outside.call(tool, params).error
        assert error is not None
        assert error.code is ErrorCode.INVALID_PARAMETER
    assert outside.received == []
    assert outside.call(
        body, {"data": {"token": "of a page", "cookie": "a biscuit", "_method": "braising"}}
    ).success


@feature(
    "Tools from API descriptions",
    "No parameter can change an operation's method or path",
    "tools/sources/openapi/credential_names.py",
)
@pytest.mark.parametrize("place", ["header", "query", "cookie"])
@pytest.mark.parametrize(
    "name",
    [
        "X-HTTP-Method-Override",
        "x-http-method",
        "X_Method_Override",
        "_method",
        "_Method",
        "X-METHOD-OVERRIDE",
    ],
)
def test_parameters_cannot_change_the_method(place: str, name: str) -> None:
    given = {"name": name, "in": place, "schema": {"type": "string"}}
    paths = {"/a": {"get": {"parameters": [given, {"name": "b", "in": "query"}]}}}
    assert list(operation_of(paths).params["properties"]) == ["b"]
    paths["/a"]["get"]["parameters"] = [{**given, "required": True}]
    (left,) = read(paths).skipped
    assert left.reason == f"it needs {name!r}, which may change its method"


@pytest.mark.parametrize("name", ["X-Original-URL", "x-rewrite-url", "X_ORIGINAL_METHOD"])
def test_headers_cannot_change_the_path(name: str) -> None:
    paths = {"/a": {"get": {"parameters": [{"name": name, "in": "header", "required": True}]}}}
    assert operation_of(paths).params["properties"] == {}


@pytest.mark.parametrize("kind", [JSON, FORM, "multipart/form-data"])
def test_fields_of_a_body_cannot_change_the_method(kind: str) -> None:
    schema = {
        "type": "object",
        "properties": {"_method": {"type": "string"}, "method": {"type": "string"}},
    }
    assert list(operation_of(posting(schema, kind)).params["properties"]) == ["method"]
    (left,) = read(posting({**schema, "required": ["_method"]}, kind)).skipped
    assert left.reason == "its body needs '_method', which may change its method"
