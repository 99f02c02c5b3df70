"""The text of a description is read as data, within bounds, and without YAML's surprises."""

import json
import time
from typing import Any

import pytest

from tests.features import feature
from tests.tools.sources.outside import described
from tools.sources.openapi import DocumentError, DocumentLimits, read_description

PET = {"/pets/{id}": {"get": {"operationId": "getPet", "responses": {}}}}
YAML = """
openapi: 3.0.3
info: {title: Pets, version: 1.10}
paths:
  /pets:
    get:
      parameters:
      - {name: country, in: query, schema: {type: string, enum: [no, se, on, 2020-01-01, 12:30:45, 010, ~]}}
      - {name: size, in: query, schema: {type: number, minimum: 1, maximum: 2.5e1}}
      responses:
        200: {description: fine}
"""


def test_json_and_yaml_are_equivalent() -> None:
    text = described(PET)
    assert read_description(text) == read_description(f"\ufeff{text}")
    as_yaml = "\n".join(
        ["openapi: 3.1.0", "info: {title: Pets, version: '1'}", f"paths: {json.dumps(PET)}"]
    )
    assert read_description(text).operations == read_description(as_yaml).operations


def test_yaml_keeps_words_dates_and_times_as_text() -> None:
    (operation,) = read_description(YAML).operations
    assert operation.params["properties"]["country"]["enum"] == [
        "no", "se", "on", "2020-01-01", "12:30:45", "010", None,
    ]  # fmt: skip
    assert operation.params["properties"]["size"] == {
        "type": "number",
        "minimum": 1,
        "maximum": 25.0,
    }


def test_anchors_and_merged_keys_are_read() -> None:
    text = """
swagger: '2.0'
info: {title: a, version: b}
x-common: &common {name: limit, in: query, type: integer}
paths:
  /a: {get: {parameters: [{<<: *common, maximum: 5}], responses: {}}}
"""
    (operation,) = read_description(text).operations
    assert operation.params["properties"]["limit"] == {"type": "integer", "maximum": 5}


@feature(
    "Tools from API descriptions",
    "JSON or YAML, with limits for size, depth and repetition",
    "tools/sources/openapi/document.py",
)
def test_a_billion_laughs_attack_is_refused() -> None:
    lines = ["openapi: 3.0.0", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(DocumentError, match="values, aliases included"):
        read_description("\n".join(lines))


def test_an_alias_that_contains_itself_is_refused() -> None:
    with pytest.raises(DocumentError, match="inside its own anchor"):
        read_description("openapi: 3.0.0\npaths: &p {a: *p}")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "- " * 5_000, "a: " + "{b: " * 5_000]
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(DocumentError):
        read_description(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[]",
        "{",
        "openapi: [",
        '{"openapi": "4.0.0"}',
        '{"swagger": "1.2"}',
        "<html>",
        "a: !!python/object/apply:os.system [true]",
        "openapi: 3.0.0\n---\nopenapi: 3.0.0",
        "? [a]\n: b",
        '{"openapi": ' + "9" * 5_000 + "}",
    ],
)
def test_a_text_that_is_not_a_description_is_refused_with_an_explanation(text: str) -> None:
    with pytest.raises(DocumentError, match=r"\w{3}"):
        read_description(text)


def test_a_text_that_is_too_large_is_not_parsed() -> None:
    with pytest.raises(DocumentError, match="1,001 bytes"):
        read_description("x" * 1_001, limits=DocumentLimits(size=1_000))


@pytest.mark.parametrize(
    "text",
    [
        '{"openapi": "3.1.0", "x": [' + "1," * 60 + "1]}",
        "x: [" + "1, " * 60 + "1]",
        "x: &a [1, 1]\ny: [" + "*a, " * 30 + "*a]",
    ],
)
def test_a_text_with_too_many_values_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="more than 50 values"):
        read_description(text, limits=DocumentLimits(nodes=50))


@pytest.mark.parametrize(
    "text", ['{"openapi": "3.1.0", "x": ' + "[" * 60 + "]" * 60 + "}", "x: " + "[" * 60 + "]" * 60]
)
def test_a_text_that_is_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="nested more than 50 levels deep"):
        read_description(text, limits=DocumentLimits(depth=50))


def test_a_text_that_takes_too_long_to_parse_is_refused() -> None:
    with pytest.raises(DocumentError, match="takes too long to parse"):
        read_description("x:\n" + "- 1\n" * 20_000, limits=DocumentLimits(parsing_s=0))


def test_unstorable_characters_are_removed_from_operations() -> None:
    text = described({"/a": {"get": {"summary": "nul \0 and \ud800 half", "responses": {}}}})
    (operation,) = read_description(text).operations
    assert operation.summary == "nul \ufffd and \ufffd half"


def test_a_description_with_faults_is_read_as_far_as_possible() -> None:
    paths = {
        "/good": {"get": {"responses": None, "tags": "no list", "parameters": {"no": "list"}}},
        "/odd": {
            "get": {
                "parameters": [{"name": "a", "in": "query", "schema": {"type": "any", "enum": "x"}}]
            }
        },
        "/gone": {"get": {"parameters": [{"$ref": "#/nowhere"}]}},
        "/away": {"post": {"requestBody": {"$ref": "other.yaml#/Body"}}},
        "/../up": {"get": {}},
        "bare": {"get": {}},
        "/trace": {"trace": {}},
        "/list": [],
    }
    description = read_description(described(paths, info="none", servers="none"))
    assert [operation.key for operation in description.operations] == ["GET /good", "GET /odd"]
    assert {left.where: left.reason for left in description.skipped} == {
        "GET /gone": "it has a broken reference: '#/nowhere'",
        "POST /away": "it refers to another document: 'other.yaml#/Body'",
        "/../up": "its path contains '.' or '..'",
        "bare": "its path does not begin with a slash",
        "TRACE /trace": "the method TRACE is not supported",
    }


def test_servers_are_listed_as_addresses_with_their_variables_filled_in() -> None:
    server = {"url": "https://{region}.example.com/v1/", "variables": {"region": {"default": "eu"}}}
    assert read_description(described(PET, servers=[server, {"url": "/v2"}])).servers == (
        "https://eu.example.com/v1",
        "/v2",
    )
    old = described(
        PET, version="2.0", host="example.com", basePath="/v1", schemes=["http", "https"]
    )
    assert read_description(old).servers == ("https://example.com/v1", "http://example.com/v1")


def test_an_operation_of_another_server_is_left_out() -> None:
    uploads = {"post": {"servers": [{"url": "https://uploads.example.com"}], "responses": {}}}
    description = read_description(
        described({**PET, "/up": uploads}, servers=[{"url": "https://example.com"}])
    )
    assert description.skipped[0].reason == (
        "it has a server of its own, https://uploads.example.com: connect a second source for that address"
    )


def test_operations_beyond_the_limit_are_left_out_with_a_reason() -> None:
    text = described({f"/{n}": {"get": {}} for n in range(5)})
    description = read_description(text, limits=DocumentLimits(operations=3))
    assert len(description.operations) == 3
    assert description.skipped[0].reason == "only the first 3 operations are read"
    assert len(description.skipped) == 2


def test_a_description_full_of_large_bodies_is_read_in_bounded_time() -> None:
    fields = {f"p{n}": {"type": "string"} for n in range(50)}
    schemas = {
        f"S{n}": {
            "properties": {
                **fields,
                **{f"r{k}": {"$ref": f"#/components/schemas/S{(n + k) % 300}"} for k in (1, 7)},
            }
        }
        for n in range(300)
    }
    body = {
        n: {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/S{n}"}}}}
        for n in range(300)
    }
    paths = {f"/{n}": {"post": {"requestBody": body[n % 300]}} for n in range(1_500)}
    text, patient = described(paths, components={"schemas": schemas}), DocumentLimits(seconds=600)
    began = time.process_time()
    assert len(read_description(text, limits=patient).operations) == 1_500
    assert time.process_time() - began < 90


@feature(
    "Tools from API descriptions",
    "Limits for the parameters of one operation and of all",
    "tools/sources/openapi/parameters.py",
)
def test_a_description_with_many_shared_parameters_is_read_quickly() -> None:
    parameters = [{"name": f"p{number}", "in": "query"} for number in range(1_000)]
    shared: dict[str, Any] = {"x-shared": {"parameters": parameters, "get": {}}}
    paths = {f"/{number}": {"$ref": "#/x-shared"} for number in range(100)}
    began = time.process_time()
    found = read_description(described({**paths, **PET}, **shared))
    assert time.process_time() - began < 5
    assert [operation.name for operation in found.operations] == ["getPet"]
    assert len(found.skipped) == 100
    assert found.skipped[0].reason == "it has 1,000 parameters; the limit is 150"


def test_the_parameters_of_a_description_are_limited_in_number() -> None:
    parameters = [{"name": f"p{number}", "in": "query"} for number in range(150)]
    shared: dict[str, Any] = {"x-shared": {"parameters": parameters, "get": {}}}
    paths = {f"/{number}": {"$ref": "#/x-shared"} for number in range(300)}
    found = read_description(described(paths, **shared))
    assert len(found.operations) == 40_000 // 150
    assert (
        found.skipped[-1].reason == "only the first 40,000 parameters of the description are read"
    )


@pytest.mark.parametrize(
    "reference", ["#/" + "%41" * 300_000, "#/" + "a/" * 500_000, "#/" + "x" * 1_000_000]
)
def test_a_long_reference_is_refused_quickly_and_quoted_in_part(reference: str) -> None:
    shared = {"parameters": {"X": {"$ref": reference}}}
    paths = {
        f"/{n}": {"get": {"parameters": [{"$ref": "#/components/parameters/X"}]}}
        for n in range(1_000)
    }
    began = time.process_time()
    found = read_description(described(paths, components=shared))
    assert time.process_time() - began < 15
    assert len(found.skipped) == 1_000
    assert (
        found.skipped[0].reason
        == f"it has a reference of {len(reference):,} characters: {reference[:100]!r}…"
    )


@feature(
    "Tools from API descriptions",
    "Importing a description is limited by the shown size and in time",
    "tools/sources/openapi/references.py",
)
def test_long_texts_are_read_quickly_and_truncated() -> None:
    words = "a b " * 500_000
    schemas = {"S": {"type": "string", "description": words, "title": words}}
    item: dict[str, Any] = {
        "summary": words,
        "get": {"description": words, "summary": words, "tags": ["t"] * 100_000},
    }
    given = [
        {"name": f"q{n}", "in": "query", "schema": {"$ref": "#/components/schemas/S"}}
        for n in range(5)
    ]
    paths = {f"/{n}": {"get": {"parameters": given}} for n in range(300)}
    shared = {f"/shared/{n}": {"$ref": "#/x-item"} for n in range(300)}
    more: dict[str, Any] = {"components": {"schemas": schemas}, "x-item": item}
    text = described({**paths, **shared}, **more)
    began = time.process_time()
    found = read_description(text)
    assert time.process_time() - began < 15
    assert len(found.operations) == 600
    assert max(len(json.dumps(each.to_json())) for each in found.operations) < 10_000


def test_reading_is_limited_in_time_and_reports_it() -> None:
    found = read_description(
        described({"/a": {"get": {}}, "/b": {"$ref": "#/x-b"}}), limits=DocumentLimits(seconds=0)
    )
    assert found.operations == ()
    assert {each.where: each.reason for each in found.skipped} == {
        "/a": "the description takes too long to read",
        "/b": "the description takes too long to read",
    }


def test_nested_server_variables_expand_to_an_address_of_limited_length() -> None:
    variables = {
        letter: {"default": f"{{{after}}}" * 500}
        for letter, after in zip("abcdefg", "bcdefgh", strict=True)
    }
    (server,) = read_description(
        described(PET, servers=[{"url": "https://{a}{a}", "variables": variables}])
    ).servers
    assert len(server) <= 500
