"""A client may repeat every POST after a lost response: either the repetition is recognized by an
id, or it is harmless."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

RECOGNIZED = {
    "/api/runs": "client_request_id",
    "/api/runs/{run_id}/messages": "client_message_id",
    "/api/runs/{run_id}/continue": "client_message_id",
    "/api/approvals/{approval_id}/approve": "decision_id",
    "/api/approvals/{approval_id}/deny": "decision_id",
    "/api/approvals/{approval_id}/answer": "decision_id",
    "/api/approvals/{approval_id}/undo": "decision_id",
    "/api/approvals/{approval_id}/dismiss": "decision_id",
    "/api/approvals/decide": "decision_id",
    "/api/standing_grants": "client_grant_id",
    "/api/asks": "client_request_id",
    "/api/asks/{ask_id}/redeem": "receipt",
}
"""The field that identifies a repetition, by path. It is in the body, or in each item of a bulk
decision's body."""
HARMLESS = {
    "/api/runs/{run_id}/cancel": "a cancelled run stays cancelled",
    "/api/approvals/undo": "the card that was undone was replaced; its replacement has another id",
    "/api/approvals/bulks/{bulk_id}/undo": "a bulk that was undone stays undone",
    "/api/standing_grants/{grant_id}/revoke": "only one in force is revoked; a revoked one is never in force again",
    "/api/asks/{ask_id}/outcome": "only an open outcome is reported; the same report again changes nothing",
    "/api/asks/{ask_id}/cancel": "a cancelled ask stays cancelled",
    "/api/asks/cancel": "only open asks are cancelled, and a cancelled ask stays cancelled",
    "/api/notices/{notice_id}/retry": "only a failed message is sent, which reached nobody",
    "/api/tool_calls/{call_id}/resolve": "only an unknown outcome is resolved, and once",
}


@pytest.fixture(scope="module")
def bodies() -> dict[str, set[str]]:
    """Return the field names of each POST's body by path, including the fields of
    nested objects."""
    document = Client().get("/api/openapi.json").json()
    return {
        path: list_fields(document, operations["post"].get("requestBody", {}))
        for path, operations in document["paths"].items()
        if "post" in operations
    }


def list_fields(document: dict[str, Any], part: Any) -> set[str]:
    """List the names of all properties in a part of a schema; references are followed."""
    if isinstance(part, list):
        return set().union(*(list_fields(document, each) for each in part))
    if not isinstance(part, dict):
        return set()
    if reference := part.get("$ref"):
        return list_fields(
            document, document["components"]["schemas"][reference.rpartition("/")[2]]
        )
    names = set(part["properties"]) if isinstance(part.get("properties"), dict) else set()
    return names.union(*(list_fields(document, each) for each in part.values()))


def test_each_post_is_listed_as_either_recognized_or_harmless_when_repeated(
    bodies: dict[str, set[str]],
) -> None:
    assert set(bodies) == set(RECOGNIZED) | set(HARMLESS)
    assert not set(RECOGNIZED) & set(HARMLESS)


@pytest.mark.parametrize(("path", "field"), RECOGNIZED.items())
def test_the_body_of_a_recognized_post_has_the_id(
    bodies: dict[str, set[str]], path: str, field: str
) -> None:
    assert field in bodies[path]


@pytest.mark.parametrize("path", HARMLESS)
def test_the_body_of_a_harmless_post_has_no_id(bodies: dict[str, set[str]], path: str) -> None:
    assert not {
        name for name in bodies[path] if name.startswith("client_") or name == "decision_id"
    }
