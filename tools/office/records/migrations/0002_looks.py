"""Compute the looks of all names again: more characters have look-alikes now."""

from django.db import migrations

from tools.contract.look_alikes import compute_look

BATCH = 1_000


def compute_looks(apps, schema_editor):
    records = apps.get_model("records", "Record").objects.using(schema_editor.connection.alias)
    after = 0
    while rows := list(records.filter(pk__gt=after).order_by("pk").only("name", "look")[:BATCH]):
        changed = [row for row in rows if row.look != compute_look(row.name)]
        for row in changed:
            row.look = compute_look(row.name)
        records.bulk_update(changed, ["look"])
        after = rows[-1].pk


class Migration(migrations.Migration):
    dependencies = [("records", "0001_initial")]
    operations = [migrations.RunPython(compute_looks, migrations.RunPython.noop)]
