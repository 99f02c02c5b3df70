"""A simulated machine for a test: folders that belong to an administrator, and a user who cannot
change them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.clients.gadget import HOOK
from tests.clients.terminal import Terminal

NOBODY = 65_534
PYTHON = "/usr/bin/python3"
INSTALLED = "/usr/local/lib/gadget_hook.py"
FOLDERS = ("/etc", "/usr/local/lib")
CERTIFICATES = "ssl/certs/ca-certificates.crt"
COPIED = tuple(
    f"/etc/{name}"
    for name in (
        "passwd",
        "group",
        "hosts",
        "nsswitch.conf",
        "resolv.conf",
        "ld.so.cache",
        CERTIFICATES,
    )
)
COMMAND = f"{PYTHON} -I {INSTALLED}"
"""The command that starts the hook, as the guide gives it."""
_MOUNT = (
    'set -e; {mounts}; cd {home}; exec setpriv --reuid={user} --regid={user} --clear-groups -- "$@"'
)


@cache
def can_separate() -> bool:
    """Return True if processes started here can see replaced folders, which requires root."""
    if os.geteuid() != 0 or not Path(PYTHON).exists() or shutil.which("setpriv") is None:
        return False
    return (
        subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode
        == 0
    )


class Machine:
    """A home folder, and folders that processes started on this machine see instead of `/etc` and
    `/usr/local/lib`."""

    def __init__(self, top: Path) -> None:
        top.chmod(0o755)
        self.top, self.home = top, top / "home"
        self.mounts = {self.find(folder): folder for folder in FOLDERS}
        self.home.mkdir()
        os.chown(self.home, NOBODY, NOBODY)
        for name in COPIED:
            if Path(name).exists():
                self.write(name, "")
                shutil.copyfile(name, self.find(name))
        self.write(INSTALLED, HOOK.read_text(encoding="utf-8"))

    def find(self, path: str) -> Path:
        """Return the real location of a file that has this path on the machine."""
        return self.top / path.lstrip("/")

    def write(self, path: str, text: str, *, mode: int = 0o644) -> Path:
        """Write a file that belongs to the administrator, and to the user's group."""
        return self._write(self.find(path), text, 0, mode)

    def mount(self, source: Path, folder: str) -> None:
        """Make a folder of the real machine available on this machine."""
        self.find(folder).mkdir(parents=True)
        self.mounts[source] = folder

    def write_at_home(self, path: str, text: str) -> Path:
        """Write a file in the user's home folder that belongs to the user."""
        return self._write(self.home / path, text, NOBODY, 0o600)

    def _write(self, path: Path, text: str, owner: int, mode: int) -> Path:
        for folder in reversed(path.parents):
            if self.top in folder.parents and not folder.exists():
                folder.mkdir(mode=0o755)
                folder.chmod(0o755)
                os.chown(folder, owner, owner)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        os.chown(path, owner, NOBODY)
        return path

    def start(self, command: Sequence[str], **variables: str) -> subprocess.Popen[str]:
        """Start a command on this machine, as the user, with only these variables beside HOME and
        PATH."""
        return self._start(command, variables, ["--mount"], subprocess.PIPE)

    def start_in(
        self, terminal: Terminal, command: Sequence[str], **variables: str
    ) -> subprocess.Popen[str]:
        """Start a command in a terminal; its child processes end with it."""
        separated = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        return self._start(command, variables, separated, terminal.inner)

    def _start(
        self, command: Sequence[str], variables: dict[str, str], separated: list[str], stream: int
    ) -> subprocess.Popen[str]:
        mounts = "; ".join(
            f"mount --bind '{source}' {folder}" for source, folder in self.mounts.items()
        )
        script = _MOUNT.format(mounts=mounts, home=self.home, user=NOBODY)
        environment = {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", **variables}
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), stream)
        shell = ["unshare", *separated, "--", "/bin/sh", "-c", script, "sh", "/usr/bin/env", "-i"]
        words = [*shell, *(f"{name}={value}" for name, value in environment.items()), *command]
        return subprocess.Popen(words, text=True, start_new_session=True, **pipes)

    def run(
        self, command: Sequence[str], given: str = "", **variables: str
    ) -> tuple[int, str, str]:
        """Run a command on this machine; return its exit code, its output and its errors."""
        process = self.start(command, **variables)
        output, errors = process.communicate(given, timeout=120)
        return process.returncode, output, errors


@contextmanager
def make_machine() -> Iterator[Machine]:
    """Make a machine, and remove its folders afterwards."""
    with tempfile.TemporaryDirectory() as top:
        yield Machine(Path(top))
