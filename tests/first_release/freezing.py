"""Fills the empty database that DATABASE_URL names, and freezes it; `python -m tests.first_release`
starts this."""

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from gadget_site.backup.taking import back_up  # noqa: E402
from tests.first_release.frozen import FOLDER, get_file, render_rows, render_tables  # noqa: E402
from tests.gadget_site.backups.filling import fill_every_table  # noqa: E402
from tests.workshop import build_workshop  # noqa: E402


def main() -> None:
    """Write the tables, a row in each of them, and a backup of both."""
    call_command("migrate", verbosity=0)
    fill_every_table(build_workshop())
    get_file("tables").write_text("".join(render_tables()))
    get_file("rows").write_text("".join(render_rows()))
    back_up(FOLDER / f"backup-{connection.vendor}.tar.gz", force=True)


if __name__ == "__main__":
    main()
