"""Nothing in `tools` but the door opens a connection, and in `agents` only those that have to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.test_architecture import assert_none, is_within, product

WAYS_OUT = (
    *("socket", "ssl", "socketserver", "http.client", "http.server", "urllib.request", "urllib3", "requests", "httpx"),
    *("httpx2", "httpcore2", "aiohttp", "websockets", "smtplib", "ftplib", "imaplib", "poplib", "telnetlib", "xmlrpc"),
    *("subprocess", "multiprocessing", "pty", "paramiko"),
)
"""Modules that open connections or start processes, which could."""
CALLS_OUT = frozenset(
    {
        *("open_connection", "open_unix_connection", "create_connection", "sock_connect", "getaddrinfo", "connect_tcp"),
        *("create_subprocess_exec", "create_subprocess_shell", "open_process", "run_process", "system", "popen"),
    }
)
"""Names of functions of other modules that do."""
MAY_GO_OUT = {
    "tools/network": "the one door of tools",
    "tools/sources/mcp/child.py": "starts the programs that an admin names as MCP servers",
    "tools/sources/mcp/lines.py": "gives MCP's client the door's own transport",
    "tools/sources/mcp/failures.py": "knows that client's failures by name",
    "agents/providers": "models are reached at the address that an admin sets",
    "agents/management": "starts the parts of Gadget and looks whether they answer",
}


def ways_out_of(node: ast.AST) -> Iterator[str]:
    """What the node imports or calls that opens a connection or starts a process."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        names = [f"{name}()"] if name in CALLS_OUT else []
        if name in ("import_module", "__import__") and node.args and isinstance(node.args[0], ast.Constant):
            names = [str(node.args[0].value)]
    yield from (name for name in names if name.endswith("()") or any(is_within(name, way) for way in WAYS_OUT))


def test_tools_have_one_door_to_the_network() -> None:
    offences, used = [], set()
    for module in product():
        if is_within(module.name, "gadget_site") or "." not in module.name:
            continue
        for node in ast.walk(module.tree):
            for way in ways_out_of(node):
                excuse = next((place for place in MAY_GO_OUT if module.place.startswith(place)), "")
                used.add(excuse)
                if not excuse:
                    offences.append(f"{module.place}:{getattr(node, 'lineno', 1)} uses {way}")
    offences += [f"{place} needs no entry any more" for place in MAY_GO_OUT.keys() - used]
    assert_none(offences, f"connections are opened only in: {', '.join(MAY_GO_OUT)}")
