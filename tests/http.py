"""One plain HTTP request to a real server, without proxies or redirects."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Answer:
    """A response; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def get(url: str, headers: dict[str, str] | None = None) -> Answer:
    """Send a GET request to this full address."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request(
            "GET", parts.path + (f"?{parts.query}" if parts.query else ""), headers=headers or {}
        )
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, response.read())
    finally:
        connection.close()
