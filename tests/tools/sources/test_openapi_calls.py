"""An outside API's response becomes a result or a failure; only the connection's credentials are
sent."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.features import feature
from tests.tools.sources.outside import REACH, Outside, Reply
from tools.contract import (
    ErrorCode,
    KeptFile,
    Level,
    NetworkAccess,
    Preview,
    ResultFile,
    ToolContext,
    ToolError,
)
from tools.sources.openapi import (
    ApiConnection,
    AuthenticationKind,
    AuthenticationSettings,
    OpenAPITool,
)
from tools.testing import judge_tool, run_tool
from tools.toolbox import Permission
from tools.toolbox.executor import PreparedCall, run_call

READ: dict[str, Any] = {"/pets/{id}": {"get": {"summary": "One pet"}}}
WRITE: dict[str, Any] = {"/pets/{id}": {"post": {}}}
SECRET = "s3cret-value/+"


def replied(outside: Outside, reply: Reply, paths: dict[str, Any] | None = None) -> Any:
    outside.replies.append(reply)
    return outside.call(outside.tool(paths or READ), {"id": "7"})


def test_a_json_response_becomes_data(outside: Outside) -> None:
    result = replied(outside, Reply(content=b'{"a": [1, null]}'))
    assert (result.data, result.summary) == ({"a": [1, None]}, "GET /pets/7: 200")


def test_a_text_response_stays_text_and_invalid_json_is_not_parsed(outside: Outside) -> None:
    assert (
        replied(outside, Reply(content=b"hello", headers={"Content-Type": "text/plain"})).data
        == "hello"
    )
    assert replied(outside, Reply(content=b"<oops>")).data == "<oops>"
    assert replied(outside, Reply(content=b"[NaN]")).data == "[NaN]"


def test_a_binary_response_is_described_by_type_and_size(outside: Outside) -> None:
    result = replied(outside, Reply(content=b"\x89PNG" * 10, headers={"Content-Type": "image/png"}))
    assert result.data == {"content_type": "image/png", "bytes": 40}


def test_an_empty_response_has_only_a_status(outside: Outside) -> None:
    assert replied(outside, Reply(204, b"", {})).data == {"status": 204, "content-length": "0"}


def test_a_response_is_limited_in_size(outside: Outside) -> None:
    result = replied(outside, Reply(content=b'"' + b"x" * 4_000_001 + b'"'))
    assert result.error.code is ErrorCode.LIMIT_EXCEEDED


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, ErrorCode.VALIDATION_ERROR),
        (401, ErrorCode.UNAUTHORIZED),
        (403, ErrorCode.FORBIDDEN),
        (404, ErrorCode.NOT_FOUND),
        (409, ErrorCode.VALIDATION_ERROR),
        (422, ErrorCode.VALIDATION_ERROR),
        (429, ErrorCode.RATE_LIMIT_EXCEEDED),
        (418, ErrorCode.OPERATION_FAILED),
        (304, ErrorCode.OPERATION_FAILED),
    ],
)
@pytest.mark.parametrize("paths", [READ, WRITE])
def test_a_refusing_status_is_a_definite_failure(
    outside: Outside, paths: dict[str, Any], status: int, code: ErrorCode
) -> None:
    error = replied(outside, Reply(status, b'{"message": "not like that"}'), paths).error
    assert (error.code, error.is_definite) == (code, True)
    assert status == 304 or "not like that" in error.message


@feature(
    "Tools from API descriptions",
    "After a write, a 5xx response leaves the outcome unknown",
    "tools/sources/openapi/responses.py",
)
@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_the_outcome_of_a_write_is_unknown_after_a_server_error(
    outside: Outside, status: int
) -> None:
    read = replied(outside, Reply(status)).error
    write = replied(outside, Reply(status), WRITE).error
    assert (read.code, read.is_definite) == (ErrorCode.OPERATION_FAILED, True)
    assert (write.code, write.is_definite) == (ErrorCode.OUTCOME_UNKNOWN, False)
    assert len(outside.received) == 2


def test_the_wait_time_that_the_server_asks_for_is_reported(outside: Outside) -> None:
    error = replied(outside, Reply(429, b"", {"Retry-After": "17"})).error
    assert "RECOVERY HINT: Try again after 17 seconds." in error.text


@pytest.mark.parametrize(
    ("content", "kind", "told"),
    [
        (b'{"errors": [{"detail": "a"}, {"detail": "b"}]}', "application/json", "a; b"),
        (b'{"error": {"message": "deep\\nline\\u202e"}}', "application/json", "deep line"),
        (b"<html><h1>Stack trace</h1></html>", "text/html", ""),
        (b"plain words", "text/plain", "plain words"),
        (b'{"message": "' + b"x" * 1000 + b'"}', "application/json", "x" * 299 + "…"),
    ],
)
def test_an_excerpt_of_the_response_is_short_plain_text(
    outside: Outside, content: bytes, kind: str, told: str
) -> None:
    error = replied(outside, Reply(404, content, {"Content-Type": kind})).error
    assert error.message == f"GET /pets/7 failed with 404{f': {told}' if told else ''}."


def test_a_redirect_to_another_host_is_refused_even_if_the_host_is_allowed(
    outside: Outside,
) -> None:
    outside.replies.append(
        Reply(302, b"", {"Location": outside.url.replace("127.0.0.1", "localhost") + "/away"})
    )
    hosts = frozenset({"127.0.0.1", "localhost"})
    result = run_tool(
        outside.tool(READ), {"id": "7"}, reach=NetworkAccess(allowed=hosts, private=hosts)
    )
    assert result.error is not None
    assert result.error.code is ErrorCode.SECURITY_VIOLATION
    assert len(outside.received) == 1


def test_a_read_runs_without_approval_and_a_write_waits(outside: Outside) -> None:
    read, write = outside.tool(READ), outside.tool(WRITE)
    assert judge_tool(read, {"id": "7"}).permission is Permission.AUTO
    assert judge_tool(write, {"id": "7"}).permission is Permission.ASK
    assert (
        write.sentence({"id": "a/b"}, Preview.impossible(""))
        == f"Send: “POST /pets/a%2Fb” at “{outside.url.removeprefix('http://')}”"
    )
    usual = OpenAPITool(write.operation, ApiConnection("api", "https://api.example.com:443/v1"))
    assert (
        usual.sentence({"id": "7"}, Preview.impossible(""))
        == "Send: “POST /v1/pets/7” at “api.example.com”"
    )


def test_an_admin_can_set_another_level(outside: Outside) -> None:
    tool = outside.tool(WRITE)
    assert OpenAPITool(tool.operation, tool.connection, level=Level.READ).level is Level.READ


def test_the_definition_changes_with_the_address_and_the_param_locations(outside: Outside) -> None:
    tool = outside.tool(READ)
    elsewhere = OpenAPITool(
        tool.operation, replace(tool.connection, base_url="https://example.com")
    )
    (placement,) = tool.operation.placements
    moved = replace(tool.operation, placements=(replace(placement, place="query"),))
    hashes = {
        each.definition_hash for each in (tool, elsewhere, OpenAPITool(moved, tool.connection))
    }
    assert len(hashes) == 3
    assert tool.definition_hash == OpenAPITool(tool.operation, tool.connection).definition_hash


def test_notes_for_admins_are_not_part_of_the_hash(outside: Outside) -> None:
    operation = outside.tool(READ).operation
    assert operation.hash == replace(operation, level_reason="another", tags=("pets",)).hash
    others = [
        replace(operation, description="x"),
        replace(operation, level=Level.WRITE),
        replace(operation, params={}),
    ]
    assert len({each.hash for each in [operation, *others]}) == 4
    assert operation.to_json()["level_reason"] == "GET is read level"


@feature(
    "Tools from API descriptions",
    "API key, bearer, basic and OAuth2 client credentials from the organization's credentials",
    "tools/sources/openapi/authentication.py",
)
@pytest.mark.parametrize(
    ("authentication", "fields", "header", "sent"),
    [
        (
            AuthenticationSettings(AuthenticationKind.API_KEY, "api", name="X-Key"),
            {"api_key": SECRET},
            "x-key",
            SECRET,
        ),
        (
            AuthenticationSettings(AuthenticationKind.API_KEY, "api", "cookie", "sid"),
            {"api_key": SECRET},
            "cookie",
            "sid=s3cret-value%2F%2B",
        ),
        (
            AuthenticationSettings(AuthenticationKind.BEARER, "api"),
            {"token": SECRET},
            "authorization",
            f"Bearer {SECRET}",
        ),
        (
            AuthenticationSettings(AuthenticationKind.BASIC, "api"),
            {"username": "ann", "password": SECRET},
            "authorization",
            f"Basic {base64.b64encode(f'ann:{SECRET}'.encode()).decode()}",
        ),
    ],
)
def test_the_credential_is_sent_and_hidden_in_every_result(
    outside: Outside,
    authentication: AuthenticationSettings,
    fields: dict[str, str],
    header: str,
    sent: str,
) -> None:
    tool = outside.tool(READ, authentication)
    outside.replies.append(Reply(content=json.dumps({"echo": sent}).encode()))
    outside.replies.append(Reply(404, json.dumps({"message": f"no {sent}"}).encode()))
    found = outside.call(tool, {"id": "7"}, {"api": fields})
    failed = outside.call(tool, {"id": "7"}, {"api": fields})
    assert outside.last.headers[header] == sent
    for result in (found, failed):
        told = f"{result.as_json()} {result.for_model()}"
        assert "[hidden]" in told
        assert SECRET not in told
        assert sent.rpartition(" ")[2] not in told


def test_a_key_can_be_sent_in_the_query(outside: Outside) -> None:
    tool = outside.tool(
        READ, AuthenticationSettings(AuthenticationKind.API_KEY, "api", "query", "api_key")
    )
    outside.call(tool, {"id": "7"}, {"api": {"api_key": SECRET}})
    assert outside.last.target == "/pets/7?api_key=s3cret-value%2F%2B"


@pytest.mark.parametrize(
    "kind", [kind for kind in AuthenticationKind if kind is not AuthenticationKind.NONE]
)
@pytest.mark.parametrize("value", [None, "", "line\r\nbreak"])
def test_a_call_with_missing_or_broken_credentials_is_not_sent(
    outside: Outside, kind: AuthenticationKind, value: str | None
) -> None:
    tool = outside.tool(
        WRITE, AuthenticationSettings(kind, "api", token_url=f"{outside.url}/token")
    )
    fields = {} if value is None else dict.fromkeys(kind.fields, value)
    error = outside.call(tool, {"id": "7"}, {"api": fields}).error
    assert error is not None
    assert (error.code, error.is_definite, outside.received) == (ErrorCode.UNAUTHORIZED, True, [])
    assert kind.fields[0] in error.text
    assert "line" not in error.text.replace("line break", "")


OAUTH_FIELDS = {"api": {"client_id": "client", "client_secret": SECRET}}


def oauth_tool(outside: Outside, paths: dict[str, Any]) -> OpenAPITool:
    return outside.tool(
        paths,
        AuthenticationSettings(
            AuthenticationKind.OAUTH2, "api", token_url=f"{outside.url}/token", scopes=("a", "b")
        ),
    )


def test_an_access_token_is_fetched_once_for_each_organization_and_secret(outside: Outside) -> None:
    tool = oauth_tool(outside, READ)
    for organization_id in (1, 1, 2):
        run_tool(
            tool,
            {"id": "7"},
            organization_id=organization_id,
            credentials=OAUTH_FIELDS,
            reach=REACH,
        )
    changed = {"api": {**OAUTH_FIELDS["api"], "client_secret": "another-secret"}}
    outside.call(tool, {"id": "7"}, changed)
    assert outside.tokens_given == 3
    assert outside.last.headers["authorization"] == "Bearer access-token-3"
    asked = outside.received[0]
    assert asked.body == b"grant_type=client_credentials&scope=a+b"
    assert (
        base64.b64decode(asked.headers["authorization"].removeprefix("Basic "))
        == b"client:s3cret-value%2F%2B"
    )


def test_a_token_about_to_expire_is_not_used(outside: Outside) -> None:
    outside.token_lives_s = 30
    tool = oauth_tool(outside, READ)
    outside.call(tool, {"id": "7"}, OAUTH_FIELDS)
    outside.call(tool, {"id": "7"}, OAUTH_FIELDS)
    assert outside.tokens_given == 2


def test_a_refused_token_is_fetched_again_once_and_only_for_a_read(outside: Outside) -> None:
    read, write = oauth_tool(outside, READ), oauth_tool(outside, WRITE)
    outside.replies += [Reply(401), Reply()]
    assert outside.call(read, {"id": "7"}, OAUTH_FIELDS).success
    outside.replies += [Reply(401), Reply(401)]
    assert not outside.call(read, {"id": "7"}, OAUTH_FIELDS).success
    before = len(outside.received)
    outside.replies += [Reply(401)]
    error = outside.call(write, {"id": "7"}, OAUTH_FIELDS).error
    assert error is not None
    assert error.code is ErrorCode.UNAUTHORIZED
    assert [each.target for each in outside.received[before:]] == ["/token", "/pets/7"]
    assert outside.call(write, {"id": "7"}, OAUTH_FIELDS).success


def test_an_echoed_access_token_is_hidden(outside: Outside) -> None:
    outside.replies.append(Reply(content=b'{"you sent": "Bearer access-token-1"}'))
    result = outside.call(oauth_tool(outside, READ), {"id": "7"}, OAUTH_FIELDS)
    assert result.data == {"you sent": "Bearer [hidden]"}


def test_an_access_token_echoed_in_a_file_is_hidden_before_the_file_is_stored(
    outside: Outside,
) -> None:
    headers = {
        "Content-Type": "application/zip",
        "Content-Disposition": 'attachment; filename="access-token-1.zip"',
    }
    outside.replies.append(Reply(content=b"PK\x03\x04 Bearer access-token-1 \xff", headers=headers))
    kept: list[ResultFile] = []

    def keep(_: Level, files: Sequence[ResultFile]) -> list[KeptFile]:
        kept.extend(files)
        return []

    context = ToolContext(organization_id=1, credentials=OAUTH_FIELDS, reach=REACH)
    call = PreparedCall(
        1, oauth_tool(outside, READ), {"id": "7"}, context, timeout_s=10, keep_files=keep
    )
    assert run_call(call).success
    assert kept == [
        ResultFile("[hidden].zip", b"PK\x03\x04 Bearer [hidden] \xff", "application/zip")
    ]


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (Reply(503), "its token server returned status 503."),
        (
            Reply(content=b'{"error": "bad code"}'),
            "its token server's response contains no valid token.",
        ),
    ],
)
def test_a_missing_access_token_is_explained(outside: Outside, reply: Reply, fault: str) -> None:
    address = f"{outside.url}/other"
    tool = outside.tool(
        READ, AuthenticationSettings(AuthenticationKind.OAUTH2, "api", token_url=address)
    )
    outside.replies.append(reply)
    error = outside.call(tool, {"id": "7"}, OAUTH_FIELDS).error
    assert error is not None
    assert error.message == f"No access token for 'api': {fault}"


@pytest.mark.parametrize("token_url", ["/nothing", ":1/token"])
def test_a_write_without_an_access_token_was_not_attempted(
    outside: Outside, token_url: str
) -> None:
    address = f"{outside.url}{token_url}" if token_url[0] == "/" else f"http://127.0.0.1{token_url}"
    tool = outside.tool(
        WRITE, AuthenticationSettings(AuthenticationKind.OAUTH2, "api", token_url=address)
    )
    outside.replies.append(Reply(500))
    error = outside.call(tool, {"id": "7"}, OAUTH_FIELDS).error
    assert error is not None
    assert error.is_definite
    assert [each.target for each in outside.received if each.target.startswith("/pets")] == []


def test_a_base_address_can_contain_a_path(outside: Outside) -> None:
    tool = outside.tool(READ)
    connection = ApiConnection("api", f"{outside.url}/v1/")
    assert outside.call(OpenAPITool(tool.operation, connection), {"id": "7"}).success
    assert outside.last.target == "/v1/pets/7"


@feature(
    "Tools from API descriptions",
    "The card shows the full address, with base path and fixed query",
    "tools/sources/openapi/tool.py",
)
def test_the_card_shows_the_whole_address(outside: Outside) -> None:
    tool = outside.tool(
        {"/api?action=deleteAll": {"get": {"parameters": [{"name": "q", "in": "query"}]}}}
    )
    based = OpenAPITool(tool.operation, ApiConnection("api", f"{outside.url}/v1/"))
    sentence = based.sentence({"q": "x"}, Preview.impossible(""))
    assert (
        sentence
        == f"Read: “GET /v1/api?action=deleteAll” at “{outside.url.removeprefix('http://')}”"
    )
    assert based.level is Level.DESTRUCTIVE
    outside.call(based, {"q": "x"})
    assert outside.last.target == "/v1/api?action=deleteAll&q=x"


@pytest.mark.parametrize("end", ["/v1?key=1", "/v1#part", "?"])
def test_a_base_address_with_a_query_or_a_fragment_is_refused(end: str) -> None:
    with pytest.raises(ToolError, match="query or a fragment"):
        ApiConnection("api", f"https://example.com{end}")


@feature(
    "Network access",
    "A GET of write level counts as a write, also if an admin raised the level: no "
    "redirect, no retry, unknown outcomes",
    "tools/network/http_client.py, tools/sources/openapi/tool.py",
)
@pytest.mark.parametrize("raised", [False, True], ids=["by its own level", "raised for this call"])
def test_a_get_request_that_writes_is_sent_once_and_its_outcome_can_be_unknown(
    outside: Outside, raised: bool
) -> None:
    tool = oauth_tool(
        outside, READ if raised else {"/pets/{id}": {"get": {"operationId": "createPet"}}}
    )
    level = Level.WRITE if raised else None
    too_large = Reply(content=b'"' + b"x" * 4_000_001 + b'"')
    for reply in (Reply(302, b"", {"Location": "/elsewhere"}), Reply(500), too_large, Reply(401)):
        before = len([each for each in outside.received if each.method == "GET"])
        outside.replies.append(reply)
        error = run_tool(
            tool, {"id": "7"}, credentials=OAUTH_FIELDS, reach=REACH, level=level
        ).error
        assert error is not None
        assert error.is_definite is (reply.status == 401)
        assert len([each for each in outside.received if each.method == "GET"]) == before + 1
