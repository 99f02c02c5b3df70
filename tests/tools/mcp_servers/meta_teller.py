"""A server built with the protocol's SDK whose tool returns the `_meta` of its call, over standard
input and output."""

import json

from mcp.server.mcpserver import Context, MCPServer

SERVER = MCPServer("meta-teller")


@SERVER.tool()
def tell(ctx: Context) -> str:
    """Return the `_meta` of this call."""
    return json.dumps(ctx.request_context.meta)


if __name__ == "__main__":
    SERVER.run("stdio")
