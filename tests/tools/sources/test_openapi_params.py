"""Params that a model can set: they do not contain references, credentials or reserved names, and
each has its location in the request."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.features import feature
from tests.tools.sources.outside import Outside, described
from tools.contract import ErrorCode, ToolError
from tools.sources.openapi import ApiConnection, ApiOperation, OpenAPITool, read_description
from tools.toolbox import Toolbox

NODE = {
    "type": "object",
    "required": ["name", "gone"],
    "properties": {"name": {"type": "string"}, "next": {"$ref": "#/components/schemas/Node"}},
}


def operation_of(paths: dict[str, Any], version: str = "3.1.0", **more: Any) -> ApiOperation:
    (operation,) = read_description(described(paths, version, **more)).operations
    Draft202012Validator.check_schema(operation.params)
    assert ApiOperation.from_json(json.loads(json.dumps(operation.to_json()))) == operation
    Toolbox().register(OpenAPITool(operation, ApiConnection("api", "https://example.com")))
    return operation


def posted(schema: Any, version: str = "3.1.0", **more: Any) -> ApiOperation:
    """Return the operation that takes this schema as its required JSON body."""
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation_of({"/a": {"post": {"requestBody": body}}}, version, **more)


def queried(**parameters: Any) -> dict[str, Any]:
    given = [{"name": name, "in": "query", "schema": schema} for name, schema in parameters.items()]
    properties: dict[str, Any] = operation_of({"/a": {"get": {"parameters": given}}}).params[
        "properties"
    ]
    return properties


@feature(
    "Tools from API descriptions",
    "Recursive bodies are cut, with a note",
    "tools/sources/openapi/schemas.py",
)
def test_a_recursive_body_is_cut_off_with_a_note() -> None:
    operation = posted(
        {"$ref": "#/components/schemas/Node"}, components={"schemas": {"Node": NODE}}
    )
    assert operation.params["properties"]["next"] == {
        "type": "object",
        "description": "Any object: the structure repeats from here.",
    }
    assert operation.params["required"] == ["name"]


def test_an_invalid_inner_value_is_reported_by_its_own_field() -> None:
    zip_code = {"type": "string", "pattern": "^[0-9]{5}$", "description": "Five digits"}
    to = {
        "type": "object",
        "description": "The recipient",
        "properties": {"zip": zip_code, "city": {"type": "string"}},
    }
    operation = posted({"type": "object", "properties": {"to": to}})
    tool = OpenAPITool(operation, ApiConnection("api", "https://example.com"))
    for params, place, expected in (
        ({"to": {"zip": "1"}}, "to.zip", "Five digits"),
        ({"to": {"city": 1}}, "to.city", "The recipient"),
    ):
        with pytest.raises(ToolError) as refused:
            tool.check_params(params)
        assert (refused.value.parameter, refused.value.expected) == (place, expected)


def test_a_param_that_refers_to_itself_excludes_only_its_own_operation() -> None:
    loop = {"a": {"$ref": "#/components/parameters/a"}}
    paths = {
        "/a": {"get": {"parameters": [{"$ref": "#/components/parameters/a"}]}},
        "/b": {"get": {}},
    }
    description = read_description(described(paths, components={"parameters": loop}))
    assert [each.key for each in description.operations] == ["GET /b"]


def test_a_body_that_doubles_with_each_step_stays_small() -> None:
    schemas = {
        f"S{n}": {
            "properties": {
                side: {"$ref": f"#/components/schemas/S{n + 1}"} for side in ("left", "right", "up")
            }
        }
        for n in range(40)
    }
    operation = posted(
        {"$ref": "#/components/schemas/S0"}, components={"schemas": {**schemas, "S40": {}}}
    )
    assert len(json.dumps(operation.params)) < 150_000
    assert "too deep" in json.dumps(operation.params)


def test_nested_combinations_of_schemas_stay_small() -> None:
    schemas = {
        f"S{n}": {
            "anyOf": [
                {"$ref": f"#/components/schemas/S{n + 1}"},
                {"$ref": f"#/components/schemas/S{n + 1}", "x": 1},
            ]
        }
        for n in range(30)
    }
    operation = posted(
        {"$ref": "#/components/schemas/S0"}, components={"schemas": {**schemas, "S30": {}}}
    )
    assert len(json.dumps(operation.params)) < 150_000


def test_keywords_of_older_versions_are_translated() -> None:
    found = queried(
        a={"type": "integer", "minimum": 1, "exclusiveMinimum": True, "nullable": True},
        b={"type": "string", "enum": ["x"], "nullable": True, "example": "x", "title": "B"},
        c={
            "type": "array",
            "items": {"type": "string"},
            "uniqueItems": True,
            "minItems": -1,
            "maxItems": "9",
        },
        d={"oneOf": [{"type": "string"}, {"type": "object"}]},
        e={"type": "string", "pattern": "(?=look)ahead", "default": {"no": "scalar"}},
    )
    assert found == {
        "a": {"type": ["integer", "null"], "exclusiveMinimum": 1},
        "b": {"type": ["string", "null"], "enum": ["x", None], "description": "B"},
        "c": {"type": "array", "items": {"type": "string"}},
        "d": {"anyOf": [{"type": "string"}, {"type": "object"}]},
        "e": {"type": "string"},
    }


def test_swagger_2_bodies_and_forms_are_read_from_its_parameters() -> None:
    body = {"name": "b", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Pet"}}
    form = [
        {"name": "file", "in": "formData", "type": "file", "required": True},
        {"name": "note", "in": "formData", "type": "string"},
    ]
    pet = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "id": {"type": "integer", "readOnly": True}},
    }
    paths = {"/pets": {"post": {"parameters": [body]}, "put": {"parameters": form}}}
    by_json, by_form = sorted(
        read_description(described(paths, "2.0", definitions={"Pet": pet})).operations,
        key=lambda each: each.method,
    )
    assert by_json.params["properties"] == {"name": {"type": "string"}}
    assert by_form.params["required"] == ["file"]
    assert by_form.body is not None
    assert by_form.body.media_type == "multipart/form-data"


def test_a_name_in_several_locations_becomes_separate_params_whatever_the_order() -> None:
    given: list[dict[str, Any]] = [
        {"name": "id", "in": place, "schema": {}} for place in ("cookie", "query", "path", "header")
    ]
    for parameters in (given, given[::-1]):
        operation = operation_of({"/a/{id}": {"get": {"parameters": parameters}}})
        assert {each.shown: each.place for each in operation.placements} == {
            "id": "path", "id_query": "query", "id_header": "header", "id_cookie": "cookie",
        }  # fmt: skip


def test_a_body_with_colliding_fields_stays_one_param() -> None:
    schema = {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string"}, "b": {}},
    }
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    operation = operation_of({"/a/{id}": {"put": {"requestBody": body}}})
    assert list(operation.params["properties"]) == ["id", "body"]
    assert operation.params["required"] == ["id", "body"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
    ],
)
def test_a_body_without_fields_stays_one_param(schema: Any) -> None:
    assert list(posted(schema).params["properties"]) == ["body"]


def test_illegal_names_are_made_legal() -> None:
    names = ["filter[name]", "$top", "x" * 80, "émoji 😀", "😀", "a b", "a/b"]
    found = list(queried(**{name: {"type": "string"} for name in names}))
    assert len(set(found)) == len(names)
    assert all(1 <= len(name) <= 64 and name.isascii() and " " not in name for name in found)
    assert found[0] == "filter_name_"


def test_names_reserved_for_the_run_get_an_underscore_that_is_removed_when_sent(
    outside: Outside,
) -> None:
    owner = {
        "type": "object",
        "properties": {"user_id": {"type": "string"}, "user_id_": {"type": "string"}},
    }
    schema = {
        "type": "object",
        "properties": {"user": owner, "list": {"type": "array", "items": owner}},
    }
    paths = {
        "/{organization_id}": {
            "post": {
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": schema}},
                }
            }
        }
    }
    assert set(operation_of(paths).params["properties"]) == {"organization_id_", "user_", "list"}
    params = {
        "organization_id_": "acme",
        "user_": {"user_id_": "a", "user_id__": "b", "user_": "free"},
        "list": [{"user_id_": "c"}],
    }
    assert outside.call(outside.tool(paths), params).success
    assert outside.last.target == "/acme"
    assert json.loads(outside.last.body) == {
        "user": {"user_id": "a", "user_id_": "b", "user_": "free"},
        "list": [{"user_id": "c"}],
    }


def test_schemas_never_contain_credentials() -> None:
    named = {
        "header": ["Authorization", "X-Api-Key", "X-Secret-Header", "X-Custom-Token", "Cookie"],
        "query": ["api_key", "access_token", "token", "my_key", "client_secret"],
        "cookie": ["sessionid", "csrf_token"],
    }
    given: list[dict[str, Any]] = [
        {"name": name, "in": place, "required": True}
        for place, names in named.items()
        for name in names
    ]
    given += [{"name": name, "in": "query"} for name in ("page_token", "key", "next")]
    schemes = {
        "a": {"type": "apiKey", "in": "header", "name": "x-secret-header"},
        "b": {"type": "apiKey", "in": "query", "name": "my_key"},
    }
    operation = operation_of(
        {"/a": {"get": {"parameters": given}}}, components={"securitySchemes": schemes}
    )
    assert list(operation.params["properties"]) == ["page_token", "key", "next"]
    assert "required" not in operation.params


def test_an_operation_with_a_credential_that_the_connection_cannot_send_is_left_out() -> None:
    schema = {
        "type": "object",
        "required": ["client_secret"],
        "properties": {"client_secret": {"type": "string"}},
    }
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    paths = {"/a": {"post": {"requestBody": body}}, "/{access_token}/b": {"get": {}}}
    left = read_description(described(paths)).skipped
    assert [each.reason for each in left] == [
        "its body needs a credential: 'client_secret'",
        "its path contains a credential: {access_token}",
    ]


@pytest.mark.parametrize("kind", ["application/xml", "application/octet-stream", "image/png"])
def test_an_operation_with_a_body_that_params_cannot_express_is_left_out(kind: str) -> None:
    paths = {"/a": {"post": {"requestBody": {"content": {kind: {"schema": {"type": "string"}}}}}}}
    assert (
        read_description(described(paths)).skipped[0].reason
        == f"its body is {kind}, which params cannot express"
    )


def test_tool_names_do_not_depend_on_the_order_of_the_operations() -> None:
    paths = {
        f"/{n}": {"get": {"operationId": operation_id}}
        for n, operation_id in enumerate(
            ["listPets", "list_pets", "LISTPETS", "", "日本", "9 lives", "x" * 90, "list.pets"]
        )
    }
    names = {each.key: each.name for each in read_description(described(paths)).operations}
    backwards = read_description(described(dict(reversed(paths.items())))).operations
    assert {each.key: each.name for each in backwards} == names
    assert len({name.lower() for name in names.values()}) == len(paths)
    assert names["GET /3"] == "get3"
    assert names["GET /5"] == "op9Lives"
    assert max(map(len, names.values())) <= 64


def test_a_name_that_looks_like_the_hash_of_another_stays_distinct() -> None:
    first = {f"/{n}": {"get": {"operationId": "twin"}} for n in range(2)}
    taken = read_description(described(first)).operations[0].name
    paths = {**first, "/2": {"get": {"operationId": taken}}}
    assert len({each.name for each in read_description(described(paths)).operations}) == 3


@pytest.mark.parametrize(
    ("params", "code", "parameter"),
    [
        ({}, ErrorCode.MISSING_PARAM, "name"),
        ({"name": 5}, ErrorCode.INVALID_PARAMETER, "name"),
        ({"name": "no digits"}, ErrorCode.INVALID_PARAMETER, "name"),
        ({"name": "1", "tag": {"color": 1}}, ErrorCode.INVALID_PARAMETER, "tag.color"),
        ({"name": "1", "other": 1}, ErrorCode.INVALID_PARAMETER, "other"),
        ({"name": "1\0"}, ErrorCode.INVALID_PARAMETER, ""),
    ],
)
def test_an_error_names_the_parameter(
    params: dict[str, Any], code: ErrorCode, parameter: str
) -> None:
    tag = {"type": "object", "properties": {"color": {"type": "string"}}}
    schema = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "pattern": "[0-9]", "description": "A digit"},
            "tag": tag,
        },
    }
    tool = OpenAPITool(posted(schema), ApiConnection("api", "https://example.com"))
    with pytest.raises(ToolError) as caught:
        tool.check_params(params)
    assert (caught.value.code, caught.value.parameter, caught.value.attempted) == (
        code,
        parameter,
        False,
    )


def test_canonical_params_are_sorted_and_defaults_are_not_added() -> None:
    schema = {
        "type": "object",
        "properties": {"b": {"type": "integer", "default": 7}, "a": {}, "c": {}},
    }
    tool = OpenAPITool(posted(schema), ApiConnection("api", "https://example.com"))
    assert list(tool.check_params({"c": None, "a": 1})) == ["a", "c"]
