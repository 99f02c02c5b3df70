"""A stand-in for a container engine: it runs the image's entry point as process 1, as another user,
on a read-only tree.

Linux namespaces imitate a container's `read_only: true`, its volume and its /tmp in memory. They
need root.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gadget_site.management.processes import ProcessSpec
from tests.deployment import dockerfile
from tests.deployment.package import ROOT, install
from tests.processes import RealProcess

USER = 10001
PROGRAMS = ("mount", "nsenter", "setpriv", "unshare")
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
ONLY_READING = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")
"""Options that let the user read Python and its packages in a private home folder; they never allow
writing."""
AS_USER = (
    "setpriv",
    f"--reuid={USER}",
    f"--regid={USER}",
    "--clear-groups",
    "--no-new-privs",
    *ONLY_READING,
)
MOUNTS = """
mount --make-rprivate /
mount --bind "$TREE" "$TREE"
mount -o remount,bind,ro "$TREE"
mount --bind "$GADGET_DATA_DIR" "$GADGET_DATA_DIR"
mount -t tmpfs -o noexec,nosuid,nodev,mode=1777 tmpfs "$TMPDIR"
mount -o remount,bind,ro /
exec "$@"
"""
PATIENCE_S = 60


def find_obstacle() -> str:
    """Return the reason why this machine cannot run containers; empty if it can."""
    if sys.platform != "linux" or os.getuid() != 0:
        return "changing the user and mounting a read-only tree needs root on Linux"
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"these programs are missing: {', '.join(missing)}"
    tried = subprocess.run(
        [*NAMESPACES, "mount", "--make-rprivate", "/"], capture_output=True, text=True, check=False
    )
    return f"this machine allows no namespaces: {tried.stderr.strip()}" if tried.returncode else ""


@dataclass(frozen=True)
class Image:
    """The tree of an image, and the volume of its containers.

    Attributes:
        folder: contains the writable parts, the volume and /tmp.
        settings: environment variables, added to the Dockerfile's.
    """

    tree: Path
    folder: Path
    settings: dict[str, str]

    @property
    def volume(self) -> Path:
        return self.folder / "volume"

    @property
    def environment(self) -> dict[str, str]:
        temporary = self.folder / "tmp"
        return {
            **dockerfile.environment(),
            "PATH": f"{self.tree / 'bin'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "TREE": str(self.tree),
            "GADGET_DATA_DIR": str(self.volume),
            "TMPDIR": str(temporary),
            "HEARTBEAT_FILE": str(temporary / "heartbeat"),
            **self.settings,
        }

    def start(self, *words: str) -> RealProcess:
        """Start a container with this command."""
        return RealProcess(ProcessSpec(words[0], self._command(*words)), self.environment)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a container with this command, and wait for it to finish."""
        return _run(self._command(*words), self.environment)

    def execute(self, container: RealProcess, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a running container."""
        (first,) = Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()
        return _run(
            ("nsenter", f"--target={first}", "--mount", "--pid", *AS_USER, *words), self.environment
        )

    def _command(self, *words: str) -> tuple[str, ...]:
        inside = f"cd {shlex.quote(str(self.volume))} && {MOUNTS}"
        return (*NAMESPACES, "sh", "-euc", inside, "sh", *AS_USER, *words)


def build_tree(wheel: Path, tree: Path) -> None:
    """Install what the Dockerfile installs, into this folder instead of /opt."""
    install(wheel, tree)
    for name, program in (("entrypoint.sh", "entrypoint"), ("healthcheck.py", "healthcheck")):
        shutil.copy(ROOT / "deploy" / name, tree / "bin" / program)


def build_image(tree: Path, folder: Path, settings: dict[str, str]) -> Image:
    """Build an image of the tree, with an empty volume and an empty /tmp in this folder."""
    image = Image(tree, folder, settings)
    (folder / "tmp").mkdir()
    image.volume.mkdir(mode=0o700)
    os.chown(image.volume, USER, USER)
    return image


def _run(command: tuple[str, ...], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd="/",
    )
