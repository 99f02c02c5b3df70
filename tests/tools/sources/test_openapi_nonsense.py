"""If any value in a description is malformed, only the operation at that place fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tools.sources.openapi import ApiOperation, DocumentError, read_description

SCHEMA = {
    "type": "object",
    "properties": {"b": {"$ref": "#/components/schemas/A"}},
    "required": ["b"],
    "enum": [1],
    "allOf": [{"type": "string"}],
}
OPERATION = {
    "operationId": "x",
    "tags": ["t"],
    "summary": "s",
    "parameters": [
        {"name": "q", "in": "query", "style": "form", "explode": True, "schema": SCHEMA}
    ],
    "requestBody": {"required": True, "content": {"application/json": {"schema": SCHEMA}}},
    "responses": {"200": {"content": {"application/json": {}}}},
    "security": [{"k": []}],
}
FLOWS = {"clientCredentials": {"tokenUrl": "/t", "scopes": {"a": "b"}}}
NEW = {
    "openapi": "3.1.0",
    "info": {"title": "x", "version": "1"},
    "servers": [{"url": "/v1", "variables": {"a": {"default": "x"}}}],
    "components": {
        "schemas": {"A": SCHEMA},
        "securitySchemes": {
            "k": {"type": "apiKey", "in": "header", "name": "X"},
            "o": {"type": "oauth2", "flows": FLOWS},
        },
    },
    "security": [{"k": []}],
    "paths": {
        "/a/{id}": {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
            ],
            "get": OPERATION,
        },
        "/sound": {"get": {"operationId": "sound"}},
    },
}
OLD = {
    "swagger": "2.0",
    "info": {"title": "x"},
    "host": "example.com",
    "basePath": "/v",
    "schemes": ["https"],
    "consumes": ["application/json"],
    "securityDefinitions": {"k": {"type": "apiKey", "in": "query", "name": "x"}},
    "definitions": {"A": {"type": "object"}},
    "paths": {
        "/a": {
            "post": {
                "parameters": [
                    {"in": "body", "name": "b", "schema": {"$ref": "#/definitions/A"}},
                    {"in": "formData", "name": "f", "type": "file"},
                ],
                "produces": ["a/b"],
            }
        },
        "/sound": {"get": {"operationId": "sound"}},
    },
}
NONSENSE: tuple[Any, ...] = (
    *(
        None,
        1,
        1.5,
        True,
        "",
        "x",
        [],
        {},
        [1],
        [None],
        [[]],
        {"a": 1},
        {"$ref": "#/nowhere"},
        {"$ref": 5},
        "\x00",
    ),
)


@pytest.mark.parametrize("sound", [NEW, OLD], ids=["3.1", "2.0"])
def test_a_malformed_value_breaks_only_its_own_operation(sound: dict[str, Any]) -> None:
    places = [place for place in _places(sound) if place and place[:2] != ("paths", "/sound")]
    assert len(places) > 20
    for place in places:
        for value in NONSENSE:
            document = _with(sound, place, value)
            try:
                found = read_description(json.dumps(document))
            except DocumentError:
                assert place[0] in ("openapi", "swagger", "paths"), (place, value)
                continue
            for each in found.operations:
                assert ApiOperation.from_json(json.loads(json.dumps(each.to_json()))) == each
            if place != ("paths",) and place[0] not in ("servers", "security"):
                assert "sound" in [each.name for each in found.operations], (place, value)


def _places(node: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    children = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    for key, child in children:
        yield from _places(child, (*place, key))


def _with(document: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = deepcopy(document)
    node: Any = changed
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    return changed
