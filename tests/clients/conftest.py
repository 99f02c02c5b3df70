"""The hook as a module, and a configuration for it."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.clients.gadget import HOOK, AskServer, serve_asks

SECRET = "gadget_agent_x"


@cache
def _load_hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gadget_hook", HOOK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hook() -> ModuleType:
    """Return the file that assistants start, as a module."""
    return _load_hook()


class ConfigFile:
    """The configuration that the hook finds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write({"url": "https://gadget.example.com", "key": SECRET})

    def write(self, config: Any) -> None:
        self.path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
        self.path.chmod(0o600)

    def change(self, **more: Any) -> None:
        """Write the usual configuration with these fields; None leaves one out."""
        config = {"url": "https://gadget.example.com", "key": SECRET, **more}
        self.write({name: value for name, value in config.items() if value is not None})


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfigFile:
    """Write a valid configuration to where the hook looks for it; no variable replaces a part of it."""
    for name in ("AGENT_HOOK_URL", "AGENT_HOOK_KEY"):
        monkeypatch.delenv(name, raising=False)
    found = ConfigFile(tmp_path / "hook.json")
    monkeypatch.setenv("AGENT_HOOK_CONFIG", str(found.path))
    return found


@pytest.fixture
def gadget() -> Iterator[AskServer]:
    """Serve an ask that waits."""
    with serve_asks() as found:
        yield found
