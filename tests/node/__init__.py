"""Node for the tests: npm installs the packages of `package-lock.json` once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ASSISTANTS = FOLDER / "assistants"
"""The coding assistants, which are so large that they are installed only for runs of all tests."""
_MISSING = (
    "These tests need npm, which the development requirements bring; it was not found or failed"
)


class NodeMissingError(Exception):
    """Node or its packages are missing."""


def require_node(folder: Path = FOLDER) -> str:
    """Return the path of Node with the packages installed; without npm, fail the test in CI and
    skip it elsewhere, with the reason."""
    try:
        return find_node(folder)
    except NodeMissingError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


def find_node(folder: Path = FOLDER) -> str:
    """Return the path of Node; install the packages if the lock has changed.

    Raises:
        NodeMissingError: npm is missing or could not install the packages; the text gives the
            reason.
    """
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    }
    node, npm = (shutil.which(name, path=environment["PATH"]) for name in ("node", "npm"))
    if node is None or npm is None:
        raise NodeMissingError(_MISSING)
    stamp = folder / "node_modules" / ".installed"
    wanted = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        # Set the umask, because the tests make new files private, but other users start these
        # programs.
        done = subprocess.run(
            [npm, "ci"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            umask=0o022,
        )
        if done.returncode:
            raise NodeMissingError(f"{_MISSING}:\n{done.stderr[-2_000:]}")
        stamp.write_text(wanted)
    return node
