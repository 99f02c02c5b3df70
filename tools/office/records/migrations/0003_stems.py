"""Add the stems of names, and indexes for names that differ in one letter."""

import tools.office.records.models
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_languages"),
        ("records", "0002_looks"),
    ]

    operations = [
        migrations.AddField(
            model_name="record",
            name="stem",
            field=tools.office.records.models.StemField(
                blank=True, db_default="", default="", editable=False, max_length=100
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(fields=["organization", "stem"], name="record_stem"),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                models.F("organization"),
                models.Func(
                    "look",
                    output_field=models.TextField(),
                    template="(SUBSTR(%(expressions)s, 1, (LENGTH(%(expressions)s) * 2 / 3)))",
                ),
                name="record_look_start",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                models.F("organization"),
                models.Func(
                    "look",
                    output_field=models.TextField(),
                    template="(SUBSTR(%(expressions)s, LENGTH(%(expressions)s) + 1 - (LENGTH(%(expressions)s) * 2 / 3)))",
                ),
                name="record_look_end",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                models.F("organization"),
                models.Func(
                    "look",
                    output_field=models.TextField(),
                    template="(SUBSTR(%(expressions)s, 1, ((LENGTH(%(expressions)s) - 1) / 3)) || SUBSTR(%(expressions)s, LENGTH(%(expressions)s) + 1 - ((LENGTH(%(expressions)s) - 1) / 3)))",
                ),
                name="record_look_edges",
            ),
        ),
    ]
