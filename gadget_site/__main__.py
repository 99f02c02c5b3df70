"""Run Gadget's commands: `gadget` in an installed package, `python manage.py` in a checkout."""

from __future__ import annotations

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from gadget_site.folders import find_hiding_package
from gadget_site.version import VERSION


def main() -> None:
    """Run one command. A wrong setting prints one line instead of a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gadget_site.settings")
    if sys.argv[1:] in (["version"], ["--version"]):
        sys.stdout.write(f"Gadget {VERSION}\n")  # Django's own command would print Django's version
        return
    if hiding := find_hiding_package():
        sys.exit(
            f"Gadget cannot start. {str(hiding)!r} would hide Gadget's own package. Start from another folder."
        )
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"Gadget cannot start. {error}")


if __name__ == "__main__":
    main()
