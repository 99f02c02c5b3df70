"""Descriptions that nobody here wrote: every operation becomes a legal tool, or is left out with a reason."""

import re
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agents.providers.wire_names import LEGAL_NAME, MAX_TOOLS, WireNames
from tests.sources.descriptions import PUBLISHED, Published
from tools.contract import canonical_json
from tools.sources.openapi import Connection, Description, OpenAPITool, Operation, read_description
from tools.toolbox import Toolbox

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
CREDENTIAL = re.compile(
    r"^(x[-_])?(api[-_]?key|authorization|access[-_]?token|client[-_]?secret|.*tapis[-_]token)$", re.I
)
SECONDS, MEGABYTES = 5, 200

each_description = pytest.mark.parametrize("published", PUBLISHED, ids=lambda each: each.member.rpartition("/")[2])


@pytest.fixture(scope="module")
def read() -> Any:
    known: dict[Published, Description] = {}

    def described(published: Published) -> Description:
        if published not in known:
            known[published] = read_description(published.text)
        return known[published]

    return described


def nodes_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every schema and everything in it."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes_in(child)


@each_description
def test_every_operation_is_a_tool_or_left_out_with_a_reason(published: Published, read: Any) -> None:
    description = read(published)
    accounted = [each.key for each in description.operations] + [each.where for each in description.left_out]
    assert len(accounted) == len(set(accounted)) == published.operations
    assert all(each.reason for each in description.left_out)
    assert len(description.operations) > 0.9 * published.operations
    assert description.title


@each_description
def test_every_tool_is_legal_in_the_toolbox_and_on_the_wire(published: Published, read: Any) -> None:
    toolbox, connection = Toolbox(), Connection("api", "https://api.example.com")
    for operation in read(published).operations:
        Draft202012Validator.check_schema(operation.params)
        assert Operation.from_json(operation.as_json()) == operation
        assert "$ref" not in canonical_json(operation.params)
        assert len(operation.description) <= 1024
        toolbox.register(OpenAPITool(operation, connection))
    names = [tool.name for tool in toolbox.tools()]
    assert len({name.lower() for name in names}) == len(read(published).operations)
    for start in range(0, len(names), MAX_TOOLS):
        table = WireNames(names[start : start + MAX_TOOLS])
        for name in names[start : start + MAX_TOOLS]:
            assert LEGAL_NAME.fullmatch(table.wire(name))
            assert table.internal(table.wire(name)) == name


@each_description
def test_no_credential_is_in_any_schema(published: Published, read: Any) -> None:
    schemes = {scheme.parameter.lower() for scheme in read(published).schemes if scheme.kind == "api_key"}
    for operation in read(published).operations:
        shown = [*operation.params["properties"], *(each.name for each in operation.placements)]
        assert [name for name in shown if CREDENTIAL.match(name) or name.lower() in schemes] == []


@each_description
def test_it_is_read_within_seconds_and_bounded_memory(published: Published) -> None:
    text = published.text
    began = time.process_time()
    read_description(text)
    assert time.process_time() - began < SECONDS
    tracemalloc.start()
    description = read_description(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MEGABYTES * 1_000_000
    assert max(len(canonical_json(each.params)) for each in description.operations) < 200_000


def test_there_are_five_descriptions_of_all_three_versions() -> None:
    assert len({each.package for each in PUBLISHED}) >= 5
    for published in PUBLISHED:
        told = re.search(rb"""^\W*(?:openapi|swagger)\W+([0-9]\.[0-9])""", published.text, re.MULTILINE)
        assert told, published.member
        assert told[1].decode() == published.version
