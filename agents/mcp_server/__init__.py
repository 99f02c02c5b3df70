"""Gadget as an MCP server: agents that run elsewhere list the tools of an employee and call them at
`/mcp`."""
