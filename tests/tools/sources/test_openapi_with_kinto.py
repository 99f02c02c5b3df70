"""A third-party HTTP API: its description is read, and its tools read and write real data."""

from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from tests.tools.sources.kinto import running_kinto
from tests.tools.sources.outside import REACH
from tools.contract import ErrorCode, Level, ToolResult
from tools.sources.openapi import (
    ApiConnection,
    AuthenticationKind,
    AuthenticationSettings,
    OpenAPITool,
    read_description,
)
from tools.testing import judge_tool, run_tool
from tools.toolbox import Permission

ACCOUNT = {"username": "ann", "password": "a long password"}
NOTES = {"bucket_id": "default", "collection_id": "notes"}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, OpenAPITool]]:
    """The tools, by the part of the name after the dot; `ann` has an account."""
    with running_kinto(tmp_path_factory.mktemp("kinto")) as url:
        with urlopen(f"{url}/__api__", timeout=10) as response:
            description = read_description(response.read().decode())
        assert description.servers == (url,)
        connection = ApiConnection(
            "kinto", url, "Kinto", AuthenticationSettings(AuthenticationKind.BASIC, "kinto")
        )
        made = {each.name: OpenAPITool(each, connection) for each in description.operations}
        assert call(
            made["updateAccount"],
            {"id": "ann", "data": {"password": ACCOUNT["password"]}},
            new=True,
        ).success
        yield made


def call(
    tool: OpenAPITool, params: dict[str, Any], *, new: bool = False, **wrong: str
) -> ToolResult:
    """Return the result of one call by Ann, or by somebody without an account if `new` is set."""
    account = {"username": "nobody", "password": "none"} if new else {**ACCOUNT, **wrong}
    return run_tool(tool, params, credentials={"kinto": account}, reach=REACH)


def test_every_operation_of_the_description_is_a_tool(tools: dict[str, OpenAPITool]) -> None:
    assert len(tools) > 40
    assert tools["getRecords"].level is Level.READ
    assert tools["createRecord"].level is Level.WRITE
    assert tools["deleteRecords"].level is Level.DESTRUCTIVE


def test_a_read_finds_what_a_write_stored(tools: dict[str, OpenAPITool]) -> None:
    stored = call(tools["createRecord"], {**NOTES, "data": {"title": "é/&", "done": None}})
    assert stored.success, stored
    assert stored.metadata["status"] == 201
    key = stored.data["data"]["id"]
    found = call(tools["getRecord"], {**NOTES, "id": key})
    assert (found.data["data"]["title"], found.data["data"]["done"]) == ("é/&", None)
    listed = call(tools["getRecords"], {**NOTES, "_limit": 10, "_sort": ["-last_modified"]})
    assert key in [each["id"] for each in listed.data["data"]]
    assert call(tools["deleteRecord"], {**NOTES, "id": key}).success
    gone = call(tools["getRecord"], {**NOTES, "id": key})
    assert gone.error is not None
    assert gone.error.code is ErrorCode.NOT_FOUND


def test_a_batch_is_destructive_and_its_requests_are_listed(tools: dict[str, OpenAPITool]) -> None:
    batch = tools["batch"]
    assert (batch.level, batch.carries_requests) == (Level.DESTRUCTIVE, True)
    assert "embed other requests" in batch.operation.level_reason
    key = call(tools["createRecord"], {**NOTES, "data": {"title": "kept"}}).data["data"]["id"]
    path = f"/buckets/default/collections/notes/records/{key}"
    sent = {"defaults": {"method": "DELETE"}, "requests": [{"path": path}]}
    verdict = judge_tool(batch, sent)
    assert (verdict.permission, verdict.level) == (Permission.ASK, Level.DESTRUCTIVE)
    assert f"carries 1 other request: DELETE {path}" in verdict.reason
    assert call(batch, sent).success
    assert not call(tools["getRecord"], {**NOTES, "id": key}).success


def test_a_refusal_by_the_server_is_reported_as_a_failure(
    tools: dict[str, OpenAPITool],
) -> None:
    refused = call(tools["getRecords"], NOTES, password="another password")
    assert refused.error is not None
    assert refused.error.code is ErrorCode.UNAUTHORIZED
    wrong = call(tools["createBucket"], {"data": {}, "If-Match": '"123"'})
    assert wrong.error is not None
    assert wrong.error.is_definite


def test_an_invalid_param_is_never_sent(tools: dict[str, OpenAPITool]) -> None:
    result = call(tools["getRecords"], {**NOTES, "_limit": "ten"})
    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMETER
