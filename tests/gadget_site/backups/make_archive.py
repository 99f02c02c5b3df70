"""Create the archive of an older version that the tests restore: every table has rows, and every
foreign key is used.

    python -m tests.gadget_site.backups.make_archive FILE

This uses SQLite. For PostgreSQL, set GADGET_TEST_DATABASE to `postgresql`, and TEST_DATABASE_URL to
the address of an empty database.

Run it in a checkout of that version, with this file and `filling.py` copied into it. The archive is
signed and encrypted with the keys of the tests (tests/services.py).
"""

import os
import sys
from pathlib import Path

import django
from django.core.management import call_command

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()

from gadget_site.backup.taking import back_up  # noqa: E402
from tests.gadget_site.backups.filling import fill_every_table  # noqa: E402
from tests.workshop import build_workshop  # noqa: E402

if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    fill_every_table(build_workshop())
    back_up(Path(sys.argv[1]), force=True)
