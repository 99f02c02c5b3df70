"""Real packages with plugins: built by setuptools without a network, and installed into a separate
folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

EXAMPLE = Path(__file__).with_name("example_package")

TOOL = """
from tools.contract import Level, Tool, ToolResult

class Hello(Tool):
    name, description, level = {name!r}, "Say hello.", Level.READ
    version = {version!r}

    def execute(self, params, context):
        return ToolResult.ok({{}}, "hello")
"""


def tool_named(name: str, version: str = "1.0") -> str:
    """Return the text of a module with one correct tool class, `Hello`."""
    return TOOL.format(name=name, version=version)


def write_package(
    folder: Path, name: str, modules: Mapping[str, str], entries: Mapping[str, str]
) -> Path:
    """Write an installable package.

    Args:
        modules: the source texts of the modules, by module name.
        entries: the targets of the entry points in the group `gadget.tools`, by entry point name.
    """
    place = folder / name
    place.mkdir(parents=True)
    for module, text in modules.items():
        (place / f"{module}.py").write_text(text, encoding="utf-8")
    lines = [
        "[build-system]",
        'requires = ["setuptools>=77"]',
        'build-backend = "setuptools.build_meta"',
        "[project]",
        f'name = "{name}"',
        'version = "1.0"',
        '[project.entry-points."gadget.tools"]',
        *(f'{entry} = "{target}"' for entry, target in entries.items()),
        "[tool.setuptools]",
        f"py-modules = {list(modules)}",
    ]
    (place / "pyproject.toml").write_text("\n".join(lines), encoding="utf-8")
    return place


def install(target: Path, *packages: Path) -> Path:
    """Install the packages into the folder `target`, which a process can add to its path. The build
    uses copies of the packages' folders, so the originals stay unchanged."""
    copies = [
        Path(shutil.copytree(each, target.parent / f"sources-{target.name}" / each.name))
        for each in packages
    ]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ]
    command += [
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(target),
        *map(str, copies),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return target
