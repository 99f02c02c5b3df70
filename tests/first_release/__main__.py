"""`python -m tests.first_release` froze the first release: its tables, a row in each of them, and a
backup of both."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import services
from tests.bench.databases import POSTGRESQL, SQLITE, fresh_database


def main() -> None:
    """Freeze what today's migrations make, on both databases."""
    for kind in (SQLITE, POSTGRESQL):
        with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as address:
            own = {"DJANGO_SETTINGS_MODULE": "tests.settings", services.GIVEN_VARIABLE: "1"}
            own |= {"GADGET_DATA_DIR": name, "DATABASE_URL": address}
            kept = {
                key: value
                for key, value in os.environ.items()
                if key not in services.FOREIGN_VARIABLES
            }
            subprocess.run(
                [sys.executable, "-m", "tests.first_release.freezing"], env=kept | own, check=True
            )


if __name__ == "__main__":
    main()
