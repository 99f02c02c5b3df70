"""The check that finds out if a user without special rights can change a file such as
`/…/own/hook.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.clients.gadget import HOOK

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="another user can be tried only by root")

NOBODY = 65_534
CAN_CHANGE = f"""
import os, sys
hook = {{"__name__": "hook"}}
exec(sys.stdin.read(), hook)
os.setgid({NOBODY})
os.setuid({NOBODY})
print(hook["can_change"](hook["Path"](sys.argv[1])))
"""


def build(top: str) -> Path:
    file = Path(top) / "above" / "own" / "hook.py"
    Path(top).chmod(0o755)
    file.parent.mkdir(parents=True)
    for folder in (file.parent, file.parent.parent):
        folder.chmod(0o755)
    file.touch()
    file.chmod(0o644)
    return file


def can_change(file: Path) -> bool:
    command = [sys.executable, "-I", "-c", CAN_CHANGE, str(file)]
    done = subprocess.run(command, input=HOOK.read_bytes(), capture_output=True, check=True)
    return json.loads(done.stdout.decode().strip().lower()) is True


@pytest.mark.parametrize(
    ("owner", "mode", "changeable"),
    [
        (0, 0o755, False),
        (NOBODY, 0o755, True),
        (NOBODY, 0o555, True),
        (0, 0o777, True),
        (0, 0o1777, False),
        (NOBODY, 0o1755, True),
    ],
)
def test_anyone_who_can_change_a_parent_folder_can_change_the_file(
    owner: int, mode: int, changeable: bool
) -> None:
    with tempfile.TemporaryDirectory() as top:
        file = build(top)
        os.chown(file.parent.parent, owner, owner)
        file.parent.parent.chmod(mode)
        assert can_change(file) is changeable


@pytest.mark.parametrize(
    ("owner", "mode", "changeable"), [(0, 0o644, False), (0, 0o666, True), (NOBODY, 0o444, True)]
)
def test_the_owner_and_anyone_who_can_write_the_file_can_change_it(
    owner: int, mode: int, changeable: bool
) -> None:
    with tempfile.TemporaryDirectory() as top:
        file = build(top)
        os.chown(file, owner, owner)
        file.chmod(mode)
        assert can_change(file) is changeable


@pytest.mark.parametrize(("owner", "changeable"), [(0, False), (NOBODY, True)])
def test_a_path_whose_link_belongs_to_the_user_is_treated_as_changeable(
    owner: int, changeable: bool
) -> None:
    with tempfile.TemporaryDirectory() as top:
        file = build(top)
        link = Path(top) / "shared" / "hook.py"
        link.parent.mkdir()
        link.parent.chmod(0o1777)
        link.symlink_to(file)
        os.chown(link, owner, owner, follow_symlinks=False)
        assert can_change(link) is changeable
        further = Path(top) / "further.py"
        further.symlink_to(link)
        assert can_change(further) is changeable


@pytest.mark.parametrize(("owner", "changeable"), [(0, False), (NOBODY, True)])
def test_a_path_whose_parent_link_belongs_to_the_user_is_treated_as_changeable(
    owner: int, changeable: bool
) -> None:
    with tempfile.TemporaryDirectory() as top:
        file = build(top)
        link = Path(top) / "shared" / "own"
        link.parent.mkdir()
        link.parent.chmod(0o1777)
        link.symlink_to("../above/own")
        os.chown(link, owner, owner, follow_symlinks=False)
        assert can_change(link / file.name) is changeable


@pytest.mark.parametrize(("links", "changeable"), [(39, False), (40, True)])
def test_a_file_behind_40_or_more_links_is_treated_as_changeable(
    links: int, changeable: bool
) -> None:
    with tempfile.TemporaryDirectory() as top:
        last = build(top)
        for number in range(links):
            link = Path(top) / f"link{number}"
            link.symlink_to(last)
            last = link
        assert can_change(last) is changeable


def test_a_loop_of_links_is_treated_as_changeable() -> None:
    with tempfile.TemporaryDirectory() as top:
        file = build(top)
        file.unlink()
        file.symlink_to(file)
        assert can_change(file)


@pytest.mark.parametrize(("mode", "changeable"), [(0o755, False), (0o1777, True)])
def test_anyone_who_can_create_a_missing_file_can_change_it(mode: int, changeable: bool) -> None:
    with tempfile.TemporaryDirectory() as top:
        file = build(top)
        file.unlink()
        file.parent.chmod(mode)
        assert can_change(file) is changeable
