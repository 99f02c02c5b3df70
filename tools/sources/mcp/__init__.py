"""Tools of servers that speak the Model Context Protocol, over standard input and output or streamable HTTP.

What needs the protocol's SDK is loaded when it is first asked for, which is when the tools of such a server are first
listed: most processes never do, and the SDK is a sixth of what they would load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .servers import HttpServer, Server, StdioServer

if TYPE_CHECKING:
    from .calls import list_tools
    from .connections import CONNECTIONS
    from .definitions import Definition, LeftOut, Listing, suggested_level
    from .lines import listing_changed
    from .tool import McpTool

__all__ = [
    "CONNECTIONS",
    "Definition",
    "HttpServer",
    "LeftOut",
    "Listing",
    "McpTool",
    "Server",
    "StdioServer",
    "list_tools",
    "listing_changed",
    "suggested_level",
]

_PLACES = {
    "CONNECTIONS": ".connections",
    "Definition": ".definitions",
    "LeftOut": ".definitions",
    "Listing": ".definitions",
    "McpTool": ".tool",
    "list_tools": ".calls",
    "listing_changed": ".lines",
    "suggested_level": ".definitions",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name], __name__), name)
