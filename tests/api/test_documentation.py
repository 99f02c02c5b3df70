"""The OpenAPI document describes every route completely, and its page has no external or inline
scripts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

STATUSES = {"200", "201", "401", "403", "404", "409", "410", "412", "422", "429", "503", "default"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = Client().get("/api/openapi.json").json()
    return found


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def test_the_documented_routes_match_the_contract(document: dict[str, Any]) -> None:
    assert {
        (method, path) for path, methods in document["paths"].items() for method in methods
    } == {
        ("get", "/api/health"),
        ("get", "/api/ready"),
        ("get", "/api/employees"),
        ("get", "/api/employees/{employee_id}"),
        ("get", "/api/tools"),
        ("post", "/api/runs"),
        ("get", "/api/runs"),
        ("get", "/api/runs/{run_id}"),
        ("get", "/api/runs/{run_id}/events"),
        ("get", "/api/tool_calls/{call_id}"),
        ("post", "/api/runs/{run_id}/cancel"),
        ("post", "/api/runs/{run_id}/messages"),
        ("post", "/api/runs/{run_id}/continue"),
        ("get", "/api/approvals"),
        ("get", "/api/approvals/{approval_id}"),
        ("post", "/api/approvals/{approval_id}/approve"),
        ("post", "/api/approvals/{approval_id}/undo"),
        ("post", "/api/approvals/{approval_id}/answer"),
        ("post", "/api/approvals/{approval_id}/deny"),
        ("post", "/api/approvals/{approval_id}/dismiss"),
        ("post", "/api/approvals/decide"),
        ("post", "/api/approvals/undo"),
        ("post", "/api/approvals/bulks/{bulk_id}/undo"),
        ("get", "/api/approvals/bulks/{bulk_id}"),
        ("get", "/api/standing_grants"),
        ("post", "/api/standing_grants"),
        ("post", "/api/standing_grants/{grant_id}/revoke"),
        ("get", "/api/approval_rules"),
        ("get", "/api/groups"),
        ("get", "/api/asks"),
        ("post", "/api/asks"),
        ("get", "/api/asks/{ask_id}"),
        ("post", "/api/asks/{ask_id}/redeem"),
        ("post", "/api/asks/{ask_id}/outcome"),
        ("post", "/api/asks/{ask_id}/cancel"),
        ("post", "/api/asks/cancel"),
        ("get", "/api/notices"),
        ("post", "/api/notices/{notice_id}/retry"),
        ("post", "/api/tool_calls/{call_id}/resolve"),
    }


def test_every_operation_is_described_with_its_statuses(document: dict[str, Any]) -> None:
    names = {tag["name"] for tag in document["tags"]}
    for operation in operations(document):
        assert operation["summary"]
        assert operation["description"]
        assert set(operation["tags"]) <= names
        assert operation["responses"].keys() <= STATUSES
        assert "default" in operation["responses"]


def test_operation_ids_are_unique_and_short(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for operation in operations(document)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z_]{4,30}", each) for each in ids)


def test_error_responses_are_problem_documents(document: dict[str, Any]) -> None:
    for operation in operations(document):
        for status, response in operation["responses"].items():
            kind = "application/json" if status.startswith("2") else "application/problem+json"
            assert list(response["content"]) == [kind]


def test_every_reference_resolves(document: dict[str, Any]) -> None:
    references = set(re.findall(r"'\$ref': '#/components/schemas/(\w+)'", str(document)))
    assert references <= document["components"]["schemas"].keys()


def test_both_login_methods_are_described(document: dict[str, Any]) -> None:
    schemes = document["components"]["securitySchemes"]
    assert schemes["BearerToken"]["scheme"] == "bearer"
    assert schemes["SessionCookie"]["in"] == "cookie"


def test_ids_are_strings(document: dict[str, Any]) -> None:
    for operation in operations(document):
        for parameter in operation["parameters"]:
            if parameter["in"] == "path":
                assert parameter["schema"]["type"] == "string"
    assert (
        document["components"]["schemas"]["NewRun"]["properties"]["employee_id"]["type"] == "string"
    )


def test_ids_in_responses_have_an_example(document: dict[str, Any]) -> None:
    for shape in (
        "RunDetail",
        "RunSummary",
        "ToolCallSummary",
        "ToolCallDetail",
        "ApprovalDetail",
        "EmployeeSummary",
    ):
        ids = {
            name: field
            for name, field in document["components"]["schemas"][shape]["properties"].items()
            if name == "id" or name.endswith("_id")
        }
        assert ids
        assert all(field["examples"] == ["1"] for field in ids.values()), shape


def test_limits_of_fields_are_described(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["NewRun"]["properties"]["task"]["maxLength"] == 20_000
    assert schemas["DenyRequest"]["properties"]["reason"]["maxLength"] == 2_000
    assert schemas["ApproveRequest"]["properties"]["grace_s"]["maximum"] == 60


def test_the_page_works_offline_under_the_strict_security_policy() -> None:
    response = Client().get("/api/docs")
    page = response.content.decode()
    assert "'unsafe-inline'" not in response["Content-Security-Policy"]
    scripts = re.findall(r"<script\b([^>]*)>(.*?)</script>", page, re.DOTALL)
    assert all(
        "src=" in attributes or "application/json" in attributes for attributes, _ in scripts
    )
    assert "<style" not in page
    assert not re.search(r"\son\w+=|\sstyle=", page)
    for address in re.findall(r"""<(?:script|link)\b[^>]*(?:src|href)="([^"]+)""", page):
        assert address.startswith("/static/")
        assert finders.find(address.removeprefix("/static/"))
    assert all(
        re.match(r"#|/(?!/)", address)
        for address in re.findall(r"""(?:src|href|action)="([^"]*)""", page)
    )


def test_the_librarys_styles_are_imported_into_a_layer_that_our_styles_override() -> None:
    sheet = finders.find("css/api.css")
    assert sheet
    (imported,) = re.findall(r"""@import url\("\.\./([^"]+)"\) layer\(""", Path(sheet).read_text())
    assert finders.find(imported)


def test_parameters_have_no_examples_outside_their_schema(
    document: dict[str, Any],
) -> None:
    for operation in operations(document):
        for parameter in operation["parameters"]:
            assert "examples" not in parameter


def test_an_id_parameter_says_where_to_find_it_and_has_no_invented_example(
    document: dict[str, Any],
) -> None:
    listed = {path for path, methods in document["paths"].items() if "get" in methods}
    given = [
        one
        for operation in operations(document)
        for one in operation["parameters"]
        if one["in"] == "path"
    ]
    assert {one["name"] for one in given} == {
        "employee_id",
        "run_id",
        "call_id",
        "approval_id",
        "ask_id",
        "grant_id",
        "notice_id",
        "bulk_id",
    }
    schemas = document["components"]["schemas"]
    fields = [
        schemas["NewRun"]["properties"]["employee_id"],
        schemas["BulkDecision"]["properties"]["approval_id"],
    ]
    for one in (*given, *fields):
        assert "examples" not in one.get("schema", one)
        source = re.search(r"`GET (/api/[^`?]+)", one["description"])
        assert source is not None
        assert source.group(1) in listed
