from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0001_initial"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                models.F("organization"),
                models.Func("score", output_field=models.IntegerField(), template="COALESCE(%(expressions)s, -1)"),
                models.F("id"),
                name="record_score",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(fields=["organization", "updated_at", "id"], name="record_changed"),
        ),
    ]
