"""The real MCP clients of the soak: how each is installed, and how it is made to call tools one by
one."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from tests.source_tree import ROOT

FOLDER = ROOT / "var" / "clients"
"""The folder of the installed clients; each has its own subfolder, and is installed only once."""
PROGRAMS = Path(__file__).with_name("client_programs")
ANSWER_S = 180.0


class Client(Protocol):
    """A client that is connected with an agent key."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def list_tools(self) -> list[str]:
        """Return the names of the tools as the client hands them to its model."""

    def call(self, tool: str, params: dict[str, Any]) -> str:
        """Call a tool, and return the text that the client's model reads."""


@dataclass(frozen=True)
class Library:
    """A client library, driven by one of our programs.

    Attributes:
        packages: the packages to install from PyPI or npm.
    """

    name: str
    packages: Sequence[str]
    program: str

    def connect(self, url: str, secret: str) -> Client:
        """Return a client; the library is installed if it is missing."""
        if self.program.endswith(".mjs"):
            folder = install_from_npm(self.name, self.packages)
            copy = folder / self.program  # Node looks for packages in the folder of the file
            copy.write_text((PROGRAMS / self.program).read_text())
            return _Program(["node", str(copy), url, secret])
        python = install_from_pypi(self.name, self.packages) / "bin" / "python"
        return _Program([str(python), str(PROGRAMS / self.program), url, secret])


class _Program:
    """A program that reads calls line by line."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._lines: queue.Queue[str] = queue.Queue()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def list_tools(self) -> list[str]:
        names: list[str] = self._ask("", {})
        return names

    def call(self, tool: str, params: dict[str, Any]) -> str:
        return str(self._ask(tool, params))

    def _ask(self, tool: str, params: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"tool": tool, "params": params}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._lines.get(timeout=ANSWER_S))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put('"the client has ended"')


def install_from_pypi(name: str, packages: Sequence[str]) -> Path:
    """Install the packages into a separate environment, and return its folder."""
    folder = FOLDER / name
    if not (folder / ".installed").exists():
        venv.create(folder, with_pip=True, clear=True)
        _install(
            [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages], folder
        )
    return folder


def install_from_npm(name: str, packages: Sequence[str]) -> Path:
    """Install the packages into a separate folder, and return it."""
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".installed").exists():
        (folder / "package.json").write_text('{"private": true}')
        _install(
            ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages],
            folder,
        )
    return folder


def _install(command: list[str], folder: Path) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}")
    (folder / ".installed").touch()


LIBRARIES = (
    Library("python-sdk", ("mcp",), "python_sdk.py"),
    Library("typescript-sdk", ("@modelcontextprotocol/sdk",), "typescript_sdk.mjs"),
    Library("fastmcp", ("fastmcp",), "fast_mcp.py"),
    Library("openai-agents", ("openai-agents",), "openai_agents.py"),
    Library("langchain-mcp-adapters", ("langchain-mcp-adapters",), "langchain_adapters.py"),
    Library("pydantic-ai", ("pydantic-ai-slim[mcp]",), "pydantic_agents.py"),
)
