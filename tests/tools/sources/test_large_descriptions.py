"""Third-party descriptions: every operation becomes a legal tool, or is left out with a reason."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agents.providers.wire_names import LEGAL_NAME, MAX_TOOLS, WireNames
from tests.features import feature
from tests.sampling import take_sample
from tests.tools.sources.descriptions import HAS_NPM, PUBLISHED, Published
from tools.contract import canonical_json
from tools.sources.openapi import (
    ApiConnection,
    ApiDescription,
    ApiOperation,
    OpenAPITool,
    read_description,
)
from tools.toolbox import Toolbox

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
CREDENTIAL = re.compile(
    r"^(x[-_])?(api[-_]?key|authorization|access[-_]?token|client[-_]?secret|secret[-_]?key)$", re.I
)
SECONDS, MEGABYTES = 30, 600

CHOSEN = take_sample(PUBLISHED, 8, "published descriptions")
each_description = pytest.mark.parametrize("published", CHOSEN, ids=lambda each: each.name)


@dataclass(frozen=True)
class Once:
    """A description that was read, and the processor time that it took."""

    description: ApiDescription
    seconds: float


@lru_cache
def read_once(published: Published) -> Once:
    text = published.text
    began = time.process_time()
    return Once(read_description(text), time.process_time() - began)


def read(published: Published) -> ApiDescription:
    return read_once(published).description


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    """Forget the descriptions: they are large, and other files do not need them."""
    yield
    read_once.cache_clear()


def nodes_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the value if it is an object, and every object inside it, at any depth."""
    if isinstance(value, dict):
        yield value
    for child in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from nodes_in(child)


@feature(
    "Tools from API descriptions",
    "OpenAPI 3.1, 3.0 and Swagger 2.0: every operation becomes a tool or is skipped with a reason",
    "tools/sources/openapi/description_reader.py",
)
@each_description
def test_every_operation_is_a_tool_or_left_out_with_a_reason(published: Published) -> None:
    description = read(published)
    accounted = [each.key for each in description.operations] + [
        each.where for each in description.skipped
    ]
    assert len(accounted) == len(set(accounted)) == published.operations
    assert all(each.reason for each in description.skipped)
    assert len(description.operations) > 0.9 * published.operations
    assert description.title


@each_description
def test_every_tool_is_legal_in_the_toolbox_and_for_providers(published: Published) -> None:
    toolbox, connection = Toolbox(), ApiConnection("api", "https://api.example.com")
    inside = {
        canonical_json(each): each for op in read(published).operations for each in _schemas_of(op)
    }
    for schema in inside.values():
        Draft202012Validator.check_schema(schema)
    for operation in read(published).operations:
        assert ApiOperation.from_json(operation.to_json()) == operation
        assert not any(isinstance(node.get("$ref"), str) for node in nodes_in(operation.params))
        assert len(operation.description) <= 1024
        toolbox.register(OpenAPITool(operation, connection))
    names = [tool.name for tool in toolbox.tools()]
    assert len({name.lower() for name in names}) == len(read(published).operations)
    for start in range(0, len(names), MAX_TOOLS):
        table = WireNames(names[start : start + MAX_TOOLS])
        for name in names[start : start + MAX_TOOLS]:
            assert LEGAL_NAME.fullmatch(table.to_wire(name))
            assert table.to_internal(table.to_wire(name)) == name


def _schemas_of(operation: ApiOperation) -> list[dict[str, Any]]:
    """Return the schema of each of the operation's params, and the enclosing schema without them.
    Many operations share schemas; returned separately, each schema is checked only once.
    """
    return [*operation.params["properties"].values(), {**operation.params, "properties": {}}]


@each_description
def test_schemas_never_contain_credentials_at_any_depth(published: Published) -> None:
    schemes = {
        scheme.parameter.lower() for scheme in read(published).schemes if scheme.kind == "api_key"
    }
    for operation in read(published).operations:
        inside = [name for node in nodes_in(operation.params) for name in _properties(node)]
        shown = [*operation.params["properties"], *(each.name for each in operation.placements)]
        assert [name for name in shown if CREDENTIAL.match(name) or name.lower() in schemes] == []
        assert [name for name in inside if CREDENTIAL.match(name)] == [], operation.key


def _properties(node: dict[str, Any]) -> list[str]:
    """Return the names of the properties in a schema. A param called `properties` is not mistaken
    for them."""
    properties = node.get("properties")
    return (
        [name for name, schema in properties.items() if isinstance(schema, dict)]
        if isinstance(properties, dict)
        else []
    )


@each_description
def test_a_description_is_read_within_seconds_and_its_schemas_are_bounded(
    published: Published,
) -> None:
    assert read_once(published).seconds < SECONDS
    assert max(len(canonical_json(each.params)) for each in read(published).operations) < 200_000


READS_ALL = """
import django
django.setup()
from tests.tools.sources.descriptions import PUBLISHED
from tools.sources.openapi import read_description
for published in PUBLISHED:
    read_description(published.text)
"""
# A process's peak memory includes its parent's at the start; this small process in between keeps it
# low.
MEASURES = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


def test_a_process_that_reads_all_descriptions_stays_small() -> None:
    told = subprocess.run(
        [sys.executable, "-c", MEASURES, READS_ALL], capture_output=True, text=True, check=True
    )
    assert int(told.stdout) < MEGABYTES


READS_LARGEST = """
import json
from tools.sources.openapi import read_description
path = {"post": {"summary": "Send", "description": "word " * 4_000, "responses": {"200": {"description": "Sent"}}}}
text = json.dumps({"openapi": "3.0.3", "info": {"title": "Large", "version": "1"}, "servers": [{"url": "https://a.b"}],
    "paths": {f"/things/{number}": path for number in range(3_000)}})
assert 60_000_000 < len(text) < 64_000_000
assert len(read_description(text).operations) == 3_000
"""


def test_a_description_of_sixty_megabytes_is_read_in_bounded_time_and_memory() -> None:
    began = time.monotonic()
    told = subprocess.run(
        [sys.executable, "-c", MEASURES, READS_LARGEST], capture_output=True, text=True, check=True
    )
    assert time.monotonic() - began < SECONDS
    assert int(told.stdout) < MEGABYTES


def test_the_descriptions_come_from_five_packages_and_have_the_stated_openapi_versions() -> None:
    assert len({each.package for each in PUBLISHED}) >= 5
    for published in PUBLISHED:
        told = re.search(
            r"""^\W*(?:openapi|swagger)\W+([0-9]\.[0-9])""", published.text[:1_000], re.MULTILINE
        )
        assert told, published.member
        assert told[1] == published.version


@pytest.mark.skipif(
    not HAS_NPM, reason="the largest descriptions are in npm packages, and npm is not installed"
)
def test_two_descriptions_have_a_thousand_operations_and_all_three_openapi_versions_occur() -> None:
    assert len([each for each in PUBLISHED if each.operations > 1_000]) >= 2
    assert {each.version for each in PUBLISHED} == {"2.0", "3.0", "3.1"}
