"""A test tool that reads pages from outside, whose texts a test writes."""

from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from tools.contract import Level, Tool, ToolContext, ToolResult

PAGE_HOST = "pages.example"
PAGES: dict[str, str] = {}
"""The text of each page, by its path."""


class ReadPage(Tool):
    """A read of a page from outside; nothing is sent anywhere."""

    name = "probe.page"
    display_name = "Read a test page"
    description = "Reads a page."
    level = Level.READ
    open_world = True

    class Params(BaseModel):
        url: str

    def hosts(self, params: Any) -> frozenset[str]:
        return frozenset({urlsplit(params.url).hostname or ""})

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok({"text": PAGES.get(urlsplit(params.url).path, "Nothing here.")}, "Read a page")


PROBES = (ReadPage,)
