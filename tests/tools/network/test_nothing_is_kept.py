"""Requests do not share state, and the network client never reads environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.network.web_server import WebServer, reply
from tools.contract import NetworkAccess
from tools.network import request

REACH = NetworkAccess(private=frozenset({"127.0.0.1"}))


def test_cookies_and_connections_are_not_kept() -> None:
    with WebServer({"/": reply(set_cookie="session=1; Path=/")}) as server:
        for _ in range(2):
            request("GET", server.url, reach=REACH)
        assert server.connections == 2
        assert all("cookie" not in asked.headers for asked in server.requests)


def test_proxies_and_netrc_files_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text(
        "machine 127.0.0.1 login somebody password s3cret\n", encoding="utf-8"
    )
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with WebServer({"/": reply(b"direct")}) as server, WebServer() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert request("GET", server.url, reach=REACH).text == "direct"
        assert proxy.connections == 0
        assert "authorization" not in server.requests[0].headers
