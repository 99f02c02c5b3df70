"""Descriptions of large public APIs that nobody here wrote, out of published packages pinned in descriptions.txt."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PINS = Path(__file__).with_name("descriptions.txt")


@dataclass(frozen=True)
class Published:
    """One description: where it stands, its version, and how many operations it has at least."""

    package: str
    member: str
    version: str
    operations: int

    @property
    def text(self) -> bytes:
        (wheel,) = _fetched().glob(f"{self.package}-[0-9]*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(self.member)


AIRFLOW = "airflow/api_fastapi/core_api/openapi/v2-rest-api-generated.yaml"

PUBLISHED = (
    Published("apache_airflow_core", AIRFLOW, "3.1", 128),
    Published("apache_airflow", "airflow/api_connexion/openapi/v1.yaml", "3.0", 89),
    Published("osparc", "osparc/data/openapi.json", "3.1", 88),
    Published("promptflow_azure", "promptflow/azure/_restclient/swagger.json", "3.0", 90),
    Published("tapipy", "tapipy/resources/openapi_v3-workflows.yml", "3.0", 53),
    Published("tapipy", "tapipy/resources/openapi_v3-sk.yml", "3.0", 58),
    Published("jupyter_server", "jupyter_server/services/api/api.yaml", "2.0", 32),
)


@cache
def _fetched() -> Path:
    """The folder with the wheels, beside the environment's packages; fetched once for each set of pins."""
    folder = Path(sys.prefix) / "descriptions"
    stamp = folder / "pins.txt"
    if stamp.exists() and stamp.read_bytes() == PINS.read_bytes():
        return folder
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", "--require-hashes", "-d", str(folder), "-r", str(PINS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the descriptions could not be fetched, see {PINS.name}:\n{done.stderr}"
    stamp.write_bytes(PINS.read_bytes())
    return folder
