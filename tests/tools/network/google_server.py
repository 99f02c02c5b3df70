"""A small fake of Google's Custom Search API over HTTP, with its own key, engine and results."""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.tools.network.web_server import Request, WebServer, reply

KEY, ENGINE = "right-api-key", "017:engine"
PATH = "/customsearch/v1"


def item(title: str, site: str, path: str = "/", snippet: str = "About it.") -> dict[str, Any]:
    return {
        "title": title,
        "link": f"https://{site}{path}",
        "displayLink": site,
        "snippet": snippet,
    }


class GoogleServer(WebServer):
    """Responds as the API does.

    Attributes:
        items: all results; a search returns all of them, or only the results from the site that it
            names.
        failure: a response given to every search instead.
        asked: the parameters of each search.
    """

    def __init__(self, *items: dict[str, Any]) -> None:
        super().__init__({PATH: self._search})
        self.items = list(items)
        self.failure: bytes | None = None
        self.asked: list[dict[str, str]] = []

    @property
    def credentials(self) -> dict[str, dict[str, str]]:
        """The credentials with which a tool uses this server."""
        return {"google.cse": {"api_key": KEY, "engine_id": ENGINE, "endpoint": self.url + PATH}}

    def _search(self, connection: socket.socket, request: Request) -> None:
        asked = {
            name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()
        }
        self.asked.append(asked)
        connection.sendall(self.failure or self._found_for(asked))

    def _found_for(self, asked: dict[str, str]) -> bytes:
        if asked.get("key") != KEY:
            error = {
                "code": 400,
                "message": "API key not valid.",
                "details": [{"reason": "API_KEY_INVALID"}],
            }
            return _json({"error": error}, "400 Bad Request")
        if asked.get("cx") != ENGINE:
            return _json(
                {"error": {"code": 400, "message": "Request contains an invalid argument."}},
                "400 Bad Request",
            )
        fitting = [
            found for found in self.items if asked.get("siteSearch", "") in found["displayLink"]
        ]
        start, count = int(asked.get("start", "1")), int(asked.get("num", "10"))
        page = fitting[start - 1 : start - 1 + count]
        information = {"searchInformation": {"totalResults": str(len(fitting))}}
        return _json({**information, "items": page} if page else information)


def _json(value: dict[str, Any], status: str = "200 OK") -> bytes:
    return reply(json.dumps(value).encode(), status, content_type="application/json; charset=UTF-8")
