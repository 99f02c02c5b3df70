"""An index for limits over history: the calls of a tool by their start."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_judgment")]

    operations = [
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("started_at__isnull", False)),
                fields=["organization", "tool", "started_at"],
                name="calls_by_start",
            ),
        ),
    ]
