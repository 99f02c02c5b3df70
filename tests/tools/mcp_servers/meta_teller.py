"""An MCP server built with the official SDK, over standard input and output; its tool returns the
`_meta` of the call."""

import json

from mcp.server.mcpserver import Context, MCPServer

SERVER = MCPServer("meta-teller")


@SERVER.tool()
def tell(ctx: Context) -> str:
    """Return the `_meta` of this call."""
    return json.dumps(ctx.request_context.meta)


if __name__ == "__main__":
    SERVER.run("stdio")
