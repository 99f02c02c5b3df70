"""Tools of servers that speak the Model Context Protocol, over standard input and output or streamable HTTP."""

from .calls import list_tools
from .connections import CONNECTIONS
from .definitions import Definition, LeftOut, Listing, suggested_level
from .lines import listing_changed
from .servers import HttpServer, Server, StdioServer
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
