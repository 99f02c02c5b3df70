#!/usr/bin/env python
"""Runs the commands of Gadget: `python manage.py help` lists them."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line


def main() -> None:
    """Runs one command; a wrong setting ends it with one line instead of a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gadget_site.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"Gadget cannot start. {error}")


if __name__ == "__main__":
    main()
