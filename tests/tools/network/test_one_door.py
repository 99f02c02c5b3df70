"""In `tools`, only the network client opens connections; in `agents`, only the listed modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.features import feature
from tests.source_tree import ROOT, assert_none, is_within, name_of, paths

WAYS_OUT = (
    *(
        "socket",
        "ssl",
        "socketserver",
        "http.client",
        "http.server",
        "urllib.request",
        "urllib3",
        "requests",
        "httpx",
    ),
    *(
        "httpx2",
        "httpcore2",
        "aiohttp",
        "websockets",
        "smtplib",
        "ftplib",
        "imaplib",
        "poplib",
        "telnetlib",
        "xmlrpc",
    ),
    *(
        "nntplib",
        "logging.handlers",
        "django.core.mail",
        "openai",
        "mcp",
        "redis",
        "kombu",
        "psycopg",
        "webbrowser",
    ),
    *("subprocess", "multiprocessing", "concurrent.futures.ProcessPoolExecutor", "pty", "paramiko"),
)
"""Modules, and names in modules, that open connections or start processes that could do so."""
CALLS_OUT = frozenset(
    {
        *(
            "open_connection",
            "open_unix_connection",
            "create_connection",
            "sock_connect",
            "getaddrinfo",
            "connect_tcp",
        ),
        *("create_unix_connection", "create_datagram_endpoint", "email_user"),
        *(
            "create_subprocess_exec",
            "create_subprocess_shell",
            "subprocess_exec",
            "subprocess_shell",
            "open_process",
        ),
        *("run_process", "system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp"),
        *(f"exec{how}" for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
        *(f"spawn{how}" for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    }
)
"""Functions of other modules that open connections or start processes, by name only."""
IMPORTERS = ("import_module", "__import__")
MAY_GO_OUT = {
    "tools/network": "the one door of tools",
    "tools/sources/mcp/server_process.py": "starts the programs that an admin names as MCP servers",
    "tools/sources/mcp/tether.py": "starts each of them, so that it ends with us",
    "tools/sources/mcp/connection.py": "gives MCP's client the door's own transport",
    "tools/sources/mcp/process_pool.py": "knows that client's failures by name",
    "tools/sources/mcp/errors.py": "knows them too",
    "tools/sources/mcp/raw_responses.py": "knows the messages of that client by name",
    "tools/sources/mcp/raw_results.py": "reads its answers one by one, by names of that client",
    "agents/mcp_server": "is the server's side of MCP: it answers, and opens nothing",
    "agents/providers": "models are reached at the address that an admin sets",
    "agents/deliveries/channels/mail.py": "e-mail goes to the server that the owner of the installation sets",
    "agents/deliveries/channels/chat.py": "gives apprise's requests the door's own client",
    "agents/platform/notify.py": "jobs and bells go through Redis",
    "agents/web/sockets/feeds.py": "knows by name that Redis is away, through which the bell rings",
    "agents/web/sockets/run_feed.py": "knows the same",
    "agents/platform/streamed_text.py": "keeps in Redis the text that a model is writing, for pages opened late",
    "agents/employees/shared_limits.py": "results are kept in Redis, for all workers",
    "agents/platform/rate_limits.py": "calls are counted in Redis, for all workers",
    "agents/platform/redis_client.py": "connects to Redis for short questions",
    "agents/platform/database_server.py": "tells by name which answers of PostgreSQL are final",
    "agents/accounts/installation.py": "compares in Redis whether all parts have the same SECRET_KEY",
    "agents/platform/liveness.py": "workers and sweepers say in Redis that they live",
    "agents/policy/replay.py": "judges recorded calls in several processes of this program",
}

_LAST_WORDS = {way.rpartition(".")[2] for way in WAYS_OUT} | CALLS_OUT | set(IMPORTERS)
_MAY_HOLD_ONE = re.compile(rf"\b(?:{'|'.join(sorted(_LAST_WORDS))})\b")
"""Matches at least one word in every file that opens a connection or starts a process. Searching a
file is 100 times faster than parsing it."""


def ways_out_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, imported or called name) for each place that opens a connection or starts a
    process."""
    if _MAY_HOLD_ONE.search(text):
        for node in ast.walk(ast.parse(text)):
            for name in _names_in(node):
                is_call = name.rpartition(".")[2] in CALLS_OUT
                if is_call or any(is_within(name, way) for way in WAYS_OUT):
                    yield getattr(node, "lineno", 1), name


def _names_in(node: ast.AST) -> list[str]:
    """Return the full names of the modules that the node imports, or the name of the function that
    it calls if that is in CALLS_OUT."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if not isinstance(node, ast.Call):
        return []
    called = node.func
    name = (
        called.attr
        if isinstance(called, ast.Attribute)
        else called.id
        if isinstance(called, ast.Name)
        else ""
    )
    if name in IMPORTERS and node.args and isinstance(node.args[0], ast.Constant):
        return [str(node.args[0].value)]
    return [name] if name in CALLS_OUT else []


@feature(
    "Network access", "No other code in `tools` opens a connection", "tools/network/http_client.py"
)
def test_only_the_network_client_opens_connections() -> None:
    offences, used = [], set()
    for path in paths():
        place = path.relative_to(ROOT).as_posix()
        if is_within(name_of(path), "tests") or not place.startswith(("agents/", "tools/")):
            continue
        for line, way in ways_out_of(path.read_text(encoding="utf-8")):
            excuse = next((excused for excused in MAY_GO_OUT if place.startswith(excused)), "")
            used.add(excuse)
            if not excuse:
                offences.append(f"{place}:{line} uses {way}")
    offences += [f"{place} needs no entry any more" for place in MAY_GO_OUT.keys() - used]
    assert_none(offences, f"connections are opened only in: {', '.join(MAY_GO_OUT)}")


@pytest.mark.parametrize(
    "text",
    [
        "from mcp.client.streamable_http import streamable_http_client",
        "from mcp import Client",
        "import mcp.client.stdio as local",
        "import os\nos.execv('/bin/sh', [])",
        "import os\nos.posix_spawn('x', [], {})",
        "from os import execvp as become",
        "from django.core.mail import send_mail",
        "from django.core import mail",
        "from http import client",
        "from openai import OpenAI",
        "import redis",
        "from redis.asyncio import Redis",
        "from concurrent.futures import ProcessPoolExecutor",
        "import importlib\nimportlib.import_module('so' 'cket')",
    ],
)
def test_a_connection_without_the_network_client_is_detected(text: str) -> None:
    assert list(ways_out_of(text))


@pytest.mark.parametrize(
    "text", ["from .mcp import list_tools", "from tools.sources import mcp", "# a socket\nx = 1"]
)
def test_harmless_code_is_not_reported(text: str) -> None:
    assert not list(ways_out_of(text))
