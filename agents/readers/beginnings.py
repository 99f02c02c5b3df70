"""Add a reader to a log that already has rows."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import Max


def begin_at_end(reader: str, app: str, log: str) -> migrations.RunPython:
    """Return a migration operation that adds a reader, which skips everything already in the
    log."""

    def write(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
        newest = apps.get_model(app, log).objects.aggregate(newest=Max("pk"))["newest"]
        cursors = apps.get_model("readers", "ReaderCursor").objects
        cursors.get_or_create(reader=reader, defaults={"position": newest or 0})

    return migrations.RunPython(write, migrations.RunPython.noop)
