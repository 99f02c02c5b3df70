from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0001_initial"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("level__in", ("write", "destructive"))),
                fields=["organization", "tool", "id"],
                name="calls_asking",
            ),
        ),
    ]
