"""Fixtures for the hook: its module, its configuration, a server that it asks, and its check."""

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
ENTRY = {"type": "command", "command": f"/usr/bin/python3 -I '{HOOK}'", "timeout": 60}


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
    """Return the hook, the program that assistants start, as a module."""
    return _load_hook()


class ConfigFile:
    """The hook's configuration file, which first has a valid configuration."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write({"url": "https://gadget.example.com", "key": SECRET})

    def write(self, config: Any) -> None:
        self.path.write_text(
            config if isinstance(config, str) else json.dumps(config), encoding="utf-8"
        )
        self.path.chmod(0o600)

    def change(self, **more: Any) -> None:
        """Write the usual configuration with these fields replaced or added; a field that is None
        is left out."""
        config = {"url": "https://gadget.example.com", "key": SECRET, **more}
        self.write({name: value for name, value in config.items() if value is not None})


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfigFile:
    """Write a valid configuration where the hook looks for it, and remove the variables that would
    override it."""
    for name in ("AGENT_HOOK_URL", "AGENT_HOOK_KEY"):
        monkeypatch.delenv(name, raising=False)
    found = ConfigFile(tmp_path / "hook.json")
    monkeypatch.setenv("AGENT_HOOK_CONFIG", str(found.path))
    return found


@pytest.fixture
def gadget() -> Iterator[AskServer]:
    """Serve one waiting ask."""
    with serve_asks() as found:
        yield found


class Checked:
    """The output of the hook's check: the lines, the last line, and the number of problems."""

    def __init__(self, output: str, problems: int) -> None:
        *self.lines, self.last = output.splitlines()
        self.problems = problems

    def has(self, text: str) -> bool | None:
        """Return True if the line with this text says ok, False if it reports a problem, and None
        if there is no such line."""
        found = [line.startswith("ok ") for line in self.lines if text in line]
        return found[0] if found else None


class Check:
    """The hook's check, run with a server, a configuration, and an assistant's settings."""

    def __init__(
        self,
        hook: ModuleType,
        gadget: AskServer,
        config_file: ConfigFile,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.hook, self.gadget, self.config_file, self._capsys = hook, gadget, config_file, capsys
        self.settings = config_file.path.parent / "settings.json"
        self.configure()
        self.install()

    def configure(self, **more: Any) -> None:
        self.config_file.change(url=self.gadget.address, **more)

    def install(self, event: str = "PreToolUse", matcher: str | None = "*", **entry: Any) -> None:
        self.write({"hooks": {event: [{"matcher": matcher, "hooks": [{**ENTRY, **entry}]}]}})

    def write(self, settings: Any) -> None:
        self.settings.write_text(settings if isinstance(settings, str) else json.dumps(settings))

    def run(
        self, assistant: str = "claude", *, waits: bool = False, lives: bool = False
    ) -> Checked:
        self._capsys.readouterr()
        problems = self.hook.check(assistant, str(self.settings), waits=waits, lives=lives)
        return Checked(self._capsys.readouterr().out, problems)


@pytest.fixture
def check(
    hook: ModuleType, gadget: AskServer, config_file: ConfigFile, capsys: pytest.CaptureFixture[str]
) -> Check:
    return Check(hook, gadget, config_file, capsys)


@pytest.fixture
def unchangeable(hook: ModuleType, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the hook treat every file as unchangeable for this user, and find the configuration
    without a variable that points to it."""
    monkeypatch.delenv("AGENT_HOOK_CONFIG")
    monkeypatch.setattr(hook, "find_config", lambda: check.config_file.path)
    monkeypatch.setattr(hook, "can_change", lambda _: False)
