"""Compute the looks of all names again, now without accents, and the stems."""

from django.db import migrations

from tools.contract.look_alikes import compute_look
from tools.contract.name_likeness import compute_stem

BATCH = 1_000


def compute_looks(apps, schema_editor):
    records = apps.get_model("records", "Record").objects.using(schema_editor.connection.alias)
    after = 0
    while rows := list(
        records.filter(pk__gt=after).order_by("pk").only("name", "look", "stem")[:BATCH]
    ):
        changed = []
        for row in rows:
            look, stem = compute_look(row.name), compute_stem(row.name)
            if (row.look, row.stem) != (look, stem):
                row.look, row.stem = look, stem
                changed.append(row)
        records.bulk_update(changed, ["look", "stem"])
        after = rows[-1].pk


class Migration(migrations.Migration):
    dependencies = [("records", "0003_stems")]
    operations = [migrations.RunPython(compute_looks, migrations.RunPython.noop)]
