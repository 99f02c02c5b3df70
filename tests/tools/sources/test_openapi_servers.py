"""Operations with their own servers, and paths that differ only after a `#`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.features import feature
from tests.tools.sources.outside import Outside, described
from tools.contract import Level, ToolError
from tools.sources.openapi import ApiConnection, ApiDescription, OpenAPITool, read_description

MAIN, UPLOADS, CLUSTER = (
    "https://api.example.com/v1",
    "https://uploads.example.com",
    "https://10.0.0.1:6443",
)


def operation(*servers: str, **more: Any) -> dict[str, Any]:
    return {
        "responses": {},
        **({"servers": [{"url": url} for url in servers]} if servers else {}),
        **more,
    }


def read(paths: dict[str, Any], base_url: str = "", main: tuple[str, ...] = ()) -> ApiDescription:
    more: dict[str, Any] = {"servers": [{"url": url} for url in main]} if main else {}
    return read_description(described(paths, **more), base_url=base_url)


def keys(description: ApiDescription) -> list[str]:
    return [each.key for each in description.operations]


PATHS = {
    "/pets": {"get": operation()},
    "/up": {"post": operation(UPLOADS)},
    "/in": {"get": operation("/v1/")},
}


@feature(
    "Tools from API descriptions",
    "The address of a source selects the operations of a description with several servers",
    "tools/sources/openapi/servers.py",
)
@pytest.mark.parametrize(
    ("base_url", "offered"),
    [
        ("", ["GET /pets"]),
        (MAIN, ["GET /pets", "GET /in"]),
        (f"{MAIN.upper().replace('/V1', ':443/v1')}/", ["GET /pets", "GET /in"]),
        ("https://staging.example.com/v1", ["GET /pets", "GET /in"]),
        (UPLOADS, ["POST /up"]),
    ],
)
def test_the_address_set_by_the_admin_decides_which_operations_exist(
    base_url: str, offered: list[str]
) -> None:
    description = read(PATHS, base_url, (MAIN,))
    assert keys(description) == offered
    assert len(description.operations) + len(description.skipped) == len(PATHS)
    assert all(
        "connect a second source for that address" in each.reason for each in description.skipped
    )


@pytest.mark.parametrize("main", [(), ("https://kubernetes.io",)])
@pytest.mark.parametrize("own", ["https://cluster.local:6443", "/"])
def test_a_description_whose_operations_all_name_the_same_server_is_read(
    main: tuple[str, ...], own: str
) -> None:
    paths = {f"/api/v1/{kind}": {"get": operation(own)} for kind in ("pods", "nodes", "services")}
    for base_url in ("", CLUSTER, "https://cluster.local:6443"):
        description = read(paths, base_url, main)
        assert len(description.operations) == 3
        assert description.servers == (own,)


def test_a_server_below_the_address_becomes_part_of_the_path(outside: Outside) -> None:
    paths = {"/pets": {"get": operation()}, "/toys": {"get": operation(f"{outside.url}/shop")}}
    _, toys = read(paths, outside.url, (outside.url,)).operations
    assert (toys.key, toys.path) == ("GET /toys", "/shop/toys")
    outside.call(OpenAPITool(toys, ApiConnection("api", outside.url)))
    assert outside.last.target == "/shop/toys"


def acting(name: str, place: str, *values: str) -> dict[str, Any]:
    schema = {"type": "string", **({"enum": list(values)} if values else {})}
    return operation(parameters=[{"name": name, "in": place, "schema": schema}])


@feature(
    "Tools from API descriptions",
    "Paths that differ only after a `#`",
    "tools/sources/openapi/parameters.py",
)
def test_a_fragment_in_a_path_is_sent_as_the_parameter_it_names(outside: Outside) -> None:
    target = "X-Amz-Target=Db_2012.DeleteItem"
    paths = {
        "/#Action=ListUsers": {"get": acting("Action", "query")},
        "/#Action=DeleteUser": {"get": acting("Action", "query", "DeleteUser")},
        f"/#{target}": {"post": acting("X-Amz-Target", "header")},
        "/{bucket}#acl": {"put": acting("acl", "query", "true")},
    }
    description = read(paths, outside.url)
    assert (keys(description), description.skipped) == (
        [
            "GET /#Action=ListUsers",
            "GET /#Action=DeleteUser",
            f"POST /#{target}",
            "PUT /{bucket}#acl",
        ],
        (),
    )
    found = {
        each.key: OpenAPITool(each, ApiConnection("api", outside.url))
        for each in description.operations
    }
    levels = [tool.level for tool in found.values()]
    assert levels == [Level.READ, Level.DESTRUCTIVE, Level.DESTRUCTIVE, Level.WRITE]
    assert outside.call(found["GET /#Action=ListUsers"], {"Action": "ListUsers"}).success
    assert outside.last.target == "/?Action=ListUsers"
    assert outside.call(found[f"POST /#{target}"], {"X-Amz-Target": "Db_2012.DeleteItem"}).success
    assert (outside.last.target, outside.last.headers["x-amz-target"]) == (
        "/",
        "Db_2012.DeleteItem",
    )
    assert outside.call(found["PUT /{bucket}#acl"], {"bucket": "b", "acl": "true"}).success
    assert outside.last.target == "/b?acl=true"
    for params in ({"Action": "DeleteUser"}, {}):
        with pytest.raises(ToolError):
            found["GET /#Action=ListUsers"].check_params(params)
    with pytest.raises(ToolError):
        found["PUT /{bucket}#acl"].check_params({"bucket": "b"})


def test_an_operation_whose_fragment_does_not_name_a_parameter_is_left_out() -> None:
    (left_out,) = read({"/{bucket}#policy": {"delete": operation()}}).skipped
    assert left_out.reason == "no parameter matches the part after '#' in its path: 'policy'"


@pytest.mark.parametrize("name", ["authorization", "app_key", "access_key", "jwt", "token"])
def test_a_path_param_that_only_looks_like_a_credential_stays(name: str) -> None:
    (found,) = read({f"/grants/{{{name}}}": {"get": operation()}}).operations
    assert list(found.params["properties"]) == [name]
    told = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": "Your API key, an access token.",
        }
    ]
    refused = read({f"/grants/{{{name}}}": {"get": operation(parameters=told)}})
    assert "its path contains a credential" in refused.skipped[0].reason
