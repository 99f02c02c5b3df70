from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F


def keep_shown_titles(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """Keep the title of each accepted tool as it was shown until now, so that no tool waits for an admin."""
    rows = apps.get_model("connections", "SourceTool").objects
    rows.filter(accepted_hash=F("hash")).update(accepted_title=F("title"))


class Migration(migrations.Migration):
    dependencies = [
        ("connections", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="sourcetool",
            name="accepted_title",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.RunPython(keep_shown_titles, migrations.RunPython.noop, elidable=True),
    ]
