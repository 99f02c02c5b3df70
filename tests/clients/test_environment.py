"""The configuration of an administrator: if it exists, the assistant's settings cannot change how
the hook behaves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.clients.conftest import SECRET
from tests.clients.gadget import AskServer, serve_asks
from tests.clients.machine import (
    COMMAND,
    INSTALLED,
    NOBODY,
    PYTHON,
    Machine,
    can_separate,
    make_machine,
)
from tests.clients.test_reading import CLAUDE
from tests.features import feature

CONFIG = "/etc/gadget/hook.json"
ALLOWING = "import os, sys\nsys.stdout.flush()\nos._exit(0)\n"
"""A module that lets every call through. If Python followed the assistant's environment, it would
import this module first."""

needs_machine = pytest.mark.skipif(
    not can_separate(), reason="another user with other folders can be tried only by root"
)


@pytest.fixture
def machine(gadget: AskServer) -> Iterator[Machine]:
    """Yield a machine with an administrator's configuration, whose server denies every ask."""
    gadget.statuses = ["denied"]
    with make_machine() as found:
        configure(found, gadget)
        yield found


def configure(machine: Machine, gadget: AskServer, *, mode: int = 0o640, **more: Any) -> Path:
    config = {"url": gadget.address, "key": SECRET, "timeout_s": 60, **more}
    return machine.write(CONFIG, json.dumps(config), mode=mode)


def is_denied(
    machine: Machine, gadget: AskServer, command: str = COMMAND, **variables: str
) -> bool:
    """Return True if the hook asked the administrator's server and denied the call."""
    gadget.sent.clear()
    code, output, errors = machine.run(["/bin/sh", "-c", command], json.dumps(CLAUDE), **variables)
    said = json.loads(output)["hookSpecificOutput"]["permissionDecision"] if output else ""
    assert (code, said) in {(0, "deny"), (2, ""), (0, "")}, (code, output, errors)
    return (said, gadget.paths) == ("deny", ["POST /api/asks"])


@needs_machine
class TestVariables:
    @feature(
        "Agents elsewhere",
        "With root's configuration, the hook ignores the environment",
        "static/clients/gadget_hook.py",
    )
    def test_cannot_replace_the_managed_configuration_with_the_users_own(
        self, machine: Machine, gadget: AskServer
    ) -> None:
        allowing = json.dumps({"url": "http://127.0.0.1:9", "key": SECRET, "default": "allow"})
        own = machine.write_at_home(".config/gadget/hook.json", allowing)
        assert is_denied(machine, gadget)
        assert is_denied(machine, gadget, AGENT_HOOK_CONFIG=str(own))
        assert is_denied(machine, gadget, HOME=str(machine.home))
        machine.find(CONFIG).unlink()
        assert not is_denied(machine, gadget), "without the administrator's, it counts"

    def test_cannot_send_the_key_to_another_server(
        self, machine: Machine, gadget: AskServer
    ) -> None:
        with serve_asks() as other:
            for name in ("AGENT_HOOK_URL", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
                assert is_denied(
                    machine, gadget, **{name: other.address, "AGENT_HOOK_KEY": "gadget_agent_other"}
                ), name
            assert other.sent == []

    def test_cannot_import_the_users_modules(self, machine: Machine, gadget: AskServer) -> None:
        for name in ("json", "hashlib", "urllib", "ssl", "sitecustomize", "usercustomize"):
            machine.write_at_home(f"modules/{name}.py", ALLOWING)
            machine.write_at_home(f"{name}.py", ALLOWING)
        version = machine.run(
            [PYTHON, "-c", "import sys; print('python%d.%d' % sys.version_info[:2])"]
        )[1].strip()
        machine.write_at_home(f".local/lib/{version}/site-packages/usercustomize.py", ALLOWING)
        modules = str(machine.home / "modules")
        assert is_denied(
            machine, gadget, PYTHONPATH=modules, PYTHONUSERBASE=str(machine.home / ".local")
        )
        assert is_denied(machine, gadget, PYTHONHOME="/nowhere", PYTHONSTARTUP=f"{modules}/json.py")
        assert not is_denied(machine, gadget, f"python3 {INSTALLED}", PYTHONPATH=modules), (
            "without -I they are"
        )

    def test_cannot_choose_another_python(self, machine: Machine, gadget: AskServer) -> None:
        for name in ("python3", "gadget_hook.py"):
            machine.write_at_home(f"bin/{name}", "#!/bin/sh\nexit 0\n").chmod(0o755)
        path = f"{machine.home}/bin:/usr/bin:/bin"
        assert is_denied(machine, gadget, PATH=path)
        assert not is_denied(machine, gadget, f"python3 {INSTALLED}", PATH=path), (
            "a command without a path is chosen"
        )

    def test_cannot_import_the_users_modules_even_if_the_command_lacks_isolation(
        self, machine: Machine, gadget: AskServer
    ) -> None:
        machine.write_at_home("modules/hashlib.py", ALLOWING)
        modules = str(machine.home / "modules")
        assert is_denied(machine, gadget, f"{PYTHON} {INSTALLED}", PYTHONPATH=modules)

    @pytest.mark.parametrize(
        "name", ["SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF", "TMPDIR", "LC_ALL", "TZ"]
    )
    def test_with_any_other_name_cannot_change_the_verdict(
        self, machine: Machine, gadget: AskServer, name: str
    ) -> None:
        assert is_denied(machine, gadget, **{name: "/nowhere"})


@needs_machine
class TestEveryCall:
    @pytest.mark.parametrize(
        ("owner", "folder_mode", "mode"),
        [(NOBODY, 0o755, 0o600), (0, 0o777, 0o640), (0, 0o755, 0o660)],
    )
    def test_is_blocked_if_the_user_can_change_the_managed_file(
        self, machine: Machine, gadget: AskServer, owner: int, folder_mode: int, mode: int
    ) -> None:
        path = configure(machine, gadget, mode=mode)
        os.chown(path, owner, NOBODY)
        path.parent.chmod(folder_mode)
        code, output, errors = machine.run(COMMAND.split(), json.dumps(CLAUDE))
        assert (code, output, gadget.sent) == (2, "", [])
        assert CONFIG in errors

    @pytest.mark.parametrize("mode", [0o600, 0o000])
    def test_is_blocked_if_the_user_cannot_read_the_managed_file(
        self, machine: Machine, gadget: AskServer, mode: int
    ) -> None:
        own = machine.write_at_home(".config/gadget/hook.json", json.dumps({"default": "allow"}))
        configure(machine, gadget, mode=mode)
        assert machine.run(COMMAND.split(), json.dumps(CLAUDE), AGENT_HOOK_CONFIG=str(own))[:2] == (
            2,
            "",
        )

    def test_is_blocked_if_the_user_cannot_enter_the_folder_of_the_managed_file(
        self, machine: Machine, gadget: AskServer
    ) -> None:
        own = machine.write_at_home(".config/gadget/hook.json", json.dumps({"default": "allow"}))
        machine.find(CONFIG).parent.chmod(0o700)
        assert machine.run(COMMAND.split(), json.dumps(CLAUDE), AGENT_HOOK_CONFIG=str(own))[:2] == (
            2,
            "",
        )


class TestWithoutAManagedFile:
    def test_an_address_in_a_variable_requires_a_key_in_a_variable(
        self, hook: ModuleType, config_file: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AGENT_HOOK_URL", "https://other.example.com")
        with pytest.raises(hook.Blocked, match="AGENT_HOOK_KEY"):
            hook.load_config()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can own it")
    def test_a_managed_file_takes_precedence_once_it_exists(
        self, hook: ModuleType, config_file: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        managed = tmp_path / "managed.json"
        managed.write_text(
            json.dumps({"url": "https://gadget.example.com", "key": "gadget_agent_managed"})
        )
        managed.chmod(0o640)
        os.chown(managed, 0, -1)
        monkeypatch.setattr(hook, "MANAGED", str(managed))
        monkeypatch.setenv("AGENT_HOOK_KEY", "gadget_agent_other")
        assert hook.load_config()["key"] == "gadget_agent_managed"

    def test_proxy_and_certificates_are_read_from_the_file(
        self, hook: ModuleType, gadget: AskServer
    ) -> None:
        config = {"url": "http://gadget.invalid", "key": SECRET, "proxy": gadget.address}
        assert hook.send(config, "GET", "/api/asks/7")["id"] == "7"
        assert gadget.sent[0][1] == "http://gadget.invalid/api/asks/7"
        with pytest.raises(hook.Blocked, match="cannot be reached"):
            hook.send({**config, "ca_file": "/nowhere"}, "GET", "/api/asks/7")
