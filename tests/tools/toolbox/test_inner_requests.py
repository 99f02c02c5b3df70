"""The requests that a call carries in its params are found, in whatever form, and raise its
level."""

from typing import Any

import pytest

from tests.tools.toolbox.test_named_hosts import Outside
from tools.contract import Level, find_embedded_requests
from tools.contract.embedded_json import TOO_DEEP
from tools.contract.embedded_requests import describe_requests
from tools.sources.embedded_requests import detect_embedded_requests
from tools.toolbox import Grants, Permission, Policy, judge_call


@pytest.mark.parametrize(
    ("params", "found"),
    [
        (
            {"requests": [{"method": "delete", "path": "/a"}, {"method": "GET", "url": "/b"}]},
            ["DELETE /a", "GET /b"],
        ),
        (
            {"defaults": {"method": "DELETE"}, "requests": [{"path": "/a"}, {"path": "/b"}]},
            ["DELETE /a", "DELETE /b"],
        ),
        (
            {"requests": [{"method": "PUT", "path": "/a"}, {"path": "/b"}]},
            ["PUT /a", "no method: /b"],
        ),
        ({"Operations": [{"method": "POST", "path": "/Users", "bulkId": "q"}]}, ["POST /Users"]),
        ({"batch": '[{"method": "DELETE", "relative_url": "me/feed"}]'}, ["DELETE me/feed"]),
        ({"batch": '[{"method": "DELETE", "path": "/a"}, ' + "9" * 5_000 + "]"}, ["DELETE /a"]),
        ({"method": "DELETE", "paths": ["/a", "/b"]}, ["DELETE /a", "DELETE /b"]),
        (
            {"query": 'mutation { a: drop(id: "x{") { id } dropAll }'},
            ["GraphQL mutation: drop, dropAll"],
        ),
        (
            {"query": "query Q { pets { name } } mutation M { drop }"},
            ["GraphQL query: pets", "GraphQL mutation: drop"],
        ),
        (
            {"query": "# hi\nfragment F on Pet { id } mutation { drop { ...F } }"},
            ["GraphQL mutation: drop"],
        ),
        ({"jsonrpc": "2.0", "method": "pets.drop"}, ["call pets.drop"]),
        ({"body": "DELETE /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1"}, ["DELETE /a", "GET /b"]),
        ({"lines": ["DELETE /a"]}, ["DELETE /a"]),
        (
            {"body": [{"delete": {"_id": "1"}}, {"delete": {"_id": "2"}}]},
            ['delete {"_id": "1"}', 'delete {"_id": "2"}'],
        ),
        (
            {"body": '{"index": {"_id": 1}}\n{"name": "x"}\n{"delete": {}}\n'},
            ['index {"_id": 1}', "delete {}"],
        ),
        ({"verb": "DELETE", "resource": "/x"}, ["DELETE /x"]),
        ({"update": {"name": "x"}}, []),
        ({"text": "It says\nGET /pets\nand fails"}, []),
        ({"patch": [{"op": "remove", "path": "/a"}]}, []),
        ({"method": "card", "url": "/paid"}, []),
        ({"path": "README.md", "title": "{curly} text"}, []),
    ],
)
def test_embedded_requests_are_found(params: dict[str, Any], found: list[str]) -> None:
    assert list(find_embedded_requests(params)) == found
    verdict = judge_call(Outside(), params, Grants(tools=frozenset({"there.look"})), Policy())
    assert (verdict.level is Level.DESTRUCTIVE) == bool(found)
    assert (verdict.permission is Permission.ASK) == bool(found)
    assert all(each in verdict.reason for each in found)


def test_deep_nesting_does_not_hide_a_request() -> None:
    deep: Any = {"method": "DELETE", "path": "/a"}
    for _ in range(5_000):
        deep = [deep]
    assert find_embedded_requests({"x": deep}) == ("DELETE /a",)
    assert find_embedded_requests(
        {"x": "[" * 9_000 + '{"method": "DELETE", "path": "/a"}' + "]" * 9_000}
    ) == (TOO_DEEP,)


def test_a_tool_that_declares_that_it_carries_requests_keeps_its_level() -> None:
    class Known(Outside):
        carries_requests = True

    sent = {"requests": [{"method": "DELETE", "path": "/a"}]}
    granted = Grants(tools=frozenset({"there.look"}))
    assert judge_call(Known(), sent, granted, Policy()).permission is Permission.AUTO
    verdict = judge_call(Known(Level.WRITE), sent, granted, Policy())
    assert verdict.reason == "this changes data; carries 1 other request: DELETE /a"
    assert (
        judge_call(Outside(source="built in"), sent, granted, Policy()).permission
        is Permission.AUTO
    )


def test_a_description_of_many_requests_names_two_and_counts_the_others() -> None:
    assert describe_requests([f"GET /{number}" for number in range(1_200)], most=2).endswith(
        "GET /0; GET /1; and 1,198 more"
    )


METHOD, TEXT = {"enum": ["GET", "POST"]}, {"type": "string"}


@pytest.mark.parametrize(
    ("path", "properties", "says"),
    [
        ("/v1/batch", {}, "its path says 'batch'"),
        ("/contacts/batch/read", {}, "its path says 'batch'"),
        ("/documents:batchWrite", {}, "its path says 'batch'"),
        ("/graphql", {}, "its path says 'graphql'"),
        ("/rpc/drop", {}, "its path says 'rpc'"),
        ("/multi", {}, "its path says 'multi'"),
        (
            "/x",
            {"list": {"items": {"properties": {"http_method": METHOD, "relativeUrl": TEXT}}}},
            "methods and paths",
        ),
        (
            "/x",
            {
                "step": {"allOf": [{"$ref": "#/properties/sent"}, {"properties": {"url": TEXT}}]},
                "sent": {"allOf": [{"properties": {"method": METHOD}}]},
            },
            "methods and paths",
        ),
        ("/x", {"q": {"properties": {"query": TEXT, "variables": {}}}}, "GraphQL"),
        ("/x", {"jsonrpc": TEXT, "method": TEXT}, "remote procedure calls"),
        ("/bulk", {"operations": {}}, "many operations"),
        ("/bulk", {"ids": {}}, ""),
        (
            "/_bulk",
            {"body": {"items": {"properties": {"index": {}, "delete": {}}}}},
            "many operations",
        ),
        ("/bulk", {"delete": {}}, ""),
        ("/apis/batch/v1/jobs/new", {}, ""),
        ("/multiRegion", {}, ""),
        ("/payments", {"method": {"enum": ["card", "cash"]}, "url": TEXT}, ""),
    ],
)
def test_a_definition_with_request_params_is_recognized(
    path: str, properties: dict[str, Any], says: str
) -> None:
    told = detect_embedded_requests(
        {"its path": "/".join(path.split("/")[-2:])}, {"properties": properties}
    )
    assert says in (told or "")
    assert bool(says) == (told is not None)


def test_a_path_named_batch_is_ignored_for_an_operation_that_only_reads() -> None:
    assert detect_embedded_requests({"its path": "/batch"}, {}, only_reads=True) is None
    assert detect_embedded_requests({"its path": "/graphql"}, {}, only_reads=True) is not None
