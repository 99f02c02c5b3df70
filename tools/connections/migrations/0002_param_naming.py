"""Let admins say which params of a source's tool name something, and which name nothing."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="sourcetool",
            name=name,
            field=models.JSONField(blank=True, db_default=[], default=list),
        )
        for name in ("named_params", "plain_params")
    ]
