"""Find the installation's folders, in a checkout and in an installed package."""

from __future__ import annotations

from pathlib import Path

PACKAGE_DIR = Path(__file__).resolve().parent
PACKED_ASSETS = PACKAGE_DIR / "assets"
"""The folder where `make wheel` puts templates and static files; a checkout has them at its top
level."""
IS_INSTALLED = PACKED_ASSETS.is_dir()
ASSETS_DIR = PACKED_ASSETS if IS_INSTALLED else PACKAGE_DIR.parent
BASE_DIR = Path.cwd() if IS_INSTALLED else PACKAGE_DIR.parent
"""The folder that contains `var` and `gadget.yaml`. An installed package is shared, so its data is
stored in the current folder."""
PACKAGES = ("agents", "gadget_site", "tools")


def find_hiding_package() -> Path | None:
    """Return a package in the current folder that Python would import instead of one of ours, or
    None."""
    found = (
        BASE_DIR / name
        for name in PACKAGES
        if IS_INSTALLED and (BASE_DIR / name / "__init__.py").exists()
    )
    return next((path for path in found if path.parent != PACKAGE_DIR.parent), None)
