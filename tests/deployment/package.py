"""Build the package as `make wheel` does, and install it into its own environment."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from gadget_site.management.processes import ProcessSpec
from tests.processes import RealProcess

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120
PIP = (sys.executable, "-m", "pip")
QUIETLY = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--no-index")
KEPT_VARIABLES = {"PATH", "LANG", "TMPDIR"}


@dataclass(frozen=True)
class Installed:
    """An installed Gadget; `folder` contains its virtual environment."""

    folder: Path

    @property
    def command(self) -> Path:
        return self.folder / "bin" / "gadget"

    def run(self, here: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run `gadget WORDS…` in the folder `here`, and wait for it to finish."""
        return subprocess.run(
            [self.command, *words],
            cwd=here,
            env=plain_environment(**variables),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def start(self, here: Path, *words: str, **variables: str) -> RealProcess:
        """Start `gadget WORDS…` in the folder `here`."""
        command = (
            "sh",
            "-c",
            'cd "$1" && shift && exec "$@"',
            "sh",
            str(here),
            str(self.command),
            *words,
        )
        return RealProcess(ProcessSpec("gadget", command), plain_environment(**variables))


def build_wheel(folder: Path, source: Path = ROOT) -> Path:
    """Build the package into the folder, without a network."""
    command = [
        *PIP,
        "wheel",
        *QUIETLY,
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        str(source),
    ]
    _run(command)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> Installed:
    """Install only the wheel; it uses the dependencies that are installed for the tests."""
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    (Path(paths["purelib"]) / "dependencies.pth").write_text(
        sysconfig.get_paths()["purelib"] + "\n"
    )
    _run(
        [
            *PIP,
            "--python",
            str(folder / "bin" / "python"),
            "install",
            *QUIETLY,
            "--compile",
            str(wheel),
        ]
    )
    return Installed(folder)


def plain_environment(**variables: str) -> dict[str, str]:
    """Return an environment without the tests' settings."""
    return {
        **{name: value for name, value in os.environ.items() if name in KEPT_VARIABLES},
        **variables,
    }


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, umask=0o022
    )
    assert done.returncode == 0, done.stdout + done.stderr
