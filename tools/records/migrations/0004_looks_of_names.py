"""Give existing records the look of their names."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from tools.records.models import look_of

ROWS_AT_ONCE = 1_000


def fill_looks(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """Fill them in portions, by primary key."""
    records, last = apps.get_model("records", "Record").objects, 0
    while rows := list(records.filter(pk__gt=last).order_by("pk").only("pk", "name")[:ROWS_AT_ONCE]):
        for row in rows:
            row.look = look_of(row.name)
        records.bulk_update(rows, ["look"])
        last = rows[-1].pk


class Migration(migrations.Migration):
    dependencies = [("records", "0003_look")]

    operations = [migrations.RunPython(fill_looks, migrations.RunPython.noop)]
